"""Registrations: what was frozen, what was added later, and whether the freeze came before the runs."""
