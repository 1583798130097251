"""Recipes: all settings of a language model's training, as data that is read strictly."""

import hashlib
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, structs

from toolkit.canonical import canonical
from toolkit.errors import RuleError, ToolkitError, UsageError, did_you_mean
from toolkit.files import read_text
from toolkit.lab.policies.language_model.options import EngineOptions
from toolkit.specification import LanguageModelSpecification, Specification
from toolkit.structs import Document, about, as_builtins, parse

AUTO = "auto"
PACKAGES = "packages."
LARGEST = sys.float_info.max
SHIPPED = Path(__file__).parent / "recipes"
ENDING = ".toml"
LEFT_OUT = "its default: left out"
_CALLED = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}

Text = Annotated[str, Meta(pattern=r"\S")]
Whole = Annotated[int, Meta(ge=0)]
Natural = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
Positive = Annotated[float, Meta(gt=0, le=LARGEST)]
Version = Annotated[str, Meta(pattern=r"\A\d+(\.[0-9A-Za-z+-]+)*\Z")]


class Lora(Document, frozen=True):
    """The adapter."""

    rank: Natural
    alpha: Natural
    dropout: Annotated[float, Meta(ge=0, lt=1)]
    target: Annotated[Literal["all-linear"], about("Which layers have one.")]


class Step(Document, frozen=True, omit_defaults=True):
    """The sizes of training."""

    prompts: Annotated[Natural, about("Groups in a step.")]
    rollouts: Annotated[int, about("Rollouts in a group, G: advantages compare them.", ge=2)]
    micro_batch: Annotated[Natural, about("Rollouts that one backward pass takes on one GPU.")]
    steps: Annotated[Natural, about("Optimizer steps of a run.")]
    checkpoint_every: Annotated[Natural, about("Steps between two checkpoints.")]
    scored_at_once: Annotated[
        Whole, about("Sequences whose log-probabilities are computed at once; 0 for a micro-batch.")
    ] = 0

    def __post_init__(self) -> None:
        size = self.prompts * self.rollouts
        if size % self.micro_batch:
            problem = "a step's rollouts cannot be divided into micro-batches"
            raise ValueError(f"{problem}: step.micro_batch has to divide {size}")
        if self.steps % self.checkpoint_every:
            problem = "the last step would leave no checkpoint"
            raise ValueError(f"{problem}: step.checkpoint_every has to divide {self.steps}")


class Optimizer(Document, frozen=True):
    """AdamW's settings."""

    learning_rate: Annotated[str, about("Decimal text, so that it is what was written.")]
    schedule: Literal["linear", "constant"]
    warmup_steps: Whole
    weight_decay: Amount
    max_grad_norm: Amount

    def __post_init__(self) -> None:
        try:
            rate = Decimal(self.learning_rate)
        except InvalidOperation:
            rate = Decimal(0)
        if not (rate.is_finite() and rate > 0):
            raise ValueError('optimizer.learning_rate is not a rate: decimal text, as "0.00001"')


class Sampling(Document, frozen=True):
    """How rollouts are sampled."""

    temperature: Positive
    max_completion_tokens: Annotated[Natural, about("Tokens after the prompt, results of tools included.")]
    max_turns: Annotated[Natural, about("Turns with tool calls.")]
    context: Annotated[int, about("Tokens of prompt and completion together.", ge=2)]

    def __post_init__(self) -> None:
        if self.max_completion_tokens >= self.context:
            problem = "the context has no room for a prompt"
            raise ValueError(f"{problem}: sampling.max_completion_tokens has to be below {self.context}")


class ImportanceSampling(Document, frozen=True):
    """The correction for what the engine samples otherwise than the trainer scores."""

    level: Literal["sequence_mask", "sequence_truncate", "token_mask", "token_truncate"]
    max: Positive


class Loss(Document, frozen=True):
    """The loss."""

    type: Annotated[Literal["dapo"], about("Its aggregation.")]
    beta: Annotated[Amount, about("Its KL coefficient.")]
    scale_rewards: Annotated[Literal["group", "none"], about("How advantages are scaled.")]
    importance_sampling: ImportanceSampling


class EngineSettings(Document, frozen=True, omit_defaults=True):
    """What generates."""

    kind: Annotated[
        Literal["vllm", "transformers"], about("vLLM beside the trainer, or the trainer's own model.")
    ]
    gpu_memory: Annotated[float, about("vLLM's share of the GPU's memory.", gt=0, lt=1)]
    thinking: Annotated[bool, about("Whether the model may think first.")]
    dtype: Annotated[
        Literal["auto", "bfloat16", "float16", "float32"],
        about("Number format that vLLM has the weights in; `auto` for that of the model's files."),
    ] = "auto"
    sleep: Annotated[bool, about("Whether vLLM gives its memory back while a step is trained.")] = False
    conversations: Annotated[Whole, about("Most of them side by side; 0 for all that there are.")] = 0
    prefix_caching: Annotated[
        Literal["auto", "on", "off"],
        about("Whether vLLM keeps what it read of a prefix; `auto`: as it does."),
    ] = "auto"
    batched_tokens: Annotated[
        Whole, about("Tokens that vLLM takes in a pass; 0 for the trainer's number.")
    ] = 0

    def __post_init__(self) -> None:
        others = {"dtype": AUTO, "sleep": False, "prefix_caching": AUTO, "batched_tokens": 0}
        for name, default in others.items():
            if getattr(self, name) != default and self.kind != "vllm":
                raise ValueError(f"engine.{name} is vLLM's alone")


class Recipe(Document, frozen=True):
    """All settings of a language model's training."""

    name: Text
    model: Annotated[Text, about("Identity of the model on the Hub, or the path of a folder.")]
    revision: Annotated[str, about("Commit on the Hub; empty for the newest, or for a folder.")]
    dtype: Annotated[Literal["bfloat16", "float32"], about("Number format of the weights.")]
    lora: Lora
    step: Step
    optimizer: Optimizer
    sampling: Sampling
    loss: Loss
    engine: EngineSettings
    packages: Annotated[dict[str, Version], about("The versions that the settings were written for.")]

    def __post_init__(self) -> None:
        if self.optimizer.warmup_steps > self.step.steps:
            problem = "the learning rate would never be reached"
            raise ValueError(f"{problem}: optimizer.warmup_steps is above {self.step.steps}")

    def document(self) -> dict[str, Any]:
        """Return the recipe as JSON values, without what is as it is when left out."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document

    def settings(self) -> dict[str, Any]:
        """Return every single setting by its dotted name, as `lora.rank`, those that are left out, too."""
        changed = {
            "step": msgspec.structs.asdict(self.step),
            "engine": msgspec.structs.asdict(self.engine),
            "packages": dict(sorted(self.packages.items())),
        }
        return _flat(as_builtins(self) | changed)

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
        raise RuleError("the recipe is not TOML", found=str(error), where=path) from None
    sources = document.pop("sources", {})
    return document, _flat(sources) if isinstance(sources, dict) else {"sources": sources}


def read_recipe(document: Mapping[str, Any], where: str, error: type[ToolkitError] = RuleError) -> Recipe:
    """Return a document as a recipe."""
    return parse(Recipe, document, "the recipe is invalid", where, error=error)


def _change(document: dict[str, Any], settings: Mapping[str, Any], change: str) -> None:
    """Change one of a document's settings in place, by a text as `lora.rank=16`."""
    name, equals, text = change.partition("=")
    if not equals or name not in settings:
        raise UsageError(
            f"--set {change!r} changes no setting",
            expected=f"SECTION.KEY=VALUE, with one of {', '.join(settings)}",
        )
    *path, key = name.split(".", 1) if name.startswith(PACKAGES) else name.split(".")
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
            **structs.asdict(specification),
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
        dtype=None if engine.dtype == AUTO else engine.dtype,
        conversations=engine.conversations or None,
        prefix_caching=None if engine.prefix_caching == AUTO else engine.prefix_caching == "on",
        batched_tokens=engine.batched_tokens or None,
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
