"""The models that lie with the package: found by name, as small as they say, and able to do their work."""

import json
from pathlib import Path

import pytest
from small_model.template import CHAT_TEMPLATE

from tests.unit.stack import require_trainer
from toolkit.lab.evaluation.language_model import Sampling, evaluate_block
from toolkit.lab.evaluation.sets import EvaluationSet
from toolkit.lab.policies.language_model.loading import MODELS, WEIGHTS, load_chat, load_model, model_path
from toolkit.lab.policies.language_model.lockstep import LocalEngine
from toolkit.lab.policies.language_model.opening import folder_sha256

SMALL, SOFT = (Path(model_path(name)) for name in ("small", "small-soft"))


def test_it_is_found_by_its_name_and_other_names_are_left_alone() -> None:
    assert SMALL == MODELS / "small"
    assert [model_path(name) for name in ("./small", "some/small", "other")] == [
        "./small",
        "some/small",
        "other",
    ]


@pytest.mark.parametrize("folder", sorted(path.parent for path in MODELS.glob("*/config.json")), ids=str)
def test_the_readme_names_the_hash(folder: Path) -> None:
    readme = (MODELS / "README.md").read_text(encoding="utf-8")
    section = readme.partition(f"## `{folder.name}`\n")[2].partition("\n## ")[0]
    assert folder_sha256(folder) in section


def test_they_write_conversations_as_lessons_are_written_now() -> None:
    assert (SMALL / "chat_template.jinja").read_text(encoding="utf-8") == CHAT_TEMPLATE
    for file in (path for path in SMALL.iterdir() if path.name not in {"config.json", WEIGHTS}):
        assert (SOFT / file.name).read_bytes() == file.read_bytes(), file.name


def test_the_softened_one_says_once_how_much_of_a_head_turns() -> None:
    """Transformers reads the inner number, vLLM the outer one; those of `small` differ."""
    config = json.loads((SOFT / "config.json").read_text(encoding="utf-8"))
    assert config["partial_rotary_factor"] == config["rope_parameters"]["partial_rotary_factor"] == 1.0


@pytest.mark.parametrize(
    ("tasks", "least"), [(range(2, 5, 2), 1), pytest.param(range(32), 10, marks=pytest.mark.slow)]
)
def test_it_solves_tasks(tasks: range, least: int) -> None:
    """Clean validation tasks; with other libraries other tokens are sampled, but not so many."""
    require_trainer()
    model, chat = load_model(str(SMALL)), load_chat(str(SMALL))
    engine = LocalEngine(model, chat, temperature=1.0, max_tokens=1024, context=4096)
    clean = EvaluationSet("final", "validation", "clean", 32, 1)
    rows = evaluate_block(engine, clean, tasks, Sampling("r", 0, 5))
    assert sum(row["true_success"] for row in rows) >= least
