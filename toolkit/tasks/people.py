"""The people of a world: the customer who asks, a namesake in another city, and strangers."""

from __future__ import annotations

from typing import NamedTuple

from toolkit.backoffice.records import Customer
from toolkit.seeds import Stream
from toolkit.tasks.vocabulary import GIVEN_NAMES, MAIL_DOMAINS, PLACES, SURNAMES

# A range of customer numbers for each pool: identifiers of two pools never meet.
FIRST_NUMBER = {
    "train": 100_000,
    "validation": 200_000,
    "test": 300_000,
    "diagnostic": 400_000,
    "diagnostic_128": 500_000,
}
PER_WORLD = 5


class People(NamedTuple):
    """The people of a world.

    Args:
        customer: who asks.
        others: everybody else.
    """

    customer: Customer
    others: tuple[Customer, ...]


def make_people(stream: Stream, pool: str, candidate: int) -> People:
    """Return the people of a candidate's world."""
    first = FIRST_NUMBER[pool] + candidate * PER_WORLD
    cities = stream.sample([city for city, _, _ in PLACES], PER_WORLD)
    given = stream.sample(GIVEN_NAMES, PER_WORLD - 1)
    surnames = stream.sample(SURNAMES[pool], PER_WORLD - 1)
    given, surnames = [given[0], *given], [surnames[0], *surnames]  # the second is the first's namesake
    numbers = stream.shuffled(range(first, first + PER_WORLD))
    customer, *others = [
        Customer(
            f"C-{number}",
            f"{name} {surname}",
            f"{name}.{surname}{number % 1000}@{stream.choice(MAIL_DOMAINS)}".lower(),
            city,
        )
        for number, name, surname, city in zip(numbers, given, surnames, cities, strict=True)
    ]
    return People(customer, tuple(others))
