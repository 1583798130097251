"""Noise in anybody's training loop: the public names of `toolkit.noise.trainers`."""
