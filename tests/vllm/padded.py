"""The model `small` with linear-attention heads of 128, which vLLM's kernels for processors want, not of 32.

It is the same function: what is added is zero, and the norm behind the heads makes up for their size.

1. Every head of queries, keys and values gets channels that are zero: rows of the projection, and filters.
2. Queries are divided by the root of the head's size, so that a head's output is half as large; its mean
   square is taken over four times as many channels. The norm therefore finds it sixteen times smaller: its ε
   is too, and its weight is halved.
3. The gate's rows and the columns of the projection behind it are zero where the head was padded.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from toolkit.lab.policies.language_model.loading import model_path

HEAD = 128
SIZES = ("linear_key_head_dim", "linear_value_head_dim")


def save_padded(folder: Path) -> str:
    """Save the model and its tokenizer in a folder; return the folder's name."""
    from safetensors.torch import load_file, save_file

    source = Path(model_path("small"))
    shutil.copytree(source, folder, dirs_exist_ok=True)
    config = json.loads((source / "config.json").read_bytes())
    weights = load_file(source / "model.safetensors")
    head, heads = config[SIZES[0]], config["linear_num_key_heads"]
    assert (head, heads) == (config[SIZES[1]], config["linear_num_value_heads"])
    for name, weight in weights.items():
        weights[name] = _padded(name.rpartition("linear_attn.")[2], weight, head)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    config |= dict.fromkeys(SIZES, HEAD)
    config |= {"dtype": "bfloat16", "mamba_ssm_dtype": "float32"}
    config["rms_norm_eps"] /= (HEAD / head) ** 2  # 2
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    return str(folder)


def _padded(name: str, weight: Any, head: int) -> Any:
    if name in {"in_proj_qkv.weight", "conv1d.weight", "in_proj_z.weight"}:  # 1, 3
        return _widened(weight, head)
    if name == "norm.weight":  # 2
        return _widened(weight, head) / (HEAD / head) ** 0.5
    if name == "out_proj.weight":  # 3
        return _widened(weight.T, head).T.contiguous()
    return weight


def _widened(rows: Any, head: int) -> Any:
    """Return rows, which are heads one after the other, with zeros after each head."""
    import torch

    heads = rows.reshape(-1, head, *rows.shape[1:])
    wide = torch.zeros(len(heads), HEAD, *rows.shape[1:], dtype=rows.dtype)
    wide[:, :head] = heads
    return wide.reshape(-1, *rows.shape[1:])
