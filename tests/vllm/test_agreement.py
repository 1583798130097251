"""Whether the command notices that vLLM and transformers have two policies."""

from typing import Any

import pytest

from toolkit.errors import IncompleteError
from toolkit.lab.policies.language_model import vllm_engine
from toolkit.lab.policies.language_model.loading import load_chat, load_model, model_path
from toolkit.lab.policies.language_model.vllm_engine import check_agreement

# What vLLM and its libraries warn each other of is theirs.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def adapter(model: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of an adapter that changes what the model says."""
    import torch
    from peft import LoraConfig, get_peft_model

    folder = tmp_path_factory.mktemp("adapter")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        config = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", init_lora_weights=False)
        get_peft_model(load_model(model), config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def llm(model: str, adapter: str) -> Any:
    """Return vLLM with the model, and room for the adapter."""
    return vllm_engine.open_llm(model, None, adapter)


def test_the_model_with_longer_heads_is_the_same_function(model: str) -> None:
    """Up to the ε of its other norms, in single precision."""
    import torch

    ids = torch.randint(8, 900, (2, 200), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        one, other = (load_model(name).float()(input_ids=ids).logits for name in (model, model_path("small")))
    assert float((one.log_softmax(-1) - other.log_softmax(-1)).abs().max()) < 0.005


def test_both_engines_have_one_policy_with_an_adapter_and_without(llm: Any, model: str, adapter: str) -> None:
    chat = load_chat(model)
    plain, adapted = (
        check_agreement(llm, chat, load_model(model, None, put_on), put_on) for put_on in (None, adapter)
    )
    assert 0 < max(plain) < 0.02
    assert 0 < adapted.said < 0.02


def test_an_adapter_on_one_of_them_is_noticed(llm: Any, model: str, adapter: str) -> None:
    chat = load_chat(model)
    for theirs, mine in ((adapter, None), (None, adapter)):
        with pytest.raises(IncompleteError, match="have two policies") as raised:
            check_agreement(llm, chat, load_model(model, None, mine), theirs)
        assert model in str(raised.value.where)


def test_the_configuration_as_vllm_reads_it_by_itself_is_noticed(model, monkeypatch) -> None:
    monkeypatch.setattr(vllm_engine, "_of_model", lambda *_: {})
    with pytest.raises(IncompleteError, match="have two policies") as raised:
        check_agreement(vllm_engine.open_llm(model), load_chat(model), load_model(model))
    assert "sampled tokens" in (raised.value.found or "")
