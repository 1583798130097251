"""`toolkit draw`: one draw, for machines and for people."""

from tests.conftest import Toolkit


def test_a_draw_is_a_digest_and_three_numbers(toolkit: Toolkit) -> None:
    document = toolkit("draw", 0, "get_order", "O-10233", 0, "--json").json()
    assert list(document) == ["digest", "gate", "type", "magnitude"]
    assert document["digest"].startswith("c48e1a4fd7a424ef52531985378799e1")
    words = [int(document["digest"][at : at + 16], 16) for at in (0, 16, 32)]
    assert [document[name] for name in ("gate", "type", "magnitude")] == [(w >> 11) / 2**53 for w in words]


def test_the_graders_draw_has_a_key_of_its_own(toolkit: Toolkit) -> None:
    document = toolkit("draw", 42, "grader", "--json").json()
    assert document["digest"].startswith("3414c897b62b202fb68af38a2cb1afcf")


def test_a_seed_may_be_hexadecimal_and_a_name_any_text(toolkit: Toolkit) -> None:
    one = toolkit("draw", "0xffffffffffffffff", "list_orders", "C-é", 12, "--json")
    other = toolkit("draw", 2**64 - 1, "list_orders", "C-e\u0301", 12, "--json")
    assert one.json() == other.json()
    assert one.json()["digest"].startswith("665373ca57a66e51f2bd502924a44af9")


def test_people_are_told_what_it_means_under_each_regime(toolkit: Toolkit) -> None:
    seed = next(
        s for s in range(100) if toolkit("draw", s, "get_order", "O-1", 0, "--json").json()["gate"] < 0.1
    )
    lines = toolkit("draw", seed, "get_order", "O-1", 0).out.splitlines()
    fates = {line.split()[0]: line for line in lines[5:]}
    assert "no fault" in fates["challenge"]
    assert "no fault" not in fates["faults_p025"] + fates["faults_p010"]
    assert "field_dropout" in fates["held_out_types"]


def test_the_challenge_fails_the_first_attempt_of_a_write(toolkit: Toolkit) -> None:
    fates = [toolkit("draw", 1, "cancel_order", "O-1", repeat).out for repeat in (0, 1)]
    assert ["challenge                 transient" in fate for fate in fates] == [True, False]


def test_a_flip_is_explained(toolkit: Toolkit) -> None:
    seed = next(s for s in range(200) if toolkit("draw", s, "grader", "--json").json()["gate"] < 0.05)
    assert toolkit("draw", seed, "grader").out.count("a success is graded a failure") == 2


def test_an_identifier_that_no_episode_draws_is_pointed_out(toolkit: Toolkit) -> None:
    assert "O-10233" in toolkit("draw", 0, "get_order", "o-10233", 0).err
    assert not toolkit("draw", 0, "get_order", "O-10233", 0).err


def test_a_tool_that_is_none_is_drawn_and_said_to_be_none(toolkit: Toolkit) -> None:
    assert "is no tool" in toolkit("draw", 42, "ab", "c", 0).out
    assert (
        "get_ordr is no tool of the back office; get_order is one"
        in toolkit("draw", 1, "get_ordr", "O", 0).err
    )
