"""`toolkit registers card`: a study's card, made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli import offers
from toolkit.cli.output import check_option, json_option, tell
from toolkit.places import find_home

if TYPE_CHECKING:
    from toolkit.documents.registers import CardDocument, Written


@click.command()
@click.argument("study", shell_complete=offers.studies)
@check_option
@json_option
def card(*, study: str, check: bool, as_json: bool) -> None:
    """Make the card of STUDY anew.

    It is made from its source in cards/, with the findings; no row is touched.

    A finding that says another verdict than its rule reaches is refused. The card is README.md in the study's
    repository, and the manifest names it.

    \b
    Examples:
      toolkit registers card coupled
      toolkit registers card coupled --check --json
    """
    from toolkit.findings import card_documents, check_card, write_card

    home = find_home()
    if not check:
        home.check_own("TOOLKIT_HOME=")
    case = api.open_case(api.open_study(study, home), home)
    documents = card_documents(case, home.cards)
    if check:
        check_card(case, documents)
    else:
        write_card(case, documents)
    done: Written = "identical" if check else "written"
    document: CardDocument = {
        "study": study,
        "folder": str(case.study.folder),
        "files": list(documents),
        "outcome": done,
    }
    tell(
        document,
        f"{study}: {', '.join(documents)} {done} in {case.study.folder}",
        as_json=as_json,
    )
