"""Check and run pre-registered reinforcement-learning studies."""

__version__ = "0.1.0"
