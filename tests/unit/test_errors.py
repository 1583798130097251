"""Errors carry both sides, the place and the way out."""

from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError, VerificationError


def test_every_class_has_its_exit_code() -> None:
    codes = {c: c.exit_code for c in (VerificationError, UsageError, IncompleteError, DamagedError)}
    assert list(codes.values()) == [1, 2, 3, 4]


def test_a_message_lists_what_is_known_and_nothing_else() -> None:
    error = ToolkitError("it broke", expected=1, found=0, where="here")
    assert str(error) == "it broke\n  where: here\n  expected: 1\n  found: 0"
