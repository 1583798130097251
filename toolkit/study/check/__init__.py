"""Checking a study: its rows played again, its evidence compared with somebody else's."""
