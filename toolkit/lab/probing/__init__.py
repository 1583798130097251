"""The registered probe: jobs, evidence, report."""
