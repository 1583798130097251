"""The gradient probe: scores, Gram matrices, covariance traces of the group gradient, their uncertainty."""
