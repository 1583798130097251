"""The rule language: what a registration declares, parsed and checked; nothing is measured here."""
