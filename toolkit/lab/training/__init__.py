"""Training: GRPO in both designs, bit for bit: what a step plays, what it learns, and what it logs."""
