"""Which design a training really ran."""
