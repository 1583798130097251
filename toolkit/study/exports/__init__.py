"""What a study holds, in the formats of other projects: a module a format, and `formats` over them."""

EVERY_EVAL_EVER = "every-eval-ever"
HF_RESULTS = "hf-results"
IN_TOTO = "in-toto"
RO_CRATE = "ro-crate"
FORMATS: dict[str, tuple[str, ...]] = {
    EVERY_EVAL_EVER: ("runs", "episodes", "date"),
    HF_RESULTS: ("runs", "dataset"),
    IN_TOTO: ("rules",),
    RO_CRATE: (),
}
"""Each format, and what can be chosen of it: names of `formats.Wanted`."""
