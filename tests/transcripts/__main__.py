"""`python -m tests.transcripts --update [NAME…]`: write into transcripts what their commands print now."""

import os
import subprocess
import sys

from tests.transcripts import test_transcripts

if __name__ == "__main__":
    names = [word for word in sys.argv[1:] if word != "--update"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        test_transcripts.__file__,
        "-q",
        "-n0",
        "-k",
        " or ".join(names),
    ]
    update = {test_transcripts.UPDATE: "1"} if "--update" in sys.argv else {}
    sys.exit(subprocess.run(command, env=os.environ | update, check=False).returncode)
