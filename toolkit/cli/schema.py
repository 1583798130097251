"""`toolkit schema`: the JSON Schema of what a command prints with `--json`."""

import json
from pathlib import Path

import click

from toolkit.cli.output import json_option, tell
from toolkit.errors import UsageError, did_you_mean
from toolkit.files import read_text

FOLDER = Path(__file__).parents[1] / "documents" / "schemas"


@click.command()
@click.argument("output", nargs=-1)
@click.option("--registers", is_flag=True, help="Describe the columns of the tables OUTPUT, or of every one.")
@json_option
@click.pass_context
def schema(context: click.Context, *, output: tuple[str, ...], registers: bool, as_json: bool) -> None:
    """Print the JSON Schema of OUTPUT: what a command prints with --json.

    Without OUTPUT, list them. Three are no command's: error is what every command prints where it fails,
    rules is that of rules.toml, amendment that of an amendment's file. The dialect is 2020-12.

    \b
    Examples:
      toolkit schema
      toolkit schema decide
      toolkit schema registers verify > registers-verify.json
      toolkit schema rules --json
      toolkit schema --registers evaluations
    """
    if registers:
        from toolkit.cli.registers import schema as columns

        context.invoke(columns, tables=output, as_json=as_json)
        return
    names = sorted(path.stem for path in FOLDER.glob("*.json"))
    if not output:
        tell(names, *names, as_json=as_json)
        return
    name = "-".join(output)
    if name not in names:
        raise UsageError(
            f"there is no schema of {name!r}", expected=", ".join(names), remedy=did_you_mean(name, names)
        )
    text = read_text(FOLDER / f"{name}.json")
    if as_json:
        tell(json.loads(text), as_json=True)
    else:
        click.echo(text, nl=False)
