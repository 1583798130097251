"""Named one-line defects, each with the tests that must fail for it: `python -m tests.mutants`."""
