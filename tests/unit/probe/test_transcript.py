"""A transcript that has no score is refused where it is made."""

from collections.abc import Sequence

import pytest

from toolkit.errors import UsageError
from toolkit.probe.adapter import Coordinates
from toolkit.probe.recorded import Transcript


@pytest.mark.parametrize(
    ("tokens", "chosen", "problem"),
    [
        ((1, 2, 3), (False, True), "says of each token"),
        ((), (), "chose no token"),
        ((1, 2), (False, False), "chose no token"),
        ((1, 2), (True, False), "no prefix"),
        ((1, -100, 3), (False, True, True), "negative"),
    ],
    ids=["lengths", "empty", "nothing-chosen", "first-chosen", "negative"],
)
def test_it_is_refused(tokens: Sequence[int], chosen: Sequence[bool], problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as stopped:
        Transcript(tuple(tokens), tuple(chosen))
    assert stopped.value.expected
    assert stopped.value.found
    assert stopped.value.remedy


def test_a_choice_is_predicted_at_the_token_before_it() -> None:
    assert Transcript((5, 6, 7, 8), (False, True, False, True)).choices == ((0, 6), (2, 8))


def test_coordinates_lie_end_to_end_and_their_hash_is_of_their_lines() -> None:
    coordinates = Coordinates(("a.weight", "b.weight"), ((2, 3), (4,)))
    assert coordinates.places == {"a.weight": slice(0, 6), "b.weight": slice(6, 10)}
    assert coordinates.size == 10
    # printf 'a.weight 2,3\nb.weight 4\n' | sha256sum
    assert coordinates.names_sha256 == "c91446d8674f066e01ae16693330302b596acd0570ba811751652ea370bda1e5"
