"""Tests of a language model are never left out silently."""

import pytest

from tests.conftest import CHECKOUT
from tests.unit.probe import stack


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "find_spec", lambda name: None if name == "torch" else name)


@pytest.mark.usefixtures("without_torch")
def test_without_torch_a_module_is_skipped_with_the_command_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(
        pytest.skip.Exception, match="torch missing; run: pip install --requirement"
    ) as stopped:
        stack.require_stack()
    assert stopped.value.allow_module_level


@pytest.mark.usefixtures("without_torch")
def test_without_torch_a_build_server_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="torch missing"):
        stack.require_stack()


def test_the_command_names_a_file_that_pins_every_package_exactly() -> None:
    text = (CHECKOUT / stack.INSTALL.split()[-1]).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(len(line.split(";")[0].split("==")) == 2 for line in lines)
    assert set(stack.PACKAGES) <= {line.split("==")[0] for line in lines}
    assert "://" not in text
