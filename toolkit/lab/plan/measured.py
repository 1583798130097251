"""Which measured runs durations are planned from: a project's list, and the registers that hold the runs."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from toolkit import errors, files
from toolkit.lab.training import memory, plan
from toolkit.registers.query import ask
from toolkit.registers.study import Study

FILE = "costs.toml"


@dataclass(frozen=True)
class Basis:
    """What durations are estimated from.

    Args:
        rate: measured; None where no measurement is here.
        recipe: name of the recipe that it was measured with.
        seconds_per_step: given by the reader.
        tokens_per_second: given by the reader.
    """

    rate: plan.Rate | None = None
    recipe: str = ""
    seconds_per_step: float | None = None
    tokens_per_second: float | None = None


@dataclass(frozen=True)
class Measurements:
    """What a project says of measured runs.

    Args:
        registration: whose runs are planned where none is named.
        recipe: name of the recipe that the runs were trained with.
        accelerator: memory of the GPU, in bytes.
        study: whose registers hold the runs.
        hardware: on what they ran.
        query: what gives each run's name, seconds and episodes.
    """

    registration: str
    recipe: str
    accelerator: int
    study: str
    hardware: str
    query: str

    def basis(self, study: Study | None) -> Basis:
        """Return what durations are estimated from."""
        runs = [self._measured_run(row) for row in ask(study, self.query).rows] if study else []
        rate = plan.measured_rate(runs, f"{len(runs)} measured runs, {self.hardware}") if runs else None
        return Basis(rate, self.recipe)

    def _measured_run(self, row: tuple[object, ...]) -> tuple[float, int]:
        try:
            _, seconds, episodes = row
            measured = float(str(seconds)), int(str(episodes))
        except ValueError:
            measured = (0.0, 0)
        if min(measured) <= 0:
            raise errors.DamagedError(
                "a measurement's query gives something else than measured runs",
                expected="the name of a run, its seconds and its episodes, both above zero",
                found=row,
                where=f"{FILE}, measured",
            )
        return measured


def read_measurements(cards: Path) -> Measurements | None:
    """Read what a project says of measured runs; None where it says nothing."""
    path = cards / FILE
    if not path.is_file():
        return None
    try:
        document = tomllib.loads(files.read_text(path))
        measured = document["measured"]
        return Measurements(
            registration=str(document["registration"]),
            recipe=str(document["recipe"]),
            accelerator=round(document["memory_gb"] * memory.GIGA),
            study=str(measured["study"]),
            hardware=str(measured["hardware"]),
            query=str(measured["query"]).strip(),
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise errors.DamagedError(
            "the list of measured runs cannot be read",
            expected="registration, recipe, memory_gb; [measured] with study, hardware, query",
            found=str(error),
            where=path,
        ) from None
