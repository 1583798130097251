"""The authors' words are read from a checkout as constants; nothing in it is run."""

from pathlib import Path

import pytest

from tests.unit.lab.worlds.published.made_words import DATASET, TASKS, TOOLS, WORLD, write
from toolkit.errors import DamagedError, IncompleteError, ToolkitError, VerificationError
from toolkit.lab.worlds.published import words as vocabulary
from toolkit.lab.worlds.published.words import (
    AT,
    ELSEWHERE,
    LISTS,
    SENTENCES,
    Words,
    placeholders,
    read_words,
    sources,
)
from toolkit.places import Home
from toolkit.prereg.adoption import Folder


def read(root: Path) -> Words:
    return read_words(sources(Folder(root)))


def test_lists_and_sentences_are_read_as_they_are_written(tmp_path, monkeypatch) -> None:
    found = read(write(tmp_path, monkeypatch))
    assert found.lists["product"][39] == "product_names-39"
    assert (found.lists["new_street"][5], found.lists["street"][0]) == ("West", "streets-0")
    assert found.reasons == {"cancelled": "on a whim", "refund": "undone", "damaged": "torn"}
    assert (found.units, found.ordinals) == (("piece", "pieces"), ("One", "Two", "Three"))
    assert found.say("ship_reserved", "it", "slow", 3) == "<ship_reserved it slow 3 _make_subtask>"
    assert found.say("order_of_day", 7) == "<order_of_day 7 describe_order_by_item>"


def test_what_a_model_is_shown_is_read_as_it_is_written(tmp_path, monkeypatch) -> None:
    found = read(write(tmp_path, monkeypatch))
    assert found.system_prompt == "Run the shop."
    names = [tool["function"]["name"] for tool in found.tools]
    assert (len(names), names) == (13, sorted(names))
    function = found.tools[names.index("list_orders")]["function"]
    assert function["description"] == "To list_orders."
    assert function["parameters"] == {
        "type": "object",
        "properties": {
            "customer_id": {"type": "string", "description": "about customer_id."},
            "offset": {"type": "integer", "description": "about offset."},
        },
        "required": ["customer_id"],
    }


def test_placeholders_are_as_many_and_have_as_many_blanks(tmp_path, monkeypatch) -> None:
    found, made = read(write(tmp_path, monkeypatch)), placeholders()
    for mine, theirs in ((made.lists, found.lists), (made.sentences, found.sentences)):
        assert {name: len(each) for name, each in mine.items()} == {
            n: len(each) for n, each in theirs.items()
        }
    assert made.reasons.keys() == found.reasons.keys()
    assert all(len(set(words)) == LISTS[name][2] for name, words in made.lists.items())
    assert set(made.lists["new_city"]) <= set(made.lists["city"])


HOSTILE = {
    "a call where a list should be": ({"world": WORLD.replace("CITIES = (", "CITIES = open(")}, "CITIES"),
    "a call in a list": ({"tasks": TASKS.replace("'Up'", "open('/etc/passwd')")}, "open('/etc/passwd')"),
    "a number in a list": ({"tasks": TASKS.replace("'Up'", "7")}, "a text in quotes"),
    "a list that is short": ({"tasks": TASKS.replace("'Up', ", "")}, "STREETS with 6 texts"),
    "a name that is missing": ({"world": WORLD.replace("LAST_NAMES", "NAMES")}, "LAST_NAMES"),
    "a function that is missing": (
        {"tasks": TASKS.replace("def _customer_reference", "def _c")},
        "_customer",
    ),
    "a sentence without a blank": ({"tasks": TASKS.replace("<one {blank0.of[0]:03d}", "<one")}, "of one"),
    "a reason that is computed": ({"tasks": TASKS.replace('"torn"', "exit()")}, "found: 'exit()'"),
    "a reason too few": ({"tasks": TASKS.replace(', {"reason": "torn"}', "")}, "4 reasons"),
    "no unit": ({"tasks": TASKS.replace('"piece" if', "piece if")}, "a unit"),
    "a prompt that is computed": ({"dataset": DATASET.replace('"""', "", 1)}, "cannot be parsed"),
    "a prompt that is called": ({"dataset": "SYSTEM_PROMPT = exit()"}, "found: 'exit()'"),
    "no prompt": ({"dataset": "PROMPT = 'x'"}, "SYSTEM_PROMPT"),
    "no tools": ({"tools": TOOLS.replace("ToolAPI", "Tools")}, "ToolAPI"),
    "an argument without words": (
        {"tools": TOOLS.replace("            day: about day.", "")},
        "schedule_shipm",
    ),
    "words about another argument": ({"tools": TOOLS.replace("day: about", "date: about")}, "schedule_ship"),
    "an argument of an odd type": ({"tools": TOOLS.replace("day: int", "day: exit()")}, "schedule_shipment"),
    "no Python": ({"tasks": "def ("}, "cannot be parsed"),
    "a zero byte": ({"tasks": "\0"}, "cannot be parsed"),
    "brackets without end": ({"world": "(" * 5000}, "cannot be parsed"),
}


@pytest.mark.parametrize("defect", HOSTILE)
def test_a_file_of_another_layout_is_refused_and_not_run(tmp_path, monkeypatch, defect) -> None:
    changed, words = HOSTILE[defect]
    with pytest.raises(DamagedError) as refused:
        read(write(tmp_path, monkeypatch, **changed))
    assert words in str(refused.value)


def test_a_file_with_another_hash_is_not_parsed(tmp_path, monkeypatch) -> None:
    path = write(tmp_path, monkeypatch) / AT / "tasks.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with pytest.raises(VerificationError, match="line ends"):
        read(tmp_path)
    path.write_bytes(b"another(")
    with pytest.raises(VerificationError, match=r"tasks\.py is not the file") as refused:
        read(tmp_path)
    assert vocabulary.SOURCES["tasks.py"] in str(refused.value)


def test_the_pinned_files_are_four_and_no_made_ones() -> None:
    assert [len(digest) for digest in vocabulary.SOURCES.values()] == [64] * 4
    assert all(blanks for function in SENTENCES.values() for blanks in function.values())


def test_a_home_without_words_says_which_commands_bring_them(tmp_path, monkeypatch) -> None:
    home = Home(tmp_path / "home")
    folder = home.registrations / "paired-rollouts/evidence"
    folder.mkdir(parents=True)
    (folder.parent / "rules.toml").touch()
    with pytest.raises(IncompleteError) as lacking:
        vocabulary.adopted_words(home)
    assert "toolkit adopt published ../paired-rollouts" in str(lacking.value)
    write(tmp_path, monkeypatch)
    for name in vocabulary.SOURCES:
        (folder / name).write_bytes((tmp_path / ELSEWHERE.get(name, AT) / name).read_bytes())
    assert vocabulary.adopted_words(home) == read(tmp_path)
    (folder / "world.py").unlink()
    with pytest.raises(ToolkitError):
        vocabulary.adopted_words(home)
