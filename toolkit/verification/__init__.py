"""One study and its registration, checked against each other."""
