"""BFCL v3 multi-turn as a world: its own back-ends, questions and answers, from the reader's own copy."""
