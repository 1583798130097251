"""The small language model that lies with the package: how it was made, and what runs it quicker."""
