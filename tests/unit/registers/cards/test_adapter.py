"""The model card of an adapter says what the rows say, and that the rest is unknown."""

import ast
import re
from dataclasses import replace

import pytest

from tests.conftest import CHECKOUT
from toolkit.errors import IncompleteError, UsageError
from toolkit.registers.cards.adapter import Adapter, adapter_card
from toolkit.registers.origin import Origin
from toolkit.registers.study import Study

SOURCE = (CHECKOUT / "cards" / "adapter.md").read_text(encoding="utf-8")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
# The paper's own words: rank 32, alpha 64, all linear layers.
ADAPTER = Adapter("OWNER/c4-paired", "Qwen/Qwen3.5-2B", 100, "apache-2.0", 32, 64, ("all linear layers",))


def made(study: Study, run_id: str = "t1-c2-paired-s1", adapter: Adapter = ADAPTER) -> str:
    (run,) = [row for row in study.rows("runs") if row["run_id"] == run_id]
    origin = Origin("OWNER/published", "v1.0.0", COMMIT, "OWNER/published@v1.0.0")
    return adapter_card(
        SOURCE,
        adapter,
        run,
        study.rows("evaluations"),
        origin=origin,
        registration=study.manifest.registration,
    )


def test_the_hub_reads_the_metadata_and_every_result(published: Study) -> None:
    from huggingface_hub import ModelCard

    data = ModelCard(made(published)).data
    assert (data.base_model, data.library_name, data.license) == ("Qwen/Qwen3.5-2B", "peft", "apache-2.0")
    final = {
        row["regime"]: row["successes"] / row["episodes"]
        for row in published.rows("evaluations")
        if (row["run_id"], row["phase"], row["step"]) == ("t1-c2-paired-s1", "final", 100)
    }
    assert len(final) > 2
    assert {r.dataset_args["regime"]: r.metric_value for r in data.eval_results} == final
    assert {(r.dataset_type, r.dataset_revision) for r in data.eval_results} == {("OWNER/published", COMMIT)}


def test_the_card_names_the_registration_and_the_commit(published: Study) -> None:
    card = made(published)
    assert "{{" not in card
    assert published.manifest.registration.sha256 in card
    assert f"OWNER/published@{COMMIT}" in card


def test_what_nobody_said_is_unknown(published: Study) -> None:
    card = made(published, adapter=replace(ADAPTER, rank=None, alpha=None, targets=()))
    for fact in ("rank", "alpha", "adapted modules"):
        assert f"| {fact} | unknown |" in card


def test_a_run_of_unknown_weights_pins_no_revision(published: Study) -> None:
    """The pilot's row does not name the commit of the weights."""
    pilot = made(published, "gate1-c2-paired-s0")
    assert "| commit of its weights | unknown |" in pilot
    assert 'from_pretrained("Qwen/Qwen3.5-2B")' in pilot
    assert 'from_pretrained("Qwen/Qwen3.5-2B", revision="15852e8c' in made(published, "t1-c0-clean-s1-h100")


def test_its_python_is_python(published: Study) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", made(published), re.DOTALL | re.MULTILINE)
    assert len(ast.parse(code).body) == 5


def test_a_step_that_was_never_made_or_never_evaluated_has_no_card(published: Study) -> None:
    with pytest.raises(IncompleteError, match="no final evaluation at step 80"):
        made(published, adapter=replace(ADAPTER, step=80))
    with pytest.raises(UsageError, match="no step 101"):
        made(published, adapter=replace(ADAPTER, step=101))
