"""The laboratory: the back office, its tasks and policies, training, evaluation, and what plays a study."""
