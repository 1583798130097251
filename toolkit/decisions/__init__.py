"""The rule language, endpoints, evaluation and verdicts: pure, exact, and without any study's numbers."""
