"""Tasks: templates and their phrasings, the generator, plans, budgets, pools."""
