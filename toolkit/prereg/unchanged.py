"""Whether what is frozen is what was frozen: quick, offline, and before a commit."""

from pathlib import Path

from toolkit.errors import VerificationError
from toolkit.prereg.chain import CHAIN
from toolkit.prereg.git import rewritten
from toolkit.prereg.record import FROZEN
from toolkit.prereg.registration import load_registration


def check_unchanged(registrations: Path) -> list[str]:
    """Check the frozen registrations of a folder; drafts may change.

    1. Lists of frozen files are those of the last commit, and chains have only grown since: a registration
       is neither frozen anew nor made a draft again.
    2. Files are those of the lists and chains.
    """
    changed = rewritten(registrations, {FROZEN: False, CHAIN: True})  # 1
    if changed:
        raise VerificationError(
            "what is frozen was frozen anew, or taken away",
            expected="as in the last commit",
            found=", ".join(changed),
            where=registrations,
            remedy="git restore --source=HEAD --staged --worktree -- "
            f"{registrations.name}; rules that are frozen are amended: toolkit amend --template",
        )
    there = sorted(registrations.iterdir()) if registrations.is_dir() else []
    folders = [folder for folder in there if folder.is_dir()]
    frozen = [folder for folder in folders if (folder / FROZEN).exists() or (folder / CHAIN).exists()]
    return [load_registration(folder).name for folder in frozen]  # 2
