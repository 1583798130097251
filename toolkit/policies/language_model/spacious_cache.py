"""Keys and values of conversations with room for more: a new token does not copy all that were there."""

from __future__ import annotations

from typing import Any

from transformers.cache_utils import DynamicLayer

ROOM = 256
"""Tokens that there is room for, whenever room is made."""


class SpaciousLayer(DynamicLayer):  # type: ignore[misc]
    """A layer's keys and values: the beginning of tensors that are longer.

    Args:
        layer: what there is so far.
    """

    def __init__(self, layer: DynamicLayer) -> None:
        super().__init__()
        self.__dict__.update(layer.__dict__)
        self.keys: Any = layer.keys
        self.values: Any = layer.values
        self._rooms: dict[str, Any] = {}

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Add tokens, each of shape (batch, heads, tokens, size); return all."""
        start = self.get_seq_length()
        self.keys = self._added("keys", self.keys, key_states, start)
        self.values = self._added("values", self.values, value_states, start)
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Any) -> None:
        """Keep some of the batch."""
        super().reorder_cache(beam_idx)
        self._rooms.clear()

    def _added(self, name: str, kept: Any, new: Any, start: int) -> Any:
        end = start + new.shape[-2]
        room = self._rooms.get(name)
        if room is None or end > room.shape[-2]:
            room = new.new_empty((*new.shape[:-2], end + ROOM, new.shape[-1]))
            room[..., :start, :] = kept
            self._rooms[name] = room
        room[..., start:end, :] = new
        return room[..., :end, :]


def make_room(cache: Any) -> None:
    """Give the layers of a cache room that would grow by copying."""
    for number, layer in enumerate(getattr(cache, "layers", ())):
        if type(layer) is DynamicLayer and layer.get_seq_length():
            cache.layers[number] = SpaciousLayer(layer)
