"""GRPO on language models, in both designs: TRL's trainer over the back office."""
