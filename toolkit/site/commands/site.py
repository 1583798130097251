"""`toolkit site`: the static site."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import click

from toolkit.cli.options import FILE, flag, group, json_option, option
from toolkit.cli.output import print_json, remark, say_line, steps, tell
from toolkit.places import find_home
from toolkit.site.checking import Finding, check_is_site, check_site
from toolkit.structs import Document, about


class Zip(Document, frozen=True):
    """The site as a zip."""

    file: Annotated[str, about("Its path.")]
    sha256: Annotated[str, about("Of the zip.")]


class BuiltSite(Document, frozen=True):
    """The site as it was built."""

    folder: Annotated[str, about("Where it lies.")]
    pages: Annotated[int, about("Files of the site.")]
    rendered: Annotated[
        bool, about("False where the site was built from the same inputs and is as it was written.")
    ]
    changed: Annotated[tuple[str, ...], about("Files that have other bytes than before.")]
    zip: Annotated[Zip | None, about("With --zip.")]


class CheckedSite(Document, frozen=True):
    """Whether the site is what its registers give, and works as a site."""

    folder: Annotated[str, about("Where it lies.")]
    files: Annotated[int, about("That the registers give.")]
    identical: Annotated[bool, about("Whether it is what the registers give, byte for byte.")]
    findings: list[Finding]


class ServedSite(Document, frozen=True):
    """The site as it is served; printed before the first request."""

    address: Annotated[str, about("Where a browser finds it.")]
    folder: Annotated[str, about("What is served.")]


@group()
def site() -> None:
    """Build, serve and check the site that renders every outcome from the registers."""


@site.command()
def build(
    *,
    out: Path | None = option(type=FILE, help="Folder to write; default: site/."),
    zipped: Path | None = option("--zip", type=FILE, help="Also write the site to this zip file."),
    as_json: bool = json_option,
) -> None:
    """Build the site; the same registers give the same bytes.

    Nothing is rendered if neither its sources nor its files have changed.

    A zip of the same site has the same bytes, and its pages work from any folder.

    \b
    Examples:
      toolkit site build
      toolkit site build --out /tmp/site --json
      toolkit site build --out /tmp/site --zip /tmp/site.zip
    """
    from toolkit.files import check_target
    from toolkit.site import build
    from toolkit.site.commands.material import material

    home = find_home()
    folder = out or home.site
    build.check_place(folder)
    if zipped is not None:
        build.check_outside(zipped, folder)
        check_target(zipped)
    with steps("site") as progress:
        inputs = build.inputs_of(home)
        before = build.built_before(folder, inputs)
        if before is None:
            everything = material(home, progress=progress)
            built = build.write_site(folder, build.site_content(everything, progress))
            build.record(folder, inputs, built.files)
        else:
            built = before
        digest = None if zipped is None else build.write_zip(zipped, folder, built.files)
    archive = None if digest is None else Zip(str(zipped), digest)
    document = BuiltSite(str(built.folder), len(built.files), before is None, built.changed, archive)
    written = f"{len(built.files)} files, {len(built.changed)} changed: {built.folder / 'index.html'}"
    tell(document, written, *([f"{zipped}: {digest}"] if zipped else []), as_json=as_json)


@site.command()
def check(
    *,
    folder: Path | None = option(type=FILE, help="Folder to check; site/ if left out."),
    as_json: bool = json_option,
) -> None:
    """Check that the site is what its registers give.

    It is compared byte for byte, and has to work as a site.

    Every reference has to lead to a file or an id of the site, or to an address that cards/site.toml
    declares; pages and what they load have to keep within their budgets. One line a finding, and exit code 1.

    \b
    Examples:
      toolkit site check
      toolkit site check --folder site --json
    """
    from toolkit.site.build import site_content
    from toolkit.site.commands.material import material

    site_folder = folder or find_home().site
    check_is_site(site_folder)
    with steps("site") as progress:
        everything = material(find_home(), progress=progress)
        expected = site_content(everything, progress)
        addresses = everything.front.addresses if everything.front else ()
        findings = check_site(site_folder, expected, addresses)
    identical = not any(finding.kind in ("differs", "absent", "unexpected") for finding in findings)
    if as_json:
        print_json(CheckedSite(str(site_folder), len(expected), identical, findings))
    elif findings:
        for finding in findings:
            say_line(str(finding))
        remark(f"{len(findings)} findings in {site_folder}; what to do: toolkit site build")
    else:
        say_line(f"{len(expected)} files identical in {site_folder}")
    if findings:
        sys.exit(1)


@site.command()
def serve(
    *,
    port: int = option(default=8000, type=click.IntRange(0, 65535), help="Port; 0 picks a free one."),
    folder: Path | None = option(type=FILE, help="Folder to serve; default: site/."),
    base: str = option(default="/", help="Path prefix of the site."),
    is_opened: bool = flag("--open", help="Open the front page in a browser."),
    as_json: bool = json_option,
) -> None:
    """Serve the site on this machine only, until interrupted (Ctrl-C).

    Pages also work from the folder; the server adds the headers that a real one should send.

    \b
    Examples:
      toolkit site serve
      toolkit site serve --port 0 --json
      toolkit site serve --base /toolkit/ --open
    """
    from toolkit.site.server import SiteServer

    site_folder = folder or find_home().site
    server = SiteServer(site_folder, port, base)
    tell(ServedSite(server.address, str(site_folder)), f"{server.address} (Ctrl-C ends it)", as_json=as_json)
    sys.stdout.flush()  # whoever started this may wait for the address
    if is_opened:
        import webbrowser

        webbrowser.open(server.address)
    server.run()


site.fold("check", "build", "--check", "Check the existing site instead.")
