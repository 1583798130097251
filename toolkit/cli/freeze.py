"""`toolkit freeze`: say it before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit.cli.authorities import asking_options, demonstrated, online, print_tokens, say
from toolkit.cli.output import (
    console,
    headline,
    json_option,
    print_json,
    print_template,
    say_line,
    standing_mark,
)
from toolkit.cli.templates import RULES
from toolkit.cli.verify_prereg import token_document
from toolkit.errors import UsageError
from toolkit.places import find_home

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@click.command()
@click.argument("registration")
@click.option("--template", is_flag=True, help="Print a rules.toml to be filled in.")
@click.option(
    "--demonstration",
    is_flag=True,
    help="Use two authorities made for the occasion, whose keys are destroyed. Proves nothing to others.",
)
@click.option("--dry-run", is_flag=True, help="Check everything, ask nobody, write nothing.")
@asking_options
@json_option
def freeze(
    *,
    registration: str,
    template: bool,
    demonstration: bool,
    dry_run: bool,
    addresses: tuple[str, ...],
    trust_files: tuple[Path, ...],
    roots: tuple[Path, ...],
    timeout_s: float,
    as_json: bool,
) -> None:
    """Freeze REGISTRATION, a folder with rules.toml and protocol.md, before its runs.

    Its rules are checked (each can pass, and can miss, over the declared ranges), its files are hashed, and
    the list of hashes is timestamped by at least two authorities. Nothing is frozen until every token has
    been verified; a freeze that failed goes on where it stopped.

    \b
    Examples:
      toolkit freeze my-study --template > rules.toml
      toolkit freeze my-study --dry-run
      toolkit freeze my-study
      toolkit freeze my-study --authority https://freetsa.org/tsr --authority http://time.certum.pl
      toolkit freeze my-study --demonstration
    """
    from toolkit.prereg.freeze import freeze as freeze_draft
    from toolkit.prereg.freeze import open_draft, refuse_waiting
    from toolkit.prereg.git import ignored
    from toolkit.prereg.record import DEMONSTRATION, PUBLIC
    from toolkit.prereg.trust import TRUST, known_authorities, parse_trust

    if template:
        print_template(RULES.format(name=registration), as_json=as_json)
        return
    if demonstration and (addresses or roots):
        raise UsageError("a demonstration asks no authority", remedy="leave out --authority and --root")
    folder = find_home().registration_folder(registration)
    draft = open_draft(folder, _check_rules)
    if dry_run:
        _print_dry_run(draft.name, sorted(draft.contents), draft.commit, as_json=as_json)
        return
    known = known_authorities(*trust_files)
    if demonstration:
        refuse_waiting(folder)
        sources = demonstrated()
    else:
        own = draft.contents.get(TRUST)
        named = parse_trust(own.decode(errors="replace"), TRUST) if own is not None else ()
        sources = online(addresses, named, known, roots, timeout_s)
    frozen = freeze_draft(
        folder, draft, sources, known, standing=DEMONSTRATION if demonstration else PUBLIC, say=say
    )
    if as_json:
        print_json(
            {
                "registration": frozen.registration,
                "sha256": frozen.sha256,
                "standing": frozen.standing,
                "commit": frozen.commit or None,
                "files": frozen.files,
                "authorities": [token_document(judged) for judged in frozen.tokens],
            }
        )
        return
    out = console()
    out.print(headline(frozen.registration, ": frozen", standing_mark(frozen.standing)))
    out.print(f"  {len(frozen.files)} files: {', '.join(frozen.files)}", soft_wrap=True, highlight=False)
    out.print(f"  digest {frozen.sha256}", soft_wrap=True, highlight=False)
    print_tokens(frozen.tokens)
    trusting = "".join(f" --trust {path}" for path in trust_files)
    say_line("  commit the folder, and publish the digest")
    say_line(f"  toolkit verify-prereg {frozen.registration}{trusting}")
    for name in ignored(folder):
        say_line(f"  NOT COMMITTED with the folder, because git ignores it: {name}")


def _check_rules(rules: str) -> None:
    from toolkit.decisions.rulebook import load_rulebook
    from toolkit.decisions.vacuity import check_not_vacuous
    from toolkit.prereg.record import UNFILLED
    from toolkit.study.play.matrix import specify

    book = load_rulebook(rules)
    if not book.rules:
        raise UsageError("there is no rule: nothing would be decided", where="rules.toml")
    unfilled = [line.strip() for line in rules.splitlines() if f'"{UNFILLED}' in line]
    if unfilled:
        raise UsageError("the template was not filled in", found=unfilled[0], where="rules.toml")
    check_not_vacuous(book)
    if any(cell.regime for cell in book.plan.cells):
        specify(book.plan, ("", ""), {})  # what is fixed twice agrees


def _print_dry_run(name: str, files: Sequence[str], commit: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"registration": name, "files": files, "commit": commit or None, "ready": True})
        return
    click.echo(f"{name} can be frozen: {', '.join(files)}")
    click.echo("every rule can pass and can miss over the declared ranges; nothing was written")
    if not commit:
        click.echo("the folder is under no version control: no commit will be recorded")
