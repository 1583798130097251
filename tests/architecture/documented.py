"""What is known of documented commands: where they stand, and what running one takes."""

import re

DOCUMENTS = (
    "README.md",
    "GUIDE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "cards/bfcl.md",
    "cards/coupled.md",
    "cards/embedded.md",
    "cards/map.md",
    "cards/published.md",
    "cards/small-lm.md",
    "cards/task-pools.md",
    "cards/tiny-lm.md",
    "examples/beyond-one-machine/README.md",
    "examples/beyond-one-machine/qwen3.5-2b.md",
    "toolkit/estimators/README.md",
    "toolkit/prereg/README.md",
    "toolkit/prereg/token/README.md",
)
EXPECTED_CODES = {
    "toolkit verify-prereg": 3,
    "toolkit verify-prereg paired-rollouts": 3,
    "toolkit decide --all --fail-on-miss": 1,
    "toolkit decide --all --require public": 1,
    "toolkit freeze my-study": 3,  # there is no network in a test
    "toolkit amend my-study A1.toml": 3,  # a draft has no amendments
    "toolkit study status qwen3.5-2b --folder shared": 3,  # a draft, too
    "toolkit decide --all --study qwen3.5-2b": 2,  # so there is no such study
}
# What they print is read by programs, or filled in: JSON, CSV, TOML.
PRINTS_A_FILE = re.compile(r" --(json|csv|format|template)\b| noise propose |toolkit (schema|completion) \w")
# They take longer than a test of words is worth, or say another seed or time whenever they run.
RUN_ONCE = (
    "toolkit amend",
    "toolkit deviate",
    "toolkit evaluate",
    "toolkit freeze",
    "toolkit pairing inspect registers",
    "toolkit power",
    "toolkit registers audit",
    "toolkit registers diff",
    "toolkit registers verify",
    "toolkit world check",
)
STUDIES = ("published", "embedded", "coupled", "map", "bfcl", "small-lm", "task-pools", "tiny-lm")
SILENT = ("toolkit backoffice mcp",)  # its stdout belongs to the client, and a test has none
# They play a whole matrix, train on a GPU, write where one stands, or wait for an interrupt; their own tests
# play small ones. Here it is only checked that they would be understood.
NEVER_RUN = (
    "toolkit study run bfcl",
    "toolkit study run coupled",
    "toolkit study run embedded",
    "toolkit study run map",
    "toolkit study run qwen3.5-2b",
    "toolkit study run small-lm",
    "toolkit study run tiny-lm",
    "toolkit study run my-study",
    "toolkit probe run embedded",
    "toolkit probe advise my-rollouts",  # somebody's own, which a test does not have
    "toolkit registers pull some-group/their-study --into",
    "toolkit noise propose -- npx",  # a server that a test does not have
    "toolkit noise propose --json -- npx",
    "toolkit adopt published",  # the authors' repository is not part of the project
    "toolkit new-study",
    "toolkit site serve",
    "toolkit export",
    "toolkit verify statements/",  # as an export leaves them
    "toolkit verify token.tsr",
    "toolkit evaluate --model small",
    "toolkit evaluate --model Qwen",  # of a model whose weights, or whose server, a test does not have
    # The whole site is built and checked without options; what these do is tried on a small one.
    "toolkit site build --",
    "toolkit site check --",
    "toolkit reproduce --",
    "toolkit train --recipe qwen3.5-2b --study",
    "toolkit train --study",
    "toolkit train --recipe small --cpu --try",
)
# They read every row of a study, or write every page.
LONG = (
    "toolkit pools build",
    "toolkit pools list --json",
    "toolkit pools verify",
    "toolkit power H2a --s",
    "toolkit probe advise --study",
    "toolkit probe drift",
    "toolkit probe report --study embedded --trajectory base --check",
    "toolkit registers audit --study embedded --sample 16",
    "toolkit registers push embedded",
    "toolkit registers verify --study OWNER/embedded",
    "toolkit reproduce",
    "toolkit site build",
    "toolkit verify --depth files",
    "toolkit verify embedded --replay",
    "toolkit site check",
)
