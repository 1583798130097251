"""The command line: one JSON document, the right exit code, no traceback, nothing written."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Toolkit, run, snapshot
from tests.registrations import chained, rehash
from tests.row_study import with_value
from tests.unit.registers import test_study as damaged
from toolkit.errors import IncompleteError
from toolkit.places import Home
from toolkit.registers.arrow import row_sha256
from toolkit.site import build


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        (
            "decide --all --study published",
            ("and boundary framing", "READINGS DISAGREE", "missed originally", "Intervals are as published"),
        ),
        ("explain H2a", ("mean(c2_auc) >= 0.03", "71/1920", "fails at seed 1", "SELECT", "rules.toml", "D6")),
    ],
)
def test_people_are_shown_what_must_not_be_missed(toolkit, command, parts) -> None:
    out = toolkit(*command.split()).out
    assert [part for part in parts if part not in out] == []


def test_a_miss_fails_only_when_asked_to(toolkit: Toolkit) -> None:
    assert toolkit("decide", "H2a", "--study", "published").code == 0
    assert toolkit("decide", "H2a", "--study", "published", "--fail-on-miss").code == 1
    assert toolkit("decide", "H1a", "H4", "--study", "published", "--fail-on-miss").code == 0


def test_every_study_that_has_a_rule_decides_it(toolkit: Toolkit) -> None:
    decided = toolkit("decide", "H2a", "H6", "E1", "--json").json()
    assert [(d["rule"], d["study"]) for d in decided] == [
        ("H2a", "published"),
        ("H6", "published"),
        ("H2a", "embedded"),
        ("E1", "embedded"),
        ("H2a", "tiny-lm"),
    ]


def test_verify_prereg_names_the_disclosed_exception(toolkit: Toolkit) -> None:
    (document,) = toolkit("verify-prereg", "paired-rollouts", "--json").json()
    assert document["verdict"] == "incomplete"
    assert document["standing"] == "public"
    assert document["existed_by"] is None
    assert document["chronology"]["disclosed_exceptions"] == ["gate1-c2-paired-s0"]


@pytest.mark.slow
def test_reproduce_builds_the_site_and_ends_with_the_table(toolkit: Toolkit, tmp_path: Path) -> None:
    result = toolkit("reproduce", "--site", tmp_path / "site")
    assert result.code == 0
    assert (tmp_path / "site" / "index.html").is_file()
    assert "gate2" in result.out
    document = toolkit("reproduce", "--site", tmp_path / "site", "--json").json()
    assert document["site"]["changed"] == []
    assert toolkit("site", "check", "--folder", tmp_path / "site").code == 0
    assert len(document["decisions"]) == 21 + 23 + 4 + 9 + 20 + 9 + 7 + 7
    assert [audit["study"] for audit in document["audits"]] == ["bfcl", "coupled", "embedded", "map"]
    for audit in document["audits"]:
        assert (audit["verdict"], audit["sample"]) == ("verified", 8)
        assert f"--sample 8 --seed {audit['seed']}" not in result.out
        assert f"toolkit registers audit --study {audit['study']} --sample 8 --seed " in result.out
    _, _, summary = result.out.partition("What was reproduced\n")
    labels = [line.split()[0] for line in summary.splitlines()]
    assert labels == ["rows", "registered", "played", "decided", "site"]
    assert f"{sum(table['rows'] for table in document['registers']):,} rows of published, bfcl," in summary


def test_reproduce_does_without_the_packages_of_the_site_unless_a_folder_is_named(
    toolkit: Toolkit, alone: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack = IncompleteError("the site needs packages that are not installed", remedy="pip install them")
    monkeypatch.setattr(build, "lacking_packages", lambda: lack)
    result = toolkit("reproduce")
    assert result.code == 0, result.err
    assert "site        not built: the site needs packages that are not installed; pip install" in result.out
    assert toolkit("reproduce", "--json").json()["site"] is None
    toolkit("reproduce", "--site", alone.root / "there").refused(3, "the site needs packages")


MANIFEST = "registers/published/MANIFEST.json"
TABLE = "registers/published/evaluations/train-00000-of-00001.parquet"
RULES = "prereg/paired-rollouts/rules.toml"
BAR, LOWER = "mean(c2_auc) >= 0.03", "mean(c2_auc) >= 0.02"


def edit(home: Home, file: str, old: str, new: str) -> None:
    path = home.root / file
    before = path.read_bytes()
    path.write_bytes(before.replace(old.encode(), new.encode()))
    assert path.read_bytes() != before


def edit_and_rehash_rules(home: Home, old: str, new: str) -> None:
    """Edit the rules as somebody would who also recomputes the hashes."""
    edit(home, RULES, old, new)
    rehash(home.registrations / "paired-rollouts")


def later(home: Home, name: str, text: str) -> None:
    """Record an amendment as somebody would who also recomputes the hashes."""
    folder = home.registrations / "paired-rollouts"
    (folder / "amendments" / name).write_text(text)
    rehash(folder, [*chained(folder), f"amendments/{name}"])


def rebuilt(home: Home, old: str, new: str) -> None:
    """Edit the rules, and build the registers for the edited ones."""
    edit_and_rehash_rules(home, old, new)
    assert run("registers", "build", "published").code == 0


def with_wild_rows(home: Home) -> None:
    """Put a consistent manifest over impossible rows: more successes than episodes."""
    folder = home.study_folder("published")
    table = with_value(damaged.table_of(folder), "successes", 0, 900)
    damaged.rewrite(folder, table)
    damaged.reseal(folder, lambda d: d["tables"]["evaluations"].update(row_sha256=row_sha256(table)))


def with_edited_manifest(home: Home) -> None:
    edit(home, MANIFEST, '"rows": 352', '"rows": 353')


def with_borrowed_id(home: Home) -> None:
    first = home.registrations / "paired-rollouts" / "amendments" / "A1.toml"
    later(home, "A0.toml", first.read_text().replace("< 1)", "< 2)"))


def without_amendment(home: Home) -> None:
    folder = home.registrations / "paired-rollouts"
    (folder / "amendments" / "A1.toml").unlink()
    rehash(folder, [name for name in chained(folder) if "A1" not in name])


DAMAGES: dict[str, tuple[int, Callable[[Home], object]]] = {
    "is not the file that the manifest names": (4, lambda home: (home.root / TABLE).write_bytes(b"PAR1PAR1")),
    "column 'successes' of evaluations is missing": (
        4,
        lambda home: damaged.READ["no column"](home.study_folder("published")),
    ),
    "cannot be read": (3, lambda home: (home.root / TABLE).unlink()),
    "larger than it can be": (4, with_wild_rows),
    "the manifest was changed after it was written": (4, with_edited_manifest),
    "under another name than its own": (
        4,
        lambda home: (home.registers / "published").rename(home.registers / "other"),
    ),
    "rules.toml was changed after its hash was recorded": (1, lambda home: edit(home, RULES, BAR, LOWER)),
    "belongs to other frozen files": (4, lambda home: edit_and_rehash_rules(home, BAR, LOWER)),
    "'c2_aux' is not declared": (4, lambda home: rebuilt(home, BAR, BAR.replace("auc", "aux"))),
    "no operator 'median'": (4, lambda home: rebuilt(home, BAR, BAR.replace("mean", "median"))),
    "the registration of study 'published' is not here": (
        3,
        lambda home: (home.registrations / "paired-rollouts").rename(home.registrations / "another"),
    ),
    "an amendment that the registration does not have": (4, without_amendment),
    "amendments/A0.toml has the id 'A1'": (4, with_borrowed_id),
}


@pytest.mark.parametrize("says", DAMAGES)
def test_damage_ends_in_one_message_and_nothing_is_written(toolkit: Toolkit, alone: Home, says: str) -> None:
    code, damage = DAMAGES[says]
    damage(alone)
    before = snapshot(alone.root)
    toolkit("reproduce", "--json").refused(code)
    toolkit("decide", "H2a", "H1b").refused(code, says)
    assert snapshot(alone.root) == before


def test_an_error_is_a_document_with_json(toolkit: Toolkit, alone: Home) -> None:
    with_edited_manifest(alone)
    error = toolkit("decide", "H2a", "--json").refused(4).json()["error"]
    assert all(error[key] for key in ("problem", "expected", "found", "where", "remedy"))
    assert toolkit("decide", "--nothing", "--json").refused(2).json()["error"]["exit_code"] == 2


@pytest.mark.parametrize("command", ["registers schema", "registers schema --json"])
def test_a_reader_may_leave_early(command: str) -> None:
    line = f"{sys.executable} -m toolkit {command} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, cwd=CHECKOUT)
    assert done.stdout.splitlines()[-1] in ("0", "141")  # 141 where the output was longer than the pipe
    assert done.stderr == ""


def test_every_sql_value_has_a_json_form(toolkit: Toolkit) -> None:
    forms = {
        "'\\xFF'::BLOB": "ff",
        "TIME '10:00'": "10:00:00",
        "INTERVAL 1 DAY": "1 day, 0:00:00",
        "'nan'::DOUBLE": "nan",
        "[1, 2]": [1, 2],
        "MAP {DATE '2020-01-01': 1}": {"2020-01-01": 1},
        "NULL": None,
        "TIMESTAMPTZ '2026-09-08 12:33:49+00'": "2026-09-08T12:33:49Z",
    }
    (row,) = toolkit("sql", f"SELECT {', '.join(forms)}", "--json").json()
    assert [*row.values()] == [*forms.values()]


@pytest.mark.parametrize("command", ["verify-prereg", "registers verify", "registers list", "decide --all"])
def test_nothing_is_not_verified(toolkit: Toolkit, alone: Home, command: str) -> None:
    for folder in (alone.registers / "published", *alone.registrations.iterdir()):
        shutil.rmtree(folder)
    toolkit(*command.split()).refused(3, "there is no")


def test_a_failed_build_leaves_the_old_registers(toolkit: Toolkit, alone: Home) -> None:
    folder = alone.registers / "published"
    next((folder / "source").glob("*.csv")).unlink()
    before = snapshot(folder)
    toolkit("registers", "build", "published").refused(3)
    assert snapshot(folder) == before


def test_markup_in_a_title_is_text(toolkit: Toolkit, alone: Home) -> None:
    rebuilt(alone, 'title = "Recovery"', 'title = "[/b] [red]Recovery"')
    for command in ("decide", "explain"):
        assert "[/b] [red]Recovery" in toolkit(command, "H3").out


def amend(home: Home, label: str, dated: str, relations: str, body: str) -> str:
    """Record an amendment of the published registration, and return its text."""
    head = f'id = "{label}"\ndated = "{dated}"\ntitle = "t"\nseen = "seen {label}"\nreason = "r"\n'
    text = f"[amendment]\n{head}changes = []\n{relations}\n\n{body}"
    later(home, f"{label}.toml", text)
    return text


def added_rule(name: str, bar: str) -> str:
    """Return a rule that the published registration does not have."""
    return (
        f'[rules.{name}]\nkind = "hypothesis"\ntitle = "New"\ntext = "At least {bar}."\n'
        f'[[rules.{name}.criteria]]\nid = "a"\ntext = "It is."\ntest = "mean(c2_auc) >= {bar}"\n'
    )


def test_an_amendment_after_the_runs_replaces_no_verdict(toolkit: Toolkit, alone: Home) -> None:
    rules = (alone.root / RULES).read_text()
    rule = rules[rules.index("[rules.H3]") : rules.index("[rules.H4]")].replace("0.05", "0.06")
    text = amend(alone, "A2", "2027-01-01", 'replaces = ["H3"]', rule)
    done = toolkit("decide", "H3", "--json")
    (decision,) = done.json()
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert (done.code, decision["verdict"]) == (1, "pass")
    changed = {"amendment": "A2", "sha256": digest, "verdict": "miss", "evidence": decision["evidence"]}
    assert (decision["exploratory"], "amendment" in decision) == ([changed], False)
    assert decision["registration"]["standing"] == "failed"
    assert decision["registration"]["failed_steps"] == ["amendments before runs"]
    shown = toolkit("decide", "H3")
    assert "H3: exploratory, as amendment A2 would have it after the runs: miss" in shown.out
    assert "pass (registration FAILED)" in shown.out
    assert "registration paired-rollouts does not verify" in shown.err
    verified = toolkit("verify-prereg")
    assert (verified.code, "A2 made after the first run" in verified.out) == (1, True)


def test_an_early_day_that_nobody_stands_for_replaces_no_verdict(toolkit: Toolkit, alone: Home) -> None:
    rules = (alone.root / RULES).read_text()
    rule = rules[rules.index("[rules.H3]") : rules.index("[rules.H4]")].replace("0.05", "0.06")
    amend(alone, "A2", "2026-09-08", 'replaces = ["H3"]', rule)
    done = toolkit("decide", "H3", "H1b", "--study", "published", "--json")
    h3, other = done.json()
    assert (done.code, h3["verdict"], h3["exploratory"][0]["verdict"]) == (0, "pass", "miss")
    assert h3["registration"]["standing"] == "incomplete"
    assert any("binding nothing: A2" in line for line in h3["registration"]["missing"])
    assert other["amended_by"] == "A1"  # before the last link that the toolkit's authors stand for


def test_an_added_rule_says_who_added_and_who_replaced_it_and_what_had_been_seen(toolkit, alone) -> None:
    seen = "added by amendment A2 (2027-01-01), what had been seen: seen A2"
    amend(alone, "A2", "2027-01-01", 'adds = ["N1"]', added_rule("N1", "0.02"))
    decided, explained = toolkit("decide", "N1"), toolkit("explain", "N1")
    assert "N1: added by amendment A2" in decided.out
    assert not any(text in decided.out for text in ("amended by", "restated"))
    assert seen in explained.out
    assert "A2 adds this rule" in explained.out
    for text in ("As frozen", "As added", "riginally"):
        assert text not in explained.out
    (document,) = toolkit("explain", "N1", "--json").json()
    assert document["addition"] == {"id": "A2", "dated": "2027-01-01", "seen": "seen A2"}
    assert document["added_by"]["relation"] == document["amendment"]["relation"] == "adds"
    amend(alone, "A3", "2027-01-02", 'replaces = ["N1"]', added_rule("N1", "0.04"))
    decided, explained = toolkit("decide", "N1").out, toolkit("explain", "N1").out
    assert "N1: added by amendment A2" in decided
    assert "N1: amended by A3" in decided
    for text in (seen, "A3 replaces this rule", "As added   At least 0.02."):
        assert text in explained
    assert "As frozen" not in explained


def test_a_rule_that_rests_on_an_added_one_says_so(toolkit: Toolkit, alone: Home) -> None:
    resting = added_rule("N2", "0.02").replace("mean(c2_auc) >= 0.02", "all(passes(N1), passes(H1b))")
    amend(alone, "A2", "2027-01-01", 'adds = ["N1", "N2"]', added_rule("N1", "0.02") + resting)
    out = toolkit("decide", "N2").out
    assert "N2: rests on rules changed by amendment A1\n" in out
    assert "N2: rests on rules added by amendment A2\n" in out


def test_rules_that_were_frozen_have_no_addition(toolkit: Toolkit) -> None:
    asked = ("explain", "H1b", "P13", "H2a", "--study", "published")
    assert not any({"addition", "added_by"} & set(rule) for rule in toolkit(*asked, "--json").json())
    assert "added by" not in toolkit(*asked).out


HUGE = 3_000_000_000
PREREG = "prereg/paired-rollouts"


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("verify-prereg", f"{PREREG}/rules.toml"),
        ("verify-prereg", f"{PREREG}/protocol.md"),
        ("verify-prereg", f"{PREREG}/FROZEN.sha256"),
        ("verify-prereg", f"{PREREG}/LATER.chain"),
        ("verify-prereg", f"{PREREG}/record.toml"),
        ("decide H2a", f"{PREREG}/amendments/A1.toml"),
        ("decide H2a", "registers/published/MANIFEST.json"),
        ("registers verify", "registers/published/README.md"),
        ("decide H2a", "registers/published/evaluations/train-00000-of-00001.parquet"),
    ],
)
def test_what_is_too_long_is_refused_unread(toolkit: Toolkit, alone: Home, command: str, file: str) -> None:
    path = alone.root / file
    assert path.is_file()
    os.truncate(path, HUGE)  # it has a hole, and takes no room
    done = toolkit(*command.split())
    assert done.code in {1, 4}
    assert f"{HUGE} bytes" in done.err + done.out
    assert "Traceback" not in done.err


PLAN = "--recipe qwen3.5-2b --dry-run"
REFUSED = r"""
2 | no rule 'H9' | decide H2a H9
2 | has no rule 'H6' | decide H6 --study embedded
2 | has no rule 'H6' | explain H6 --study embedded
2 | name the rules to decide | decide
2 | name the rules to decide | decide H2a --all
2 | no study 'nobody' | decide H2a --study nobody
2 | no study | decide H2a --study /nowhere/at/all
3 | was not pulled before | decide H2a --study owner/name@abc
2 | has no runs | decide H2a --study task-pools
2 | has no runs | explain H2a --study task-pools
2 | name the rules to explain | explain
2 | no table 'diary' | registers schema diary
2 | no study 'nobody' | registers verify --study nobody
3 | cannot be read | registers build published --source /nowhere
2 | no registration 'nobody' | verify-prereg nobody
2 | DuckDB refused the query | sql SELECT
2 | exclude each other | sql 'FROM runs' --csv --json
2 | exclude each other | sql 'FROM runs' --csv --parquet /nowhere/x
3 | its folder is missing | sql 'FROM runs' --parquet /nowhere/x
2 | two columns have one name | sql 'SELECT 1 AS a, 2 AS a' --json
3 | no site is here | site check --folder /nowhere
2 | No such command | nothing
2 | No such option | decide --nothing
2 | validation:999 | pools show validation:999
2 | has no task pools | pools verify --study published
3 | regime | study status paired-rollouts

2 | 'xml' | backoffice schema --format xml
2 | --task | backoffice mcp
2 | no pool 'nowhere' | backoffice mcp --task nowhere:0
2 | 'loud' | backoffice mcp --task validation:0 --regime loud
2 | -1 | backoffice mcp --task validation:0 --schedule -1
2 | 18446744073709551616 | backoffice mcp --task validation:0 --schedule 18446744073709551616

2 | Missing argument | draw
2 | Missing argument | draw 0
2 | an event key has | draw 0 get_order
2 | an event key has | draw 0 get_order O-1
2 | an event key has | draw 0 grader O-1
2 | No such option | draw -1 grader
2 | a seed lies in | draw 18446744073709551616 grader
2 | is no whole number | draw x grader
2 | is no whole number | draw 1_000 grader
2 | No such option | draw 0 get_order O-1 -1
2 | No such option | draw 0 --nope x 0
2 | REPEAT | draw 0 get_order O-1 x
2 | REPEAT | draw 0 get_order O-1 18446744073709551616

2 | no pool 'nowhere' | episode play --task nowhere:0
2 | validation:300 | episode play --task validation:300
2 | validation | episode play --task validation
2 | validation:00 | episode play --task validation:00
2 | no regime 'windy' | episode play --regime windy
2 | --schedule | episode play --schedule -1
2 | --schedule | episode play --schedule x
2 | a seed lies in | episode play --seed 18446744073709551616
2 | is no whole number | episode play --seed 0xzz
2 | is no whole number | episode play --seed 1_000
2 | is no whole number | episode play --seed ' 12'
2 | is no whole number | episode play --seed ٣
2 | --agent | episode play --agent genius
2 | exclude each other | episode play --seed 1 --schedule 0
2 | exclude each other | episode play --by-hand --agent careless

2 | no regime 'dirty' | evaluate --model reference --sets clean,dirty
2 | no scripted agent 'nobody' | evaluate --model nobody --engine scripted
2 | an endpoint has an address | evaluate --model m --engine endpoint
2 | not the address of a server | evaluate --model m --endpoint localhost:8000
2 | no use for --revision | evaluate --model m --endpoint http://h/v1 --revision main
2 | no use for --api-key-env | evaluate --model reference --api-key-env X
2 | no use for --request-option | evaluate --model reference --request-option top_k=1
2 | no use for --endpoint | evaluate --model m --engine vllm --endpoint http://h/v1
2 | an option is NAME=JSON | evaluate --model m --chat-option thinking
2 | value of an option | evaluate --model m --chat-option a={}
2 | --tasks | evaluate --model reference --tasks 0
2 | --tasks | evaluate --model reference --tasks 301
2 | --temperature | evaluate --model reference --temperature -1
2 | --model | evaluate

2 | no rule 'H9' | power H9
2 | H1a | power H1a
2 | H4 | power H4
2 | P8 | power P8
2 | two seeds | power H2a --seeds 1
2 | with this effect | power H2a --effect 2
2 | is no number | power H2a --effect nan
2 | is no number | power H2a --seed-sd nan
2 | is no number | power H2a --task-sd nan
2 | is no number | power H2a --target nan
2 | effect | power H2a --effect 0.9
2 | effect | power H5 --effect 0.3
2 | --simulations | power H2a --simulations 5
2 | task-pools | power H2a --study task-pools
2 | nowhere | power H2a --study nowhere

3 | ships no evidence | probe report --study published --check
3 | has no probe | probe report --study task-pools
2 | no checkpoint of the probe is meant | probe report --study embedded --trajectory 'c9-*'
2 | nothing | probe report --study nothing
3 | registers no probe | probe run published
2 | has no runs | probe run task-pools
2 | writes nothing | probe run embedded --check --into elsewhere

2 | --flip-rate | theory spurious
2 | a rate lies in | theory spurious --flip-rate 2
2 | is no number | theory spurious --flip-rate x
2 | at most 30 characters | theory spurious --flip-rate 9999999999999999999999999999999
2 | is no number | theory spurious --flip-rate 1/0
2 | --group-size | theory bandit --flip-rate 0.1 --group-size 1
2 | logit | theory bandit --flip-rate 0.1 --logit nan
2 | --successes | theory condition
2 | 0 <= k <= G | theory condition --successes 9
2 | --successes | theory condition --successes 1 --scores x.json
2 | --silent | theory condition --silent --scores README.md
2 | a rate lies in | theory luck --share 1.5
2 | positive and finite | theory equal-variance --ratio 0
2 | --batch | theory drift --flip-rate 0.1 --batch 0

2 | say whose runs are meant | train --recipe qwen3.5-2b --run c2-paired-s0
2 | not what is registered | train PLAN --set step.steps=10 --set step.checkpoint_every=5
2 | lora.rank is too small | train PLAN --set lora.rank=0
2 | no run that can be played | train PLAN --run 'c9-*'
3 | names the regime | train PLAN --study paired-rollouts
2 | no registration | train PLAN --study nothing
2 | not both | train PLAN --seconds-per-step 1 --tokens-per-second 1
2 | --gpus | train PLAN --gpus 0
2 | --seconds-per-step | train PLAN --seconds-per-step -1
"""


@pytest.mark.parametrize("line", [line for line in REFUSED.splitlines() if line])
def test_a_refusal_is_said_once_with_its_exit_code(toolkit: Toolkit, line: str) -> None:
    code, says, command = line.split(" | ")
    toolkit(*shlex.split(command.replace("PLAN", PLAN))).refused(int(code), says)


@pytest.mark.parametrize("name", ["x" * 201, "\udcff"])
def test_a_name_that_is_too_long_or_no_text_is_refused(toolkit: Toolkit, name: str) -> None:
    toolkit("draw", 0, "get_order", name, 0).refused(2, "a name")
