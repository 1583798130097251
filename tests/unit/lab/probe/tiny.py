"""A tiny model of the Qwen3.5 architecture with a LoRA adapter, and transcripts for it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.lab.probe.recorded import Transcript

VOCABULARY = 89
# One layer of linear attention, one of full attention.
TEXT = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "layer_types": ["linear_attention", "full_attention"],
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "max_position_embeddings": 256,
}
VISION = {
    "depth": 1,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_heads": 2,
    "out_hidden_size": 64,
    "num_position_embeddings": 16,
    "patch_size": 4,
}
IMAGES = {"image_token_id": 90, "video_token_id": 91, "vision_start_token_id": 92, "vision_end_token_id": 93}


def tiny_model(*, vision: bool = False, **lora: Any) -> Any:
    """Return the model in evaluation mode, all LoRA weights drawn from one seed, so that no B is zero."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import (
        Qwen3_5Config,
        Qwen3_5ForCausalLM,
        Qwen3_5ForConditionalGeneration,
        Qwen3_5TextConfig,
    )

    # Its steps are so small that several threads mostly wait for one another: 20 times slower where tests
    # share the processors.
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if vision:
            config = Qwen3_5Config(text_config=TEXT, vision_config=VISION, **IMAGES)
            base = Qwen3_5ForConditionalGeneration(config)
        else:
            base = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**TEXT))
        model = get_peft_model(base, LoraConfig(**{"r": 4, "target_modules": "all-linear", **lora}))
    draw(model, 1)
    return model.eval()


def draw(model: Any, seed: int) -> None:
    """Give every LoRA weight a value from a seed."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if "lora_" in name:
                tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.05)


def log_likelihood(model: Any, one: Transcript, temperature: float = 1.0) -> Any:
    """Return Σ_t m_t log π of a transcript, written down anew."""
    import torch

    device = model.get_input_embeddings().weight.device
    logits = model(input_ids=torch.tensor([one.tokens], device=device)).logits[0, :-1].double() / temperature
    picked = logits.log_softmax(-1)[range(len(one.tokens) - 1), list(one.tokens[1:])]
    return (picked * torch.tensor(one.chosen[1:], device=device)).sum()


def loop_scores(model: Any, some: Sequence[Transcript], temperature: float = 1.0) -> np.ndarray:
    """Return scores from a loop of backward passes: no hooks, no padding, one transcript a pass."""
    import torch

    rows = []
    for one in some:
        model.zero_grad()
        log_likelihood(model, one, temperature).backward()
        gradients = [tensor.grad for tensor in model.parameters() if tensor.grad is not None]
        rows.append(torch.cat([gradient.float().flatten() for gradient in gradients]).cpu().numpy())
    model.zero_grad()
    return np.stack(rows)


def transcripts(lengths: Sequence[int], seed: int = 2) -> list[Transcript]:
    """Return transcripts with a prompt of three tokens, then turns of the policy and of tools by turns."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    found = []
    for length in lengths:
        tokens = torch.randint(VOCABULARY, (length,), generator=generator).tolist()
        chosen = [at >= 3 and (at // 4) % 3 != 1 for at in range(length)]
        found.append(Transcript(tuple(tokens), tuple(chosen)))
    return found
