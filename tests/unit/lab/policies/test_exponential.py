"""The portable exponential."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.lab.policies.loglinear import exp, softmax

# Bits as this toolkit computes them: another machine, Python or library has to find the same.
BITS = {
    -700.0: "0x1.14f2b0fb9307fp-1010",
    -1.0: "0x1.78b56362cef38p-2",
    0.0: "0x1.0000000000000p+0",
    0.5: "0x1.a61298e1e069cp+0",
    1.0: "0x1.5bf0a8b14576ap+1",
    10.0: "0x1.5829dcf950560p+14",
}


@given(st.floats(-700, 700))
def test_is_within_one_unit_of_the_library(x: float) -> None:
    assert abs(exp(x) - math.exp(x)) <= 2 * math.ulp(math.exp(x))


@pytest.mark.parametrize(("x", "bits"), BITS.items())
def test_gives_the_same_bits_everywhere(x: float, bits: str) -> None:
    assert exp(x).hex() == bits


@pytest.mark.parametrize("x", [701.0, -701.0, math.inf, math.nan])
def test_refuses_what_is_out_of_range(x: float) -> None:
    with pytest.raises(OverflowError):
        exp(x)


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=16))
def test_options_are_likely_by_the_exponentials_of_their_logits(logits: list[float]) -> None:
    weights = [math.exp(logit) for logit in logits]
    expected = [weight / math.fsum(weights) for weight in weights]
    assert softmax(logits) == pytest.approx(expected, rel=1e-13)
