"""Opening a study by whatever names it: a name, a folder, or a dataset repository on the Hub."""

from collections.abc import Callable
from pathlib import Path

from toolkit.errors import DamagedError
from toolkit.places import Home, find_home
from toolkit.registers.study import Study, open_study


def open_registers(
    name: str, home: Home | None = None, *, offline: bool = False, say: Callable[[str], None] = lambda _: None
) -> Study:
    """Open a study by name, path, or `owner/name@revision`; what is here wins over what is on the Hub."""
    home = home or find_home()
    if home.find_study(name) is None and _is_on_the_hub(name):
        from toolkit.registers.hub.client import parse_reference
        from toolkit.registers.hub.pull import pull

        return pull(parse_reference(name), offline=offline, say=say)
    study = open_study(home.study_folder(name))
    if study.folder.parent == home.registers and study.folder.name != study.name:
        raise DamagedError(
            "a study lies under another name than its own",
            expected=study.name,
            found=study.folder.name,
            where=study.folder,
        )
    return study


def _is_on_the_hub(name: str) -> bool:
    """Whether a name that is no study here is meant for the Hub: a path into a folder that is here is not."""
    from toolkit.registers.hub.client import SCHEME, looks_like_reference  # brings what asks the Hub

    if not looks_like_reference(name):
        return False
    return name.startswith(SCHEME) or "@" in name or not Path(name).parent.exists()
