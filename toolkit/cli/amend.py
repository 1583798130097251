"""`toolkit amend`, `toolkit deviate`: say what changed after the freeze, and when."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolkit.cli.authorities import asking_options, demonstrated, online, print_tokens, say
from toolkit.cli.output import console, headline, json_option, print_json, print_template, standing_mark
from toolkit.cli.templates import AMENDMENT, DEVIATION
from toolkit.cli.verify_prereg import token_document
from toolkit.errors import UsageError
from toolkit.places import find_home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.prereg.later import Amendment, Deviation
    from toolkit.prereg.registration import Registration
    from toolkit.prereg.timestamping import Source
    from toolkit.prereg.trust import Trusted


@click.command()
@click.argument("registration", required=False)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--template", is_flag=True, help="Print an amendment to be filled in.")
@asking_options
@json_option
def amend(*, template: bool, **options: Any) -> None:
    """Add FILE to REGISTRATION: an amendment, which changes rules before the data that it concerns.

    It names the rules that it replaces, restates or adds, why, and what had been seen, and is frozen like the
    registration.

    \b
    Examples:
      toolkit amend --template > A2.toml
      toolkit amend my-study A2.toml
    """
    _add(AMENDMENT, "amendment", is_template=template, **options)


@click.command()
@click.argument("registration", required=False)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--template", is_flag=True, help="Print a deviation to be filled in.")
@asking_options
@json_option
def deviate(*, template: bool, **options: Any) -> None:
    """Add FILE to REGISTRATION: a deviation or disclosure, which records an event and changes no rule.

    \b
    Examples:
      toolkit deviate --template > D1.toml
      toolkit deviate my-study D1.toml
    """
    _add(DEVIATION, "deviation", is_template=template, **options)


def _add(
    template: str,
    kind: str,
    *,
    is_template: bool,
    registration: str | None,
    file: Path | None,
    as_json: bool,
    **asking: Any,
) -> None:
    from datetime import UTC, datetime

    from toolkit.prereg.addition import add, read_addition
    from toolkit.prereg.registration import load_registration
    from toolkit.prereg.trust import known_authorities

    if is_template:
        print_template(template.format(today=datetime.now(UTC).date()), as_json=as_json)
        return
    if registration is None or file is None:
        raise UsageError(
            f"a registration and the file of the {kind} are needed", remedy="--template prints one"
        )
    loaded = load_registration(find_home().registration_folder(registration))
    entry, content = read_addition(loaded, file)
    if type(entry).__name__.lower() != kind:
        raise UsageError(f"{file.name} is no {kind}", found=type(entry).__name__.lower(), where=file)
    known = known_authorities(*asking["trust_files"])
    added = add(
        loaded,
        entry,
        content,
        _sources(loaded, known, **asking),
        known,
        check=lambda fresh: check_entry(fresh, entry),
        say=say,
    )
    if as_json:
        print_json(
            {
                "registration": added.registration,
                "id": added.id,
                "file": added.file,
                "link": added.link,
                "authorities": [token_document(judged) for judged in added.tokens],
            }
        )
        return
    out = console()
    mark = standing_mark(loaded.record.standing)
    out.print(headline(added.registration, f": {kind} {added.id} recorded in {added.file}{mark}"))
    out.print(f"  link {added.link}", soft_wrap=True, highlight=False)
    print_tokens(added.tokens)
    out.print("  commit the folder", highlight=False)
    if not added.tokens:
        out.print(
            "  NOT TIMESTAMPED: this registration restates one that was frozen elsewhere", highlight=False
        )


def _sources(
    registration: Registration,
    known: Sequence[Trusted],
    *,
    addresses: tuple[str, ...],
    roots: tuple[Path, ...],
    timeout_s: float,
    trust_files: tuple[Path, ...],  # noqa: ARG001 - read by the caller
) -> tuple[Source, ...]:
    from toolkit.prereg.record import DEMONSTRATION, EVIDENCE

    if registration.record.is_restated:
        return ()
    if registration.record.standing == DEMONSTRATION:
        return demonstrated()
    evidence = (registration.folder / EVIDENCE).glob("*.pem")
    return online(addresses, registration.trust_in(), known, (*roots, *sorted(evidence)), timeout_s)


def check_entry(registration: Registration, entry: Amendment | Deviation) -> None:
    """Check an amendment's rules with those before it, and that the rules a deviation names are there."""
    from toolkit.decisions.rulebook import load_rulebook
    from toolkit.decisions.vacuity import check_not_vacuous
    from toolkit.prereg.later import Amendment

    texts = [amendment.rules for amendment in registration.amendments]
    if not isinstance(entry, Amendment):
        book = load_rulebook(registration.rules, texts)
        for name in entry.concerns:
            book.rule(name)
        return
    book = load_rulebook(registration.rules, [*texts, entry.rules])
    changed = {*entry.replaces, *entry.restates, *entry.adds}
    resting = {rule.id for rule in book.rules.values() if changed & book.names_of(rule)}
    check_not_vacuous(book, changed | resting)
