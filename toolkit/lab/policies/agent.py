"""An agent that decides by a policy: it does what the text asks, errand by errand, and errs as it chooses."""

from collections.abc import Iterable, Sequence
from typing import Any

from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.episodes.brief import read_prompt
from toolkit.lab.episodes.desk import MakeCall
from toolkit.lab.episodes.workflow import Abandoned, Knowledge, Steps, errand_steps, look_after
from toolkit.lab.policies.loglinear import ACTIONS, REPEATS, Action, Choice, Kind, Policy, Situation
from toolkit.lab.tasks.task import BUDGET_BASE, BUDGET_PER_WRITE, Call
from toolkit.seeds import decision_seed, surface_seed, units

Answer = dict[str, Any]

PLAIN, INDIRECT, AMBIGUOUS = range(3)
OVER = frozenset({"budget_exceeded", "episode_over"})
ERRORS: dict[str, Kind] = {
    "temporarily_unavailable": "transient",
    "rate_limited": "rate_limit",
    "outage": "outage",
    "timeout": "timeout",
}
SHORT_WAIT = 1
_WHOLE = {name: len(tool.fields) for name, tool in TOOLS.items()}


class EndedError(Exception):
    """The episode is over: the desk takes no more calls, or the agent chose to end it."""


class Rollout:
    """One episode of an agent, and what its policy chose in it."""

    def __init__(self, policy: Policy, seed: int, *, shared: bool = False) -> None:
        self._policy = policy
        self._surface = policy.layout.surface_tokens
        self._unit = units(decision_seed(seed) if shared else seed).__next__
        self._token_unit = units(surface_seed(seed)).__next__ if shared else self._unit
        self._calls = self._revision = 0
        self._template = ""
        self._orders: list[Answer] = []
        self._customers: list[Answer] = []
        self._order: Answer = {}
        self.decisions: list[tuple[Choice, int]] = []
        self.tokens: list[tuple[Choice, int]] = []

    def __call__(self, prompt: str, call: MakeCall) -> None:
        """Play the episode: an agent as `toolkit.lab.episodes.episode.play` wants it."""
        brief = read_prompt(prompt)
        known = Knowledge(brief)
        self._call = call
        self._late = BUDGET_BASE + BUDGET_PER_WRITE * len(brief.errands)
        try:
            for errand in brief.errands:
                self._errand, self._template, self._found = errand, errand.template, False
                self._follow(errand_steps(errand, known))
        except EndedError:
            return
        self._make(Call("finish", {}))

    def _follow(self, steps: Steps) -> None:
        try:
            wanted = next(steps)
            while True:
                wanted = steps.send(self._settle(wanted))
        except (StopIteration, Abandoned):
            return

    def _settle(self, wanted: Call) -> Answer:
        is_write = self._is_write(wanted.tool)
        sent = self._chosen(wanted, is_write=is_write)
        if sent is None:
            return {"revision": self._revision}
        answer, repeat = self._make(sent), 0
        while (kind := self._kind(sent, answer, is_write=is_write)) is not None:
            action = self._decide(kind, PLAIN, repeat, is_write=is_write)
            if action == "go" and kind != "refused":
                self._revision += kind == "timeout"
                break
            if action == "reread" and kind == "timeout" and self._was_applied(sent):
                break
            # What was refused may have been the wrong call: the right one takes its place.
            sent = wanted if kind == "refused" else sent
            answer = self._again(action, sent, answer)
            repeat = min(repeat + 1, REPEATS)
        return self._noted(sent, answer)

    def _chosen(self, wanted: Call, *, is_write: bool) -> Call | None:
        """Return the call that is made: the right one, a wrong one, or None for a write that is forgotten."""
        action = self._decide("write" if is_write else "read", self._level(wanted), 0, is_write=is_write)
        if action != "slip":
            return wanted
        wrong = self._slipped(wanted)
        if wrong is None and not is_write:
            raise Abandoned
        return wrong

    def _again(self, action: Action, sent: Call, answer: Answer) -> Answer:
        if action == "paginate":
            return self._continued(sent, answer)
        if action == "wait":
            self._make(Call("wait", {"seconds": SHORT_WAIT}))
        elif action == "wait_as_told":
            self._make(Call("wait", {"seconds": answer["error"]["retry_after"]}))
        return self._make(sent)

    def _decide(self, kind: Kind, level: int, repeat: int, *, is_write: bool) -> Action:
        situation = Situation(kind, self._template, level, repeat, is_write, self._calls >= self._late)
        choice = self._policy.action(situation)
        at = choice.pick(self._unit())
        self.decisions.append((choice, at))
        action = ACTIONS[kind][at]
        if action == "skip":
            raise Abandoned
        if action == "finish":
            self._make(Call("finish", {}))
            raise EndedError
        return action

    def _is_write(self, tool: str) -> bool:
        return TOOLS[tool].kind == "write"

    def _surface_of(self, tool: str) -> str:
        return tool

    def _slipped(self, wanted: Call) -> Call | None:
        return slip(wanted, self._orders, self._customers, self._order)

    def _make(self, call: Call) -> Answer:
        if self._surface:
            choice = self._policy.token(self._surface_of(call.tool))
            self.tokens.append((choice, choice.pick(self._token_unit())))
        self._calls += 1
        answer = self._call(call.tool, call.arguments)
        error = answer.get("error")
        if error is not None and error["code"] in OVER:
            raise EndedError
        return answer

    def _level(self, wanted: Call) -> int:
        """Say how directly the text names what a call needs: from the errand's words alone."""
        errand, level = self._errand, PLAIN
        if not self._found and "order_id" in wanted.arguments and errand.order is not None:
            self._found = True
            if errand.order.order_id is None:
                level = INDIRECT if errand.order.product is None else AMBIGUOUS
        if wanted.tool == "issue_refund" and errand.form == "unit":
            return AMBIGUOUS
        return level

    def _kind(self, wanted: Call, answer: Answer, *, is_write: bool) -> Kind | None:
        """Say what is wrong with an answer; None for nothing that can be seen."""
        error = answer.get("error")
        if error is not None:
            return ERRORS.get(error["code"], "refused")
        if is_write or wanted.tool == "wait":
            return None
        if answer["revision"] < self._revision:
            return "stale"
        if answer.get("has_more"):
            return "truncated"
        shown = answer[TOOLS[wanted.tool].shows or ""]
        record = shown if isinstance(shown, dict) else (shown[0] if shown else None)
        return "dropout" if record is not None and len(record) < _WHOLE[wanted.tool] else None

    def _noted(self, wanted: Call, answer: Answer) -> Answer:
        """Remember what an answer shows, and return it; a write of unknown fate is taken for applied."""
        if "error" in answer:
            return {"revision": self._revision}
        self._revision = max(self._revision, answer["revision"])
        if wanted.tool == "list_orders":
            self._orders = answer["orders"]
        elif wanted.tool == "get_order":
            self._order = answer["order"]
        elif wanted.tool == "search_customers":
            self._customers = answer["customers"]
        return answer

    def _continued(self, wanted: Call, answer: Answer) -> Answer:
        """Fetch the rest of a cut list and put the parts together; an error takes the place of both."""
        name = TOOLS[wanted.tool].shows or ""
        rest = self._make(Call(wanted.tool, {**wanted.arguments, "offset": answer["next_offset"]}))
        if "error" in rest or rest["revision"] < self._revision:
            return rest
        return {**rest, name: answer[name] + rest[name]}

    def _was_applied(self, write: Call) -> bool:
        """Look whether a write of unknown fate was applied: then the revision has moved on."""
        answer = self._make(look_after(write))
        if "error" in answer or answer["revision"] <= self._revision:
            return False
        self._revision = answer["revision"]
        return True


DECIMAL_POINT = 10


def slip(call: Call, orders: Sequence[Answer], customers: Sequence[Answer], order: Answer) -> Call | None:
    """Return the wrong call in place of the right one; None where it can only be forgotten."""
    arguments = call.arguments
    if call.tool == "issue_refund" and order.get("order_id") == arguments["order_id"]:
        amount = _other_amount(arguments["amount_cents"], order)
        if amount is not None:
            return Call(call.tool, {**arguments, "amount_cents": amount})
    other = _other("order_id", arguments, orders) or _other("customer_id", arguments, customers)
    if other:
        return Call(call.tool, {**arguments, **other})
    if call.tool == "issue_refund" and arguments["amount_cents"] >= DECIMAL_POINT:
        return Call(call.tool, {**arguments, "amount_cents": arguments["amount_cents"] // DECIMAL_POINT})
    return None


def _other_amount(amount: int, order: Answer) -> int | None:
    """Return a line's price for a unit's, or a unit's for a line's; None where there is no such confusion."""
    for line in order.get("lines", ()):
        unit = line["unit_price_cents"]
        whole = unit * line["quantity"]
        if unit != whole and amount in (unit, whole):
            return int(whole if amount == unit else unit)
    return None


def _other(name: str, arguments: Answer, listed: Sequence[Answer]) -> Answer | None:
    """Return another record of a list in place of the one named: of the same status, if there is one."""
    named = arguments.get(name)
    others = [record for record in listed if record.get(name) not in (None, named)]
    if not named or not others:
        return None
    status = next((record.get("status") for record in listed if record.get(name) == named), None)
    alike = [record for record in others if record.get("status") == status]
    return {name: (alike or others)[0][name]}


def score(policy: Policy, rollout: Rollout) -> list[float]:
    """Return a rollout's score, one number a parameter."""
    return weighted_scores(policy, [(rollout, 1.0)])


def weighted_scores(policy: Policy, weighted: Iterable[tuple[Rollout, float]]) -> list[float]:
    """Return the weighted sum of rollouts' scores, added up in a fixed order."""
    weights: dict[Choice, list[float]] = {}
    for rollout, weight in weighted:
        for choices in (rollout.decisions, rollout.tokens):
            for choice, at in choices:
                chosen = weights.get(choice)
                if chosen is None:
                    chosen = weights[choice] = [0.0] * len(choice.probabilities)
                chosen[at] += weight
    total = [0.0] * policy.layout.size
    for choice, chosen in weights.items():
        whole = 0.0
        for weight in chosen:
            whole += weight
        for weight, probability, places in zip(chosen, choice.probabilities, choice.positions, strict=True):
            part = weight - whole * probability
            for position in places:
                total[position] += part
    return total
