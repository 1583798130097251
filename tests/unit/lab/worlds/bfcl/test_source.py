"""The package `bfcl-eval`: found, verified, read, and refused where it is another one."""

import zipfile
from pathlib import Path

import pytest

from toolkit.errors import DamagedError, IncompleteError
from toolkit.lab.tasks.task import Call
from toolkit.lab.worlds import package
from toolkit.lab.worlds.bfcl import source
from toolkit.lab.worlds.bfcl.source import PACKAGE


def files() -> dict[str, bytes]:
    """Return the package's files, looked for anew."""
    return type(PACKAGE).files.__wrapped__(PACKAGE)  # type: ignore[no-any-return]


def test_every_scenario_has_a_request_for_each_plan() -> None:
    for category in source.CATEGORIES:
        listed = source.scenarios(category)
        assert len(listed) == 200
        assert all(len(scenario.requests) == len(scenario.plans) for scenario in listed)


def test_the_base_category_has_the_turns_and_calls_that_are_registered() -> None:
    plans = [plan for scenario in source.scenarios() for plan in scenario.plans if plan]
    assert (len(plans), sum(map(len, plans)), len({call.tool for plan in plans for call in plan})) == (
        742,
        1160,
        82,
    )


def test_a_wheel_does_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = files()
    wheel = tmp_path / "bfcl.whl"
    with zipfile.ZipFile(wheel, "w") as written:
        for name, content in installed.items():
            written.writestr(name, content)
    monkeypatch.setenv(PACKAGE.wheel, str(wheel))
    assert files() == installed


def test_one_byte_that_differs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "bfcl.whl"
    with zipfile.ZipFile(wheel, "w") as written:
        for number, (name, content) in enumerate(files().items()):
            written.writestr(name, content + b"\n" * (number == 3))
    monkeypatch.setenv(PACKAGE.wheel, str(wheel))
    with pytest.raises(DamagedError, match=r"not version 2025\.6\.8"):
        files()


@pytest.mark.parametrize("content", [b"", b"no wheel", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_wheel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    wheel = tmp_path / "bfcl.whl"
    wheel.write_bytes(content)
    monkeypatch.setenv(PACKAGE.wheel, str(wheel))
    with pytest.raises(DamagedError, match=r"not version 2025\.6\.8"):
        files()


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PACKAGE.wheel, raising=False)
    monkeypatch.setattr(package.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(IncompleteError) as missing:
        files()
    assert "pip install --no-deps bfcl-eval==2025.6.8 mpmath" in str(missing.value)


def test_a_call_is_read_without_being_carried_out() -> None:
    assert source.read_call("f(1, 'a', b=[{'c': -2.5}], d=True)") == Call(
        "f", {"0": 1, "1": "a", "b": [{"c": -2.5}], "d": True}
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f",
        "f(x)",
        "f(g())",
        "a.f()",
        "f(**{'a': 1})x",
        "f(__import__('os').system('true'))",
        "f(" + "[" * 5000,
        "f(1); g()",
    ],
)
def test_what_is_no_call_of_literals_is_refused(text: str) -> None:
    with pytest.raises(DamagedError, match="no call of literals"):
        source.read_call(text)
