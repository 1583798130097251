"""A mapping says which column is which; whatever it cannot say is refused by name."""

from pathlib import Path

import pytest

from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.importing.mapping import parse_mapping, read_mapping

MAPPING = """\
language = 1
study = "mine"
registration = "mine"

[columns]
arm = "agent"
seed = "rng"
task = "problem"
true_success = "solved"

[constants]
condition = "main"
role = "primary"
status = "COMPLETE"
phase = "final"
pool = "tasks"
regime = "standard"
step = 0

[values.arm]
"A-1" = "one"
"""

DEFECTS = {
    "not_toml": ("language = 1\n", "language =\n", "is not TOML"),
    "other_language": ("language = 1", "language = 2", "another version"),
    "no_language": ("language = 1\n", "", "another version"),
    "study_that_leaves_the_folder": (
        'study = "mine"',
        'study = "../mine"',
        "'study' of the mapping is no name",
    ),
    "no_registration": ('registration = "mine"\n', "", "'registration' of the mapping is no name"),
    "unknown_key": ("[columns]", "speed = 3\n[columns]", "keys that it cannot have"),
    "unknown_column": ('arm = "agent"', 'arm = "agent"\ncolour = "red"', "do not take from a table"),
    "counted_column": ('arm = "agent"', 'arm = "agent"\nepisodes = "n"', "do not take from a table"),
    "mapped_twice": ('role = "primary"', 'role = "primary"\narm = "one"', "is a constant too"),
    "no_task": ('task = "problem"\n', "", "leaves out what registers need"),
    "no_step": ("step = 0\n", "", "leaves out what registers need"),
    "translated_constant": ("[values.arm]", "[values.pool]", "translates a column that is not mapped"),
    "list_for_a_column": ('arm = "agent"', 'arm = ["agent"]', "has no value that a mapping can have"),
    "fraction_for_a_constant": ("step = 0", "step = 0.5", "has no value that a mapping can have"),
    "empty_column": ('arm = "agent"', 'arm = ""', "has no value that a mapping can have"),
    "text_for_a_table": ("[values.arm]\n", "[values]\narm = 3\n", "is no table"),
}


def test_a_mapping_is_read_as_it_stands() -> None:
    mapping = parse_mapping(MAPPING)
    assert (mapping.study, mapping.registration) == ("mine", "mine")
    assert mapping.columns == {"arm": "agent", "seed": "rng", "task": "problem", "true_success": "solved"}
    assert mapping.constants["step"] == "0"
    assert mapping.values == {"arm": {"A-1": "one"}}
    assert mapping.text == MAPPING


@pytest.mark.parametrize("defect", DEFECTS)
def test_what_a_mapping_cannot_say_is_refused(defect: str) -> None:
    old, new, problem = DEFECTS[defect]
    assert MAPPING.count(old) == 1
    with pytest.raises(DamagedError, match=problem):
        parse_mapping(MAPPING.replace(old, new))


def test_an_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(IncompleteError):
        read_mapping(path)
    path.write_text("language = 3")
    with pytest.raises(DamagedError) as raised:
        read_mapping(path)
    assert raised.value.where == str(path)
