"""Two authorities on loopback, and a draft for them to timestamp."""

import shutil

import pytest

from tests.conftest import CHECKOUT
from tests.forge.server import Authority
from tests.unit.prereg.drafts import freeze_with, source, write_draft
from toolkit.prereg import authority as asking


@pytest.fixture(autouse=True)
def _quick(monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(asking, "PAUSE_S", 0.001)


@pytest.fixture(scope="session")
def pair():
    with Authority("A") as first, Authority("B") as other:
        yield source(first, "Authority A"), source(other, "Authority B")


@pytest.fixture
def servers():
    """Two authorities of the test's own, whose clocks and faults it may set."""
    with Authority("A") as first, Authority("B") as other:
        yield first, other


@pytest.fixture
def sources(servers):
    return source(servers[0], "Authority A"), source(servers[1], "Authority B")


@pytest.fixture
def draft(tmp_path):
    return write_draft(tmp_path)


@pytest.fixture(scope="session")
def _frozen(tmp_path_factory, pair):
    folder = write_draft(tmp_path_factory.mktemp("frozen"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "*")
        freeze_with(folder, *pair)
    return folder


@pytest.fixture
def frozen(_frozen, tmp_path):
    """A registration frozen by the pair, made once, to be changed."""
    return shutil.copytree(_frozen, tmp_path / _frozen.name)


@pytest.fixture
def restated(tmp_path):
    """A copy of the registration that restates a document frozen elsewhere, to be changed."""
    return shutil.copytree(CHECKOUT / "prereg/paired-rollouts", tmp_path / "paired-rollouts")
