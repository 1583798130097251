"""The site's built scripts in Node: what they compute, without a browser."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from toolkit.prereg.token.verify import Material

ASSETS = CHECKOUT / "toolkit" / "site" / "assets"

# A script for a page runs in Node up to where it asks for the page; what it offers to tests is there by then.
_RUN = """
const fs = require("node:fs"), vm = require("node:vm");
for (const path of %s) {
  try { vm.runInThisContext(fs.readFileSync(path, "utf8"), path); }
  catch (error) { if (!/document|window/.test(String(error))) throw error; }
}
(async () => {
  const given = JSON.parse(fs.readFileSync(0, "utf8"));
  const answer = await (async (given) => { %s })(given);
  const plain = (_, value) => typeof value === "bigint" ? String(value) : value;
  process.stdout.write(JSON.stringify(answer, plain));
})().catch((error) => { console.error(error); process.exitCode = 1; });
"""


def in_node(body: str, given: Any, *scripts: Path) -> Any:
    """Run the body of an asynchronous function of `given` after some scripts, and return what it returns."""
    return run_node(
        given, "-e", _RUN % (json.dumps([str(script) for script in (ASSETS / "parquet.js", *scripts)]), body)
    )


def run_node(given: Any, *arguments: str) -> Any:
    """Run Node with a document on its standard input, and return the document that it prints.

    Without Node this fails on a build server and skips elsewhere.
    """
    node = shutil.which("node")
    if node is None and os.environ.get("CI"):
        pytest.fail("node is not installed: what the site's scripts compute was not checked")
    if node is None:
        pytest.skip("NODE IS MISSING: what the site's scripts compute was not checked")
    done = subprocess.run(
        [node, *arguments], input=json.dumps(given), capture_output=True, encoding="utf-8", check=False
    )
    assert (done.stderr[-2000:], done.returncode) == ("", 0)
    return json.loads(done.stdout)


_TOKENS = """
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const judge = ({ token, document, certificates, ...given }) => toolkitTokens.verifyToken(bytes(token), {
  ...given, document: document === null ? undefined : bytes(document), certificates: certificates.map(bytes),
});
const answers = [];
for (const one of given) answers.push(await judge(one));
return answers;
"""


def base(content: bytes) -> str:
    return base64.b64encode(content).decode()


def judged_in_node(tokens: Iterable[tuple[bytes, Material]]) -> list[Any]:
    """Return what the page says of tokens, with the material that the program has."""
    asked = []
    for token, given in tokens:
        algorithm, digest = given.digest or ("", b"")
        beside = (*given.roots, *given.untrusted, *((given.signer,) if given.signer else ()))
        one = {
            "token": base(token),
            "document": None if given.document is None else base(given.document),
            "digest": {"algorithm": algorithm.upper().replace("SHA", "SHA-"), "hex": digest.hex()},
            "roots": [sha256(der).hexdigest() for der in given.roots],
            "certificates": [base(der) for der in beside],
        }
        asked.append(one)
    answers: list[Any] = in_node(_TOKENS, asked, ASSETS / "tokens.js")
    return answers
