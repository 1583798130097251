"""`toolkit schema`: the JSON Schema of what a command prints with `--json`."""

import json
from pathlib import Path

import click

from toolkit.cli.output import json_option, tell
from toolkit.errors import UsageError
from toolkit.files import read_text

FOLDER = Path(__file__).parents[1] / "documents" / "schemas"


@click.command()
@click.argument("output", nargs=-1)
@json_option
def schema(*, output: tuple[str, ...], as_json: bool) -> None:
    """Print the JSON Schema (2020-12) of OUTPUT, what a command prints with --json; list them without OUTPUT.

    Two are no command's: error, which every command prints where it fails, and rules, which is that of
    rules.toml.

    \b
    Examples:
      toolkit schema
      toolkit schema decide
      toolkit schema registers verify > registers-verify.json
      toolkit schema rules --json
    """
    names = sorted(path.stem for path in FOLDER.glob("*.json"))
    if not output:
        tell(names, *names, as_json=as_json)
        return
    name = "-".join(output)
    if name not in names:
        raise UsageError(f"there is no schema of {name!r}", expected=", ".join(names))
    text = read_text(FOLDER / f"{name}.json")
    if as_json:
        tell(json.loads(text), as_json=True)
    else:
        click.echo(text, nl=False)
