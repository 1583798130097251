"""The command line: one file a command group. Parse, call, print; no logic."""
