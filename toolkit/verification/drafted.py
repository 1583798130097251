"""What rules have to be before they are frozen: a draft's, and those of an amendment or a deviation."""

from toolkit.decisions import evaluation
from toolkit.errors import UsageError
from toolkit.prereg.record import UNFILLED, Amendment, Deviation
from toolkit.prereg.registration import Registration
from toolkit.rooms import is_played_here, laboratory
from toolkit.rules import rulebook
from toolkit.verification.decidable import check_decidable


def check_rules(rules: str) -> None:
    """Check a draft's rules: each can pass and can miss, and is decided on the registered runs."""
    book = rulebook.load_rulebook(rules)
    if not book.rules:
        raise UsageError("there is no rule: nothing would be decided", where="rules.toml")
    unfilled = [line.strip() for line in rules.splitlines() if UNFILLED in line]
    if unfilled:
        raise UsageError("the template was not filled in", found=unfilled[0], where="rules.toml")
    evaluation.check_not_vacuous(book)
    if is_played_here(book):
        laboratory().expected(book)  # what is fixed twice agrees
    check_decidable(book)


def check_entry(registration: Registration, entry: Amendment | Deviation) -> None:
    """Check an amendment's rules with those before it, and that the rules a deviation names are there."""
    texts = [amendment.rules for amendment in registration.amendments]
    if not isinstance(entry, Amendment):
        book = rulebook.load_rulebook(registration.rules, texts)
        for name in entry.concerns:
            book.rule(name)
        return
    book = rulebook.load_rulebook(registration.rules, [*texts, entry.rules])
    changed = {*entry.replaces, *entry.restates, *entry.adds}
    resting = {rule.id for rule in book.rules.values() if changed & book.names_of(rule)}
    evaluation.check_not_vacuous(book, changed | resting)
    check_decidable(book, changed | resting)
