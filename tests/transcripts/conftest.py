"""The places of transcripts: what a folder holds before its first command; and commands for forgers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forge.case import recipe
from tests.forge.pki import house
from tests.forge.token import DOCUMENT
from tests.registrations import chained, rehash
from tests.small_home import small_home
from tests.unit.conftest import alone, copy  # noqa: F401 - a published study, all registrations; tiny-lm, too
from tests.unit.lab.probe.test_advice import SCORES, written
from toolkit.lab.tasks.pools import POOLS
from toolkit.places import HOME_VARIABLE, Home
from toolkit.prereg.evidence import write_certificates


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without anything."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))


@pytest.fixture
def few_pools(alone: Home, monkeypatch: pytest.MonkeyPatch) -> Home:  # noqa: F811
    """The same as `alone`, for which the toolkit knows one pool, a small one."""
    for name in set(POOLS) - {"diagnostic"}:
        monkeypatch.delitem(POOLS, name)
    return alone


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of one small study, which is played as PLAY names it in `fake_play`."""
    small_home(tmp_path, monkeypatch)


@pytest.fixture
def token(tmp_path: Path) -> None:
    """A token over a document, and the certificate of the root that it rests on."""
    (tmp_path / "good.tsr").write_bytes(recipe().make())
    (tmp_path / "document").write_bytes(DOCUMENT)
    (tmp_path / "root.pem").write_bytes(write_certificates([house().root.der]))
    (tmp_path / "root.der").write_bytes(house().root.der)


def rehash_registration(folder: str, *added: str) -> None:
    """Recompute every hash of a registration, of the files of its chain that are there and of added ones."""
    present = [name for name in chained(Path(folder)) if (Path(folder) / name).exists()]
    rehash(Path(folder), [*present, *added])


def write_rollouts(folder: str) -> None:
    """Write rollouts and their scores, for advice."""
    written(Path(folder), scores=SCORES)


TOOLS: dict[str, Callable[..., None]] = {"rehash": rehash_registration, "rollouts": write_rollouts}
