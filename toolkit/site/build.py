"""Building the site: the same registers, registrations and version give the same bytes."""

import hashlib
import io
import json
import re
import sys
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import distributions
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import toolkit
from toolkit.errors import IncompleteError, ToolkitError, UsageError
from toolkit.files import read_bytes, read_text, write_all, write_bytes, write_text
from toolkit.places import Home
from toolkit.rooms import Built
from toolkit.site.checking import MARK
from toolkit.site.drawings import estimates, pictures
from toolkit.site.environment import environment, json_text
from toolkit.site.material import CITATION, Front, Material
from toolkit.site.page import POLICY, Entry, Link, Page, registration_page, study_page
from toolkit.site.pages import data, home, luck, probe, registration, rule, run, study
from toolkit.site.registers import frozen_file_content, played_files, register_files

PACKAGES = ("jinja2", "markdown_it")
STYLE = "style.css"


def site_content(material: Material, progress: Callable[[str], None]) -> dict[str, bytes]:
    """Return every file of the site by name."""
    lack = lacking_packages()
    if lack:
        raise lack
    pages = {name: text.encode() for name, text in render(material, progress).items()}
    cited = {CITATION: material.citation.text.encode()} if material.citation else {}
    content = {
        **pages,
        **register_files(material),
        **played_files(material),
        **frozen_file_content(material),
        **_pictures(material),
        **cited,
        **_assets(material),
    }
    material.wait()
    # The mark lists what a build wrote, so that the next one removes nothing else.
    return {MARK: "".join(f"{name}\n" for name in sorted(content)).encode(), **content}


def lacking_packages() -> IncompleteError | None:
    """Return that the `site` extra is not installed, or nothing."""
    absent = [name for name in PACKAGES if find_spec(name) is None]
    if not absent:
        return None
    return IncompleteError(
        "the site needs packages that are not installed",
        expected=", ".join(PACKAGES),
        found=f"without {', '.join(absent)}",
        remedy="pip install 'paired-rollouts-toolkit[site]'",
    )


def _pictures(material: Material) -> dict[str, bytes]:
    """Return every study's estimates and its registered pictures as files, for other pages to show."""
    return {
        f"{case.study.name}/{name}.svg": chart.alone.encode()
        for case in material.cases
        for name, chart in {"estimates": estimates(case), **pictures(case)}.items()
        if chart is not None
    }


def _assets(material: Material) -> dict[str, bytes]:
    """Return the browser's scripts by name, and one style sheet: the site's, of charts and of exhibits."""
    found: dict[str, bytes] = {}
    for package in ("toolkit.site", *material.packages):
        entries = files(package).joinpath("assets").iterdir()
        for entry in sorted(entries, key=lambda entry: (entry.name != STYLE, entry.name)):
            if entry.is_file():
                name = STYLE if entry.name.endswith(".css") else entry.name
                found[name] = found.get(name, b"") + entry.read_bytes()
    return found


def check_place(folder: Path) -> None:
    """Check that a site may be written to a folder: nothing else than a site is there."""
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise IncompleteError("the site needs a folder", found=f"{nearest} is a file", where=folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise IncompleteError(
            "the folder holds something else than a generated site",
            where=folder,
            remedy="give an empty folder, or one that `toolkit site build` made",
        )


def check_outside(target: Path, folder: Path) -> None:
    """Check that a file lies outside a site's folder, where it could take the place of a page."""
    if target.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            "a zip of the site cannot lie in the site",
            found=str(target),
            where=folder,
            remedy="give a file in another folder",
        )


def write_site(folder: Path, content: dict[str, bytes]) -> Built:
    """Write the site, and remove what an earlier build wrote and this one does not."""
    check_place(folder)
    if not (folder / MARK).is_file():  # a build that is cut off has to be able to go on in its own folder
        write_all(folder, {MARK: b""})
    before = read_text(folder / MARK).splitlines()
    changed = {n: c for n, c in content.items() if not (folder / n).is_file() or read_bytes(folder / n) != c}
    write_all(folder, changed)
    for name in set(before) - set(content):
        stale = folder / name
        if ".." not in Path(name).parts and not Path(name).is_absolute() and stale.is_file():
            stale.unlink()
    return Built(folder, tuple(sorted(content)), tuple(sorted(changed)))


FOLDER = "site"
# The earliest that the format can say, and the rights of a file that everybody may read.
EARLIEST = (1980, 1, 1, 0, 0, 0)
READABLE = 0o100644 << 16
UNIX = 3


def archive(content: Mapping[str, bytes]) -> bytes:
    """Return a zip of the site's files, below one folder; no times or rights of files enter."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as whole:
        for name in sorted(content):
            entry = zipfile.ZipInfo(f"{FOLDER}/{name}", EARLIEST)
            entry.create_system, entry.external_attr = UNIX, READABLE
            whole.writestr(entry, content[name], zipfile.ZIP_DEFLATED, 9)
    return packed.getvalue()


def write_zip(target: Path, folder: Path, names: Sequence[str]) -> str:
    """Write the site as one file, and return that file's SHA-256."""
    packed = archive({name: read_bytes(folder / name) for name in names})
    write_bytes(target, packed)
    return hashlib.sha256(packed).hexdigest()


# It says where a site was built, not what it is: no zip holds it, and nobody publishes it.
RECORD = ".toolkit-built"
# Of the package's folder, what is not its source.
NO_SOURCE = ("__pycache__", "node_modules")


def inputs_of(home: Home) -> str:
    """Return the SHA-256 of all that a site is made of: files, Python and every installed package."""
    whole = hashlib.sha256()
    source = Path(str(files("toolkit")))
    for root in (home.registers, home.registrations, home.cards, source):
        names = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
        below = sorted(name.as_posix() for name in names if not set(NO_SOURCE) & set(name.parts))
        whole.update(_digest(root, below))
    whole.update(_digest(home.root, (CITATION,)))
    installed = sorted(f"{each.name} {each.version}" for each in distributions())
    whole.update("\n".join((sys.version, *installed)).encode())
    return whole.hexdigest()


def _digest(root: Path, names: Iterable[str]) -> bytes:
    """Return a digest of files: their names and bytes; one that is gone differs from an empty one."""
    whole = hashlib.sha256()
    for name in names:
        path = root / name
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "gone"
        whole.update(f"{content} {name}\n".encode())
    return whole.digest()


def built_before(folder: Path, inputs: str) -> Built | None:
    """Return the site in a folder, if it was built from these inputs and is as it was written."""
    try:
        names = read_text(folder / MARK).splitlines()
        recorded = json.loads(read_text(folder / RECORD))
    except (ToolkitError, ValueError):
        return None
    if recorded != _record(folder, inputs, names):
        return None
    return Built(folder, tuple(sorted((MARK, *names))), ())


def record(folder: Path, inputs: str, names: Sequence[str]) -> None:
    """Note from what a site was built, and what its files were then."""
    write_text(folder / RECORD, json.dumps(_record(folder, inputs, [n for n in names if n != MARK])) + "\n")


def _record(folder: Path, inputs: str, names: Sequence[str]) -> dict[str, str]:
    return {"inputs": inputs, "outputs": _digest(folder, sorted((MARK, *names))).hex()}


MAKERS = (home, rule, registration, study, probe, luck, data, run)
# A page of fewer sections is seen at a glance.
_LONG = 4
# Templates alone write headings with an id: everything else on a page was escaped.
_HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>', re.DOTALL)
_BESIDE = re.compile(r"<(small|span)\b.*?</\1>|<[^>]+>", re.DOTALL)
_BEFORE = "</h1>"
# Ends that HTML lets everybody leave out, of cells and rows: a twentieth of all pages.
SPARE = re.compile(r"</t[dhr]>\n?|\n(?=\n)")


def render(material: Material, progress: Callable[[str], None]) -> dict[str, str]:
    """Return every page's text by its name, and what the search finds among them."""
    templates = environment(material.packages)
    pages = list(all_pages(material))
    names = {page.name for page in pages}
    front = material.front or Front("Registered outcomes", "")
    shared: dict[str, Any] = {
        "version": toolkit.__version__,
        "policy": POLICY,
        "menu": navigation(material, names),
        "explained": explanations(material, names),
        "site_title": front.title,
        "description": front.question,
        "links": front.links,
        "datasets": front.datasets,
        "citation": material.citation,
        "names": names,
    }
    texts: dict[str, str] = {}
    for number, page in enumerate(pages, 1):
        progress(f"page {number} of {len(pages)}, {page.name}")
        if page.name in texts:
            raise UsageError("two pages of the site have one name", found=page.name)
        template = templates.get_template(page.template)
        text = template.render(**shared, page=page, root=page.root, **page.context)
        texts[page.name] = SPARE.sub("", with_contents(text, page.name))
    return {**texts, SCRIPT: search_script(pages)}


def with_contents(text: str, name: str) -> str:
    """Return a page whose headings can be linked to, with a list of its contents below its title."""
    headings = [(id_, " ".join(_BESIDE.sub("", words).split())) for id_, words in _HEADING.findall(text)]
    if len(headings) < _LONG:
        return text
    linked = _HEADING.sub(_linked, text)
    if name == "index.html":
        return linked
    entries = "".join(f'<li><a href="#{id_}">{words}</a></li>' for id_, words in headings)
    contents = (
        '\n<nav class="contents" aria-label="On this page"><details><summary>On this page</summary>'
        f"<ol>{entries}</ol></details></nav>"
    )
    # Said in the first tag: the page is as wide before its list of contents has arrived as after.
    linked = linked.replace("<body ", '<body class="long" ', 1)
    return linked.replace(_BEFORE, _BEFORE + contents, 1)


def _linked(heading: re.Match[str]) -> str:
    """Return a heading as a link to itself; one that leads elsewhere stays as it is."""
    id_, words = heading.groups()
    return heading[0] if "<a " in words else f'<h2 id="{id_}"><a class="self" href="#{id_}">{words}</a></h2>'


def all_pages(material: Material) -> Iterator[Page]:
    """Yield every page, the front page first."""
    for makes in (*(maker.pages for maker in MAKERS), *(exhibit.pages for exhibit in material.exhibits)):
        yield from makes(material)


def navigation(material: Material, names: Collection[str]) -> tuple[Entry, ...]:
    """Return the entries whose pages the site has."""
    studies = tuple((case.study.name, study_page(case.study.name)) for case in material.cases)
    entries = [
        Entry("home", "Outcomes", "index.html"),
        Entry("study", "Studies", pages=studies),
        *(
            Entry("registration", "Registration", registration_page(c.registration.name))
            for c in material.cases[:1]
        ),
        *(exhibit.entry for exhibit in material.exhibits if exhibit.entry),
        Entry("data", "Data", "data.html"),
    ]
    return tuple(entry for entry in entries if entry.pages or entry.target in names)


def explanations(material: Material, names: Collection[str]) -> dict[str, Link]:
    """Return the links to what exhibits explain, by topic, whose pages the site has."""
    links = {topic: link for exhibit in material.exhibits for topic, link in exhibit.explains.items()}
    return {topic: link for topic, link in links.items() if link.target in names}


# At the root: in `data` a study of that name would have a script there.
SCRIPT = "search-index.js"
_KINDS = {"rule.html": "Rule", "run.html": "Run", "study.html": "Study", "registration.html": "Registration"}


def search_script(pages: Iterable[Page]) -> str:
    """Return a script with all that can be found: from a folder, pages can load scripts alone."""
    found: dict[tuple[str, str, str], str] = {}
    for page in pages:
        for kind, name, meaning, place in _found_on(page):
            found.setdefault((kind, name, meaning), place)
    return f"globalThis.toolkitSearch={json_text([[*entry, place] for entry, place in found.items()])};\n"


def _found_on(page: Page) -> Iterator[tuple[str, str, str, str]]:
    yield _KINDS.get(page.template, "Page"), page.title, "", page.name
    for word, meaning in page.context.get("terms", {}).items():
        yield "Word", word, meaning, f"{page.name}#words"
    if page.template == "data.html":
        for described in page.context["schema"]:
            table = described["table"].name
            for column in described["columns"]:
                yield "Column", f"{table}.{column.name}", column.meaning, f"{page.name}#table-{table}"
