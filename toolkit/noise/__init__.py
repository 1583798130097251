"""Noise: event keys and their draws, fault types, regimes, schedules in both designs, grader flips."""
