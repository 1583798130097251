"""`toolkit evaluate`: a language model's success and luck share under every regime, without training."""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from toolkit.cli.options import FOLDER, command, flag, json_option, option
from toolkit.cli.output import counted, print_json, print_table, remark, say_line
from toolkit.errors import UsageError, did_you_mean
from toolkit.lab.commands.options import placed_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.lab.evaluating import (
        Engine,
        EvaluatedBlocks,
        Evaluation,
        EvaluationFolder,
        EvaluationRegisters,
        LuckShare,
        Measure,
        Request,
        Sampling,
    )
    from toolkit.lab.executors.executor import Executor
    from toolkit.lab.policies.language_model.opening import Opening


REGISTERED = "clean,faults_p010,faults_p025,held_out_types,challenge"
EVERY = "all"
SCRIPTED = ("reference", "careless")
MOST = 2**31 - 1


@command()
def evaluate(
    *,
    model: str = option(
        required=True,
        metavar="NAME",
        help="Model: a folder, a name on the Hub, the server's name for it, or a scripted agent (reference, "
        "careless).",
    ),
    engine: str | None = option(
        type=click.Choice(["transformers", "vllm", "endpoint", "scripted"]),
        help="Engine that runs the model; default: chosen by --endpoint and --model, else transformers.",
    ),
    url: str | None = option(
        "--endpoint",
        metavar="URL",
        help="Address of an OpenAI-compatible server, such as http://localhost:8000/v1.",
    ),
    key_variable: str | None = option(
        "--api-key-env", metavar="NAME", help="Environment variable with its API key."
    ),
    revision: str | None = option(help="Branch, tag or commit of a model on the Hub."),
    adapter: Path | None = option(type=FOLDER, help="Folder of a PEFT adapter for the model."),
    sets: str = option(
        default=REGISTERED,
        metavar="REGIMES",
        help=f"Noise regimes of the sets, separated by commas, or {EVERY}.",
    ),
    pool: str = option(type=click.Choice(["test", "validation"]), default="test", help="Tasks."),
    tasks: int = option(
        type=click.IntRange(1, 300), default=200, help="Number of tasks, counted from the first."
    ),
    schedules: int = option(type=click.IntRange(1, 1000), default=4, help="Schedules per task."),
    luck_share: bool = option(
        "--luck-share/--no-luck-share",
        default=True,
        help="Also measure the luck share: 8 × 8 episodes on each of at most 16 diagnostic tasks.",
    ),
    temperature: float = option(
        type=click.FloatRange(0, 10), default=1.0, help="Sampling temperature; default: the registered one."
    ),
    max_tokens: int | None = option(
        type=click.IntRange(1, MOST),
        help="Token limit: of a turn with a server (default 1024), else of an episode (default 6144).",
    ),
    chat_options: tuple[str, ...] = option(
        "--chat-option",
        multiple=True,
        metavar="NAME=JSON",
        help="Variable for the model's chat template, such as enable_thinking=false; may be repeated.",
    ),
    request_options: tuple[str, ...] = option(
        "--request-option",
        multiple=True,
        metavar="NAME=JSON",
        help="Field of every request to a server, such as top_k=-1; null removes one; may be repeated.",
    ),
    engine_options: tuple[str, ...] = option(
        "--engine-option",
        multiple=True,
        metavar="KEY=VALUE",
        help="Of vLLM: gpu_memory (share), max_length (tokens), dtype, tensor_parallel (GPUs), "
        "conversations (at once); of transformers: max_length, dtype, conversations; may be repeated.",
    ),
    seed: int = option(type=click.IntRange(0, MOST), default=0, help="Seed of the sampling."),
    couple: bool = flag(
        help="Couple the samples: every model, adapter and step evaluated with the same --seed gets the same "
        "random numbers at every token. Transformers and scripted agents only."
    ),
    concurrency: int = option(
        type=click.IntRange(1, 256), default=16, help="Concurrent requests to a server."
    ),
    timeout_s: float = option(
        "--timeout",
        type=click.FloatRange(1, 86_400),
        default=600,
        metavar="SECONDS",
        help="Time limit for one whole answer of a server.",
    ),
    workers: Executor = placed_option,
    out: Path | None = option(
        type=FOLDER, help="Folder for finished blocks and registers; default: nothing is kept."
    ),
    as_json: bool = json_option,
) -> None:
    """Measure a model's success, calls, exposure and luck share under every regime, without training it.

    Every episode is a conversation with tool calls. With --out the same command continues where it was
    stopped or killed, more sets can be added to the same folder, and OUT/registers is a study like any other,
    which `toolkit sql` and `toolkit verify` read. Rates are means over episodes; intervals resample tasks.

    With --couple each model keeps its own probabilities, and similar models choose alike, so that their
    difference varies less than between independent evaluations. For independent ones, give each model its own
    --seed.

    \b
    Examples:
      toolkit evaluate --model reference --sets clean,faults_p025 --tasks 4
      toolkit evaluate --model careless --sets all --tasks 2 --schedules 2 \\
        --no-luck-share --json
      toolkit evaluate --model Qwen/Qwen3.5-2B --chat-option enable_thinking=false
      toolkit evaluate --model small --couple --sets faults_p025 --out base
      toolkit evaluate --model Qwen/Qwen3.5-2B --engine vllm \\
        --adapter checkpoint-100 --out trained
      toolkit evaluate --model Qwen/Qwen3.5-2B --engine vllm \\
        --engine-option max_length=12288
      toolkit evaluate --model Qwen3.5-2B --endpoint http://localhost:8000/v1
      toolkit evaluate --model Qwen3.5-2B --endpoint https://host/v1 \\
        --api-key-env MY_KEY --concurrency 64
      toolkit evaluate --model Qwen3.5-2B --endpoint http://host:8000/v1 \\
        --executor ray --address auto
    """
    from toolkit.lab.evaluating import OWN, SHARED, Blocks, Evaluation, Request, figures, luck_shares
    from toolkit.lab.executors.executor import Executor
    from toolkit.lab.policies.language_model.endpoint import server_url
    from toolkit.lab.policies.language_model.opening import Opening
    from toolkit.lab.policies.language_model.options import read_options

    kind = _engine(engine, model, url)
    opening = Opening(
        kind,
        model,
        revision,
        None if adapter is None else str(adapter),
        None if url is None else server_url(url),
        key_variable,
        temperature,
        max_tokens,
        tuple(map(_option, chat_options)),
        tuple(map(_option, request_options)),
        concurrency,
        timeout_s,
        read_options(engine_options, kind),
    )
    _check_fitting(opening, couple=couple)
    if (opening.options.tensor_parallel or 1) > 1 and workers != Executor("local", 1, None):
        raise UsageError(
            "processes beside each other see one GPU each: none could divide the model among several",
            remedy="leave tensor_parallel out, or --executor and --processes",
        )
    asked = Request(_regimes(sets), pool, tasks, schedules, luck_share, seed, SHARED if couple else OWN)
    server = _check_reachable(opening)
    with _folder(opening, asked, out) as folder:
        played = _play(folder, opening, asked, workers, is_kept=out is not None)
        registers = None if out is None else _seal(folder, model, played)
    document = Evaluation(
        model=model,
        engine=cast("Engine", opening.engine),
        sampling=cast("Sampling", asked.sampling),
        identity=folder.identity,
        server=server,
        folder=None if out is None else str(out),
        registers=registers,
        blocks=Blocks(played.kept, played.played),
        sets=figures(played.rows),
        luck_share=luck_shares(played.rows),
    )
    print_evaluation(document, as_json=as_json)


def _engine(engine: str | None, model: str, url: str | None) -> str:
    if engine is not None:
        return engine
    if url is not None:
        return "endpoint"
    return "scripted" if model in SCRIPTED and not Path(model).exists() else "transformers"


def _option(text: str) -> tuple[str, Any]:
    """Return a variable and its value; text that is no JSON is meant as text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError("an option is NAME=JSON", expected="such as enable_thinking=false", found=text)
    try:
        read = json.loads(value)
    except ValueError:
        return name, value
    if isinstance(read, dict | list):
        raise UsageError("the value of an option is a number, a text, true, false or null", found=text)
    return name, read


def _check_fitting(opening: Opening, *, couple: bool) -> None:
    from toolkit.lab.policies.language_model.conversation import cannot_share
    from toolkit.lab.policies.language_model.opening import SHARING

    if couple and opening.engine not in SHARING:
        raise cannot_share(opening.engine)
    of_server = {
        "--endpoint": opening.url,
        "--api-key-env": opening.key_variable,
        "--request-option": opening.request_options or None,
    }
    of_weights = {"--revision": opening.revision, "--adapter": opening.adapter}
    if opening.engine == "endpoint" and opening.url is None:
        raise UsageError("an endpoint has an address", expected="--endpoint http://localhost:8000/v1")
    unheeded = {**(of_server if opening.engine != "endpoint" else {})}
    unheeded |= of_weights if opening.engine in {"endpoint", "scripted"} else {}
    for name, value in unheeded.items():
        if value is not None:
            raise UsageError(
                f"the engine {opening.engine} has no use for {name}",
                remedy="leave it out, or name the engine that it is for with --engine",
            )


def _regimes(sets: str) -> tuple[str, ...]:
    from toolkit.noise.regimes import REGIMES

    names = tuple(REGIMES) if sets == EVERY else tuple(dict.fromkeys(n.strip() for n in sets.split(",")))
    for name in names:
        if name not in REGIMES:
            problem = f"there is no regime {name!r}"
            raise UsageError(problem, expected=", ".join(REGIMES), remedy=did_you_mean(name, REGIMES))
    return names


def _check_reachable(opening: Opening) -> dict[str, Any] | None:
    """Return what a server says of the model, before anything is played; None where there is none to ask."""
    from toolkit.lab.policies.language_model.endpoint import Endpoint
    from toolkit.lab.policies.language_model.opening import open_engine

    if opening.engine != "endpoint":
        return None
    engine = open_engine(opening)
    return engine.check() if isinstance(engine, Endpoint) else None


@contextmanager
def _folder(opening: Opening, asked: Request, out: Path | None) -> Iterator[EvaluationFolder]:
    """Give the folder of the evaluation, held: the user's, or one that is gone afterwards."""
    from toolkit.lab.evaluating import DIAGNOSTIC, EvaluationFolder, identity
    from toolkit.lab.policies.language_model.opening import identify
    from toolkit.lab.tasks.pools import pool_sha256, tasks

    pools = {name: pool_sha256(tasks(name)) for name in (asked.pool, DIAGNOSTIC)}
    whose = identity(identify(opening), asked, pools)
    if out is not None:
        folder = EvaluationFolder(out.absolute(), whose)
        with folder.held():
            yield folder
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = EvaluationFolder(Path(scratch), whose)
        with folder.held():
            yield folder


def _play(
    folder: EvaluationFolder, opening: Opening, asked: Request, executor: Executor, *, is_kept: bool
) -> EvaluatedBlocks:
    try:
        with counted("evaluating") as told:
            return folder.play(opening, asked, executor.telling(*told))
    except KeyboardInterrupt:
        if is_kept:
            remark("every finished block is kept; the same command goes on from there")
        raise


def _seal(folder: EvaluationFolder, model: str, played: EvaluatedBlocks) -> EvaluationRegisters:
    from toolkit.lab.evaluating import EvaluationRegisters, study_name, write_registers

    study = study_name(model)
    manifest = write_registers(folder.registers, study, folder.identity, played.rows)
    return EvaluationRegisters(study, str(folder.registers), manifest.logical_sha256)


def print_evaluation(document: Evaluation, *, as_json: bool) -> None:
    """Print what an evaluation found: as JSON, or as two tables and where the registers are."""
    from toolkit.lab.evaluating import MEASURES

    if as_json:
        print_json(document)
        return
    print_table(
        ("regime", "tasks", "episodes", *MEASURES),
        [
            (
                *(row.regime, str(row.tasks), str(row.episodes)),
                *(
                    _figure(each.estimate, each)
                    for each in (row.success, row.observed, row.calls, row.exposed)
                ),
            )
            for row in document.sets
        ],
        f"{document.model}   {document.engine}   {document.sampling} samples",
        numbers=True,
        dropped=("episodes", "tasks"),
    )
    if document.luck_share:
        print_table(
            ("regime", "reward", "λ", "pooled", "tasks with a share"),
            map(_luck_row, document.luck_share),
            "Luck share λ",
            numbers=("pooled", "tasks with a share"),
            whole=("λ",),
        )
    if document.registers is None:
        say_line("nothing was kept: --out FOLDER keeps every episode, and goes on where it was stopped")
    else:
        where = document.registers
        say_line(f"registers written to {where.folder}, logical hash {where.logical_sha256}")


def _luck_row(row: LuckShare) -> tuple[str, ...]:
    pooled = "" if row.pooled is None else f"{row.pooled:.3f}"
    shown = "the reward never varied" if row.luck_share is None else _figure(row.luck_share, row)
    defined = f"{row.tasks_defined} of {row.tasks}"
    return row.regime, row.target.replace("_", " "), shown, pooled, defined


def _figure(estimate: float, interval: Measure | LuckShare) -> str:
    if interval.low is None:
        return f"{estimate:.3f}"
    return f"{estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
