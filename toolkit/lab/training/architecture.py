"""What a language model is made of, in numbers: parameters, adapters, caches, operations.

A decoder of layers, each with a mixer of tokens (full attention with grouped keys and values, or the gated
delta rule of linear attention) and a gated feed-forward network. Its sizes come from a list, a folder, the
package, or the `config.json` of the Hub.

Source:
    transformers 5.16.1, `Qwen3_5ForCausalLM` and `LlamaForCausalLM`: a test counts theirs.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from toolkit.errors import IncompleteError, ToolkitError
from toolkit.files import read_text
from toolkit.lab.policies.language_model.loading import model_path
from toolkit.registers.hub.client import client, telling

FULL = "full_attention"
LINEAR = "linear_attention"
# Kind of a text model → whether its attention is gated, has norms on queries and keys, has biases.
KINDS = {
    "qwen3_5_text": (True, True, False),
    "qwen3": (False, True, False),
    "qwen2": (False, False, True),
    "llama": (False, False, False),
    "mistral": (False, False, False),
}
MULTIPLIED_TWICE = 2
"""Operations a parameter and token of a forward pass: a multiplication and an addition."""


@dataclass(frozen=True)
class LinearAttention:
    """Linear attention's heads: how many keys and values, how wide each, and its convolution's kernel."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int

    @property
    def keys(self) -> int:
        """Width of all keys."""
        return self.key_heads * self.key_dim

    @property
    def values(self) -> int:
        """Width of all values."""
        return self.value_heads * self.value_dim

    @property
    def mixed(self) -> int:
        """Width that the convolution mixes: queries, keys and values."""
        return 2 * self.keys + self.values


@dataclass(frozen=True)
class Architecture:
    """A text model.

    Args:
        kind: of `KINDS`.
        vocabulary: tokens.
        hidden: width between layers.
        feed_forward: width within the feed-forward networks.
        layers: kind of every layer, `full_attention` or `linear_attention`.
        heads: query heads of full attention.
        key_value_heads: its key and value heads.
        head_dim: width of a head.
        tied: whether embedding and output layer are one matrix.
        linear: linear attention's heads, where a layer has it.
    """

    kind: str
    vocabulary: int
    hidden: int
    feed_forward: int
    layers: tuple[str, ...]
    heads: int
    key_value_heads: int
    head_dim: int
    tied: bool
    linear: LinearAttention | None = None

    @property
    def full_layers(self) -> int:
        """Layers with full attention, which keep keys and values of every token."""
        return self.layers.count(FULL)

    @property
    def linear_layers(self) -> int:
        """Layers with linear attention, which keep a state of one size."""
        return self.layers.count(LINEAR)

    @property
    def parameters(self) -> int:
        """Parameters of the text model, all of them."""
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        matrices = sum(rows * columns for rows, columns in self.linear_maps())
        return embeddings + matrices + self._small()

    @property
    def multiplied(self) -> int:
        """Parameters that a token is multiplied with: the maps and the output layer, no embedding."""
        return self.vocabulary * self.hidden + sum(rows * columns for rows, columns in self.linear_maps())

    def linear_maps(self) -> Iterator[tuple[int, int]]:
        """Yield the sizes of every linear map of the layers, the output layer not among them."""
        for layer in self.layers:
            yield from self._mixer(layer)
            yield from ((self.hidden, self.feed_forward),) * 3

    def adapter_parameters(self, rank: int) -> int:
        """Return the parameters of adapters of a rank on every linear map of the layers."""
        return sum(rank * (rows + columns) for rows, columns in self.linear_maps())

    def cache_bytes_per_token(self, bytes_each: int) -> int:
        """Return what full attention keeps of a token: a key and a value a layer and key-value head."""
        return self.full_layers * 2 * self.key_value_heads * self.head_dim * bytes_each

    def state_bytes(self, bytes_each: int, state_bytes_each: int) -> int:
        """Return what linear attention keeps of a sequence, however long it is."""
        if self.linear is None:
            return 0
        state = self.linear.value_heads * self.linear.key_dim * self.linear.value_dim * state_bytes_each
        return self.linear_layers * (state + self.linear.mixed * (self.linear.kernel - 1) * bytes_each)

    def forward_operations(self) -> int:
        """Return the operations of a token's forward pass, what attention does between tokens left out."""
        return MULTIPLIED_TWICE * self.multiplied

    def _mixer(self, layer: str) -> Iterator[tuple[int, int]]:
        if layer == LINEAR and self.linear is not None:
            linear = self.linear
            for width in (linear.mixed, linear.values, linear.value_heads, linear.value_heads, linear.values):
                yield self.hidden, width
            return
        gated = KINDS[self.kind][0]
        queries = self.heads * self.head_dim
        for width in (queries * (2 if gated else 1), *(self.key_value_heads * self.head_dim,) * 2, queries):
            yield self.hidden, width

    def _small(self) -> int:
        """Return the parameters of norms, biases and convolutions."""
        _, normed, biased = KINDS[self.kind]
        each_full = normed * 2 * self.head_dim
        each_full += biased * (self.heads + 2 * self.key_value_heads) * self.head_dim
        each_linear = 0
        if self.linear is not None:
            each_linear = self.linear.mixed * self.linear.kernel + 2 * self.linear.value_heads
            each_linear += self.linear.value_dim
        norms = (2 * len(self.layers) + 1) * self.hidden
        return norms + self.full_layers * each_full + self.linear_layers * each_linear


def architecture_of(config: Mapping[str, Any], where: object) -> Architecture:
    """Return the architecture that a model's `config.json` says."""
    text = config.get("text_config", config)
    kind = text.get("model_type") if isinstance(text, dict) else None
    if kind not in KINDS:
        raise IncompleteError(
            "the parameters of this kind of model are not counted here",
            expected=f"model_type {', '.join(KINDS)}",
            found=kind,
            where=where,
        )
    try:
        return _architecture(text, kind)
    except (KeyError, TypeError, ValueError) as error:
        raise IncompleteError("the model's configuration lacks a size", found=error, where=where) from None


def _architecture(text: Mapping[str, Any], kind: str) -> Architecture:
    number, heads = int(text["num_hidden_layers"]), int(text["num_attention_heads"])
    hidden = int(text["hidden_size"])
    layers = text.get("layer_types") or [FULL] * number
    if kind == "qwen3_5_text" and not text.get("layer_types"):
        every = int(text.get("full_attention_interval", 4))
        layers = [LINEAR if (i + 1) % every else FULL for i in range(number)]
    # A window bounds what attention looks back at, not its parameters.
    layers = [LINEAR if layer == LINEAR else FULL for layer in layers]
    if len(layers) != number:
        raise ValueError(f"{len(layers)} layer_types for {number} layers")
    return Architecture(
        kind=kind,
        vocabulary=int(text["vocab_size"]),
        hidden=hidden,
        feed_forward=int(text["intermediate_size"]),
        layers=tuple(layers),
        heads=heads,
        key_value_heads=int(text.get("num_key_value_heads") or heads),
        head_dim=int(text.get("head_dim") or hidden // heads),
        tied=bool(text.get("tie_word_embeddings", False)),
        linear=_linear(text) if LINEAR in layers else None,
    )


def _linear(text: Mapping[str, Any]) -> LinearAttention:
    return LinearAttention(
        int(text["linear_num_key_heads"]),
        int(text["linear_num_value_heads"]),
        int(text["linear_key_head_dim"]),
        int(text["linear_value_head_dim"]),
        int(text["linear_conv_kernel_dim"]),
    )


KNOWN = Path(__file__).with_name("models.toml")
CONFIG = "config.json"


class Model(NamedTuple):
    """A model: its name, its architecture, and where its sizes come from."""

    name: str
    architecture: Architecture
    source: str


def find_model(name: str, revision: str = "") -> Model:
    """Return a model by the name that a recipe gives it."""
    known = _known()
    if name in known:
        return Model(name, architecture_of(known[name], KNOWN), known[name]["source"].strip())
    folder = Path(model_path(name))
    path = _in_folder(folder) if folder.is_dir() else _fetched(name, revision)
    try:
        config = json.loads(read_text(path))
    except ValueError as error:
        raise IncompleteError("the model's configuration is no JSON", found=error, where=path) from None
    if not isinstance(config, dict):
        raise IncompleteError("the model's configuration is no JSON object", where=path)
    return Model(name, architecture_of(config, path), str(path))


def _known() -> dict[str, dict[str, Any]]:
    return tomllib.loads(read_text(KNOWN))


def _in_folder(folder: Path) -> Path:
    """Return the configuration that a model's folder holds."""
    path = folder / CONFIG
    if not path.is_file():
        raise IncompleteError("the folder holds no model", expected=CONFIG, where=folder)
    return path


def _fetched(name: str, revision: str) -> Path:
    """Return the configuration of a repository on the Hub, in the cache."""
    try:
        with telling(name, "fetching the model's configuration"):
            return Path(client().hf_hub_download(name, CONFIG, revision=revision or None))
    except ToolkitError as error:
        raise IncompleteError(
            "the model's configuration cannot be had",
            expected=f"{', '.join(_known())}, a folder with {CONFIG}, or a repository on the Hub",
            found=error.problem,
            where=name,
            remedy="give the folder of a model, or try again where the Hub can be reached",
        ) from None
