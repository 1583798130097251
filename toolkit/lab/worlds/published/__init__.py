"""The published study's world: tasks, tools, faults and scripted agents; words come from a checkout."""
