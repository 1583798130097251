"""Probing one trajectory, and the two files that it leaves: its evidence as Parquet, all else as JSON.

c2-paired-s0.parquet     rows of `probe_gram`, as they go into the register
c2-paired-s0.json        written last: what was probed, the SHA-256 of the evidence, the derived rows
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import toolkit
from toolkit import errors, seeds
from toolkit.canonical import canonical
from toolkit.files import LARGEST_ROWS, read_bytes, sealed, unsealed
from toolkit.lab.play.segments import make_tasks
from toolkit.lab.policies.loglinear import Policy, layout
from toolkit.lab.probe import checkpoint, figures
from toolkit.lab.probe.design import ALL, DRIFT, EVIDENCE, Design, Listed, index_rows, read_groups
from toolkit.lab.probe.evidence import GramEvidence, Place
from toolkit.lab.probing.design import CHECKPOINTS, TABULATED
from toolkit.lab.training.checkpoint import read_checkpoint
from toolkit.lab.training.recipe import recipe_of
from toolkit.registers.arrow import Row, parquet_bytes, to_arrow
from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.specification import LanguageModelSpecification, Specification


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
        make_tasks(self.job.pools)
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
    """Return what a trajectory's files hold, figures and evidence.

    None where they are not there, not whole, or of another job.
    """
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
