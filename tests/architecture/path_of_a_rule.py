"""Follow a rule through `toolkit decide`: files entered, and returns of its verdict.

Run: python -m tests.architecture.path_of_a_rule [RULE STUDY]
"""

import contextlib
import io
import sys
from pathlib import Path
from types import FrameType

TOOLKIT = f"{Path(__file__).parents[2] / 'toolkit'}/"
VERDICTS = ("met", "miss", "pass", "fail")


def follow(rule: str = "H2a", study: str = "published") -> tuple[list[str], list[str]]:
    """Return the files whose functions a decision enters, and the functions that hand its verdict on."""
    from toolkit.cli import main

    files, returns, begun = set(), [], False

    def profile(frame: FrameType, event: str, value: object) -> None:
        nonlocal begun
        code = frame.f_code
        if not code.co_filename.startswith(TOOLKIT):
            return
        file = code.co_filename.removeprefix(TOOLKIT)
        begun = begun or (file, code.co_name) == ("cli/decide.py", "decide")
        if begun and event == "call" and code.co_name != "<module>":
            files.add(file)
        first = value[0] if isinstance(value, list | tuple) and value else value
        if begun and event == "return" and (type(first).__name__ == "Decision" or value in VERDICTS):
            returns.append(f"{file}:{code.co_qualname}")

    sys.argv = ["toolkit", "decide", rule, "--study", study]
    sys.setprofile(profile)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main.main()
    finally:
        sys.setprofile(None)
    return sorted(files), returns


if __name__ == "__main__":
    entered, handed_on = follow(*sys.argv[1:3])
    print(f"{len(entered)} files", *entered, f"{len(handed_on)} returns", *handed_on, sep="\n")
