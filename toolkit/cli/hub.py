"""`toolkit registers push` and `pull`: studies as dataset repositories on the Hub."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from toolkit import api
from toolkit.cli.options import FILE, STUDY, argument, command, flag, json_option, offer_studies, option
from toolkit.cli.output import print_json, remark, say_line, say_whole, stepped, steps
from toolkit.errors import DamagedError, UsageError

if TYPE_CHECKING:
    from toolkit.documents.registers import PullDocument, PushDocument
    from toolkit.registers.hub.transfer import Plan
    from toolkit.registers.study import Study


@command()
def push(
    *,
    study: str = argument(metavar=STUDY, shell_complete=offer_studies),
    repository: str = argument(metavar="OWNER/NAME"),
    tag: str | None = option(
        metavar="TAG", help="Name of this version, such as v1.0.0; one that is there is not moved."
    ),
    parent: str | None = option(
        metavar="SHA", help="Commit that this work is based on; another head is refused."
    ),
    private: bool = flag(help="Create a private repository; a public one is refused."),
    replace: bool = flag(help="Change or remove rows or a registration that it has."),
    dry_run: bool = flag(help="Print what would be sent, and change nothing."),
    as_json: bool = json_option,
) -> None:
    """Push a study to a dataset repository on the Hub, as one commit.

    The study is verified first. What the Hub states of every file afterwards is compared with the manifest.
    An interrupted push is given again: content that has arrived is not sent twice. Rows that the repository
    has are not changed without --replace, nor is a registration: registers are append-only. HF_TOKEN, or
    `hf auth login`, says who you are.

    \b
    Examples:
      toolkit registers push embedded my-group/embedded --dry-run
      toolkit registers push embedded my-group/embedded --tag v1.0.0
      toolkit registers push published my-group/published --private --json
    """
    from toolkit.registers.hub.client import parse_reference
    from toolkit.registers.hub.transfer import push as push_study

    if "@" in repository:
        raise UsageError(
            "a push goes to a repository's branch main", found=repository, remedy="leave out @..."
        )
    name = parse_reference(repository).repository
    pushed = push_study(
        api.open_study(study),
        name,
        check=_check_pushed,
        private=private,
        parent=parent,
        replace=replace,
        tag=tag,
        dry_run=dry_run,
        # The client's own bars show how far it is; beside them there is room for lines only.
        say=remark if sys.stderr.isatty() else lambda _: None,
    )
    if as_json:
        print_json(_document(pushed, dry_run=dry_run))
    else:
        _print(pushed, dry_run=dry_run)


@command()
def pull(
    *,
    reference: str = argument(metavar="OWNER/NAME[@REVISION]"),
    into: Path | None = option(type=FILE, help="Folder for a copy; the Hub's cache if left out."),
    offline: bool = flag(help="Take it from the cache; do not ask the Hub."),
    accept_moved: bool = flag(help="Take a tag that is another commit than before."),
    as_json: bool = json_option,
) -> None:
    """Pull a study from the Hub and verify it: every file, every row.

    REVISION is a branch, a tag or a commit's SHA.

    The revision becomes the SHA of its commit, which is printed: name that to mean the same for good. Files
    that were pulled before are checked as new ones are. Without a connection the cache is used, and this is
    said.

    \b
    Examples:
      toolkit registers pull some-group/their-study@v1.0.0
      toolkit registers pull some-group/their-study --into their-study
      toolkit registers pull some-group/their-study@v1.0.0 --offline
    """
    from toolkit.registers.hub import transfer as hub
    from toolkit.registers.hub.client import parse_reference
    from toolkit.verification.steps import number_of_steps

    asked = parse_reference(reference)
    study = hub.pull(asked, offline=offline, accept_moved=accept_moved, say=remark)
    with stepped("verify", number_of_steps(study)) as progress:
        verified = api.verify_registers(study, progress=progress)
    if verified.missing:
        remark(f"{verified.missing}: seeds, probe and stored decisions were not held against it")
    if into is not None:
        hub.check_into(into, study)
        with steps("copy") as progress:
            study = hub.copy_into(into, study, progress)
    if study.origin is None:
        raise TypeError(study)
    if as_json:
        document: PullDocument = {
            "study": study.name,
            "verdict": "verified",
            "origin": study.origin.as_dict(),
            "folder": str(study.folder),
            "files": len(study.manifest.files),
            "logical_sha256": study.manifest.logical_sha256,
        }
        print_json(document)
        return
    say_line(f"{study.name}: verified, {len(study.manifest.files)} files in {study.folder}")
    say_line(f"  commit {study.origin.commit}")
    say_line(f"  logical SHA-256 {study.manifest.logical_sha256}")
    say_whole(f"  toolkit decide --all --study {study.origin.pinned}")


def _check_pushed(study: Study) -> None:
    """Check that a study follows from its rows, and that a registration which it carries is its own."""
    from toolkit.prereg.registration import load_registration

    named = study.manifest.registration
    folder = study.folder / "prereg" / named.name
    carried = load_registration(folder).sha256 if folder.exists() else named.sha256
    if carried != named.sha256:
        raise DamagedError(
            "the registration that the study carries is not the one that its manifest names",
            expected=f"{named.name}, SHA-256 {named.sha256}",
            found=f"SHA-256 {carried}",
            where=folder,
            remedy="import the study again with the registration that it belongs to",
        )
    api.verify_registers(study)


def _document(plan: Plan, *, dry_run: bool) -> PushDocument:
    done: Literal["unchanged", "pushed"] = "unchanged" if plan.is_empty else "pushed"
    return {
        "repository": plan.repository,
        "outcome": "planned" if dry_run else done,
        "parent": plan.head,
        "commit": plan.commit,
        "tag": plan.tag,
        "checked_files": plan.files,
        "added": plan.added,
        "changed": plan.changed,
        "deleted": plan.deleted,
        "same": len(plan.same),
    }


def _print(plan: Plan, *, dry_run: bool) -> None:
    for done, names in (("add", plan.added), ("change", plan.changed), ("delete", plan.deleted)):
        for name in names:
            say_line(f"  {done} {name}")
    if dry_run:
        parent = f"on top of {plan.head}" if plan.head else "in a new repository"
        say_line(
            f"{plan.repository}: nothing was changed; {len(plan.same)} files are there already, {parent}"
        )
        return
    done = "has this already" if plan.is_empty else "pushed"
    tag = f", tag {plan.tag}" if plan.tag else ""
    say_line(
        f"{plan.repository}: {done}, commit {plan.commit}{tag}; the Hub states {plan.files} files as here"
    )
    say_line(f"  cite it as {plan.repository}@{plan.commit}")
    say_whole(f"  toolkit registers pull {plan.repository}@{plan.tag or plan.commit}")
