"""`toolkit findings`: one JSON document, text with its label, and studies that have nothing to show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from toolkit.cli.findings import findings
from toolkit.errors import UsageError
from toolkit.study.findings import FINDINGS, LABEL

if TYPE_CHECKING:
    from click.testing import Result


def run(*arguments: str) -> Result:
    return CliRunner().invoke(findings, arguments)


def test_json_is_one_document_with_every_finding() -> None:
    document = json.loads(run("--json").stdout)
    assert document["study"] == "published"
    assert [finding["id"] for finding in document["findings"]] == list(FINDINGS)


def test_every_finding_carries_the_label() -> None:
    document = json.loads(run("--json").stdout)
    assert {finding["label"] for finding in document["findings"]} == {LABEL}


def test_json_has_the_fixed_shape() -> None:
    document = json.loads(run("--json").stdout)
    keys = {"id", "title", "label", "status", "numbers", "sentence", "source"}
    assert all(set(finding) == keys for finding in document["findings"])


def test_text_shows_a_block_a_finding() -> None:
    out = run().stdout
    assert out.count(LABEL) == len(FINDINGS)
    assert all(title in out for title, _ in FINDINGS.values())


def test_text_shows_numbers_and_what_they_mean() -> None:
    out = run("--study", "published").stdout
    assert "0.0346" in out
    assert "3.06 standard errors below 0.5695" in out


@pytest.mark.parametrize("name", ["task-pools", "nothing"])
def test_a_study_without_runs_is_wrong_usage(name: str) -> None:
    result = run("--study", name)
    assert isinstance(result.exception, UsageError)
    assert result.exception.exit_code == 2
