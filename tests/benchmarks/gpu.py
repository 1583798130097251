"""What one GPU makes of the published architecture with random weights, each figure beside its bound.

    python -m tests.benchmarks.gpu                 a table, in ten minutes at most; needs no network
    python -m tests.benchmarks.gpu --json > examples/beyond-one-machine/gpu/NAME.json
    python -m tests.benchmarks.gpu --page          writes the page anew from all such files
    python -m tests.benchmarks.gpu --cpu --tiny    the same code on a processor; the figures mean nothing

A bound is the time for the bytes that have to move, at the card's bandwidth, or for the operations, at its
peak of bfloat16: whichever is longer. Peaks are a data sheet's; where none is known, those of this very run.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from tests.benchmarks.gpu_parts import FULL, PARTS, TINY
from tests.conftest import CHECKOUT

DEADLINE_S = 600.0
# Dense, NVIDIA's data sheets: GB/s, TFLOP/s of bfloat16.
CARDS = {
    "NVIDIA A100-SXM4-80GB": (2039.0, 312.0),
    "NVIDIA H100 80GB HBM3": (3350.0, 989.4),
    "NVIDIA H200": (4800.0, 989.4),
}
PAGE = CHECKOUT / "examples" / "beyond-one-machine" / "gpu.md"
RESULTS = PAGE.with_suffix("")
Document = dict[str, Any]


def measured(seconds: float, *options: str) -> Document:
    """Measure part by part, each in a process of its own, until the time is over."""
    until, parts = time.monotonic() + seconds, {}
    with tempfile.TemporaryDirectory() as scratch:  # what is cut leaves its files
        environment = os.environ | {"TMPDIR": scratch, "HF_HUB_OFFLINE": "1"}
        for name in PARTS:
            command = [sys.executable, "-m", __spec__.name, "--part", name, *options]
            left = max(0.001, until - time.monotonic())
            try:
                ended = subprocess.run(
                    command, cwd=CHECKOUT, env=environment, timeout=left, check=True, stdout=subprocess.PIPE
                )
                parts[name] = json.loads(ended.stdout.splitlines()[-1])
            except subprocess.TimeoutExpired:
                parts[name] = {"left_out": f"the {seconds:g} seconds were over"}
            except subprocess.CalledProcessError as error:
                parts[name] = {"left_out": f"it ended with code {error.returncode}; its own words are above"}
    return parts


def peaks_of(gpu: str | None, figures: Iterable[Mapping[str, Any]]) -> tuple[float, float, str]:
    """Return bytes and operations a second, and where they are from."""
    bandwidth, arithmetic = CARDS.get(gpu or "", (0.0, 0.0))
    source = "data sheet"
    if not bandwidth:
        bandwidth, arithmetic = (figure["value"] for figure in figures)
        source = "measured in this run"
    return bandwidth * 1e9, arithmetic * 1e12, source


def bounded(figure: Mapping[str, Any], bandwidth: float, arithmetic: float) -> Document:
    """Return a figure with its bound, what gives it, and how near it came: 1 is as good as can be."""
    if not figure["phases"]:
        return {**figure, "share": None}
    pairs = [(moved / bandwidth, done / arithmetic) for moved, done in figure["phases"]]
    seconds = sum(map(max, pairs))
    by = {"memory" if moved > done else "arithmetic" for moved, done in pairs}
    count, value = figure["count"], figure["value"]
    bound, share = (count / seconds, value * seconds / count) if count else (seconds, seconds / value)
    return {**figure, "bound": bound, "basis": " + ".join(sorted(by)), "share": share}


def document(machine: Mapping[str, Any], parts: Mapping[str, Document]) -> Document:
    """Return everything, each figure beside its bound."""
    found = parts["peaks"].get("figures")
    gpu = machine["gpu"]
    if found is None:
        return {"machine": machine, "peaks": None, "parts": parts}
    bandwidth, arithmetic, source = peaks_of(gpu, found)
    whole: Document = {name: dict(part) for name, part in parts.items()}
    for part in whole.values():
        part["figures"] = [bounded(figure, bandwidth, arithmetic) for figure in part.get("figures", ())]
    for figure, known in zip(whole["peaks"]["figures"], CARDS.get(gpu or "", ()), strict=False):
        figure |= {"bound": known, "basis": "data sheet", "share": figure["value"] / known}
    return {"machine": machine, "peaks": source, "parts": whole}


def text_of(result: Document) -> str:
    """Return a result as a table in Markdown."""
    machine = result["machine"]
    gpu = machine["gpu"] or "NO GPU: A PROCESSOR, OF WHICH THIS SAYS NOTHING"
    lines = [
        f"{gpu}, {machine['date']}. {machine['stack']}. Peaks: {result['peaks'] or 'unknown'}.\n",
        "| part | figure | measured | bound | bound / time | bound by |\n|---|---|--:|--:|--:|---|",
    ]
    for name, part in result["parts"].items():
        for figure in part.get("figures", ()):
            bound = "" if figure["bound"] is None else f"{figure['bound']:.4g}"
            share = "" if figure.get("share") is None else f"{figure['share']:.3f}"
            value = f"{figure['value']:.4g} {figure['unit']}".strip()
            lines.append(f"| {name} | {figure['name']} | {value} | {bound} | {share} | {figure['basis']} |")
        if "left_out" in part:
            lines.append(f"| {name} | left out: {part['left_out']} | | | | |")
    return "\n".join(lines) + "\n"


def page(results: Mapping[str, Document]) -> str:
    """Return the page of what was measured on GPUs: results by their names."""
    parts = [f"# Measured on GPUs\n\n```\n{__doc__.strip()}\n```\n"]
    parts += [f"## {name}\n\n{text_of(result)}" for name, result in sorted(results.items())]
    return "\n".join(parts if results else [*parts, "It was never run: no machine with a GPU was at hand.\n"])


def kept() -> dict[str, Document]:
    """Return the results that lie beside the page."""
    return {path.stem: json.loads(path.read_bytes()) for path in RESULTS.glob("*.json")}


def main() -> None:
    """Measure, or write the page."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    for flag in ("--json", "--page", "--cpu", "--tiny"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, help="seconds")
    asked = parser.parse_args()
    if asked.page:
        PAGE.write_text(page(kept()), encoding="utf-8")
        return
    import torch

    from toolkit.lab.training.language_model.session import stack

    device = "cpu" if asked.cpu else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit("there is no CUDA device here: nothing was measured; to try the script: --cpu --tiny")
    if asked.part:
        figures = PARTS[asked.part](TINY if asked.tiny else FULL, device)
        print(json.dumps({"figures": [asdict(figure) for figure in figures]}))
        return
    options = [flag for flag in ("--cpu", "--tiny") if getattr(asked, flag[2:])]
    machine = {
        "gpu": None if asked.cpu else torch.cuda.get_device_name(),
        "processor": platform.machine(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "stack": stack()["stack"],
    }
    result = document(machine, measured(asked.deadline, *options))
    print(json.dumps(result) if asked.json else text_of(result))
    sys.exit(3 if any("left_out" in part for part in result["parts"].values()) else 0)


if __name__ == "__main__":
    main()
