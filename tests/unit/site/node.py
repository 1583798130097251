"""The site's built scripts in Node: what they compute, without a browser."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT

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
