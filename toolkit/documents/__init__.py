"""What `--json` prints, as types: the definitions that builders are checked against and schemas made from."""
