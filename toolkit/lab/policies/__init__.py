"""Policies: what chooses an agent's actions, with the probabilities and scores of its choices."""
