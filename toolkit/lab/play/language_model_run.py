"""A language model's run, from its recipe to the files that every run leaves."""

import base64
import hashlib
import json
import math
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

from toolkit import errors, files
from toolkit.canonical import canonical
from toolkit.errors import IncompleteError, UsageError
from toolkit.lab.evaluation import diagnostic, language_model, play
from toolkit.lab.executors.executor import Say
from toolkit.lab.play import capacity, conclusion, segments
from toolkit.lab.play.rows import ADAPTER
from toolkit.lab.play.workplace import Launch, RunFolder, Workplace, peak_memory_mb
from toolkit.lab.tasks import pools
from toolkit.lab.training.devices import (
    check_one_gpu,
    connected_processes,
    is_first_process,
    launched_together,
    refuse_sharding,
)
from toolkit.lab.training.language_model.groups import step_figures, step_seconds
from toolkit.lab.training.language_model.session import Moments, Session, open_session, stack
from toolkit.lab.training.recipe import accumulation, recipe_of
from toolkit.registers.arrow import Row
from toolkit.specification import LanguageModelSpecification
from toolkit.structs import replace

TRACKERS = ("tensorboard", "wandb", "trackio")
"""What can be told; each is the name of its package, too."""
FOLDER = "reports"


def check_trackers(names: Sequence[str]) -> None:
    """Check that trackers can be told anything."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        problem = "a tracker's package is not installed"
        expected = ", ".join(names)
        remedy = f"pip install {' '.join(missing)}; or leave --report-to out: the run keeps its own rows"
        raise UsageError(problem, expected=expected, found=f"without {', '.join(missing)}", remedy=remedy)


def report(trainer: Any, names: Sequence[str], folder: Path) -> None:
    """Have trackers told what a trainer logs of each step."""
    if not names:
        return
    check_trackers(names)
    from transformers.integrations import get_reporting_integration_callbacks

    places = {name: str(folder / FOLDER / name) for name in TRACKERS}
    os.environ |= {"TENSORBOARD_LOGGING_DIR": places["tensorboard"], "WANDB_DIR": places["wandb"]}
    os.environ |= {"TRACKIO_DIR": places["trackio"]}
    os.environ.setdefault("WANDB_MODE", "offline")
    for name in names:
        Path(places[name]).mkdir(parents=True, exist_ok=True)
    trainer.args.run_name = trainer.args.run_name or folder.name
    for callback in get_reporting_integration_callbacks(list(names)):
        trainer.add_callback(callback)


PAUSE_S = 60.0
"""Seconds between two words on how far a step has come: a step of the paper's runs took some minutes."""


class _Interrupted(KeyboardInterrupt):
    """The process was told to end; nothing that catches errors catches it."""


@contextmanager
def stopping(where: Callable[[], str], remedy: Callable[[], str]) -> Iterator[None]:
    """Answer SIGTERM, as schedulers send it, with an error that says where work was and what goes on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def told(number: int, _: object) -> None:
        raise _Interrupted(signal.Signals(number).name)

    before = signal.signal(signal.SIGTERM, told)
    try:
        yield
    except _Interrupted as stop:
        raise IncompleteError("told to stop", found=stop, where=where(), remedy=remedy()) from None
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


@dataclass
class Pace:
    """Says how far something has come, and not oftener than now and then."""

    say: Callable[[str], None]  # told
    pause_s: float = PAUSE_S  # seconds between two words
    _last: float = field(default_factory=monotonic)

    def __call__(self, text: str) -> None:
        """Say it, or leave it out."""
        now = monotonic()
        if now - self._last >= self.pause_s:
            self._last = now
            self.say(text)


CARRIED = 4_000_000
"""Largest adapter, in bytes, that a row of `adapters` holds."""
UNTRAINED = "checkpoint-0"
TRAINER_STATE = "trainer_state.json"
STATE_ENDINGS = (".safetensors", ".pt", ".pth")
"""Adapter; optimizer and scheduler; generators. What else the trainer saves are copies, and its arguments."""


def train_run(
    specification: LanguageModelSpecification,
    model: str,
    folder: Path,
    *,
    cpu: bool = False,
    report_to: Sequence[str] = (),
    say: Say = lambda _: None,
) -> bool:
    """Train a run to its end, from wherever it was left."""
    workplace = Workplace(folder)
    run = workplace.run(specification)
    refuse_sharding()
    if not cpu:
        check_one_gpu(specification.run_id)
    held = workplace.held([specification]) if is_first_process() else nullcontext()
    course = _Course(run, specification, say)
    with held, stopping(course.place, course.way_on):
        with _first_one_first(cpu=cpu):
            run.check_resumable()
            if run.is_complete:
                return False
            _check_processes(run, specification)
            segments.make_tasks(tuple(sorted(specification.pools.items())), specification.world)
            course.begin()
        session = open_session(
            specification,
            model,
            run.folder,
            record=course.record,
            moments=Moments(course.saved, course.stepped, course.figured),
            cpu=cpu,
        )
        course.take(session)
        report(session.trainer, report_to, run.folder)
        if not course.digests:
            session.save(run.folder / UNTRAINED)
            course.stepped(0)
            course.saved(0)
        if course.at < specification.steps:
            session.train(run.folder / f"checkpoint-{course.at}" if course.at else None)
        session.trainer.accelerator.wait_for_everyone()
        if session.is_main:
            course.conclude()
    return True


@dataclass
class _Course:
    run: RunFolder
    specification: LanguageModelSpecification
    say: Say
    session: Session = field(init=False)
    digests: list[str] = field(default_factory=list)
    rows: segments.Segment = field(default_factory=dict)
    launch: Launch | None = None
    begun: float = 0.0
    step: int = 0
    seconds: list[tuple[float, float]] = field(default_factory=list)
    told: Pace = field(init=False)

    def __post_init__(self) -> None:
        self.told = Pace(self.say)

    def place(self) -> str:
        return f"{self.specification.run_id}, after step {self.step} of {self.specification.steps}"

    def way_on(self) -> str:
        kept = f"from the checkpoint at step {self.at}" if self.digests else "from the start"
        return f"what was recorded stays; the same command goes on {kept}"

    @property
    def at(self) -> int:
        return self.specification.ends[len(self.digests) - 1] if self.digests else 0

    def begin(self) -> None:
        standing = self.run.resume(self.say)
        self.digests = list(standing.digests)
        if standing.checkpoint is not None:
            _check_state(self.run.folder / f"checkpoint-{self.at}", standing.checkpoint["state_sha256"])
        for left in self.run.folder.glob("checkpoint-*"):
            number = left.name.partition("-")[2]
            stale = number.isdigit() and (int(number) > self.at or not self.digests)
            if stale and is_first_process():
                shutil.rmtree(left)
        self._clear()
        self.step = self.at
        self.begun = time.monotonic()
        if is_first_process():
            self.launch = self.run.launch(Launch.now(self.specification, self.at, **stack()))

    def take(self, session: Session) -> None:
        self.session = session
        session.trainer.told = self.told
        capacity.check_capacity(self.specification, session.coordinates)
        if self.launch is not None:
            self.launch = replace(self.launch, kernels=session.kernels)
            self.run.record(self.launch)

    def record(self, groups: list[Row]) -> None:
        self.rows["groups"] += [{"run_id": self.specification.run_id, **row} for row in groups]
        successes = sum(sum(row["true_successes"]) for row in groups)
        total = sum(len(row["true_successes"]) for row in groups)
        self.step = groups[0]["step"]
        self.say(f"step {groups[0]['step']} of {self.specification.steps}: success {successes / total:.3f}")

    def stepped(self, step: int) -> None:
        if step in self.specification.diagnosed:
            self.diagnose(step)

    def figured(self, step: int, logs: Mapping[str, float]) -> None:
        self.rows["steps"].append({"run_id": self.specification.run_id, "step": step, **step_figures(logs)})
        self.seconds.append(step_seconds(logs))

    def saved(self, step: int) -> None:
        if step not in self.specification.ends:
            return
        self.rows["episodes"] = self._evaluated(step)
        if not self.session.is_main:
            self._clear()
            return
        folder = self.run.folder / f"checkpoint-{step}"
        self.rows["adapters"] = [adapter_row(self.specification.run_id, step, folder)]
        number = len(self.digests)
        link = segments.link(self.specification, number, step, self.digests[-1] if self.digests else "")
        raw = segments.encode(link, self.rows)
        self.run.keep({segments.segment_name(number): raw})
        self.digests.append(hashlib.sha256(raw).hexdigest())
        if self.launch is not None and self.seconds:
            steps, generation = zip(*self.seconds, strict=True)
            self.launch = replace(self.launch, step_seconds=steps, generation_seconds=generation)
            self.run.record(self.launch)
        self.say(f"checkpoint at step {step} recorded")
        self._clear()

    def diagnose(self, step: int) -> None:
        regime = diagnostic.regime_diagnosed(self.specification.regime)
        engine = self.session.engine()
        sampling = self._sampling(step, segments.sampling_of(self.specification))
        self.rows["luck_share"] += self._shared(
            [
                partial(language_model.diagnose_block, engine, regime, diagnostic.POOL, block, sampling)
                for block in language_model.blocks(
                    pools.POOLS[diagnostic.POOL].size, diagnostic.SCHEDULES * diagnostic.SAMPLES
                )
            ]
        )

    def conclude(self) -> None:
        self.run.keep(conclusion.conclude(self.specification, map(files.read_bytes, self.run.segments)))
        self.run.complete(conclusion.files_of(self.specification))
        if self.launch is not None:
            self.run.record(self.launch.ended(self.begun, peak_memory_mb()))

    def _clear(self) -> None:
        self.rows = {name: [] for name in (*segments.LEFT_BY["adapters"], "adapters")}

    def _sampling(self, step: int, seed: play.Sampling) -> language_model.Sampling:
        turns = self.session.recipe.sampling.max_turns
        return language_model.Sampling(self.specification.run_id, step, seed, turns, self.specification.world)

    def _evaluated(self, step: int) -> list[Row]:
        run = self.specification
        engine, sampling = self.session.engine(), self._sampling(step, segments.evaluated_with(run))
        return self._shared(
            [
                partial(language_model.evaluate_block, engine, played, block, sampling)
                for played in segments.sets_of(run, step)
                for block in language_model.blocks(played.tasks, played.schedules)
            ]
        )

    def _shared(self, parts: list[Callable[[], list[Row]]]) -> list[Row]:
        """Play parts, each in one of the processes, and return the rows of all, in order."""
        from accelerate.utils import gather_object

        accelerator = self.session.trainer.accelerator
        trainer = self.session.trainer
        trainer.model.eval()
        first, processes = accelerator.process_index, accelerator.num_processes
        mine = []
        for number in range(first, len(parts), processes):
            self.told(f"step {self.step}: {number} of {len(parts)} blocks evaluated")
            mine.append((number, parts[number]()))
        trainer.model.train()
        return [row for _, rows in sorted(gather_object(mine), key=lambda part: part[0]) for row in rows]


def adapter_row(run_id: str, step: int, folder: Path) -> Row:
    """Return a checkpoint that was saved as a row of `adapters`."""
    from safetensors import safe_open

    with safe_open(folder / ADAPTER, framework="numpy") as tensors:
        shapes = [tensors.get_slice(name).get_shape() for name in tensors.keys()]  # noqa: SIM118 - no mapping
    raw = files.read_bytes(folder / ADAPTER, files.LARGEST_ROWS)
    return {
        "run_id": run_id,
        "step": step,
        "sha256": hashlib.sha256(raw).hexdigest(),
        "coordinates": sum(math.prod(shape) for shape in shapes),
        "state_sha256": _state_sha256(folder),
        "adapter": base64.b64encode(raw).decode() if len(raw) <= CARRIED else None,
    }


def _state_sha256(folder: Path) -> str:
    """Return the digest of what training goes on from: without the trainer's log, which has seconds."""
    digests = {
        path.relative_to(folder).as_posix(): _trainer_sha256(path)
        if path.name == TRAINER_STATE
        else files.file_sha256(path)
        for path in folder.rglob("*")
        if path.name == TRAINER_STATE or path.suffix in STATE_ENDINGS
    }
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _trainer_sha256(path: Path) -> str:
    raw = files.read_bytes(path, files.LARGEST_ROWS)
    try:
        state = json.loads(raw)
        state.pop("log_history")
    except (ValueError, AttributeError, KeyError):
        return hashlib.sha256(raw).hexdigest()  # not what any checkpoint was recorded with
    return hashlib.sha256(canonical(state).encode()).hexdigest()


def _check_state(folder: Path, expected: str) -> None:
    digest = _state_sha256(folder) if folder.is_dir() else "no folder"
    if digest != expected:
        raise errors.DamagedError(
            "a checkpoint is not as it was saved",
            expected=f"files with SHA-256 {expected}",
            found=digest,
            where=folder,
            remedy="restore it; or move the run's newest segment away: the run goes on from the one before",
        )


@contextmanager
def _first_one_first(*, cpu: bool) -> Iterator[None]:
    """Have the first of several processes put things in order before the others look at them."""
    if launched_together() == 1:
        yield
        return
    with connected_processes(cpu=cpu).main_process_first():
        yield


def _check_processes(run: RunFolder, specification: LanguageModelSpecification) -> None:
    processes = launched_together()
    accumulation(recipe_of(specification), processes)
    begun = run.launches()[-1].processes if run.played else None
    if begun not in {None, processes}:
        raise errors.UsageError(
            f"{specification.run_id} was begun on another number of processes",
            expected=begun,
            found=processes,
            where=run.folder,
            remedy=f"go on with {begun} (accelerate launch --multi_gpu --num_processes {begun}), or move the "
            "run's folder away: a run has one number throughout",
        )
