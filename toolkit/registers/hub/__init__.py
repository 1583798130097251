"""Registers on the Hugging Face Hub: a dataset repository a study, pulled by commit and always verified."""
