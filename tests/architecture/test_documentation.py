"""The documentation against the command line: every command that is written down runs."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from tests import guide
from tests.conftest import CHECKOUT, WIDE, run
from tests.golden import measure_agents, measure_coverage
from tests.hub.conftest import PUBLISHED, meet, put
from tests.hub.server import FixtureHub
from tests.widths import too_long, unlike
from toolkit.cli.main import cli
from toolkit.decisions.case import Case
from toolkit.estimators import noise_within_share
from toolkit.places import HOME_VARIABLE, Home
from toolkit.prereg import authority
from toolkit.registers.query import ask
from toolkit.registers.study import open_study

DOCUMENTS = (
    "README.md",
    "GUIDE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "cards/bfcl.md",
    "cards/coupled.md",
    "cards/embedded.md",
    "cards/map.md",
    "cards/published.md",
    "cards/small-lm.md",
    "cards/task-pools.md",
    "cards/tiny-lm.md",
    "cards/worlds.md",
    "examples/beyond-one-machine/README.md",
    "examples/beyond-one-machine/qwen3.5-2b.md",
    "toolkit/estimators/README.md",
    "toolkit/prereg/README.md",
    "toolkit/prereg/token/README.md",
)
EXPECTED_CODES = {
    "toolkit verify-prereg": 3,
    "toolkit verify-prereg paired-rollouts": 3,
    "toolkit decide --all --fail-on-miss": 1,
    "toolkit decide --all --require public": 1,
    "toolkit freeze my-study": 3,  # there is no network in a test
    "toolkit amend my-study A1.toml": 3,  # a draft has no amendments
    "toolkit study status qwen3.5-2b --folder shared": 3,  # a draft, too
    "toolkit decide --all --study qwen3.5-2b": 2,  # so there is no such study
}
# What they print is read by programs, or filled in: JSON, CSV, TOML.
PRINTS_A_FILE = re.compile(r" --(json|csv|format|template)\b| noise propose |toolkit (schema|completion) \w")
# They take longer than a test of words is worth, or say another seed or time whenever they run.
RUN_ONCE = (
    "toolkit amend",
    "toolkit deviate",
    "toolkit evaluate",
    "toolkit freeze",
    "toolkit pairing inspect registers",
    "toolkit power",
    "toolkit registers audit",
    "toolkit registers diff",
    "toolkit registers verify",
    "toolkit world check",
)
STUDIES = ("published", "embedded", "coupled", "map", "bfcl", "small-lm", "task-pools", "tiny-lm", "worlds")
SILENT = ("toolkit backoffice mcp",)  # its stdout belongs to the client, and a test has none
# They play a whole matrix, train on a GPU, write where one stands, or wait for an interrupt; their own tests
# play small ones. Here it is only checked that they would be understood.
NEVER_RUN = (
    "toolkit study run bfcl",
    "toolkit study run coupled",
    "toolkit study run embedded",
    "toolkit study run map",
    "toolkit study run qwen3.5-2b",
    "toolkit study run small-lm",
    "toolkit study run tiny-lm",
    "toolkit study run worlds",
    "toolkit study run my-study",
    "toolkit probe run embedded",
    "toolkit probe advise my-rollouts",  # somebody's own, which a test does not have
    "toolkit registers pull some-group/their-study --into",
    "toolkit noise propose -- npx",  # a server that a test does not have
    "toolkit noise propose --json -- npx",
    "toolkit adopt published",  # the authors' repository is not part of the project
    "toolkit new-study",
    "toolkit site serve",
    "toolkit export",
    "toolkit verify statements/",  # as an export leaves them
    "toolkit verify token.tsr",
    "toolkit evaluate --model small",
    "toolkit evaluate --model Qwen",  # of a model whose weights, or whose server, a test does not have
    # The whole site is built and checked without options; what these do is tried on a small one.
    "toolkit site build --",
    "toolkit site check --",
    "toolkit reproduce --",
    "toolkit train --recipe qwen3.5-2b --study",
    "toolkit train --study",
    "toolkit train --recipe small --cpu --try",
)
# They read every row of a study, or write every page.
LONG = (
    "toolkit pools build",
    "toolkit pools list --json",
    "toolkit pools verify",
    "toolkit power H2a --s",
    "toolkit probe advise --study",
    "toolkit probe drift",
    "toolkit probe report --study embedded --trajectory base --check",
    "toolkit registers audit --study embedded --sample 16",
    "toolkit registers push embedded",
    "toolkit registers verify --study OWNER/embedded",
    "toolkit reproduce",
    "toolkit site build",
    "toolkit verify --depth files",
    "toolkit verify embedded --replay",
    "toolkit site check",
)
MOST_WORDS = 1300
COMPANION = 100  # the seeds of the embedded study's companion begin here


def text_of(name: str) -> str:
    """Return the text of a document."""
    return (CHECKOUT / name).read_text(encoding="utf-8")


def written_in(name: str) -> str:
    """Return what somebody wrote in a document; what was generated is the code's, and tested there."""
    return guide.BLOCK.sub("", text_of(name))


def located(text: str) -> str:
    """Return a text in which the studies of the cards, on the Hub, are those of the checkout."""
    return re.sub(r"(hf://datasets/)?\bOWNER/([\w-]+)(@v1\.0\.0)?", rf"{CHECKOUT}/registers/\2", text)


COMMANDS = dict(guide.commands(cli))


def understood(words: list[str]) -> None:
    """Check that the words of a command line, also of a former spelling, are understood."""
    group: click.Command = cli
    while isinstance(group, click.Group):
        context = click.Context(group)
        _, found, words = group.resolve_command(context, words)
        assert found is not None
        group = found
    group.make_context(str(group.name), words)


def documented() -> list[str]:
    """Return every complete `toolkit …` command in the documents."""
    lines = {}
    for name in DOCUMENTS:
        text = written_in(name)
        for command in re.findall(r"`(toolkit [^`]+)`", text) + re.findall(
            r"^(toolkit .+)$", text, re.MULTILINE
        ):
            line = " ".join(command.split())
            # The card of a finished study says what made its model at the time: now examples/small-model.
            is_past = name == "cards/tiny-lm.md" and line == "toolkit warm-start"
            if "…" not in line and "|" not in line and not is_past and not _is_only_named(line):
                lines[line] = None
    return list(lines)


def examples(command: click.Command) -> list[str]:
    """Return the examples in a command's help."""
    lines = re.sub(r"\\\n\s*", "", (command.help or "").replace("\b", "")).splitlines()
    return [line.strip() for line in lines if line.strip().startswith("toolkit ")]


def _is_only_named(line: str) -> bool:
    """Whether a command stands in a sentence by its name alone, and could not run without its argument."""
    words = tuple(line.split()[1:])
    command = COMMANDS.get(words) or COMMANDS.get(("lab", *words))
    return command is not None and any(isinstance(p, click.Argument) and p.nargs == 1 for p in command.params)


WRITTEN = list(dict.fromkeys([*documented(), *(line for c in COMMANDS.values() for line in examples(c))]))
RUN = [line for line in WRITTEN if not line.startswith(NEVER_RUN)]


@pytest.mark.parametrize("line", [line for line in WRITTEN if line.startswith(NEVER_RUN + LONG)])
def test_a_written_command_is_understood(line: str) -> None:
    understood(shlex.split(line)[1:])


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, FixtureHub]]:
    """A home of its own, and a Hub that has the study of the examples."""
    folder = tmp_path_factory.mktemp("documentation")
    for name in ("registers", "prereg", "cards", "site"):
        shutil.copytree(CHECKOUT / name, folder / name)
    with FixtureHub() as hub:
        put(hub, PUBLISHED, "some-group/their-study", tag="v1.0.0")
        yield Home(folder), hub


@pytest.fixture
def runs(somewhere: tuple[Home, FixtureHub], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return what runs a line where somebody has drafted a registration, without a network but that Hub."""
    home, hub = somewhere
    meet(hub, home.root, monkeypatch)
    monkeypatch.setenv(HOME_VARIABLE, str(home.root))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setattr(authority, "PAUSE_S", 0)
    source, draft = home.registrations / "paired-rollouts", home.registrations / "my-study"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    rules = (source / "rules.toml").read_text(encoding="utf-8")
    (draft / "rules.toml").write_text(rules.replace('name = "paired-rollouts"', 'name = "my-study"'))
    shutil.copy(source / "protocol.md", draft)

    def run_line(line: str, columns: int | None = None) -> str:
        result = run(*shlex.split(located(re.sub(r" > \S+$", "", line)))[1:], columns=columns)
        expected = EXPECTED_CODES.get(line.removesuffix(" --json"), 0)
        # An example in a command's help may name a file of the reader's.
        assert result.code == expected or (line not in documented() and result.code == 3), result.err
        assert result.out or result.code or line.startswith(SILENT)
        return result.err if PRINTS_A_FILE.search(line) else result.out + result.err

    return run_line


@pytest.mark.parametrize("line", [line for line in RUN if not line.startswith(LONG)])
def test_a_written_command_runs_and_fits_80_columns(runs: Callable[..., str], line: str) -> None:
    shown = runs(line)
    assert too_long(shown, 80) == []


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in RUN if line.startswith(LONG)])
def test_a_written_command_that_takes_long_runs_and_fits(runs: Callable[..., str], line: str) -> None:
    shown = runs(line)
    assert too_long(shown, 80) == []


@pytest.mark.parametrize(
    "line", [line for line in RUN if not line.startswith(LONG + RUN_ONCE) and not PRINTS_A_FILE.search(line)]
)
def test_80_columns_break_no_word_of_a_written_command(runs: Callable[..., str], line: str) -> None:
    assert not unlike(runs(line), runs(line, WIDE))


def test_there_are_documented_commands() -> None:
    assert set(EXPECTED_CODES) <= set(documented())


@pytest.mark.parametrize("command", COMMANDS.values(), ids=[" ".join(path) for path in COMMANDS])
def test_every_command_has_an_example_and_takes_json(command: click.Command) -> None:
    assert examples(command)
    assert "--json" in [option for parameter in command.params for option in parameter.opts]


def test_the_guide_explains_every_command() -> None:
    headings = re.findall(r"^### ([\w -]+)$", text_of("GUIDE.md"), re.MULTILINE)
    assert [" ".join(path) for path in COMMANDS if " ".join(path) not in headings] == []


def test_readme_and_guide_are_what_the_code_gives() -> None:
    """Commands, keys, documents and functions, and what commands print."""
    for name in ("README.md", "GUIDE.md"):
        assert guide.generated(text_of(name)) == text_of(name), "python -m tests.guide"


def test_the_readme_is_short() -> None:
    assert len(text_of("README.md").split()) <= MOST_WORDS


@pytest.mark.parametrize("name", ["README.md", "GUIDE.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_every_link_of_a_document_leads_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)#\s]+)?(?:#([^)\s]+))?\)", text_of(name))
    for path, anchor in links:
        if path.startswith("http"):
            continue
        assert not path or (CHECKOUT / path).exists(), path
        if anchor:
            headings = re.findall(r"^#+ (.+)$", text_of(path or name), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
            assert anchor in anchors


def test_the_guide_names_the_digest_of_the_registration(case: Case) -> None:
    assert case.registration.sha256 in text_of("GUIDE.md")


def test_the_readmes_first_lines_say_what_the_registers_give(case: Case) -> None:
    def signed(number: float) -> str:
        return f"{number:+.4f}".replace("-", "\N{MINUS SIGN}")

    finding = " ".join(text_of("README.md").partition("\n## ")[0].split())
    faults, flips, counts = (case.decide(rule) for rule in ("H2a", "H2b", "H1a"))
    assert [faults.verdict, flips.verdict, counts.verdict] == ["miss", "miss", "pass"]
    assert faults.estimate is not None
    assert flips.estimate is not None
    below = [seed for _, seed in faults.estimate.members.items if seed <= 0]
    assert len(below) == 1
    assert "one of three seeds" in finding
    assert len(faults.estimate.members.items) == 3
    assert f"by at least {float(faults.threshold)} in AUC" in finding
    for number in (faults.estimate.mean, below[0], flips.estimate.mean):
        assert signed(float(number)) in finding
    spurious = {c.id: float(c.value) for c in counts.criteria if c.id.startswith("spurious")}
    assert f"{spurious['spurious_independent']:.1%} of the independent design's" in finding
    assert f"{spurious['spurious_paired']:.1%} of the paired design's" in finding


def test_the_readmes_picture_is_what_the_registers_give(case: Case) -> None:
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text_of("README.md"))
    drawn = (CHECKOUT / picture).read_text(encoding="utf-8")
    marks = {says.partition(",")[0]: says for says in re.findall(r'aria-label="([^"]+)" data-row', drawn)}
    for rule in ("H2a", "H2b", "H3", "H5"):
        decision = case.decide(rule)
        interval = decision.interval
        low, high = (
            f"{float(end):+.4f}".replace("-", "\N{MINUS SIGN}") for end in (interval.low, interval.high)
        )
        level = f"{float(interval.level):.0%} interval [{low}, {high}]"
        assert f": {float(decision.estimate.mean):+.4f}, {level}, " in marks[rule]
        assert marks[rule].endswith(f"; {decision.verdict}")


def test_the_documents_show_agents_and_coverage_as_measured() -> None:
    measured = json.loads((CHECKOUT / "tests/golden/agents.json").read_text(encoding="utf-8"))
    assert measure_agents.table(measured) in text_of("GUIDE.md")
    text = text_of("toolkit/estimators/README.md")
    assert all(table in text for table in measure_coverage.tables(*measure_coverage.stored()))


def test_the_documents_count_what_the_registers_hold() -> None:
    studies = {name: open_study(CHECKOUT / "registers" / name) for name in ("embedded", "map", "coupled")}
    probed = {(row["trajectory"], row["step"]) for row in studies["embedded"].rows("probe")}
    trained = {trajectory for trajectory, _ in probed} - {"base"}
    told = " ".join(text_of("GUIDE.md").split())
    assert f"at {len(probed)} checkpoints of {len(trained)} runs" in told
    seeds = [run["seed"] for run in studies["embedded"].rows("runs")]
    companion = sum(seed >= COMPANION for seed in seeds)
    tiers = f"{len(seeds) - companion} runs of the paper's tiers 1 to 3"
    assert f"{tiers}, and {companion} of a companion" in told
    shares = [
        row["trace_within_independent"] / row["trace_independent"]
        for row in open_study(CHECKOUT / "registers" / "published").rows("probe")
        if (row["noise"], row["estimator"]) == ("transition", "MC")
    ]
    told_share = f"within-task share under faults, {min(shares):.2f} to {max(shares):.2f} in the paper"
    assert told_share in told
    assert f"without any task effect ({noise_within_share(16, 8):.3f})" in told
    ways = {run["condition"] for run in studies["map"].rows("runs") if run["arm"] == "paired"}
    assert {*re.findall(r"(\d+)\s+ways", text_of("README.md") + told)} == {str(len(ways))}


def snippets() -> list[str]:
    """Return every Python block of the documents."""
    texts = [written_in(name) for name in DOCUMENTS]
    return [
        block
        for text in texts
        for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    ]


def test_the_documented_snippets_run(tmp_path: Path) -> None:
    """All in one process, because loading `datasets` takes longer than the snippets."""
    script = "import sys\nfor code in sys.argv[1:]: exec(compile(code, code, 'exec'), {})"
    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", script, *map(located, snippets())]
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def queries() -> list[tuple[str, str]]:
    """Return every SQL block of the cards with its study's name."""
    blocks = re.compile(r"^```sql\n(.*?)^```", re.DOTALL | re.MULTILINE)
    cards = {name: (CHECKOUT / "cards" / f"{name}.md").read_text(encoding="utf-8") for name in STUDIES}
    return [(name, query) for name, card in cards.items() for query in blocks.findall(card)]


@pytest.mark.parametrize(("name", "query"), queries(), ids=[name for name, _ in queries()])
def test_a_query_of_a_card_has_an_answer(name: str, query: str) -> None:
    """A query of files runs in DuckDB as it is, any other on the views of `toolkit sql`."""
    import duckdb

    if "hf://" in query:
        assert duckdb.sql(located(query)).fetchall()
    else:
        assert ask(open_study(CHECKOUT / "registers" / name), query).rows


def test_every_card_loads_in_four_ways() -> None:
    for name in STUDIES:
        text = (CHECKOUT / "cards" / f"{name}.md").read_text(encoding="utf-8")
        assert f'load_dataset("OWNER/{name}"' in text
        assert f'_parquet("hf://datasets/OWNER/{name}@v1.0.0/' in text
        assert f"FROM 'hf://datasets/OWNER/{name}@v1.0.0/" in text
        assert f"--study OWNER/{name}@v1.0.0" in text


def test_an_address_on_the_hub_is_found_in_the_checkout() -> None:
    there = f"{CHECKOUT}/registers/task-pools"
    assert located("'hf://datasets/OWNER/task-pools@v1.0.0/x/*.parquet'") == f"'{there}/x/*.parquet'"
    assert located('("OWNER/task-pools", --study OWNER/task-pools@v1.0.0)') == f'("{there}", --study {there})'


def test_the_changelog_names_the_version() -> None:
    import toolkit

    assert f"## {toolkit.__version__}" in (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f'version = "{toolkit.__version__}"' in (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
