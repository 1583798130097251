"""The published pools are generated from their seed: their bytes too, where their words are."""

import copy
import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.unit.lab.worlds.published.made_words import write
from toolkit.errors import VerificationError
from toolkit.lab.worlds.published import tasks as generator
from toolkit.lab.worlds.published.tasks import (
    KEPT,
    Task,
    check_structure,
    pool_bytes,
    pools,
    regenerate,
    structure,
)
from toolkit.lab.worlds.published.words import AT, ELSEWHERE, SOURCES, read_words, sources
from toolkit.prereg.adoption import Folder

PUBLISHED = Path(__file__).parents[6] / "shared/fixtures/published"
POOLS = PUBLISHED / "pools"
POOLS_MISSING = (
    f"THE PUBLISHED POOLS ARE MISSING: there is no {POOLS}; digests of their structure were compared"
)
FIRST_40 = "42ce5f2ddef3320bdd93a1dd09af6eb613f25be05327f0dfa8942e71850cf899"
"""SHA-256 of the structure of the first 40 training tasks that were published."""
AUTHORS = PUBLISHED / "checkout"
WORDS_MISSING = f"THE AUTHORS' WORDS ARE MISSING: there is no {AUTHORS / AT}; no prompt was compared"


def published(pool: str) -> list[Task]:
    """Return the structure of the authors' own tasks."""
    return [structure(json.loads(line)) for line in (POOLS / f"{pool}.jsonl").read_text("utf-8").splitlines()]


def test_the_pools_are_the_published_ones_but_for_their_words(plain) -> None:
    assert check_structure(plain) == 616
    assert {pool: len(tasks) for pool, tasks in plain.items()} == {
        p: n for p, n in KEPT.items() if p != "train"
    }


@pytest.mark.slow
def test_the_training_pool_is_the_published_one_but_for_its_words(plain, words) -> None:
    made = pools(words, splits=("train",))
    assert (check_structure(made), made.keys()) == (2000, {"train"})
    seeds = [task["world_seed"] for tasks in (*plain.values(), *made.values()) for task in tasks]
    assert len(set(seeds)) == len(seeds) == sum(KEPT.values()) == 2616
    if POOLS.is_dir():
        assert [structure(task) for task in made["train"]] == published("train")


@pytest.mark.skipif(not POOLS.is_dir(), reason=POOLS_MISSING)
@pytest.mark.parametrize("pool", ["heldout", "test", "diagnostic"])
def test_a_published_task_has_the_structure_that_is_generated(plain, pool) -> None:
    for made, task in zip(plain[pool], published(pool), strict=True):
        assert structure(made) == task


@pytest.mark.slow
@pytest.mark.skipif(not (AUTHORS.is_dir() and POOLS.is_dir()), reason=WORDS_MISSING)
def test_with_their_words_the_pools_are_theirs_to_the_byte() -> None:
    digests = {
        f"{pool}.jsonl": hashlib.sha256((POOLS / f"{pool}.jsonl").read_bytes()).hexdigest() for pool in KEPT
    }
    done, files = regenerate(Folder(AUTHORS), digests, lambda _: None)
    assert (done.tasks, done.differences, files.keys()) == (2616, (), SOURCES.keys())


def test_only_an_order_that_its_items_do_not_tell_apart_is_described_by_its_number(plain) -> None:
    """The two tasks are those of the authors' files that have a description, and a number in it."""
    described = [task for tasks in plain.values() for task in tasks if task["reference"] == "description"]
    numbered = {task["task_id"] for task in described if re.search(r"\border O\d{4}", task["instruction"])}
    assert numbered == {"heldout-00226", "test-00070"}


def _with(change):
    def changed(plain):
        tasks = copy.deepcopy(plain["diagnostic"])
        change(tasks)
        return {"diagnostic": tasks}

    return changed


DIFFERENT = {
    "a task too few": (_with(lambda tasks: tasks.pop()), "by requests, and by writes"),
    "another count of writes": (_with(lambda tasks: tasks[3].update(n_subgoals=5)), "by requests"),
    "another customer": (_with(lambda tasks: tasks[0].update(customer_id="C0041")), "without their words"),
    "another order of tasks": (_with(lambda tasks: tasks.reverse()), "without their words"),
    "another amount": (
        _with(lambda tasks: next(c for t in tasks for c in t["oracle_plan"])["args"].update(day=1)),
        "without their words",
    ),
}


@pytest.mark.parametrize("difference", DIFFERENT)
def test_pools_of_another_structure_are_refused(plain, difference) -> None:
    change, words = DIFFERENT[difference]
    with pytest.raises(VerificationError, match="pool diagnostic is not the published one") as refused:
        check_structure(change(plain))
    assert words in str(refused.value)


def test_words_change_a_prompt_and_nothing_of_its_structure(tmp_path, monkeypatch, plain) -> None:
    monkeypatch.setattr(generator, "SEEDS", {"heldout": (40, 100_000, 200_000), "train": (40, 0, 100_000)})
    made = generator.pools(read_words(sources(Folder(write(tmp_path, monkeypatch)))))
    assert [structure(task) for task in made["heldout"]] == [
        structure(task) for task in plain["heldout"][:40]
    ]
    content = pool_bytes([structure(task) for task in made["train"]])
    assert hashlib.sha256(content).hexdigest() == FIRST_40
    prompts = " ".join(task["instruction"] for task in made["train"])
    for said in (
        *(
            "<task 100 <",
            "<several ",
            "<one ",
            "<part One <",
            "<part Three <",
            "<phone ",
            "<email ",
            "<name ",
        ),
        *(
            "<order_of_item ",
            "<order_of_day ",
            "<order O00",
            "<partial_refund_delivered 1 piece product_names-",
        ),
        *("<partial_refund_delivered 3 pieces ", " Left ", "<open_ticket_no_order low "),
    ):
        assert said in prompts or said.replace("<", "", 1) in prompts, said
    reasons = {call["args"].get("reason") for task in made["train"] for call in task["oracle_plan"]}
    assert reasons == {None, "on a whim", "undone", "torn"}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with words, and two pools of three tasks that they give."""
    root = write(tmp_path, monkeypatch)
    made = {pool: [{"task_id": f"{pool}-{n}"} for n in range(3)] for pool in ("train", "test")}
    monkeypatch.setattr(generator, "pools", lambda _words, _progress: made)
    for pool, tasks in made.items():
        (root / f"{pool}.jsonl").write_bytes(pool_bytes(tasks))
    return root


def said_of(root):
    content = pool_bytes([{"task_id": f"train-{n}"} for n in range(3)])
    registered = {
        "train.jsonl": hashlib.sha256(content).hexdigest(),
        "test.jsonl": hashlib.sha256(content.replace(b"train", b"test")).hexdigest(),
    }
    return regenerate(Folder(root), registered, lambda _: None)


def test_a_checkout_whose_pools_its_seed_and_words_give_is_taken_with_its_words(checkout) -> None:
    done, files = said_of(checkout)
    assert (done.tasks, done.differences, done.not_compared) == (6, (), ())
    assert files == {name: (checkout / ELSEWHERE.get(name, AT) / name).read_bytes() for name in SOURCES}


def _edited(name: str, old: bytes, new: bytes):
    def edit(root: Path) -> None:
        (root / name).write_bytes((root / name).read_bytes().replace(old, new))

    return edit


TOLD = {
    "a task that was changed": (
        _edited("train.jsonl", b"train-1", b"Train-1"),
        "train.jsonl, line 2: the seed gives train-1, and the file has another text",
    ),
    "a task too few": (
        _edited("test.jsonl", b'{"task_id": "test-2"}\n', b""),
        "test.jsonl, line 3: the seed gives test-2, and the file has nothing",
    ),
    "a task too many": (
        _edited("test.jsonl", b'{"task_id": "test-2"}\n', b'{"task_id": "test-2"}\n{}\n'),
        "line 4: the seed gives no task, and the file has another text",
    ),
    "converted line ends": (_edited("test.jsonl", b"\n", b"\r\n"), "line 1: the seed gives test-0"),
    "another file of words": (
        _edited(f"{AT}tasks.py", b"torn", b"worn"),
        "is not the file that the published runs were made with: expected SHA-256",
    ),
}


@pytest.mark.parametrize("difference", TOLD)
def test_the_first_difference_of_a_file_is_told(checkout, difference) -> None:
    change, words = TOLD[difference]
    change(checkout)
    done, _ = said_of(checkout)
    (told,) = done.differences
    assert words in told


def test_what_a_checkout_lacks_is_told_and_is_no_difference(checkout) -> None:
    (checkout / "train.jsonl").unlink()
    assert said_of(checkout)[0].not_compared == ("train.jsonl, task by task",)
    (checkout / AT / "world.py").unlink()
    done, files = said_of(checkout)
    assert (done.tasks, done.differences, files) == (0, (), {})
    assert f"the checkout has no {AT}world.py" in done.not_compared[0]


def test_pools_that_are_not_the_registered_ones_are_told_whatever_the_checkout_has(
    checkout, monkeypatch
) -> None:
    monkeypatch.setattr(generator, "pools", lambda _words, _progress: {"train": [], "test": []})
    told = said_of(checkout)[0].differences
    assert [line.split(":")[0] for line in told] == [
        "train.jsonl generated anew",
        "train.jsonl, line 1",
        "test.jsonl generated anew",
        "test.jsonl, line 1",
    ]
