"""The architecture that the paper's policy has, with weights of no meaning."""

from collections.abc import Mapping
from typing import Any

# Qwen3.5-2B without its vision tower: three layers of linear attention, then one of full attention. With rank
# 32 on all linear layers an adapter has as many coordinates as the paper's probe, which a test holds it to.
TEXT = {
    "vocab_size": 248320,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 24,
    "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "tie_word_embeddings": True,
}
LORA = {"r": 32, "lora_alpha": 64, "target_modules": "all-linear"}
COORDINATES = 33_638_400


def published_model(device: str, text: Mapping[str, Any] = TEXT, lora: Mapping[str, Any] = LORA) -> Any:
    """Return the model in half precision with its adapter, in evaluation mode, drawn from a fixed seed.

    Source:
        Paper app:env, "Trainer settings".
    """
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    with torch.random.fork_rng(), torch.device(device):
        torch.manual_seed(0)
        base = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**text)).to(torch.bfloat16)
        return get_peft_model(base, LoraConfig(**lora)).eval()
