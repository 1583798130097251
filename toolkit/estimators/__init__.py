"""Numbers in, numbers out."""

from toolkit.estimators.auc import auc, auc_weights

__all__ = ["auc", "auc_weights"]
