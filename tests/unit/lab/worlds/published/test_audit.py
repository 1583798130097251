"""What the published runs lost is what their seeds flip, and nothing else passes for it."""

import hashlib
import random
from collections import Counter
from itertools import combinations

import pytest

from toolkit.errors import DamagedError, VerificationError
from toolkit.lab.worlds.published import audit as auditing
from toolkit.lab.worlds.published.audit import PLAYED, TABLES, audit, is_possible, play_again

PAIRED, CLEAN, FAULTS = "t1-c4-paired-s0", "t1-c0-clean-s0", "gate1-c2-paired-s0"


@pytest.fixture(scope="session")
def tables(published):
    return {name: published.rows(name) for name in {*TABLES, *PLAYED}}


@pytest.fixture(scope="session")
def audited(tables):
    return audit(tables)


@pytest.fixture(scope="session")
def held(audited):
    return {each.run["run_id"]: each for each in audited.runs}


def seed(*parts):
    """Return what is drawn by: eight bytes of a digest."""
    return int.from_bytes(hashlib.sha256("|".join(map(str, parts)).encode()).digest()[:8], "big")


def is_flipped(schedule):
    return random.Random(seed(schedule, "outcome")).random() < 0.1  # noqa: S311 - as theirs


def test_no_step_of_the_published_runs_is_impossible_and_many_are_under_another_seed(held) -> None:
    assert Counter(each.run["arm"] for each in held.values()) == {"paired": 4, "independent": 3}
    for name, each in held.items():
        assert len(each.lost) == len(each.own.drawn) == 100
        assert each.own.impossible == (), name
        assert 0.85 < each.own.correlation < 0.98, name
        assert len(each.others) == 2
        for other in each.others:
            assert 19 <= len(other.impossible) <= 55, name
            assert abs(other.correlation) < 0.26, name


def test_no_rollout_draws_by_its_slot_alone(held) -> None:
    """It does in the paper's words; it does not in the authors' code, nor in their figures."""
    by_slot = {name: each.by_slot for name, each in held.items() if each.by_slot}
    assert all(each.run["arm"] == "independent" for name, each in held.items() if name in by_slot)
    assert len(by_slot) == 3
    assert all(22 <= len(each.impossible) <= 33 and abs(each.correlation) < 0.2 for each in by_slot.values())


def test_flips_of_a_paired_step_are_drawn_by_prompt(held) -> None:
    schedules = [seed("schedule", 0, "C4", row) % 2**31 for row in range(2400)]
    flips = [8 * sum(map(is_flipped, schedules[at : at + 24])) for at in range(0, 2400, 24)]
    assert list(held[PAIRED].own.drawn) == flips
    assert flips[:5] == [0, 16, 8, 32, 0]


@pytest.mark.parametrize("step", [0, 57])
def test_flips_of_an_independent_step_are_drawn_by_instance_and_episode(held, step) -> None:
    shared = [seed("schedule", 2, "C4", row) % 2**31 for row in range(24 * step, 24 * step + 24)]
    rollouts = [(prompt, slot) for prompt in range(24) for slot in range(8)]
    own = [seed("independent", shared[p], 8 * p + slot, step, "train") for p, slot in rollouts]
    by_slot = [seed("independent", shared[p], slot, 0, "train") for p, slot in rollouts]
    run = held["t1-c4-independent-s2"]
    assert run.own.drawn[step] == sum(map(is_flipped, own))
    assert run.by_slot.drawn[step] == sum(map(is_flipped, by_slot))


def test_flips_of_an_evaluation_are_drawn_by_task_and_schedule(audited) -> None:
    pools = {("validation", 128): ("heldout", 64, (1, 2)), ("test", 800): ("test", 200, (1, 2, 3, 4))}
    drawn = {
        place: sum(
            is_flipped(seed("eval", f"{pool}-{task:05d}", index) % 2**31)
            for task in range(tasks)
            for index in schedules
        )
        for place, (pool, tasks, schedules) in pools.items()
    }
    assert drawn == {("validation", 128): 10, ("test", 800): 76}
    assert {(row["pool"], row["episodes"]): n for row, n in audited.evaluations} == drawn
    assert (len(audited.evaluations), audited.whole, audited.unflipped) == (49, 18, 1103)


def test_success_under_faults_goes_with_that_of_a_scripted_agent(audited) -> None:
    assert len(audited.followed) == 6
    for each in audited.followed:
        if each.run["arm"] == "paired":
            assert 0.50 <= each.own <= 0.55
            assert 0.01 < each.others < 0.05
        else:  # eight schedules a task: their mean is much the same under any seed
            assert 0.1 < each.own - each.others < 0.25


def test_what_flips_can_take_is_what_some_way_of_placing_them_takes() -> None:
    for episodes in range(7):
        for successes in range(episodes + 1):
            for drawn in range(episodes + 1):
                ways = {
                    sum(at < successes for at in flipped) for flipped in combinations(range(episodes), drawn)
                }
                can = {lost for lost in range(-1, 8) if is_possible(lost, successes, episodes, drawn)}
                assert can == ways, (episodes, successes, drawn)


def test_steps_in_another_order_are_impossible(held, tables) -> None:
    """Each run's steps stand beside the flips that its own seed draws for the step after."""
    for name, each in held.items():
        rows = [row for row in tables["training_steps"] if row["run_id"] == name]
        late = (*each.own.drawn[1:], each.own.drawn[0])
        impossible = sum(
            not is_possible(lost, row["successes"], row["rollouts"], drawn)
            for row, lost, drawn in zip(rows, each.lost, late, strict=True)
        )
        assert 23 <= impossible <= 55, name


@pytest.fixture(scope="session")
def few(tables):
    """Three runs: of flips, without noise, and of faults."""
    return {
        name: [row for row in rows if row.get("run_id") in (PAIRED, CLEAN, FAULTS)]
        for name, rows in tables.items()
    }


def test_few_runs_are_held_against_their_draws_alike(few, held) -> None:
    found = audit(few)
    assert found.runs == (held[PAIRED],)
    assert "100 training steps of 1 runs" in found.sentence
    assert found.unflipped == 200 + sum("flips" not in row["regime"] for row in few["evaluations"])


def step(run, *at):
    return "training_steps", {"run_id": run, "step": at[0]}


def evaluation(run, regime, at, pool="validation"):
    return "evaluations", {"run_id": run, "regime": regime, "step": at, "pool": pool}


def run_of(name):
    return "runs", {"run_id": name}


REFUSED = {
    "a success too many is lost": (step(PAIRED, 2), {"observed_successes": 132}, "step=2"),
    "a success too few is lost": (step(PAIRED, 47), {"observed_successes": 161}, "step=47"),
    "one is lost where none is flipped": (step(PAIRED, 0), {"observed_successes": 157}, "step=0"),
    "nothing is lost where much is flipped": (step(PAIRED, 96), {"observed_successes": 182}, "step=96"),
    "one more is rewarded than succeeded": (step(PAIRED, 57), {"observed_successes": 184}, "step=57"),
    "a step without noise lost one": (step(CLEAN, 7), {"observed_successes": 0}, "step=7"),
    "a step under faults lost one": (step(FAULTS, 99), {"observed_successes": 0}, "step=99"),
    "an evaluation lost one more than is drawn": (
        evaluation(PAIRED, "flips_q010", 100),
        {"observed_successes": 120, "flipped": 11},
        "phase=periodic, pool=validation, regime=flips_q010, step=100",
    ),
    "an evaluation flipped another number than it lost": (
        evaluation(PAIRED, "flips_q010", 100, "test"),
        {"flipped": 71},
        "phase=final, pool=test",
    ),
    "an evaluation without flips lost one": (
        evaluation(CLEAN, "clean", 100, "test"),
        {"observed_successes": 0, "flipped": 1},
        "regime=clean",
    ),
    "an evaluation without flips says that it flipped one": (
        evaluation(PAIRED, "clean", 40),
        {"flipped": 1},
        "regime=clean, step=40",
    ),
    "a run says that it had another seed": (run_of(PAIRED), {"seed": 1}, f"run_id={PAIRED}"),
    "a run says that it had another condition": (run_of(PAIRED), {"condition": "C2"}, f"run_id={PAIRED}"),
    "a run says that it had another arm": (run_of(PAIRED), {"arm": "independent"}, f"run_id={PAIRED}"),
    "a run says that it had no flips": (run_of(PAIRED), {"flip_rate": 0}, f"run_id={PAIRED}, step=1"),
    "a run says that half as much was flipped": (run_of(PAIRED), {"flip_rate": 0.05}, f"run_id={PAIRED}"),
}
"""Damage → a row, its changes, and the place that is named."""


def changed(tables, table, place, changes):
    """Return tables in which one row has other values, or is not there."""
    rows = [dict(row) for row in tables[table]]
    (row,) = (row for row in rows if place.items() <= row.items())
    if changes is None:
        rows.remove(row)
    else:
        row.update(changes)
    return {**tables, table: rows}


@pytest.mark.parametrize("damage", REFUSED)
def test_what_its_draws_exclude_is_refused_with_its_place(few, damage) -> None:
    (table, place), changes, where = REFUSED[damage]
    with pytest.raises(VerificationError, match="impossible under the published seeds") as refused:
        audit(changed(few, table, place, changes))
    assert where in str(refused.value.where)


def test_two_steps_in_each_other_s_place_are_refused(few) -> None:
    figures = ("successes", "observed_successes")
    rows = {
        row["step"]: {name: row[name] for name in figures}
        for row in few["training_steps"]
        if row["run_id"] == PAIRED
    }
    swapped = changed(changed(few, *step(PAIRED, 20), rows[22]), *step(PAIRED, 22), rows[20])
    with pytest.raises(VerificationError) as refused:
        audit(swapped)
    assert (refused.value.found, refused.value.where) == (
        "45 lost, 45 flipped",
        f"run_id={PAIRED}, step=20",
    )


DAMAGED = {
    "a step is missing": (step(FAULTS, 99), None, "training_steps does not have every training step"),
    "a step is named twice": (step(PAIRED, 4), {"step": 3}, "training_steps does not have every"),
    "a played step is missing": (
        ("reference_steps", {"run_id": FAULTS, "step": 0}),
        None,
        "reference_steps does not have every training step",
    ),
    "a run says that it had one step": (run_of(FAULTS), {"steps": 1}, "does not have every training step"),
    "an evaluation is of another pool": (
        evaluation(PAIRED, "flips_q010", 0),
        {"pool": "train"},
        "the authors published nothing of this pool",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_what_cannot_be_held_against_draws_is_damaged(few, damage) -> None:
    (table, place), changes, problem = DAMAGED[damage]
    with pytest.raises(DamagedError, match=problem):
        audit(changed(few, table, place, changes))


def test_a_run_whose_steps_are_all_alike_says_nothing(few) -> None:
    alike = [row | {"successes": 50, "other_successes": 50} for row in few["reference_steps"]]
    with pytest.raises(DamagedError, match="all the same") as refused:
        audit({**few, "reference_steps": alike})
    assert refused.value.where == FAULTS
    once = {name: [row for row in rows if row.get("step", 0) == 0] for name, rows in few.items()}
    with pytest.raises(DamagedError, match="too few"):
        audit({**once, "runs": [run | {"steps": 1} for run in once["runs"]]})


@pytest.mark.parametrize("run", [PAIRED, FAULTS])
def test_a_study_without_runs_of_a_kind_is_not_the_published_one(few, run) -> None:
    without = {name: [row for row in rows if row["run_id"] != run] for name, rows in few.items()}
    with pytest.raises(DamagedError, match="the published study has no runs with flips"):
        _ = audit(without).sentence


STEPS = [("t1-c2-paired-s1", 0), (FAULTS, 99), ("t1-c2-independent-s2", 57)]


def rows_of(tables, steps):
    return [row for row in tables["reference_steps"] if (row["run_id"], row["step"]) in steps]


def test_a_step_comes_out_as_registered_in_both_arms(tables, reference) -> None:
    rows = rows_of(tables, STEPS)
    assert [row["episodes"] for row in rows] == [24, 192, 24]
    assert [reference.step(row) for row in rows] == rows


@pytest.mark.slow
@pytest.mark.parametrize("at", range(7, 600, 15))
def test_any_step_comes_out_as_registered(tables, reference, at) -> None:
    row = tables["reference_steps"][at]
    assert reference.step(row) == row


def test_a_row_that_does_not_come_out_is_refused_and_named(tables, reference, monkeypatch) -> None:
    monkeypatch.setattr(auditing, "Reference", lambda _runs, _progress: reference)
    (row,) = rows_of(tables, STEPS[:1])
    few = {"runs": [], "reference_agents": [], "reference_steps": [row]}
    said = []
    assert play_again(few, 5, 1, said.append) == (
        "2616 tasks come out of seed 20260904 as published, but for their words; 1 of 1 rows of the "
        "published agents played again, all as registered (seed 1)"
    )
    assert said == ["row 1 of 1: reference_steps"]
    for name in ("successes", "calls", "other_successes", "other_calls", "episodes"):
        with pytest.raises(DamagedError, match=rf"reference_steps\.{name} is not what follows") as refused:
            play_again({**few, "reference_steps": [row | {name: row[name] - 1}]}, 5, 1)
        assert refused.value.where == "reference_steps row run_id=t1-c2-paired-s1, step=0"


@pytest.mark.parametrize(("column", "word"), [("pool", "train"), ("regime", "challenge")])
def test_an_agent_that_was_not_published_is_damaged(tables, reference, column, word) -> None:
    with pytest.raises(DamagedError, match=f"the authors published nothing of this {column}") as refused:
        reference.agent(tables["reference_agents"][0] | {column: word})
    assert (refused.value.found, f"{column}={word}" in str(refused.value.where)) == (word, True)


class Recorded:
    """Agents who play whatever is registered, and remember it."""

    tasks = 2616

    def __init__(self, _runs, _progress) -> None:
        self.played = []

    def agent(self, row):
        self.played.append(row)
        return row

    step = agent


def test_which_rows_are_played_depends_on_the_seed_alone(tables, monkeypatch) -> None:
    made = []
    monkeypatch.setattr(auditing, "Reference", lambda *given: made.append(Recorded(*given)) or made[-1])
    for sample, seed in ((16, 7), (16, 7), (16, 8), (1000, 7)):
        said = play_again(tables, sample, seed)
        assert f"{min(sample, 620)} of 620 rows" in said
        assert said.endswith(f"(seed {seed})")
    first, again, other, every = (each.played for each in made)
    assert first == again != other
    assert any(row not in tables["reference_agents"] for row in first)  # which come first
    assert len(every) == 620
    assert all(row in every for name in ("reference_agents", "reference_steps") for row in tables[name])
