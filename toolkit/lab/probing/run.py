"""The registered probe of a study: the registered checkpoints of its runs, and the untrained policy once.

A trajectory leaves two files, its evidence as Parquet, all else as JSON:

c2-paired-s0.parquet     rows of `probe_gram`, as they go into the register
c2-paired-s0.json        written last: what was probed, the SHA-256 of the evidence, the derived rows
"""

import hashlib
import io
import json
import struct
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import toolkit
from toolkit import errors, seeds
from toolkit.canonical import canonical
from toolkit.decisions.case import Case
from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.files import LARGEST_ROWS, read_bytes, sealed, unsealed, write_durably
from toolkit.lab.executors.executor import HERE, Executor
from toolkit.lab.executors.folder import go_on, held
from toolkit.lab.play import assemble
from toolkit.lab.play.rows import fingerprint, read_adapter, rows_of_run, with_adapter
from toolkit.lab.play.segments import make_tasks
from toolkit.lab.play.training_jobs import check_model
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.policies.language_model.chat import Chat
from toolkit.lab.policies.language_model.loading import load_chat, loading, model_path
from toolkit.lab.policies.language_model.vllm_engine import (
    VllmEngine,
    check_agreement,
    check_installed,
    opened_by_trainer,
    taking_up,
)
from toolkit.lab.policies.loglinear import Policy, layout
from toolkit.lab.probe import checkpoint, figures, language_model, lora
from toolkit.lab.probe.design import ALL, DRIFT, EVIDENCE, Design, Listed, index_rows, read_groups
from toolkit.lab.probe.evidence import GramEvidence, Place
from toolkit.lab.probing.design import CHECKPOINTS, INDICES, TABULATED, RegisteredProbe
from toolkit.lab.training.checkpoint import read_checkpoint
from toolkit.lab.training.devices import KEPT, connected_processes
from toolkit.lab.training.language_model.session import load_base, restore_base
from toolkit.lab.training.recipe import Recipe, engine_options, lora_arguments, read_recipe, recipe_of
from toolkit.prereg.registration import Registration
from toolkit.registers import arrow, manifest, row_tables, schema, writer
from toolkit.registers.arrow import Row, parquet_bytes, to_arrow
from toolkit.registers.row_tables import BASE, TABLES_OF_PROBE
from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.registers.study import Study
from toolkit.specification import LanguageModelSpecification, Specification
from toolkit.structs import replace

BATCH = 8
"""Transcripts that share a pass when they are scored."""
FOLDER = "probe"
LOCK = ".lock"
ADAPTERS = "adapters"


@dataclass(frozen=True)
class ProbeJob:
    """Probe the checkpoints of a trajectory; a language model's base is found where this is done."""

    design: Design  # the probe
    trajectory: str  # the run, or `base`
    run: Specification  # the run whose checkpoints they are
    checkpoints: tuple[Any, ...] = field(repr=False)  # their rows of `checkpoints`, or of `adapters`, by step
    pools: tuple[tuple[str, str], ...]  # pool → SHA-256 of the tasks that are played

    @property
    def subject(self) -> str:
        """What the job is about."""
        return self.trajectory

    def __str__(self) -> str:
        return f"{self.subject}, its probe"


@dataclass
class Trajectory:
    """What is probed of a trajectory, checkpoint by checkpoint."""

    job: ProbeJob  # what is asked for
    groups: Listed = field(init=False)
    _gram: list[Row] = field(default_factory=list)
    _rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in TABULATED})
    _worst: float = 0.0

    def __post_init__(self) -> None:
        make_tasks(self.job.pools, self.job.run.world)
        self.groups = read_groups(index_rows(self.job.design), self.job.design.transition)

    @property
    def sampling(self) -> int:
        """Sampling seed of its rollouts."""
        return trajectory_sampling(self.job.design, self.job.trajectory)

    def add(self, at: Place, evidence: Mapping[str, GramEvidence], policy: checkpoint.ScoredPolicy) -> None:
        """Add one checkpoint and what was scored."""
        design = self.job.design
        estimated = figures.estimate(evidence, design, self.groups)
        tied = figures.tied(estimated, design)
        self._worst = max(self._worst, figures.check_identities(tied, str(at)))
        self._gram += checkpoint.evidence_rows(at, evidence, design)
        self._rows[CHECKPOINTS].append(checkpoint.checkpoint_row(at, evidence, design, policy))
        for name, rows in figures.figure_rows(at, estimated, design).items():
            self._rows[name] += rows
        self._rows[DRIFT] += [at._asdict() | row for each in evidence.values() for row in each.drifts]

    def files(self) -> dict[str, bytes]:
        """Return its two files."""
        name = self.job.trajectory
        arrow = to_arrow(TABLES[EVIDENCE], self._gram)
        content = parquet_bytes(EVIDENCE, arrow)
        document = {
            **header(self.job),
            "evidence_sha256": hashlib.sha256(content).hexdigest(),
            "largest_residual": self._worst,
            "rows": {EVIDENCE: arrow.num_rows},
            "tables": self._rows,
        }
        return {f"{name}.parquet": content, f"{name}.json": sealed(canonical(document).encode())}


def probe_trajectory(job: ProbeJob) -> dict[str, bytes]:
    """Probe every checkpoint of a trajectory and return its two files."""
    trajectory = Trajectory(job)
    for row in job.checkpoints:
        weights = read_checkpoint(row, row["run_id"], layout(job.run.surface_tokens).size)
        policy = Policy(weights.parameters, job.run.surface_tokens)
        at = (job.trajectory, row["step"])
        measured = checkpoint.measure(policy, at, trajectory.sampling, job.design, trajectory.groups)
        for scored, evidence in measured.items():
            trajectory.add(Place(*at, scored), evidence, scored_policy(job, row, scored))
    return trajectory.files()


def header(job: ProbeJob) -> dict[str, Any]:
    """Return what decides the files of a trajectory."""
    of_model = {}
    if isinstance(job.run, LanguageModelSpecification):
        of_model = {"model_commit": job.run.model_commit, "recipe_sha256": recipe_of(job.run).sha256()}
    return {
        **of_model,
        "trajectory": job.trajectory,
        "design_sha256": job.design.sha256(),
        "checkpoints": [[row["step"], row["sha256"]] for row in job.checkpoints],
        "pools": dict(job.pools),
        "code_version": toolkit.__version__,
        "schema_version": SCHEMA_VERSION,
    }


def read_probed(folder: Path, job: ProbeJob) -> tuple[dict[str, Any], bytes] | None:
    """Return a trajectory's figures and evidence; None where they are not whole, or of another job."""
    try:
        text = unsealed(read_bytes(folder / f"{job.trajectory}.json", LARGEST_ROWS))
        content = read_bytes(folder / f"{job.trajectory}.parquet", LARGEST_ROWS)
    except errors.ToolkitError:
        return None
    if text is None:
        return None
    document: dict[str, Any] = json.loads(text)
    wanted = header(job)
    if {name: document.get(name) for name in wanted} != wanted:
        return None
    is_whole = hashlib.sha256(content).hexdigest() == document["evidence_sha256"]
    return (document, content) if is_whole else None


def trajectory_sampling(design: Design, trajectory: str) -> int:
    """Return the sampling seed of a trajectory's probe."""
    return seeds.sampling_seed(design.root, trajectory, 0)


def scored_policy(job: ProbeJob, row: Row, scored: str) -> checkpoint.ScoredPolicy:
    """Return what was scored of a checkpoint, by its row of `checkpoints`."""
    whole = layout(job.run.surface_tokens)
    names = checkpoint.coordinate_names(whole, scored)
    parameters = row["parameters"][: whole.size if scored == ALL else len(whole.actions)]
    return checkpoint.ScoredPolicy(
        row["sha256"],
        hashlib.sha256(struct.pack(f"<{len(parameters)}d", *parameters)).hexdigest(),
        hashlib.sha256("\n".join(names).encode()).hexdigest(),
        len(names),
    )


def probe_model_trajectory(job: ProbeJob, run: LanguageModelSpecification) -> dict[str, bytes]:
    """Probe every checkpoint of a trajectory and return its two files."""
    trajectory = Trajectory(job)
    outcome, transition = job.design.sets
    names: str | None = None
    check_model(run, recipe_of(run).model)
    speaker = _opened(run)
    with _as_in_training(), tempfile.TemporaryDirectory() as scratch:
        for row in job.checkpoints:
            raw = read_adapter(row, run.run_id)
            put_adapter(speaker.model, raw, f"{run.run_id} at step {row['step']}")
            if speaker.sampler is not None:
                speaker.sampler.synchronize()
            scorer = lora.Scorer(speaker.model, speaker.temperature)
            evidence = language_model.probe_language_model(
                scorer,
                job.design,
                language_model.record_tasks(speaker, outcome, trajectory.sampling, row["step"]),
                language_model.record_tasks(speaker, transition, trajectory.sampling, row["step"]),
                trajectory.groups,
                folder=Path(scratch),
                batch=BATCH,
                names_sha256=names,
            )
            names, size = scorer.coordinates.names_sha256, scorer.coordinates.size
            policy = checkpoint.ScoredPolicy(row["sha256"], fingerprint(raw), names, size)
            trajectory.add(Place(job.trajectory, row["step"], ALL), evidence, policy)
    return trajectory.files()


def scored_model(row: Row, run_id: str, stored: Row) -> checkpoint.ScoredPolicy:
    """Return what was scored of a checkpoint of `adapters`, as far as that can be said without the model."""
    if row["adapter"] is None:
        numbers = stored["adapter_fingerprint"]
    else:
        numbers = fingerprint(read_adapter(row, run_id))
    return checkpoint.ScoredPolicy(
        row["sha256"], numbers, stored["coordinate_names_sha256"], stored["coordinates"]
    )


def put_adapter(model: Any, raw: bytes, where: str) -> None:
    """Give a model's adapter the values of another one, and check that it has them."""
    import torch
    from peft import get_peft_model_state_dict, set_peft_model_state_dict
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        wanted = load(raw)
    except SafetensorError as error:
        raise DamagedError("the adapter is no safetensors file", found=error, where=where) from None
    own = {name: tuple(tensor.shape) for name, tensor in get_peft_model_state_dict(model).items()}
    given = {name: tuple(tensor.shape) for name, tensor in wanted.items()}
    if own != given:
        first = min(name for name in {*own, *given} if own.get(name) != given.get(name))
        raise DamagedError(
            "the adapter is not one of this model and recipe",
            expected=f"{first} {_shape_text(own, first)}",
            found=f"{first} {_shape_text(given, first)}",
            where=where,
            remedy="probe the study's own adapters; the recipe's [lora] and the model decide their shapes",
        )
    set_peft_model_state_dict(model, wanted)
    for name, tensor in get_peft_model_state_dict(model).items():
        if not torch.equal(tensor.cpu(), wanted[name].to(tensor.dtype)):
            raise DamagedError("the adapter was not taken over", found=name, where=where)


def _shape_text(shapes: Mapping[str, tuple[int, ...]], name: str) -> str:
    return " × ".join(map(str, shapes[name])) if name in shapes else "missing"


def _opened(run: LanguageModelSpecification) -> language_model.Speaker:
    model, recipe = recipe_of(run).model, canonical(recipe_of(run).document())
    return _speaker(model_path(model), run.model_commit, recipe)


@lru_cache(maxsize=1)
def _speaker(model: str, commit: str, document: str) -> language_model.Speaker:  # noqa: ARG001 - another commit, another model
    """Return a base model with a fresh adapter, loaded once a process."""
    recipe = read_recipe(json.loads(document), model)
    chat = load_chat(model, recipe.revision or None, (("enable_thinking", recipe.engine.thinking),))
    with loading(model):
        import torch
        from peft import LoraConfig, get_peft_model

        has_gpu = torch.cuda.is_available()
        base = load_base(model, recipe, cpu=not has_gpu)
        adapted: Any = get_peft_model(base, LoraConfig(**lora_arguments(recipe, base)))
        adapted = adapted.to("cuda" if has_gpu else "cpu").eval()
    sampling = recipe.sampling
    return language_model.Speaker(
        adapted,
        chat,
        sampling.temperature,
        sampling.max_completion_tokens,
        sampling.max_turns,
        open_sampler(adapted, chat, recipe, model) if recipe.engine.kind == "vllm" else None,
    )


def open_sampler(adapted: Any, chat: Chat, recipe: Recipe, model: str) -> language_model.Sampler:
    """Return vLLM, opened beside a model as the trainer opens it."""
    check_installed("trl")
    with opened_by_trainer(model, recipe.revision or None, engine_options(recipe)), taking_up(model):
        from accelerate import Accelerator
        from trl.generation.vllm_generation import VLLMGeneration

        cpu = adapted.device.type == "cpu"
        connected_processes(cpu=cpu)
        generation = VLLMGeneration(
            model=adapted,
            accelerator=Accelerator(cpu=cpu),
            processing_class=chat.tokenizer,
            gpu_memory_utilization=recipe.engine.gpu_memory,
            max_model_length=recipe.sampling.context,
            max_num_seqs=language_model.SIDE_BY_SIDE,
        )
    restore_base(adapted)

    def synchronize() -> None:
        generation.sync_weights()
        check_agreement(generation.llm, chat, adapted)

    sampling, correction = recipe.sampling, recipe.loss.importance_sampling
    engine = VllmEngine(
        generation.llm, chat, temperature=sampling.temperature, max_tokens=sampling.max_completion_tokens
    )
    return language_model.Sampler(engine, synchronize, correction.level, correction.max)


@contextmanager
def _as_in_training() -> Iterator[None]:
    """Have torch compute as in training, with one thread: how many share a sum decides its last digits."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class MeasuredProbe:
    """The probe of a study, measured."""

    design: Design  # the registered design
    evidence: Mapping[str, bytes]  # trajectory → its Parquet file of `probe_gram`
    rows: Mapping[str, list[arrow.Row]]  # table → rows of all others, without order
    largest_residual: float  # of all identities, relative
    kept: tuple[str, ...]  # trajectories that had been probed before

    def added_to(self, assembly: assemble.Assembly) -> assemble.Assembly:
        """Return a study's registers together with the probe's."""
        evidence = {f"{EVIDENCE}/{name}.parquet": raw for name, raw in self.evidence.items()}
        derived = writer.rows_files({**self.rows, INDICES: index_rows(self.design)})
        return replace(
            assembly, files={**assembly.files, EVIDENCE: dict(sorted(evidence.items())), **derived}
        )

    def tables(self) -> dict[str, object]:
        """Return the tables of the probe, as `pyarrow.Table`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        return {
            name: pa.concat_tables([pq.read_table(io.BytesIO(content)) for content in files.values()])
            for name, files in self.added_to(assemble.Assembly({}, {})).files.items()
        }

    def compare(self, study: Study) -> tuple[str, ...]:
        """Compare the probe with what a study's registers hold."""
        tables = {name: table for name, table in self.tables().items() if name != DRIFT or study.has(DRIFT)}
        for name, table in tables.items():
            if not study.has(name):
                problem = f"study {study.name!r} has no {name}"
                remedy = f"measure it: toolkit probe run {study.name}"
                raise IncompleteError(problem, where=study.folder, remedy=remedy)
            registered = arrow.row_sha256(study.arrow(name))
            measured = arrow.row_sha256(arrow.to_arrow(schema.TABLES[name], arrow.to_rows(table)))
            if measured != registered:
                raise VerificationError(
                    f"what was probed again differs from study {study.name!r} in {name}",
                    expected=f"rows with SHA-256 {registered}",
                    found=f"rows with SHA-256 {measured}",
                    where=study.folder,
                    remedy="compare `spec_sha256` and `adapter_sha256` in probe_checkpoints; the last digits "
                    "of what a language model says and scores are those of its machine and libraries"
                    if study.has(ADAPTERS)
                    else "compare `spec_sha256` and `adapter_sha256` in probe_checkpoints",
                )
        return tuple(tables)


def probe_jobs(
    design: Design,
    specifications: Sequence[Specification],
    checkpoints: Mapping[str, Sequence[arrow.Row]],
    steps: Collection[int] = (),
) -> tuple[ProbeJob, ...]:
    """Return a job a trajectory: the untrained policy, with the first run's adapter, then run by run."""
    jobs: list[ProbeJob] = []
    started: dict[int | None, arrow.Row] = {}
    for run in sorted(specifications, key=lambda run: run.run_id):
        rows = sorted(checkpoints.get(run.run_id, ()), key=lambda row: int(row["step"]))
        expected = list(run.ends)
        if [row["step"] for row in rows] != expected:
            problem = f"{run.run_id} does not have its registered checkpoints"
            found = ", ".join(str(row["step"]) for row in rows) or "none"
            remedy = f"play it: toolkit study run {run.study}"
            raise IncompleteError(problem, expected=", ".join(map(str, expected)), found=found, remedy=remedy)
        is_model = isinstance(run, LanguageModelSpecification)
        base = started.setdefault(run.seed if is_model else None, rows[0])
        if rows[0]["sha256"] != base["sha256"]:
            raise DamagedError(
                f"{run.run_id} began from another policy than the runs before it",
                expected=base["sha256"],
                found=rows[0]["sha256"],
                remedy="probe runs of one study: they share the untrained policy, language models those of a "
                "seed",
            )
        pools = tuple(sorted((name, run.pools[name]) for name in {played.pool for played in design.sets}))
        if not jobs:
            jobs.append(ProbeJob(design, BASE, run, (base,), pools))
        chosen = tuple(row for row in rows[1:] if not steps or row["step"] in steps)
        jobs.append(ProbeJob(design, run.run_id, run, chosen, pools))
    return tuple(jobs)


def perform(job: ProbeJob) -> dict[str, bytes]:
    """Probe a trajectory and return its two files. Nothing is read or written: another machine may do it."""
    if isinstance(job.run, LanguageModelSpecification):
        return probe_model_trajectory(job, job.run)
    return probe_trajectory(job)


def probe_all(folder: Path, jobs: Sequence[ProbeJob], executor: Executor = HERE) -> MeasuredProbe:
    """Probe trajectories, those left over first; what was stopped goes on with the same call."""

    def keep(job: ProbeJob, contents: Mapping[str, bytes]) -> tuple[dict[str, Any], bytes]:
        for file, content in contents.items():
            write_durably(folder / file, content)
        kept = read_probed(folder, job)
        if kept is None:
            raise DamagedError("what was probed cannot be read back", where=folder / job.trajectory)
        return kept

    has_model = any(isinstance(job.run, LanguageModelSpecification) for job in jobs)
    with held(folder, {LOCK: "probe's folder"}, [folder]):
        results, before = go_on(
            executor.on_gpus(KEPT) if has_model else executor,
            jobs,
            perform,
            kept=lambda job: read_probed(folder, job),
            keep=keep,
            size=lambda job: len(job.checkpoints),
        )
    documents = {job.trajectory: document for job, (document, _) in zip(jobs, results, strict=True)}
    contents = {job.trajectory: content for job, (_, content) in zip(jobs, results, strict=True)}
    check_coordinates([row for each in documents.values() for row in each["tables"][CHECKPOINTS]], folder)
    return MeasuredProbe(
        jobs[0].design,
        dict(sorted(contents.items())),
        {name: [row for each in documents.values() for row in each["tables"][name]] for name in TABULATED},
        max(each["largest_residual"] for each in documents.values()),
        tuple(job.trajectory for job in before),
    )


def check_coordinates(checkpoints: Sequence[arrow.Row], where: Path) -> None:
    """Check that all checkpoints were scored in the same coordinates."""
    names: dict[str, str] = {}
    for row in checkpoints:
        known = names.setdefault(row["scored"], row["coordinate_names_sha256"])
        at = f"{row['trajectory']}@{row['step']}, {row['scored']}, in {where}"
        language_model.check_same_coordinates(known, row["coordinate_names_sha256"], at)


def measure_study(
    study: Study, probe: RegisteredProbe, executor: Executor, *, folder: Path | None
) -> MeasuredProbe:
    """Probe the registered checkpoints of a study."""
    jobs = registered_jobs(study, probe)
    if folder is not None:
        return probe_all(folder, jobs, executor)
    with tempfile.TemporaryDirectory() as scratch:
        return probe_all(Path(scratch), jobs, executor)


def registered_jobs(study: Study, probe: RegisteredProbe) -> tuple[ProbeJob, ...]:
    """Return the jobs of a study's registered probe, on the checkpoints of its registers; as `probe_jobs`."""
    checkpoints = {run.run_id: rows_of_run(study, run.checkpoint_table, run.run_id) for run in probe.runs}
    return probe_jobs(probe.design, probe.runs, checkpoints, probe.steps)


def measure_runs(workplace: Workplace, probe: RegisteredProbe, executor: Executor) -> MeasuredProbe:
    """Probe the checkpoints of runs that were just played, beside them in their folder."""
    import pyarrow.parquet as pq

    checkpoints = {}
    for specification in probe.runs:
        run = workplace.run(specification)
        run.check_complete()
        rows = arrow.to_rows(pq.read_table(run.folder / f"{specification.checkpoint_table}.parquet"))
        checkpoints[specification.run_id] = [with_adapter(row, run.folder) for row in rows]
    jobs = probe_jobs(probe.design, probe.runs, checkpoints, probe.steps)
    return probe_all(workplace.folder / FOLDER, jobs, executor)


def sealed_with_probe(
    folder: Path,
    study: Study,
    measured: MeasuredProbe,
    *,
    registration: Registration,
    named: manifest.RegistrationRef,
    card: Path,
    open_case: Callable[..., Case],
) -> manifest.Manifest:
    """Write a study's registers with its probe, decided anew."""
    replaced = {*TABLES_OF_PROBE, row_tables.DECISIONS.name}
    files = {
        name: {
            file: read_bytes(path, LARGEST_ROWS)
            for file, path in zip(entry.files, study.paths(name), strict=True)
        }
        for name, entry in study.manifest.tables.items()
        if name not in replaced
    }
    as_it_is = assemble.Assembly(files, {})
    return assemble.seal_decided(
        folder, registration, named, measured.added_to(as_it_is), card, open_case=open_case
    )
