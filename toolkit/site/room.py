"""What the site does for the core: `toolkit.rooms.Site`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import altair as alt

    from toolkit.decisions.case import Case
    from toolkit.errors import ToolkitError
    from toolkit.places import Home
    from toolkit.prereg.verification import Verification
    from toolkit.site.build import Built


def plot(case: Case, rule: str) -> alt.LayerChart | None:
    """Return a rule's estimate as an Altair chart; nothing where there is none to draw."""
    from toolkit.site.drawings import spread_of
    from toolkit.site.notebook import seed_differences

    spread = spread_of(case, case.decide(rule))
    return None if spread is None or not spread.members else seed_differences(spread)


def rehearsal_page(done: Any, **said: object) -> str:
    """Return the page of a rehearsal."""
    from toolkit.site import rehearsed

    return rehearsed.rehearsal_page(done, done.decisions, done.powers, **said)


def lack(target: Path) -> ToolkitError | None:
    """Return which package is missing, or nothing; a folder that is no site is refused."""
    from toolkit.site.build import check_place, lacking_packages

    check_place(target)
    return lacking_packages()


def build(
    home: Home,
    target: Path,
    verifications: Sequence[Verification],
    cases: Sequence[Case],
    progress: Callable[[str], None],
) -> Built:
    """Write the site of a home."""
    from toolkit.site.build import site_content, write_site
    from toolkit.site.commands.material import material

    return write_site(target, site_content(material(home, verifications, cases), progress))
