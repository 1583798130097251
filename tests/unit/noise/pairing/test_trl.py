"""Groups of TRL's own trainer: which rollouts share a schedule, and what of them is recorded."""

import runpy
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import CHECKOUT, SMALL_MODEL
from tests.unit.noise.pairing.test_groups import row
from tests.unit.stack import require_trainer

require_trainer()

from trl import GRPOConfig, GRPOTrainer  # noqa: E402 - only where it is there

from tests.unit.lab.training.language_model.small_model import saved, turn_tokens  # noqa: E402
from toolkit.errors import DamagedError, UsageError  # noqa: E402
from toolkit.noise.draws import slot_seed  # noqa: E402
from toolkit.noise.trainers.groups import Group, read, verify  # noqa: E402
from toolkit.noise.trainers.tools import tool  # noqa: E402
from toolkit.noise.trainers.trl import Paired, digest, paired  # noqa: E402
from toolkit.seeds import Stream  # noqa: E402

EXAMPLES = CHECKOUT / "examples" / "pairing"
G = 4
SHOWN = [("show", {"path": path}) for path in "abcdefgh"]


class Files:
    """Two files."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def reset(self, **row: Any) -> str:
        """Start anew."""
        self.shown.clear()
        return f" of {len(row)}"

    @tool("read", "path")
    def show(self, path: str) -> dict[str, str]:
        """Show a file.

        Args:
            path: its name.
        """
        self.shown.append(path)
        return {"text": path * 2, "of": "all"}

    def about(self) -> str:
        """Say what this is."""
        return "files"

    def _hidden(self) -> None:
        """Do nothing."""


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """Return a tokenizer that writes and reads calls of tools."""
    sys.path.insert(0, str(SMALL_MODEL))
    from small_model.untrained import make_tokenizer

    return make_tokenizer(["show path notes plan put name copy text done milk bread"])


@pytest.fixture(scope="session")
def model(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    return saved(tmp_path_factory.mktemp("model"), tokenizer)


@contextmanager
def saying(tokenizer: Any, *calls: tuple[str, dict[str, Any]]) -> Iterator[None]:
    """Have trainers' models say the same calls in every rollout's first turn, and no more."""
    first, last = turn_tokens(tokenizer, *calls), turn_tokens(tokenizer, text="done")
    answer = tokenizer.convert_tokens_to_ids("<tool>")

    def turn(_: Any, prompts: list[list[int]], *__: Any, **___: Any) -> tuple[list[list[int]], None]:
        return [list(last if answer in prompt else first) for prompt in prompts], None

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
        patch.setattr(GRPOTrainer, "_generate_single_turn", turn)
        yield


def trainer(
    model: str, folder: Path, noise: Paired, names: list[str], every: int = 3, **changed: Any
) -> GRPOTrainer:
    """Return a trainer on one prompt a name; whether a rollout is rewarded follows from its place."""
    from datasets import Dataset

    prompts = [[{"role": "user", "content": name}] for name in names]
    settings = {"max_steps": 2, "per_device_train_batch_size": 2 * G, "max_completion_length": 400}
    options = GRPOConfig(
        str(folder),
        num_generations=G,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        shuffle_dataset=False,
        **{**settings, **changed},
    )
    return GRPOTrainer(
        model,
        reward_funcs=[
            noise.observed(lambda environments, **_: [at % every / 2 for at in range(len(environments))])
        ],
        args=options,
        train_dataset=Dataset.from_dict({"prompt": prompts, "name": names}),
        environment_factory=noise,
        callbacks=[noise],
    )


def expected(design: str, group: Group, seed: int) -> list[str]:
    first = row(seed, group.step, group.task, group.repeat)
    return [str(first if design == "paired" else slot_seed(first, slot)) for slot in range(G)]


def trained(folder: Path, tokenizer: Any, model: str, every: int = 3, **resumed: Any) -> list[bytes]:
    """Train four steps in the independent design; return the lines of the record."""
    record = folder / "groups.jsonl"
    noise = paired(Files, design="independent", regime="faults_p025", seed=7, record=record, task="name")
    with saying(tokenizer, *SHOWN):
        made = trainer(model, folder, noise, ["x", "y"], every, max_steps=4, save_steps=2)
        made.train(**resumed)
    assert made.environments[0].shown  # the calls reached the tools
    return record.read_bytes().splitlines()


@pytest.fixture(scope="module")
def whole(tokenizer: Any, model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run, with its record and checkpoints."""
    folder = tmp_path_factory.mktemp("whole")
    trained(folder, tokenizer, model)
    return folder


def test_every_step_is_recorded_and_verified(whole: Path) -> None:
    groups = read(whole / "groups.jsonl")
    assert [group.place for group in groups] == [(step, name, 0) for step in (1, 2, 3, 4) for name in "xy"]
    assert [group.schedule_seeds for group in groups] == [expected("independent", g, 7) for g in groups]
    assert [group.true_outcomes for group in groups[:2]] == [[0, 0.5, 1, 0], [0.5, 1, 0, 0.5]]
    assert verify(whole / "groups.jsonl").groups == 8


def test_a_run_goes_on_from_a_checkpoint(whole: Path, tokenizer: Any, model: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    lines = (folder / "groups.jsonl").read_bytes().splitlines()
    (folder / "groups.jsonl").write_bytes(b"\n".join(lines)[:-100])
    again = trained(folder, tokenizer, model, 2, resume_from_checkpoint=str(folder / "checkpoint-2"))
    assert again[:4] == lines[:4]
    assert [group.true_outcomes for group in read(folder / "groups.jsonl")[4:]] == [[0, 0.5, 0, 0.5]] * 4
    assert verify(folder / "groups.jsonl").steps == 4


@pytest.mark.slow
def test_batches_steps_and_repeated_prompts_keep_their_groups(tokenizer, model, tmp_path) -> None:
    """Accumulation, several iterations on a batch, and a prompt that a step has twice."""
    several = {"gradient_accumulation_steps": 4, "steps_per_generation": 2}
    runs = {
        "batches": (["x", "x", "y", "x"], {"per_device_train_batch_size": G, **several}),
        "iterations": (["x", "y"], {"num_iterations": 2, "max_steps": 4}),
    }
    found = {}
    for name, (prompts, changed) in runs.items():
        record = tmp_path / f"{name}.jsonl"
        noise = paired(Files, design="paired", regime="faults_p025", seed=1, record=record)
        with saying(tokenizer, *SHOWN):
            trainer(model, tmp_path, noise, prompts, **changed).train()
        found[name] = read(record)
        assert verify(record).groups == len(found[name])
        for group in found[name]:
            assert group.schedule_seeds == expected("paired", group, 1)
            # All rollouts make the same calls: under one schedule all or none of them meet a fault.
            assert group.exposed in (0, G)
    x, y = (digest([{"content": name, "role": "user"}]) for name in "xy")
    assert [group.place for group in found["batches"]] == [
        (step, *place) for step in (1, 2) for place in ((x, 0), (x, 1), (y, 0), (x, 2))
    ]
    assert [group.place for group in found["iterations"]] == [(1, x, 0), (1, y, 0), (3, x, 0), (3, y, 0)]


@pytest.mark.slow
def test_the_example_trains(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model says is its own."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", ["with_trl.py", "paired", model])
    runpy.run_path(str(EXAMPLES / "with_trl.py"))
    found = verify(tmp_path / "groups.jsonl")
    assert (found.groups, found.rollouts, found.steps) == (4, 16, 2)


def stepping(noise: Paired, size: int = G, **process: int) -> Callable[[int], None]:
    """Return what begins a step, as a trainer does it."""
    said = SimpleNamespace(**{"num_generations": size, "process_index": 0, "world_size": 1, **process})
    noise.on_init_end(said, None, None)
    return lambda step: noise.on_step_begin(said, SimpleNamespace(global_step=step - 1), None)


def begun(noise: Paired, names: Iterable[str]) -> list[Any]:
    """Return environments that were reset, each with the name of its task."""
    names = list(names)
    environments = [noise() for _ in names]
    for environment, name in zip(environments, names, strict=True):
        environment.reset(name=name)
    return environments


@pytest.mark.parametrize("design", ["paired", "independent"])
def test_whatever_order_environments_are_reset_in(design: Any) -> None:
    """A group's rollouts have its slots, and meet what they meet in any other order."""
    for seed in range(20):
        noise = paired(Files, design=design, regime="faults_p025", seed=seed, task="name")
        rows = Stream(seed).shuffled([*"xyx"] * G)
        begin = stepping(noise)
        for step in (1, 2):
            begin(step)
            environments = begun(noise, rows)
        met = sorted((e._place.task, e._place.repeat, e._slot, e._seed) for e in environments)
        for at, (name, repeat) in enumerate([("x", 0), ("x", 1), ("y", 0)]):
            first = row(seed, 2, name, repeat)
            seeds = [first if design == "paired" else slot_seed(first, slot) for slot in range(G)]
            assert met[at * G :][:G] == [(name, repeat, slot, seeds[slot]) for slot in range(G)]


def test_rollouts_that_are_compared_and_are_no_group_stop_the_run() -> None:
    noise = paired(Files, design="paired", regime="clean", seed=0, task="name")
    stepping(noise, size=2)(1)
    environments = begun(noise, "xyxy")
    reward = noise.observed(lambda environments, **_: [1.0] * len(environments))
    with pytest.raises(DamagedError, match="not one group"):
        reward(environments=environments)
    x, y = environments[::2], environments[1::2]
    with pytest.raises(DamagedError, match="not one group"):
        reward(environments=[x[0], x[0], *y])
    assert reward(environments=[*x, *y]) == [1.0] * 4


def test_processes_of_one_run_share_no_group_and_no_file(tmp_path: Path) -> None:
    places = []
    for process in range(2):
        record = tmp_path / "groups.jsonl"
        noise = paired(Files, design="paired", regime="clean", seed=0, task="name", record=record)
        stepping(noise, size=2, process_index=process, world_size=2)(1)
        environments = begun(noise, "xxxx")
        noise.observed(lambda **_: [1.0] * 4)(environments=environments)
        places += [environment._place for environment in environments[::2]]
    assert [place.repeat for place in places] == [0, 2, 1, 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["groups-1.jsonl", "groups.jsonl"]


def test_an_evaluation_meets_the_same_schedules_each_time_and_is_not_recorded(tmp_path: Path) -> None:
    record = tmp_path / "groups.jsonl"
    noise = paired(Files, design="paired", regime="flips_q010", seed=0, task="name", record=record)
    begin = stepping(noise, size=2)
    met = []
    for step in (1, 2):
        begin(step)
        noise.on_step_end(None, None, None)
        environments = begun(noise, "xxxx")
        noise.observed(lambda **_: [1.0] * 4)(environments=environments)
        noise.on_evaluate(None, None, None)
        met.append([environment._seed for environment in environments])
    assert met[0] == met[1]
    assert len(set(met[0])) == 4
    assert not record.exists()


def test_tools_are_what_the_class_shows_and_waiting() -> None:
    from transformers.utils import get_json_schema

    noise = paired(Files, design="paired", regime="clean", seed=0, task="name")
    stepping(noise)(1)
    environment = noise()
    public = [name for name in dir(environment) if not name.startswith("_")]
    assert public == ["about", "reset", "show", "wait"]
    schemas = {
        name: get_json_schema(getattr(environment, name))["function"] for name in ("show", "wait", "about")
    }
    assert schemas["show"]["parameters"]["properties"] == {
        "path": {"type": "string", "description": "its name."}
    }
    assert schemas["wait"]["parameters"]["required"] == ["seconds"]
    assert environment.reset(name="x") == " of 1"
    assert environment.show(path="ab") == {"text": "abab", "of": "all"}
    assert (environment.wait(2), environment.about(), environment.shown) == ({"waited": 2}, "files", ["ab"])


def test_a_class_that_grades_itself_is_observed(tmp_path: Path) -> None:
    class Graded(Files):
        def get_reward(self) -> float:
            """Return the reward."""
            return 1.0

    record = tmp_path / "groups.jsonl"
    noise = paired(Graded, design="independent", regime="flips_q010", seed=0, task="name", record=record)
    stepping(noise, size=40)(1)
    rewards = [environment.get_reward() for environment in begun(noise, "x" * 40)]
    assert 0 < rewards.count(0.0) < 20
    [group] = read(record)
    assert (group.true_outcomes, group.observed_rewards, group.spurious) == ([1.0] * 40, rewards, True)


def test_a_factory_that_is_no_callback_and_a_row_without_a_task_are_refused() -> None:
    noise = paired(Files, design="paired", regime="clean", seed=0)
    with pytest.raises(UsageError, match="which step"):
        noise().reset(prompt="x")
    stepping(noise)(1)
    with pytest.raises(UsageError, match="names its task"):
        noise().reset(name="x")
    with pytest.raises(UsageError, match="no such regime"):
        paired(Files, design="paired", regime="noisy", seed=0)
