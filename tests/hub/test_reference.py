"""Names of studies on the Hub."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import run
from toolkit.errors import UsageError
from toolkit.registers.hub.revision import looks_like_reference, parse_reference

SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "repository", "revision"),
    [
        ("group/study", "group/study", "main"),
        ("group/study@v1.0.0", "group/study", "v1.0.0"),
        (f"a/b@{SHA[:7]}", "a/b", SHA[:7]),
        (f"group/study@{SHA}", "group/study", SHA),
        ("hf://datasets/group/my.study@refs%2Fpr%2F1", "group/my.study", "refs/pr/1"),
    ],
)
def test_a_reference_names_a_repository_and_a_revision(text: str, repository: str, revision: str) -> None:
    reference = parse_reference(text)
    assert (reference.repository, reference.revision, reference.asked) == (repository, revision, text)
    assert reference.is_commit == (revision == SHA)


@pytest.mark.parametrize(
    "text",
    [
        *("study", "a/b/c", "/a", "a/", "../b", "./b", "a/b@", "a/b@ v"),
        *("a b/c", "a--b/c", "a/b@v1@v2", "a/..", ""),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="names no study on the Hub"):
        parse_reference(text)


@pytest.mark.parametrize(
    "text",
    [f"group/study@{'v' * 201}", f"hf://datasets/group/study@{'v' * 5000}", f"group/{'s' * 300}", "x" * 5000],
    ids=lambda text: f"{text[:24]}, {len(text)} characters",
)
def test_a_reference_that_is_too_long_is_wrong_usage_everywhere(text: str) -> None:
    for command in (
        ("registers", "pull", text),
        ("registers", "verify", "--study", text),
        ("registers", "push", text, "group/study"),
        ("registers", "push", "published", text),
        ("sql", "FROM runs", "--study", text),
        ("sql", "FROM runs", "--study", text, "--remote"),
        ("decide", "--all", "--study", text),
        ("registers", "diff", "published", text),
    ):
        assert run(*command).code == 2, command


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        repository = parse_reference(text).repository
    except UsageError:
        return
    assert looks_like_reference(text)
    assert repository.count("/") == 1
