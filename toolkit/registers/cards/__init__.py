"""The documents of a dataset repository: cards for readers, Croissant for machines."""
