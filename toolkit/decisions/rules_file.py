"""What a file of rules, and one that amends them, may have: the keys of both, from the top down."""

from toolkit.decisions.endpoints import ENDPOINT, INTERVAL
from toolkit.decisions.keys import OPTIONAL, SPANS, Key, Listed, Named, Value, keys, optional
from toolkit.decisions.picture import PICTURE
from toolkit.decisions.plan import CELL, FIXED
from toolkit.decisions.probe_plan import PROBE
from toolkit.decisions.rules import AMENDMENT, RULE
from toolkit.decisions.sets import SET
from toolkit.decisions.significance import FAMILY, TEST
from toolkit.decisions.statistic import STATISTIC
from toolkit.decisions.terms import MISSING, SCORES, WORDS_OF
from toolkit.registers.columns import ROLES

LANGUAGE = 1
COMMON = ("interval_method", "interval_conventions")

EXCEPTION = keys(
    Key("run", Value.TEXT, "name of a run that was launched before the freeze"),
    Key("reason", Value.TEXT, "why it was"),
    SPANS,
)
SPAN = keys(
    Key("lines", Value.WHOLES, "numbers of the first and the last line, from 1"),
    Key("sha256", Value.SHA256, "SHA-256 of these lines, line ends included"),
)
_MEASURED = (
    Key("endpoints", Named(ENDPOINT), "what is measured", OPTIONAL),
    Key("statistics", Named(STATISTIC), "numbers made of endpoints", OPTIONAL),
    Key("intervals", Named(INTERVAL, COMMON), "intervals of endpoints and of statistics", OPTIONAL),
    Key("tests", Named(TEST), "exact tests that differences lie about zero", OPTIONAL),
    Key("families", Named(FAMILY), "tests that are adjusted for each other", OPTIONAL),
    Key("probe", PROBE, "the gradient probe: one in a registration and its amendments", OPTIONAL),
    Key("rules", Named(RULE), "what decides", OPTIONAL),
)
RULES = keys(
    Key("language", Value.WHOLE, "version of the rule language", choices=(LANGUAGE,)),
    Key("name", Value.TEXT, "name of the registration, and of its folder"),
    Key("title", Value.TEXT, "the study in one line"),
    Key("deciding_roles", Value.TEXTS, "roles of the runs that enter decisions, at least one", choices=ROLES),
    Key("exceptions", Listed(EXCEPTION), "runs that may precede the freeze", OPTIONAL),
    Key("words", WORDS_OF, "the study's own words, where it has other than the toolkit's", OPTIONAL),
    Key("scores", SCORES, "scores of episodes, where the study has scores", OPTIONAL),
    Key("missing", MISSING, "what becomes of episodes without an outcome", OPTIONAL),
    Key("attributes", Named(Value.TEXTS), "attributes of tasks, and the words of each", OPTIONAL),
    Key("matrix", Listed(CELL), "the runs: condition x arm x seed", OPTIONAL),
    Key("training", FIXED, "what `fixed` says of every run alike", OPTIONAL),
    Key("recipe", Value.TABLE, "settings of a language model's training, as of `toolkit train`", OPTIONAL),
    Key("spans", Named(SPAN), "lines of a document frozen elsewhere that the rules restate", OPTIONAL),
    Key("sets", Named(SET), "evaluations that belong together", OPTIONAL),
    Key(COMMON[0], optional(INTERVAL), "what every interval says alike", OPTIONAL),
    Key(COMMON[1], optional(INTERVAL), "the same, where a restatement added it", OPTIONAL),
    Key("pictures", Named(PICTURE), "predictions that are drawn beside what is seen", OPTIONAL),
    *_MEASURED,
)
AMENDED = keys(Key("amendment", AMENDMENT, "what it is, and which rules it changes"), *_MEASURED)
