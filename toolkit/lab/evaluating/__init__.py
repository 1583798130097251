"""Evaluating a model or an agent without training it."""
