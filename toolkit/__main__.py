"""`python -m toolkit` is the `toolkit` command."""

from toolkit.cli.main import command

if __name__ == "__main__":
    command()
