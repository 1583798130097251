"""Commands to copy: what others wrote stays one word of them, whatever a shell would make of it."""

import shlex

# What a POSIX shell, bash's history among it, reads as its own between double quotes.
_ACTIVE = frozenset('"$`\\!')


def word(text: object) -> str:
    """Return a text as one word of a command."""
    return shlex.quote(str(text))


def sentence(text: object) -> str:
    """Return a text with blanks as one word of a command, in double quotes where they hold it."""
    written = str(text)
    return shlex.quote(written) if _ACTIVE & set(written) else f'"{written}"'
