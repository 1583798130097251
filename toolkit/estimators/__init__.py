"""Numbers in, numbers out."""

from toolkit.estimators.auc import auc, auc_weights
from toolkit.estimators.threshold import steps_to_threshold

__all__ = ["auc", "auc_weights", "steps_to_threshold"]
