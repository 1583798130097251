"""Evaluation: the registered sets and the luck-share diagnostic, played by a policy as it is."""
