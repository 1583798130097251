"""What a study holds, in the formats of other projects: a module a format, and `formats` over them."""

EVERY_EVAL_EVER = "every-eval-ever"
IN_TOTO = "in-toto"
FORMATS: dict[str, tuple[str, ...]] = {EVERY_EVAL_EVER: ("runs", "episodes", "date"), IN_TOTO: ("rules",)}
"""Each format, and what can be chosen of it: names of `formats.Export`."""
