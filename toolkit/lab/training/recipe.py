"""Recipes: all settings of a language model's training, as data that is read strictly."""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, get_type_hints

from toolkit.canonical import canonical
from toolkit.errors import RuleError, ToolkitError, UsageError, did_you_mean
from toolkit.files import read_text
from toolkit.lab.policies.language_model.options import DTYPES, EngineOptions
from toolkit.specification import LanguageModelSpecification, Specification

AUTO = "auto"
ONE_OF = {
    "dtype": ("bfloat16", "float32"),
    "lora.target": ("all-linear",),
    "optimizer.schedule": ("linear", "constant"),
    "loss.type": ("dapo",),
    "loss.scale_rewards": ("group", "none"),
    "loss.importance_sampling.level": (
        *("sequence_mask", "sequence_truncate"),
        *("token_mask", "token_truncate"),
    ),
    "engine.kind": ("vllm", "transformers"),
    "engine.dtype": (AUTO, *DTYPES),
}
"""Setting → the words that it may be."""

AT_LEAST = {
    "lora.rank": 1,
    "lora.alpha": 1,
    "lora.dropout": 0,
    "step.prompts": 1,
    "step.rollouts": 2,  # advantages compare the rollouts of a group
    "step.micro_batch": 1,
    "step.steps": 1,
    "step.checkpoint_every": 1,
    "optimizer.warmup_steps": 0,
    "optimizer.weight_decay": 0,
    "optimizer.max_grad_norm": 0,
    "sampling.max_completion_tokens": 1,
    "sampling.max_turns": 1,
    "sampling.context": 2,
    "engine.conversations": 0,
    "loss.beta": 0,
}
"""Setting → the least that it may be."""

ABOVE_ZERO = ("sampling.temperature", "loss.importance_sampling.max", "engine.gpu_memory")
BELOW_ONE = ("lora.dropout", "engine.gpu_memory")
NOT_EMPTY = ("name", "model")
PACKAGES = "packages."
_VERSION = re.compile(r"\d+(\.[0-9A-Za-z+-]+)*")


def problems(settings: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what is wrong with settings, by their dotted names: the problem, what is expected, and found."""
    for is_wrong, name, problem, expected in (*_limits(settings), *_contradictions(settings)):
        if is_wrong:
            yield problem, expected, str(settings[name]).strip() or repr(settings[name])


Problem = tuple[bool, str, str, str]
"""Whether a setting is wrong, its name, the problem, and what is expected."""


def _limits(settings: Mapping[str, Any]) -> Iterator[Problem]:
    for name, allowed in ONE_OF.items():
        yield settings[name] not in allowed, name, f"{name} is none of its words", ", ".join(allowed)
    for name in NOT_EMPTY:
        yield not settings[name].strip(), name, f"{name} is empty", "a text"
    for name, version in settings.items():
        is_wrong = name.startswith(PACKAGES) and not _VERSION.fullmatch(version)
        yield is_wrong, name, f"{name} is no exact version", "a version, as 1.12.0"
    for name, least in AT_LEAST.items():
        is_wrong = not least <= settings[name] < float("inf")
        yield is_wrong, name, f"{name} is too small, or no number", f"{least} or more"
    for name in ABOVE_ZERO:
        is_wrong = not 0 < settings[name] < float("inf")
        yield is_wrong, name, f"{name} is not above zero", "a number above zero"
    for name in BELOW_ONE:
        yield not settings[name] < 1, name, f"{name} is a share", "less than 1"
    name = "optimizer.learning_rate"
    yield not _is_rate(settings[name]), name, f"{name} is no rate", 'decimal text, as "0.00001"'


def _is_rate(text: str) -> bool:
    try:
        rate = Decimal(text)
    except InvalidOperation:
        return False
    return rate.is_finite() and rate > 0


def _contradictions(settings: Mapping[str, Any]) -> Iterator[Problem]:
    prompts, rollouts, steps = (settings[f"step.{name}"] for name in ("prompts", "rollouts", "steps"))
    name, size = "step.micro_batch", prompts * rollouts
    problem = "a step's rollouts cannot be divided into micro-batches"
    expected = f"{name} that divides {prompts} × {rollouts} = {size}"
    yield bool(size % (settings[name] or 1)), name, problem, expected
    name, problem = "step.checkpoint_every", "the last step would leave no checkpoint"
    yield bool(steps % (settings[name] or 1)), name, problem, f"{name} that divides {steps} steps"
    name, problem = "optimizer.warmup_steps", "the learning rate would never be reached"
    yield settings[name] > steps, name, problem, f"{name} of {steps} or less"
    for name, otherwise in {"engine.dtype": AUTO, "engine.sleep": False}.items():
        is_wrong = settings["engine.kind"] != "vllm" and settings[name] != otherwise
        yield is_wrong, name, f"{name} is vLLM's alone", 'engine.kind "vllm", or the setting left out'
    name, context = "sampling.max_completion_tokens", settings["sampling.context"]
    yield settings[name] >= context, name, "the context has no room for a prompt", f"{name} below {context}"


SHIPPED = Path(__file__).parent / "recipes"
ENDING = ".toml"
LEFT_OUT = "its default: left out"
_CALLED = {str: "text", int: "a whole number", float: "a number", bool: "true or false", dict: "a section"}


@dataclass(frozen=True)
class Lora:
    """The adapter: its rank, its alpha, its dropout, and which layers have one."""

    rank: int
    alpha: int
    dropout: float
    target: str


@dataclass(frozen=True)
class Step:
    """The sizes of training."""

    prompts: int  # groups in a step
    rollouts: int  # rollouts in a group, G
    micro_batch: int  # rollouts that one backward pass takes on one GPU
    steps: int  # optimizer steps of a run
    checkpoint_every: int  # steps between two checkpoints


@dataclass(frozen=True)
class Optimizer:
    """AdamW's settings; the learning rate is decimal text, so that it is what was written."""

    learning_rate: str
    schedule: str
    warmup_steps: int
    weight_decay: float
    max_grad_norm: float


@dataclass(frozen=True)
class Sampling:
    """How rollouts are sampled."""

    temperature: float  # of the sampling
    max_completion_tokens: int  # tokens after the prompt, results of tools included
    max_turns: int  # turns with tool calls
    context: int  # tokens of prompt and completion together


@dataclass(frozen=True)
class ImportanceSampling:
    """The correction for what the engine samples otherwise than the trainer scores: kind, and upper bound."""

    level: str
    max: float


@dataclass(frozen=True)
class Loss:
    """The loss: its aggregation, its KL coefficient β, how advantages are scaled, and the correction."""

    type: str
    beta: float
    scale_rewards: str
    importance_sampling: ImportanceSampling


@dataclass(frozen=True)
class EngineSettings:
    """What generates."""

    kind: str  # vLLM beside the trainer, or the trainer's own model
    gpu_memory: float  # vLLM's share of the GPU's memory
    thinking: bool  # whether the model may think first
    dtype: str = AUTO  # number format that vLLM has the weights in; `auto` for that of the model's files
    sleep: bool = False  # whether vLLM gives its memory back while a step is trained
    conversations: int = 0  # most of them side by side; 0 for all that the step, or the evaluation, has

    def written(self) -> dict[str, Any]:
        """Return the settings without those that are as they are when left out."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}


@dataclass(frozen=True)
class Recipe:
    """All settings of a language model's training."""

    name: str  # name of the recipe
    model: str  # identity of the model on the Hub, or the path of a folder
    revision: str  # commit of the model on the Hub; empty for whatever is newest, or for a folder
    dtype: str  # number format of the weights
    lora: Lora  # the adapter
    step: Step  # sizes
    optimizer: Optimizer  # the optimizer
    sampling: Sampling  # how rollouts are sampled
    loss: Loss  # the loss
    engine: EngineSettings  # what generates
    packages: Mapping[str, str]  # package → the version that the settings were written for

    def document(self) -> dict[str, Any]:
        """Return the recipe as JSON values."""
        return {**asdict(self), "engine": self.engine.written(), "packages": dict(self.packages)}

    def settings(self) -> dict[str, Any]:
        """Return every single setting by its dotted name, as `lora.rank`, those that are left out, too."""
        return _flat({**asdict(self), "packages": dict(self.packages)})

    def left_out(self) -> frozenset[str]:
        """Return the dotted names of settings that are as they are when left out."""
        return frozenset(self.settings()) - frozenset(_flat(self.document()))

    def sha256(self) -> str:
        """Return the SHA-256 of the canonical document."""
        return hashlib.sha256(canonical(self.document()).encode()).hexdigest()


def shipped() -> tuple[str, ...]:
    """Return the names of the recipes that come with the package, sorted."""
    return tuple(sorted(path.stem for path in SHIPPED.glob(f"*{ENDING}")))


def recipe_path(name: str) -> Path:
    """Return the file of a recipe given by name or path."""
    if name in shipped():
        return SHIPPED / f"{name}{ENDING}"
    path = Path(name)
    if name.endswith(ENDING) and path.is_file():
        return path
    expected = f"one of {', '.join(shipped())}, or the path of a file that ends with {ENDING}"
    raise UsageError(f"there is no recipe {name!r}", expected=expected, remedy=did_you_mean(name, shipped()))


def load_recipe(name: str, *, model: str | None = None, changes: Sequence[str] = ()) -> Recipe:
    """Read a recipe, with what was asked to be otherwise."""
    document, _ = _read_file(name)
    recipe = read_recipe(document, str(recipe_path(name)))
    if model is None and not changes:
        return recipe
    document = recipe.document()
    if model is not None:
        document |= {"model": model, "revision": ""}
    for change in changes:
        _change(document, recipe.settings(), change)
    asked = " ".join([f"--model {model}"] * (model is not None) + [f"--set {text}" for text in changes])
    return read_recipe(document, asked, UsageError)


def setting_sources(
    name: str, recipe: Recipe, *, model: str | None, changes: Sequence[str]
) -> dict[str, str]:
    """Return where every setting of a recipe comes from, by its dotted name."""
    _, sources = _read_file(name)
    settings = recipe.settings()
    wrong = [
        setting
        for setting, source in sources.items()
        if setting not in settings or not isinstance(source, str)
    ]
    if wrong:
        problem, expected = "the recipe's sources are not those of its settings", "a text for a setting"
        raise RuleError(problem, expected=expected, found=", ".join(wrong), where=recipe_path(name))
    by_model = {} if model is None else {"model": "--model", "revision": "--model: the newest"}
    changed = dict.fromkeys((change.partition("=")[0] for change in changes), "--set")
    by_default = dict.fromkeys(recipe.left_out(), LEFT_OUT)
    return dict.fromkeys(settings, "the recipe") | by_default | sources | by_model | changed


def _read_file(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a recipe's file says: the settings, and their sources by dotted names."""
    path = recipe_path(name)
    try:
        document = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise RuleError("the recipe is no TOML", found=str(error), where=path) from None
    sources = document.pop("sources", {})
    return document, _flat(sources) if isinstance(sources, dict) else {"sources": sources}


def read_recipe(document: Mapping[str, Any], where: str, error: type[ToolkitError] = RuleError) -> Recipe:
    """Return a document as a recipe."""
    recipe: Recipe = _section(Recipe, document, "", where, error)
    for problem, expected, value in problems(recipe.settings()):
        raise error(problem, expected=expected, found=value, where=where)
    return recipe


def _section(kind: Any, given: Mapping[str, Any], prefix: str, where: str, error: type[ToolkitError]) -> Any:
    """Return a section as its dataclass, every key of it and none besides."""
    hints = get_type_hints(kind, localns={"Mapping": dict})
    names = [field.name for field in fields(kind)]
    needed = {field.name for field in fields(kind) if field.default is MISSING}
    for what, keys in (("does not know", set(given) - set(names)), ("lacks", needed - set(given))):
        if keys:
            problem = f"a recipe {'with a setting that it' if what == 'does not know' else 'that'} {what}"
            expected = ", ".join(prefix + name for name in names)
            found = ", ".join(sorted(prefix + key for key in keys))
            raise error(problem, expected=expected, found=found, where=where)
    there = [name for name in names if name in given]
    return kind(**{n: _value(hints[n], given[n], prefix + n, where, error) for n in there})


def _value(kind: Any, given: Any, name: str, where: str, error: type[ToolkitError]) -> Any:
    if is_dataclass(kind) and isinstance(given, dict):
        return _section(kind, given, f"{name}.", where, error)
    if kind is float and type(given) is int:
        return float(given)
    if name == "packages" and isinstance(given, dict):
        return {k: _value(str, v, f"{name}.{k}", where, error) for k, v in sorted(given.items())}
    if type(given) is not kind:
        called = _CALLED.get(kind, _CALLED[dict])
        raise error(f"{name} is not {called}", expected=called, found=repr(given), where=where)
    return given


def _change(document: dict[str, Any], settings: Mapping[str, Any], change: str) -> None:
    """Change one of a document's settings in place, by a text as `lora.rank=16`."""
    name, equals, text = change.partition("=")
    if not equals or name not in settings:
        raise UsageError(
            f"--set {change!r} changes no setting",
            expected=f"SECTION.KEY=VALUE, with one of {', '.join(settings)}",
        )
    *path, key = (
        name.split(".") if not name.startswith("packages.") else ("packages", name[len("packages.") :])
    )
    inner = document
    for part in path:
        inner = inner[part]
    inner[key] = _typed(text, type(settings[name]), name)


def _typed(text: str, kind: type, name: str) -> Any:
    if kind is bool and text in {"true", "false"}:
        return text == "true"
    try:
        if kind in {int, float, str}:
            return kind(text)
    except ValueError:
        pass
    raise UsageError(
        f"{name} is not {_CALLED[kind]}", expected=_CALLED[kind], found=text, where=f"--set {name}"
    )


def _flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for key, value in document.items():
        settings |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return settings


def recipe_of(specification: LanguageModelSpecification) -> Recipe:
    """Return the recipe of a language model's run."""
    return read_recipe(specification.recipe, specification.run_id)


def specify_language_model(
    specification: Specification, recipe: Recipe, model_commit: str
) -> LanguageModelSpecification:
    """Return the specification of a language model's run."""
    return LanguageModelSpecification(
        **{
            **asdict(specification),
            "learning_rate": recipe.optimizer.learning_rate,
            "surface_tokens": 0,
            "checkpoint_every": recipe.step.checkpoint_every,
        },
        recipe=recipe.document(),
        model_commit=model_commit,
    )


def grpo_arguments(
    recipe: Recipe,
    folder: Path,
    seed: int,
    *,
    processes: int = 1,
    cpu: bool = False,
    scale_rewards: str | None = None,
) -> dict[str, Any]:
    """Return the keyword arguments of `trl.GRPOConfig` that a recipe means (TRL 1.12.0)."""
    if cpu and recipe.engine.sleep:
        raise UsageError("vLLM for processors never sleeps", remedy="leave engine.sleep out of the recipe")
    step, sampling, loss, engine = recipe.step, recipe.sampling, recipe.loss, recipe.engine
    return {
        "output_dir": str(folder),
        "seed": seed,
        "report_to": [],
        "shuffle_dataset": False,
        "use_cpu": cpu,
        "bf16": recipe.dtype == "bfloat16" and not cpu,
        "gradient_checkpointing": not cpu,
        # The step.
        "max_steps": step.steps,
        "save_strategy": "steps",
        "save_steps": step.checkpoint_every,
        "per_device_train_batch_size": step.micro_batch,
        "gradient_accumulation_steps": accumulation(recipe, processes),
        "generation_batch_size": step.prompts * step.rollouts,
        "num_generations": step.rollouts,
        "num_iterations": 1,
        # The optimizer.
        "learning_rate": float(recipe.optimizer.learning_rate),
        "lr_scheduler_type": recipe.optimizer.schedule
        if recipe.optimizer.schedule != "constant" or not recipe.optimizer.warmup_steps
        else "constant_with_warmup",
        "warmup_steps": recipe.optimizer.warmup_steps,
        "weight_decay": recipe.optimizer.weight_decay,
        "max_grad_norm": recipe.optimizer.max_grad_norm,
        # The sampling: by the model's own distribution, whatever its generation settings say.
        "temperature": sampling.temperature,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": None,
        "repetition_penalty": 1.0,
        "max_completion_length": sampling.max_completion_tokens,
        "max_tool_calling_iterations": sampling.max_turns,
        "chat_template_kwargs": {"enable_thinking": engine.thinking},
        # The loss.
        "loss_type": loss.type,
        "beta": loss.beta,
        "scale_rewards": scale_rewards or loss.scale_rewards,
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": loss.importance_sampling.level,
        "vllm_importance_sampling_clip_max": loss.importance_sampling.max,
        "vllm_importance_sampling_clip_min": None,
        # The engine.
        "use_vllm": engine.kind == "vllm",
        "vllm_mode": "colocate",
        "vllm_gpu_memory_utilization": engine.gpu_memory,
        "vllm_max_model_length": sampling.context,
        "vllm_enable_sleep_mode": engine.sleep,
    }


def engine_options(recipe: Recipe) -> EngineOptions:
    """Return what vLLM is told by a recipe beyond the arguments that `trl.GRPOConfig` has."""
    engine = recipe.engine
    return EngineOptions(
        dtype=None if engine.dtype == AUTO else engine.dtype, conversations=engine.conversations or None
    )


def lora_arguments(recipe: Recipe, model: Any) -> dict[str, Any]:
    """Return the keyword arguments of `peft.LoraConfig` that a recipe means for a model."""
    return {
        "task_type": "CAUSAL_LM",
        "r": recipe.lora.rank,
        "lora_alpha": recipe.lora.alpha,
        "lora_dropout": recipe.lora.dropout,
        "target_modules": recipe.lora.target,
        "exclude_modules": _outside_decoder(model),
    }


def _outside_decoder(model: Any) -> str | None:
    """Return a pattern of what is not in a model's text decoder; None where that is all there is."""
    decoder, output = model.get_decoder(), model.get_output_embeddings()
    names = {id(module): name for name, module in model.named_modules()}
    within = f"{names[id(decoder)]}."
    others = [
        name
        for name, module in model.named_modules()
        if name
        and module is not output
        and not f"{name}.".startswith(within)
        and any(True for _ in module.parameters(recurse=False))
    ]
    return rf"(?!{re.escape(within)}).*" if within != "." and others else None


def accumulation(recipe: Recipe, processes: int = 1) -> int:
    """Return how many micro-batches each process adds up for one optimizer step."""
    size, at_once = recipe.step.prompts * recipe.step.rollouts, recipe.step.micro_batch * processes
    if size % at_once:
        problem = "the processes cannot share a step evenly"
        expected = f"step.micro_batch × processes that divides {size}"
        raise UsageError(problem, expected=expected, found=f"{recipe.step.micro_batch} × {processes}")
    return size // at_once
