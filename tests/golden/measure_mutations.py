"""Change good tokens at random and verify them: writes `mutations.json`.

Run as `python -m tests.golden.measure_mutations [--tokens N] [--to FILE]`; two processes, some minutes.

Four sections, each with its own mutations:

- `tokens`: bytes of bare tokens. Whatever is changed, the token must not be verified.
- `loose`: the same of real tokens that hold bytes which nobody can vouch for, and whose verdict says so:
  unsigned attributes, or a certificate off the path whose issuer is not at hand. A change there can survive.
- `elements`: whole DER elements of bare tokens left out, doubled, exchanged or taken from another token, with
  every length put right. CMS signs only part of them: the order of certificates, or a certificate more, is
  nobody's promise. What survives must say the same as before.
- `responses`: bytes of full responses. The status round a token is signed by nobody.

Mutation n of a section comes from the seed and n alone; the crafted tokens are stored ones.
"""

import argparse
import json
import multiprocessing
import resource
import ssl
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

from tests.forge import der
from tests.forge.vectors import FORGED
from tests.unit.prereg.test_real_tokens import MISSING, PRESENT, read_real
from toolkit.prereg.token.verdict import TokenVerdict
from toolkit.prereg.token.verify import Material, verify_token

FILE = Path(__file__).with_name("mutations.json")
SEED = 20_261_120
COUNTS = {"tokens": 100_000, "loose": 10_000, "elements": 20_000, "responses": 20_000}
GOAL_S, GOAL_MB = 0.1, 100
PROCESSES = 2
MADE = (
    *("valid: usual", "valid: PSS by an RSA key", "valid: PSS key", "valid: P-256"),
    *("valid: P-384 with SHA-384", "valid: P-521 with SHA-512", "valid: Ed25519", "valid: chain of four"),
    *("valid: tsa names the signer", "valid: accuracy", "valid: request", "valid: ESS v1 and v2"),
    "valid: with everything",
)


@dataclass(frozen=True)
class Base:
    """A good token, and what it is judged by."""

    name: str
    raw: bytes
    material: Material
    at: datetime
    verdict: TokenVerdict


def bases() -> list[Base]:
    """Return good tokens, crafted and, where they are at hand, real ones: as they are, and bare."""
    good = [
        (name, vector.token, vector.material, vector.at) for name, vector in FORGED.items() if name in MADE
    ]
    good += [
        (one.name, one.token, Material(**one.material), PRESENT) for one in read_real().values() if one.valid
    ]
    made = []
    for name, raw, known, at in good:
        *_, last = der.children(raw)
        for one in dict.fromkeys((raw, raw if is_bare(raw) else last)):
            verdict = verify_token(one, known, at)
            if verdict.verdict != "verified":
                raise ValueError(f"{name} is no good token: {verdict.message}")
            made.append(Base(name, one, known, at, verdict))
    return made


def is_bare(raw: bytes) -> bool:
    """Whether there is no response round a token: it begins with an object identifier."""
    return next(der.children(raw))[0] == 0x06


# Changes of bytes. Each takes a generator, the bytes, and another token's.


def _span(rng: Random, raw: bytes, most: int = 64) -> tuple[int, int]:
    start = rng.randrange(len(raw))
    return start, min(len(raw), start + rng.randint(1, most))


def flip(rng: Random, raw: bytes, _: bytes) -> bytes:
    changed = bytearray(raw)
    for _n in range(rng.choice((1, 1, 1, 2, 3))):
        changed[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def replace(rng: Random, raw: bytes, _: bytes) -> bytes:
    start, end = _span(rng, raw, 4)
    return raw[:start] + rng.randbytes(end - start) + raw[end:]


def delete(rng: Random, raw: bytes, _: bytes) -> bytes:
    start, end = _span(rng, raw)
    return raw[:start] + raw[end:]


def insert(rng: Random, raw: bytes, _: bytes) -> bytes:
    start = rng.randint(0, len(raw))
    return raw[:start] + rng.randbytes(rng.randint(1, 32)) + raw[start:]


def swap(rng: Random, raw: bytes, _: bytes) -> bytes:
    a, b, c, d = sorted(rng.randint(0, len(raw)) for _n in range(4))
    b, d = min(b, a + 64), min(d, c + 64)
    return raw[:a] + raw[c:d] + raw[b:c] + raw[a:b] + raw[d:]


def duplicate(rng: Random, raw: bytes, _: bytes) -> bytes:
    start, end = _span(rng, raw, 300)
    place = rng.choice((start, end, rng.randint(0, len(raw))))
    return raw[:place] + raw[start:end] + raw[place:]


def truncate(rng: Random, raw: bytes, _: bytes) -> bytes:
    return raw[: rng.randrange(len(raw))]


def length(rng: Random, raw: bytes, _: bytes) -> bytes:
    """Another length of some element, by a little or by much."""
    start, content, _end, _path = rng.choice(list(elements(raw)))
    place = rng.randrange(start + 1, content)
    by = rng.choice((1, -1, 2, -2, 0x80, rng.randrange(256)))
    return raw[:place] + bytes([(raw[place] + by) % 256]) + raw[place + 1 :]


def splice(rng: Random, raw: bytes, other: bytes) -> bytes:
    """A span of another token in place of one here: of the same size and place, or of any."""
    start, end = _span(rng, raw, 600)
    if rng.random() < 0.5:
        return raw[:start] + other[start:end] + raw[end:]
    first, last = _span(rng, other, 600)
    return raw[:start] + other[first:last] + raw[end:]


def join(rng: Random, raw: bytes, other: bytes) -> bytes:
    """The beginning of one and the end of another."""
    return raw[: rng.randrange(len(raw))] + other[rng.randrange(len(other)) :]


BYTES = (flip, replace, delete, insert, swap, duplicate, truncate, length, splice, join)

# Changes of elements; lengths follow.


def elements(raw: bytes) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """Yield every element: where it starts, where its content does, where it ends, and its path."""
    waiting: list[tuple[int, int, tuple[int, ...]]] = [(0, len(raw), ())]
    while waiting:
        start, limit, path = waiting.pop()
        value = raw[start:limit]
        content = start + len(der.header(value))
        yield start, content, limit, path
        if raw[start] & 0x20:
            place = content
            for number, child in enumerate(der.children(value)):
                waiting.append((place, place + len(child), (*path, number)))
                place += len(child)


def _pick(rng: Random, raw: bytes) -> tuple[tuple[int, ...], bytes]:
    start, _content, end, path = rng.choice(list(elements(raw))[1:])
    return path, raw[start:end]


def leave_out(rng: Random, raw: bytes, _: bytes) -> bytes:
    return der.change(raw, _pick(rng, raw)[0], lambda _one: b"")


def double(rng: Random, raw: bytes, _: bytes) -> bytes:
    return der.change(raw, _pick(rng, raw)[0], lambda one: one * 2)


def transplant(rng: Random, raw: bytes, other: bytes) -> bytes:
    """An element of another token in place of one here, at the same path where there is one."""
    path, _mine = _pick(rng, raw)
    parts = {place: other[start:end] for start, _content, end, place in elements(other)}
    theirs = parts.get(path) if rng.random() < 0.8 else None
    return der.change(raw, path, lambda _one: theirs or rng.choice(list(parts.values())))


def exchange(rng: Random, raw: bytes, _: bytes) -> bytes:
    """Two neighbours, or any two elements, in each other's place."""
    path, mine = _pick(rng, raw)
    if rng.random() < 0.7:
        siblings = [one for one in elements(raw) if one[3][:-1] == path[:-1] and one[3]]
        start, _content, end, place = rng.choice(siblings)
        theirs = raw[start:end]
    else:
        place, theirs = _pick(rng, raw)
        if place[: len(path)] == path or path[: len(place)] == place:
            return raw
    return der.change(der.change(raw, path, lambda _one: theirs), place, lambda _one: mine)


ELEMENTS = (leave_out, double, transplant, exchange)


# Judging


def mutation(section: str, number: int, among: list[Base]) -> tuple[Base, str, bytes]:
    """Return a mutation: of what, how, and what became of it."""
    rng = Random(f"{SEED}:{section}:{number}")  # noqa: S311 - to be had again, not to be secret
    base, other = rng.choice(among), rng.choice(among)
    change = rng.choice(ELEMENTS if section == "elements" else BYTES)
    originals = {one.raw for one in among}
    for _attempt in range(100):
        changed = change(rng, base.raw, other.raw)
        if changed not in originals:
            return base, change.__name__, changed
    raise ValueError(f"mutation {number} changes nothing")


def work(section: str, numbers: range, among: list[Base]) -> dict[str, Any]:
    """Judge some mutations; whatever they allocate, beyond so many megabytes they get nothing."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + (GOAL_MB << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    outcomes: Counter[str] = Counter()
    checks: Counter[str] = Counter()
    changes: Counter[str] = Counter()
    raised, survivors, slowest = [], [], (0.0, "", 0)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in numbers:
        base, how, changed = mutation(section, number, among)
        changes[how] += 1
        started = time.thread_time()
        try:
            verdict = verify_token(changed, base.material, base.at)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not happen
            outcomes["raised"] += 1
            raised.append({"number": number, "base": base.name, "change": how, "error": repr(error)[:200]})
            continue
        slowest = max(slowest, (time.thread_time() - started, base.name, number))
        outcomes[verdict.verdict] += 1
        checks[verdict.failed_check or "none"] += 1
        if verdict.verdict == "verified":
            survivors.append(_survivor(base, verdict, changed))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident) / 1024
    return {
        "outcomes": outcomes,
        "checks": checks,
        "changes": changes,
        "raised": raised,
        "survivors": survivors,
        "slowest": slowest,
        "memory_mb": grown,
    }


def where(before: bytes, after: bytes, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Return the paths to the innermost elements that hold what differs."""
    if not (before[0] & after[0] & 0x20):
        return [path]
    mine, theirs = list(der.children(before)), list(der.children(after))
    if len(mine) != len(theirs):
        return [path]
    pairs = enumerate(zip(mine, theirs, strict=True))
    return [one for n, (a, b) in pairs if a != b for one in where(a, b, (*path, n))]


# Fields by their number, and what is optional or stands behind it by its tag.
_SIGNED_DATA = {0: "version", 1: "listed digest algorithms", 2: "content"}
_SIGNED_DATA |= {-0xA0: "certificates", -0xA1: "revocation lists", -0x31: "signer"}
_SIGNER = {0: "version", 1: "name", 2: "digest algorithm", -0xA0: "signed attributes"}
_SIGNER |= {-0x30: "signature algorithm", -0x04: "signature", -0xA1: "unsigned attributes"}


def region(raw: bytes, path: tuple[int, ...]) -> str:
    """Say in words where in a token or response a path leads."""
    levels = [{}, {}, _SIGNED_DATA, {}, _SIGNER]
    words = []
    for number, known in zip(path, levels if is_bare(raw) else [{0: "status"}, *levels], strict=False):
        raw = list(der.children(raw))[number]
        words.append(known.get(number) or known.get(-raw[0], ""))
        if words[-1] and words[-1] != "signer":
            break
    return ": ".join(filter(None, words)) or "token"


def _survivor(base: Base, verdict: TokenVerdict, changed: bytes) -> str:
    """Return where a mutation that was verified differs, and whether its verdict says so."""
    places = sorted({region(base.raw, path) for path in where(base.raw, changed)})
    kinds = {"certificates": "was not examined", "signer: unsigned attributes": "unsigned attributes"}
    noted = all(place in kinds and kinds[place] in "".join(verdict.notes) for place in places)
    note = "noted" if noted else "not noted"
    stated = ("gen_time", "accuracy_seconds", "serial", "policy", "imprint", "signer", "root_sha256")
    if any(getattr(verdict, one) != getattr(base.verdict, one) for one in stated):
        note = "STATES SOMETHING ELSE"
    return f"{' + '.join(places)}: {note}"


def measure(section: str, count: int, among: list[Base]) -> dict[str, Any]:
    """Return what became of a section's mutations, judged in processes of their own."""
    context = multiprocessing.get_context("fork")  # the forge's keys are made once, here
    with context.Pool(PROCESSES, maxtasksperchild=1) as pool:
        jobs = [(section, range(part, count, PROCESSES), among) for part in range(PROCESSES)]
        parts = pool.starmap(work, jobs, chunksize=1)
    slowest = max(part["slowest"] for part in parts)
    return {
        "mutations": count,
        "outcomes": _total(parts, "outcomes"),
        "failed_checks": _total(parts, "checks"),
        "changes": _total(parts, "changes"),
        "slowest": {"cpu_s": round(slowest[0], 4), "base": slowest[1], "number": slowest[2]},
        "memory_growth_mb": round(max(part["memory_mb"] for part in parts), 1),
        "raised": [one for part in parts for one in part["raised"]],
        "survived": dict(Counter(one for part in parts for one in part["survivors"]).most_common()),
    }


def belongs(base: Base, section: str) -> bool:
    """Whether a token is changed in a section."""
    is_loose = any("not examined" in note or "unsigned attributes" in note for note in base.verdict.notes)
    if section in {"tokens", "loose"}:
        return is_bare(base.raw) and is_loose == (section == "loose")
    return is_bare(base.raw) == (section == "elements")


def _total(parts: list[dict[str, Any]], name: str) -> dict[str, int]:
    return dict(sum((part[name] for part in parts), Counter()).most_common())


def stored() -> dict[str, Any]:
    """Return the file."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def main() -> None:
    """Mutate, judge, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for section, count in COUNTS.items():
        parser.add_argument(f"--{section}", type=int, default=count)
    parser.add_argument("--to", type=Path, default=FILE)
    options = vars(parser.parse_args())
    among = bases()
    if not any(base.at == PRESENT for base in among):
        print(MISSING, file=sys.stderr)
    found: dict[str, Any] = {
        "seed": SEED,
        "versions": {
            "python": sys.version.split()[0],
            "openssl": ssl.OPENSSL_VERSION,
            **{name: version(name) for name in ("cryptography", "asn1crypto")},
        },
        "bases": {
            "crafted": sum(b.at != PRESENT for b in among),
            "real": sum(b.at == PRESENT for b in among),
        },
        "sections": {},
    }
    for section in COUNTS:
        chosen = [base for base in among if belongs(base, section)]
        if not chosen:
            continue  # without the real tokens none is loose
        part = measure(section, options[section], chosen)
        found["sections"][section] = part
        print(f"{section}: {part['outcomes']}, slowest {part['slowest']}, {part['memory_growth_mb']} MB")
    options["to"].write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
