"""A checkout laid out as the authors' repository is, with made tokens and pools, and the published figures.

Their document itself lies beside the project where that is built; elsewhere a made one stands in for it.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.forge.server import Authority
from tests.registrations import rehash
from tests.restated_document import fit_restatement
from toolkit.places import Home
from toolkit.prereg.authority import make_request
from toolkit.prereg.evidence import write_certificates
from toolkit.prereg.record import Trusted, write_trust
from toolkit.registers.published import Record, Source, read_source

NAME = "paired-rollouts"
FREEZE = "registers/freeze/v1"
DOCUMENT = "docs/PREREGISTRATION.md"
TIMES = {"FreeTSA": (12, 34, 39), "DigiCert": (12, 34, 40)}
TOKENS = {"FreeTSA": "prereg_freetsa.tsr", "DigiCert": "prereg_digicert.tsr"}
POOLS = ("train", "heldout", "test", "diagnostic")


def stamped(name: str) -> datetime:
    """Return when an authority saw the document."""
    return datetime(2026, 9, 8, *TIMES[name], tzinfo=UTC)


def forged() -> dict[str, Authority]:
    """Return two authorities that answer as of the freeze."""
    return {name: Authority(label, at=stamped(name)) for name, label in zip(TIMES, "AB", strict=True)}


def vouched(authorities: dict[str, Authority]) -> str:
    """Return a trust file of theirs."""
    return write_trust(
        [
            Trusted(name, f"Operator of {name}", "demonstration", (fingerprint(server.root),))
            for name, server in authorities.items()
        ],
        "Made for a test.",
    )


def fingerprint(root: bytes) -> str:
    """Return a certificate's SHA-256."""
    return hashlib.sha256(root).hexdigest()


def adapt(home: Home, document: bytes, authorities: dict[str, Authority]) -> None:
    """Make a home's restatement one of a document that these authorities saw, with pools that were made."""
    folder = home.registrations / NAME
    (folder / "trust.toml").write_text(vouched(authorities))
    record = folder / "record.toml"
    lines = record.read_text().split("[checkout.pools]\n")[0]
    pools = "".join(f'"data/tasks/{name}.jsonl" = "{fingerprint(pool(name))}"\n' for name in POOLS)
    record.write_text(f"{lines}[checkout.pools]\n{pools}")
    if fingerprint(document) not in record.read_text():
        fit_restatement(folder, document)
    rehash(folder)


def pool(name: str) -> bytes:
    """Return a made pool of tasks."""
    return f'{{"task_id": "{name}-00000"}}\n'.encode()


def write_checkout(root: Path, document: bytes, authorities: dict[str, Authority], source: Source) -> None:
    """Write a checkout that has everything."""
    request = make_request(hashlib.sha256(document).digest())
    digest = fingerprint(document)
    put(root, DOCUMENT, document)
    put(root, f"{FREEZE}/PREREGISTRATION.md.sha256", f"{digest}\n".encode())
    put(root, f"{FREEZE}/prereg.tsq", request)
    for name, authority in authorities.items():
        put(root, f"{FREEZE}/{TOKENS[name]}", authority.recipe(request).make())
    roots = write_certificates([authority.root for authority in authorities.values()])
    put(root, f"{FREEZE}/freetsa_cacert.pem", roots)
    put_json(
        root,
        f"{FREEZE}/freeze.json",
        {
            "document": DOCUMENT,
            "version": "v1",
            "sha256": digest,
            "frozen_on_utc": "2026-09-08T12:33:49Z",
            "commit": "d368ad6b964355a5df212d0912383341cba6056b",
        },
    )
    listed = {}
    for name in POOLS:
        path = f"data/tasks/{name}.jsonl"
        put(root, path, pool(name))
        listed[name] = {"count": 1, "path": path, "sha256": fingerprint(pool(name))}
    put_json(root, "data/tasks/MANIFEST.json", {"files": listed, "generator_seed": 20260904})
    runs = {r["run_id"]: r for name in ("lineage", "runs") for r in source.records[name]}
    for run in runs.values():
        put_json(root, f"registers/runs/{run['run_id']}.json", register_of(source, run))


def register_of(source: Source, run: Record) -> dict[str, Any]:
    """Return a run's register in the authors' form, with the published figures."""
    register: dict[str, Any] = {"run_id": run["run_id"]}
    register |= {"curves": {}, "final": {}, "luck_share": {}, "training_groups": {}, "training_curve": []}
    register |= {"attempts": [], "lineage": {"episodes": [], "groups": []}}
    mine = {
        name: [r for r in source.records[name] if r["run_id"] == run["run_id"]]
        for name in source.records
        if "run_id" in source.records[name][0]
    }
    for record in mine["lineage"]:
        _add_attempt(register, record)
    for record in mine["training"]:
        printed = ("step", "observed_reward", "true_success", "mean_calls", "budget_exceeded_frac")
        point = {name: value(record[name]) for name in printed}
        register["training_curve"].append({**point, "n": value(record["rollouts"])})
    if not mine["runs"]:
        return register | {"provider": run["provider"]}
    plain = (
        *("run_id", "condition", "arm", "seed", "p", "q", "provider", "git_commit", "status", "episodes"),
        *("wall_time_s", "steps_to_threshold", "threshold", "scale_rewards", "loss_type", "steps"),
        *("num_generations", "prompts_per_step", "estimated_cost_usd", "peak_mem_gb"),
    )
    register |= {name: value(run[name]) for name in plain}
    register["auc"] = {name: value(run[f"auc_{name}"]) for name in ("clean", "noisy", "challenge")}
    found = ("training_groups_found", "training_rollouts_found")
    register["completeness"] = {name: value(run[name]) for name in found}
    register["versions"] = {name: run[name] for name in ("torch", "vllm")}
    register["training_groups"] = {run["condition"]: {}}
    for record in mine["evaluations"]:
        figures = {name: value(text) for name, text in list(record.items())[8:]}
        step, count = value(record["step"]), value(record["episodes"])
        if record["phase"] == "periodic":
            point = {**figures, "n": count, "step": step}
            register["curves"].setdefault(record["regime"], []).append(point)
        else:
            register["final"][record["regime"]] = {**figures, "episodes": count, "step": step}
    for record in mine["luck_share"]:
        shares = {name: value(record[name]) for name in list(record)[3:] if not name.startswith("ci95")}
        register["luck_share"][f"diag:step{record['step']}"] = shares
    for record in mine["training_groups"]:
        if not record["figure"].startswith("groups_"):
            register["training_groups"][run["condition"]][record["figure"]] = value(record["value"])
    return register


def _add_attempt(register: dict[str, Any], record: Record) -> None:
    """Add an attempt to a run's register: the latest one gives its number."""
    names = (
        *("attempt", "status", "error", "resumed_from_step", "wall_time_s", "estimated_cost_usd"),
        *("git_commit", "deployed_commit", "model_commit_hash"),
    )
    register["attempt"] = value(record["attempt"])
    register["attempts"].append({name: value(record[name]) for name in names})
    for name, left in register["lineage"].items():
        which = {key: value(record[key]) for key in ("attempt", "resumed_from_step", "cutoff_step")}
        superseded = value(record[f"{name}_superseded"])
        left.append({**which, "records": value(record[name]), "superseded": superseded})


def value(text: str) -> Any:
    """Return a printed figure as JSON writes it."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def put(root: Path, name: str, content: bytes) -> None:
    """Write a file of a checkout."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def put_json(root: Path, name: str, content: object) -> None:
    """Write a JSON document of a checkout."""
    put(root, name, json.dumps(content, indent=2).encode())


def change_json(name: str, change: Callable[[Any], None]) -> Callable[[Path], None]:
    """Return what changes a JSON document of a checkout."""

    def changed(root: Path) -> None:
        content = json.loads((root / name).read_text())
        change(content)
        put_json(root, name, content)

    return changed


def copy_of(root: Path, target: Path) -> Path:
    """Return a copy of a checkout, to be damaged."""
    return shutil.copytree(root, target, symlinks=True)


def figures_of(home: Home) -> Source:
    """Return the published figures."""
    return read_source(home.registers / "published" / "source")
