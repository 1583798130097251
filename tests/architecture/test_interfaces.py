"""What the project uses of vLLM, TRL, PEFT, fla and Ray: the table says which test meets the real one.

Uses are read from the code: what is imported, attributes of what is imported, what a subclass takes from its
base, and attributes of the objects that `HELD` names.
"""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from tests.conftest import CHECKOUT

PACKAGES = {"vllm", "trl", "peft", "fla", "ray"}
TABLE = CHECKOUT / "examples" / "beyond-one-machine" / "interfaces.toml"
NOT_EXERCISED = "not exercised: "
TRAINER = "trl.GRPOTrainer"
GENERATION = "trl.generation.vllm_generation.VLLMGeneration"
# Objects of the packages that come from no import of the file: how they are called, everywhere and in a file.
HELD = {
    "llm": "vllm.LLM",
    "self._llm": "vllm.LLM",
    "tuner": "peft.LoraModel",
    "at[token]": "vllm.Logprob",
    "trainer": TRAINER,
    "self.trainer": TRAINER,
    "session.trainer": TRAINER,
    "self.session.trainer": TRAINER,
    **{f"{name}.vllm_generation": GENERATION for name in ("trainer", "self.trainer")},
    "GroupTrainer": TRAINER,
}
HELD_IN = {
    "lab/policies/language_model/vllm_engine.py": {
        "answer": "vllm.RequestOutput",
        "output": "vllm.CompletionOutput",
        "said": "vllm.CompletionOutput",
    },
    "lab/training/language_model/session.py": {"layer": "peft.BaseTunerLayer", "model": "peft.PeftModel"},
    "lab/probe/lora.py": {"layer": "peft.LoraLayer", "model": "peft.PeftModel"},
    "lab/probing/run.py": {"generation": GENERATION},
    "lab/executors/on_ray.py": {
        "self._task": "ray.RemoteFunction",
        "self._worker": "ray.ActorClass",
        "self._workers[place]": "ray.ActorHandle",
    },
}
OWN = {"told", "chat", "sampling", "record", "conversations"}
"""What `GroupTrainer` adds to its base."""
TORCH = {"get_input_embeddings", "named_parameters", "named_modules", "modules", "parameters", "train"}
"""What any model of torch or transformers has."""
# The test has to ask for the package: where that is missing or has a stand-in, nothing would be shown.
ASKED = {
    "vllm": ("on_a_processor",),
    "ray": ("require_ray()",),
    "trl": ("require_trainer()", "on_a_processor"),
    "peft": ("require_stack()", "require_trainer()", "on_a_processor"),
    "fla": ("require_fla()",),
}


@cache
def trees() -> dict[str, ast.Module]:
    """Return the code by its place in the package, as far as it names a package or an object of one."""
    root = CHECKOUT / "toolkit"
    texts = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    words = re.compile(rf"\b({'|'.join(sorted(PACKAGES))}|llm|_llm|tuner|trainer|get_base_model)\b")
    return {path: ast.parse(text) for path, text in texts.items() if words.search(text)}


def imports(tree: ast.Module) -> dict[str, str]:
    """Return what a file imports of the packages, by the name that it has there."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PACKAGES:
            found |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}
        if isinstance(node, ast.Import):
            mine = [name for name in node.names if name.name.partition(".")[0] in PACKAGES]
            found |= {name.asname or name.name: name.name for name in mine}
    return found


def imported_by_name(tree: ast.Module) -> Iterator[str]:
    """Yield what of the packages a file imports by a constant: text, or put together from such constants."""
    constants: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            text = ast.unparse(node.value).removeprefix("f").strip("'\"")
            for name, value in constants.items():
                text = text.replace(f"{{{name}}}", value)
            constants[ast.unparse(node.targets[0])] = text
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module":
            name = constants.get(ast.unparse(node.args[0]), "")
            yield from [name] if name.partition(".")[0] in PACKAGES else []


def chain(node: ast.expr, held: dict[str, str]) -> str | None:
    """Return what an expression is of the packages, as `vllm.LLM.generate`."""
    if (known := held.get(ast.unparse(node))) is not None:
        return known
    if not isinstance(node, ast.Attribute) or (base := chain(node.value, held)) is None:
        return None
    mine = node.attr in {TRAINER: OWN, "peft.PeftModel": TORCH}.get(base, ())
    # What a trainer's parts have is those packages' own.
    return None if mine or base.startswith(f"{TRAINER}.") else f"{base}.{node.attr}"


def inherited(tree: ast.Module, held: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what subclasses take from a base of the packages or write for it, and its interface."""
    for node in ast.walk(tree):
        for base in (held.get(ast.unparse(b)) for b in getattr(node, "bases", ())):
            if base is None:
                continue
            mine = {item.name for item in ast.walk(node) if isinstance(item, ast.FunctionDef)}
            names: dict[str, set[type]] = defaultdict(set)
            for at in ast.walk(node):
                if isinstance(at, ast.Attribute) and ast.unparse(at.value) in {"self", "super()"}:
                    names[at.attr if ast.unparse(at.value) == "self" else f"+{at.attr}"].add(type(at.ctx))
            for name, ways in names.items():
                if name.startswith("+"):
                    yield f"super().{name[1:]}", f"{base}.{name[1:]}"
                elif name not in mine and len(ways) == 1:
                    yield f"self.{name}", f"{base}.{name}"


def uses(path: str, tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield every use in a file, and whether it is a call with arguments by name."""
    mine = imports(tree)
    held = {**HELD, **HELD_IN.get(path, {}), **mine}
    inside = dict(inherited(tree, held))
    held |= inside
    for name in (*mine.values(), *inside.values(), *imported_by_name(tree)):
        yield name, False
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := chain(node, held)) is not None:
            yield name, False
        if isinstance(node, ast.Call):
            # With `partial` a class is given some arguments before it is called.
            function = node.args[0] if ast.unparse(node.func) == "partial" else node.func
            if node.keywords and (name := chain(function, held)) is not None:
                yield name, True


@cache
def used() -> list[str]:
    """Return every interface that the code uses."""
    found = {use for path, tree in trees().items() for use in uses(path, tree)}
    names = {name for name, _ in found} - {"peft.PeftModel"}  # what it is called with is its base's
    links = {name for name in names if any(other.startswith(f"{name}.") for other in names)}
    return sorted(name for name in names if name not in links or (name, True) in found)


def table() -> dict[str, dict[str, object]]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def test_the_table_lists_what_is_used_and_nothing_else() -> None:
    listed = set(table()["interfaces"])
    assert {"missing": sorted(set(used()) - listed), "unused": sorted(listed - set(used()))} == {
        "missing": [],
        "unused": [],
    }


@pytest.mark.parametrize(("interface", "shown_by"), sorted(table()["interfaces"].items()))
def test_a_test_that_is_named_is_there_and_asks_for_the_package(interface: str, shown_by: str) -> None:
    if shown_by.startswith(NOT_EXERCISED):
        assert len(shown_by) > len(NOT_EXERCISED) + 10, "it says no reason"
        return
    path, _, name = shown_by.partition("::")
    tree = ast.parse((CHECKOUT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    above = [folder / "conftest.py" for folder in (CHECKOUT / path).relative_to(CHECKOUT).parents[:-1]]
    files = [CHECKOUT / path, *(CHECKOUT / file for file in above)]
    texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    assert any(word in text for text in texts for word in ASKED[interface.partition(".")[0]])


def test_what_is_known_not_to_be_exercised_has_a_reason() -> None:
    assert all(str(reason).strip() for reason in table()["beyond"].values())
