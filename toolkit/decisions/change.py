"""What amendments do to rules: they replace some, restate some and add some, each rule in one way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.decisions.section import Section, identifier
from toolkit.errors import RuleError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.decisions.rules import Rule

RELATIONS = ("replaces", "restates", "adds")


@dataclass(frozen=True)
class Change:
    """What amendments did to a rule.

    Args:
        amendment: id of the last one that names it.
        relation: what that one does: `replaces`; `restates` where the rule is unchanged and reads what the
            amendment changed; `adds` where there was no such rule.
        first: the rule as it was first written: as frozen, or as added.
        added_by: id of the amendment that added it; empty where it was frozen.
    """

    amendment: str
    relation: str
    first: Rule
    added_by: str = ""

    @property
    def frozen(self) -> Rule | None:
        """The rule as frozen; None where an amendment added it."""
        return None if self.added_by else self.first


def change_rules(
    rules: dict[str, Rule],
    changes: dict[str, Change],
    head: Mapping[str, Any],
    new: Mapping[str, Rule],
    where: str,
) -> None:
    """Apply one amendment to the rules.

    Args:
        rules: the rules before it, by id; changed in place.
        changes: what the amendments before it did, by rule; changed in place.
        head: its table `[amendment]`.
        new: its rules.
        where: its name, for messages.

    Raises:
        RuleError: its head is malformed, or names other rules than it has, or says of a rule what is not so.
    """
    section = Section(head, where)
    label = identifier(section.text("id"), where)
    for key in ("dated", "title", "seen", "reason"):
        section.text(key)
    section.texts("changes")
    section.text("note", "")
    named = [(rule, relation) for relation in RELATIONS for rule in section.texts(relation, ())]
    section.done()
    relations = dict(named)
    if len(relations) != len(named) or set(new) != set(relations):
        raise RuleError(
            "an amendment's rules are not those that it replaces, restates or adds, each named once",
            expected=", ".join(rule for rule, _ in named) or "no rule",
            found=", ".join(new) or "no rule",
            where=where,
        )
    for name, rule in new.items():
        _check_relation(relations[name], rule, rules.get(name), where)
        before = changes.get(name)
        if relations[name] == "adds":
            changes[name] = Change(label, "adds", rule, label)
        elif before is None:
            changes[name] = Change(label, relations[name], rules[name])
        else:
            changes[name] = Change(label, relations[name], before.first, before.added_by)
        rules[name] = rule


def _check_relation(relation: str, rule: Rule, before: Rule | None, where: str) -> None:
    """Check that a rule is to the one before it what the amendment says."""
    if relation == "adds":
        if before is not None:
            raise RuleError(
                f"an amendment adds {rule.id}, which there is already",
                expected="a new name, or `replaces`",
                where=where,
            )
        if rule.superseded:
            raise RuleError(f"an amendment adds {rule.id} and says that it is superseded", where=where)
        return
    if before is None:
        raise RuleError(
            f"an amendment {relation} {rule.id}, which there is not yet",
            expected="a rule that is frozen or was added by an earlier amendment, or `adds`",
            where=where,
        )
    if relation == "restates" and not rule.says_the_same(before):
        raise RuleError(
            f"an amendment restates {rule.id} and changes its text or one of its numbers",
            expected="the same text and numbers, or `replaces`",
            where=where,
        )
