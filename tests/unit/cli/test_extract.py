"""`toolkit sql` prints what a reader can use, and writes the rest; `toolkit export` writes all or nothing."""

import subprocess
import sys

from tests.conftest import CHECKOUT


def test_a_query_that_does_not_stop_ends_the_command_with_one_message() -> None:
    query = "SELECT count(*) FROM runs WHERE list_sum(range(150000000)) < 0"
    command = [sys.executable, "-m", "toolkit", "sql", query, "--study", "published", "--timeout", "0.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the query takes too long\n")
    assert len(done.stderr.splitlines()) == 3
