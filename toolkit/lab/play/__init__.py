"""Playing a study's matrix: runs, segments, the folder that keeps them, the registers they end in."""
