"""A plant within this process, for tests."""

from __future__ import annotations

import itertools
import os

from ._ring import Ring
from ._tapeline import ArgumentError, PlantSource

_numbers = itertools.count(1)


class Plant:
    """A running plant: ``plant.ring``, ``plant.hub`` (its address), ``plant.journal_folder``."""

    #: The service's name at the hub.
    service = "TAPELINE"

    def __init__(self, source: PlantSource, name: str, journal: str | None) -> None:
        self._source = source
        self.ring = Ring(name)
        self.hub = source.hub
        self.journal_folder = journal

    def close(self) -> None:
        """Ends the exchange and the plant; its clients are told."""
        self._source.end()

    def __enter__(self) -> "Plant":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def plant(
    feed: str = "simulated",
    *,
    rate: int = 10_000,
    symbols: int = 500,
    seed: int = 1,
    messages: int | None = None,
    name: str | None = None,
    hub: str | None = "127.0.0.1:0",
    journal: str | os.PathLike[str] | None = None,
) -> Plant:
    """Starts a plant in this process, with a simulated exchange of ``rate`` messages a second.

    The same ``seed`` gives the same messages. After ``messages`` messages the session ends; without it, never.
    ``name``: of the ring; one of its own if not given. ``hub``: address of its hub, ``None`` for none.
    """
    if feed != "simulated":
        raise ArgumentError(f"there is no feed {feed!r}\nhint: \"simulated\" is the only one; `tapeline plant` runs real feeds")
    name = name or f"python-{os.getpid()}-{next(_numbers)}"
    folder = None if journal is None else os.fspath(journal)
    return Plant(PlantSource(name, rate, symbols, seed, messages, hub, folder), name, folder)
