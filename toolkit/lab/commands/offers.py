"""What a shell offers on Tab for the laboratory's options."""

from collections.abc import Iterable

from toolkit.cli.offers import offer


def _regimes(_home: object, _ctx: object) -> Iterable[tuple[str, str]]:
    from toolkit.noise.regimes import REGIMES

    return ((regime.name, regime.about) for regime in REGIMES.values())


def _recipes(_home: object, _ctx: object) -> Iterable[tuple[str, str]]:
    from toolkit.lab.training.recipe import shipped

    return ((name, "") for name in shipped())


regimes = offer(_regimes, paths=False)
recipes = offer(_recipes, paths=True)
