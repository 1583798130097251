"""What this project shows beside its studies: theory, worlds, the paper. The generator knows none."""

from importlib import import_module
from pkgutil import iter_modules

from toolkit.errors import DamagedError
from toolkit.site.material import FILE, Exhibit


def load_exhibits(names: tuple[str, ...]) -> tuple[Exhibit, ...]:
    """Return the exhibits that a project names in `site.toml`, in its order."""
    known = [module.name for module in iter_modules(__path__)]
    for name in names:
        if name not in known:
            raise DamagedError(
                "the site names an exhibit that there is not",
                expected=f"of {', '.join(known)}",
                found=repr(name),
                where=FILE,
            )
    return tuple(import_module(f"{__name__}.{name}").EXHIBIT for name in names)
