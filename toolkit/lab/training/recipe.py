"""Recipes: all settings of a language model's training, as data that is read strictly.

A recipe is a TOML file. Nothing in it is optional and nothing else may stand in it, so that no setting of a
run comes from a default that nobody wrote down, with two exceptions. A table `sources` may say where settings
come from. And settings of the engine that recipes did not always have may be left out; one that is as it is
when left out is no part of the document, so that recipes which were frozen without it keep their hashes.

Source:
    Paper app:training, "Stack" and "Trainer settings".
"""

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from toolkit.canonical import canonical
from toolkit.errors import RuleError, ToolkitError, UsageError, did_you_mean
from toolkit.files import read_text
from toolkit.lab.training.recipe_limits import AUTO, problems
from toolkit.specification import LanguageModelSpecification, Specification

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
    raise UsageError(
        f"there is no recipe {name!r}",
        expected=f"one of {', '.join(shipped())}, or the path of a file that ends with {ENDING}",
        remedy=did_you_mean(name, shipped()),
    )


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
        raise RuleError(
            "the recipe's sources are not those of its settings",
            expected="a text for a setting",
            found=", ".join(wrong),
            where=recipe_path(name),
        )
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
            raise error(
                f"a recipe {'with a setting that it' if what == 'does not know' else 'that'} {what}",
                expected=", ".join(prefix + name for name in names),
                found=", ".join(sorted(prefix + key for key in keys)),
                where=where,
            )
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
    """Return a text as a value of a setting's type."""
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
