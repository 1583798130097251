"""What a training would cost, before it begins."""
