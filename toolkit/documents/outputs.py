"""Which document each command prints with `--json`."""

from toolkit.documents import decisions, errors, verification

ERROR = "error"
OUTPUTS: dict[str, object] = {
    "decide": list[decisions.DecisionDocument],
    "explain": list[decisions.ExplanationDocument] | decisions.LanguageDocument,
    "verify-prereg": list[verification.VerificationDocument],
    "verify-token": verification.TokenVerdictDocument,
    "schema": list[str] | dict[str, object],
    ERROR: errors.ErrorDocument,
}
"""Command → type of its document; what a command prints that fails is an `error`."""
