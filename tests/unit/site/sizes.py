"""What of a site has a largest size."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from statistics import mean

MB = 1_000_000
# Bytes. Scripts were 1,175 KB when they drew charts; what is searched is content, whatever carries it.
SEARCHED = "search-index.js"
GOALS: Mapping[str, int] = {
    "site without registers": 16 * MB,
    "scripts": round(0.55 * 1_175_000),
    "front page, gzipped": 25_000,
    "played episodes": 3 * MB,
    "a run's page, on average": 11_000,
}
WHOLE = "site without registers"
"""It grows with the runs of all studies, and is measured by `make bench` alone."""


def sizes(site: Path) -> dict[str, int]:
    """Return the bytes of what has a goal; registers are what lies below `data/`, played episodes aside."""
    files = {
        path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*.*") if path.is_file()
    }
    played = {name: size for name, size in files.items() if "/played/" in name}
    own = {name: size for name, size in files.items() if not name.startswith("data/")}
    return {
        WHOLE: sum({**own, **played}.values()),
        "scripts": sum(size for name, size in own.items() if name.endswith(".js") and name != SEARCHED),
        "front page, gzipped": len(gzip.compress((site / "index.html").read_bytes(), 6, mtime=0)),
        "played episodes": sum(played.values()),
        "a run's page, on average": round(mean(size for name, size in own.items() if "/runs/" in name)),
    }
