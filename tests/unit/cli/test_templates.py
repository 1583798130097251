"""Texts to be filled in work once they are, and not before."""

from pathlib import Path

import pytest

from tests.conftest import Toolkit
from toolkit.places import Home


def filled(text: str) -> str:
    return text.replace("FILL IN: ", "Said: ")


@pytest.fixture
def draft(toolkit: Toolkit, alone: Home) -> Path:
    folder = alone.registrations / "mine"
    folder.mkdir()
    (folder / "rules.toml").write_text(filled(toolkit("freeze", "mine", "--template").out))
    (folder / "protocol.md").write_text("# Plan\n")
    return folder


def test_the_rules_template_can_be_frozen_once_it_is_filled_in(toolkit: Toolkit, draft: Path) -> None:
    assert "mine can be frozen" in toolkit("freeze", "mine", "--dry-run").out
    assert toolkit("freeze", draft.name, "--demonstration").code == 0


def test_the_rules_template_as_it_is_is_refused(toolkit: Toolkit, draft: Path) -> None:
    (draft / "rules.toml").write_text(toolkit("freeze", "mine", "--template").out)
    toolkit("freeze", "mine", "--demonstration").refused(2, "the template was not filled in")


@pytest.mark.parametrize("kind", ["amend", "deviate"])
def test_an_addition_is_refused_until_its_template_is_filled_in(toolkit, draft, tmp_path, kind) -> None:
    toolkit("freeze", "mine", "--demonstration")
    path = tmp_path / "addition.toml"
    path.write_text(toolkit(kind, "--template").out)
    toolkit(kind, "mine", path).refused(4, "was left as in the template")
    path.write_text(filled(path.read_text()))
    assert toolkit(kind, "mine", path).code == 0
    assert toolkit("verify-prereg", draft.name).code == 0


def test_the_amendment_template_names_every_relation(toolkit: Toolkit) -> None:
    from toolkit.rules.rules import RELATIONS

    lines = toolkit("amend", "--template").out.splitlines()
    for relation in RELATIONS:
        assert any(line.removeprefix("# ").startswith(f"{relation} = ") for line in lines), relation


@pytest.mark.parametrize("command", [("freeze", "mine"), ("amend",), ("deviate",)])
def test_a_template_is_a_document_with_json(toolkit: Toolkit, command: tuple[str, ...]) -> None:
    assert toolkit(*command, "--template", "--json").json()["template"] == toolkit(*command, "--template").out


def test_an_empty_protocol_and_no_rule_are_no_plan(toolkit: Toolkit, draft: Path) -> None:
    (draft / "protocol.md").write_text("\n")
    assert "the protocol is empty" in toolkit("freeze", "mine", "--demonstration").err
    (draft / "protocol.md").write_text("# Plan\n")
    rules = (draft / "rules.toml").read_text()
    (draft / "rules.toml").write_text(rules[: rules.index("# A hypothesis")])
    assert "there is no rule" in toolkit("freeze", "mine", "--demonstration").err


def test_a_demonstration_says_how_it_gives_way(toolkit: Toolkit, draft: Path) -> None:
    toolkit("freeze", draft.name, "--demonstration")
    toolkit("freeze", draft.name).refused(2, "since it is a demonstration, remove FROZEN.sha256")


def test_a_demonstration_discards_no_token_of_a_public_freeze(toolkit: Toolkit, draft: Path) -> None:
    waiting = draft / ".pending" / "evidence"
    waiting.mkdir(parents=True)
    (waiting / "freeze.freetsa.tsr").write_bytes(b"")
    toolkit("freeze", "mine", "--demonstration").refused(2, "a public freeze was begun here")


def test_a_registration_does_not_vouch_for_itself(toolkit: Toolkit, draft: Path) -> None:
    toolkit("freeze", "mine", "--demonstration")
    toolkit("verify-prereg", "mine", "--trust", draft / "trust.toml").refused(
        2, "cannot vouch for its own authorities"
    )
