"""Episodes: one task played under one schedule, graded, and recorded so that it can be played again."""
