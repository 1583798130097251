"""Checks that play rows again."""
