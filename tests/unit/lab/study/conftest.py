"""A language model whose adapters are probed, and a battery that is soon played."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.stack import require_stack
from toolkit.lab.evaluation import sets


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a base model of 20 thousand parameters, whose adapters are probed."""
    require_stack()
    import torch

    from tests.unit.lab.study.small_model import save_base

    torch.set_num_threads(1)
    return save_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def few() -> Iterator[int]:
    """Have a curve's set consist of a few tasks, and return how many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sets.CURVES, "curve", 12)
        yield 12
