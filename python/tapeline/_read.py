"""Captures of feeds."""

from __future__ import annotations

import datetime
import itertools
import os
import sys
import time
import warnings
import zoneinfo
from typing import Sequence

from ._batches import Batches, names
from ._tapeline import ArgumentError, Batch, PlantSource, RingSource

_numbers = itertools.count(1)

# By the end of the name, without .gz or .zst.
_PROTOCOLS = {".itch": "itch50-moldudp64", ".pcap": "itch50-moldudp64", ".pcapng": "itch50-moldudp64", ".dbn": "dbn"}


class _Reading:
    """A plant of its own for a file, and a position on its ring."""

    def __init__(self, plant: PlantSource, ring: RingSource, progress: bool) -> None:
        self._plant, self._ring = plant, ring
        self._rows, self._began, self._told = 0, time.monotonic(), 0.0
        self._progress = progress

    def take(self, timeout: float) -> Batch | None | tuple[()]:
        taken = self._ring.take(timeout)
        for text in self._plant.warnings():
            warnings.warn(text, stacklevel=4)
        if isinstance(taken, Batch):
            self._rows += len(taken)
        if self._progress:
            self._tell(isinstance(taken, tuple))
        if isinstance(taken, tuple):
            # Says what ended the file early.
            self._plant.end()
        return taken

    def _tell(self, is_over: bool) -> None:
        took = time.monotonic() - self._began
        if is_over or took - self._told >= 0.5:
            self._told = took
            end = "\n" if is_over else ""
            print(f"\r{self._rows:,} rows in {took:.1f} s", end=end, file=sys.stderr, flush=True)

    def close(self) -> None:
        self._ring.close()
        self._plant.end()


def read(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    protocol: str | None = None,
    date: datetime.date | None = None,
    orders: bool = False,
    max_rows: int = 65_536,
    progress: bool | None = None,
) -> Batches:
    """The ticks of a capture: what a plant publishes of it, such as best bids and asks, trades and statuses.

    ``path``: ``.itch``, ``.pcap``, ``.pcapng`` or ``.dbn``, also with ``.gz`` or ``.zst``. ``columns`` as for a ring.
    ``protocol``: ``"itch50-moldudp64"``, ``"iex-tops-1.6"``, ``"iex-deep-1.0"`` or ``"dbn"``; by the name if not given.
    ``date``: the day of the capture, from whose midnight in New York ITCH counts; today if not given.
    ``orders=True`` publishes each order too (``key``, ``action``). ``progress`` is shown on a terminal.
    """
    name = os.fspath(path)
    stem = name.removesuffix(".gz").removesuffix(".zst").removesuffix(".bz2")
    protocol = protocol or _PROTOCOLS.get(os.path.splitext(stem)[1])
    if protocol is None:
        known = ", ".join(_PROTOCOLS)
        raise ArgumentError(f"{name!r} does not say its protocol\nhint: protocol=..., or a name that ends in {known}")
    new_york = zoneinfo.ZoneInfo("America/New_York")
    day = date or datetime.datetime.now(new_york).date()
    midnight = datetime.datetime.combine(day, datetime.time(), new_york)
    ring = f"python-read-{os.getpid()}-{next(_numbers)}"
    plant = PlantSource.of_file(ring, name, protocol, int(midnight.timestamp()) * 1_000_000_000, orders)
    source = RingSource(ring, "oldest", names(columns), max_rows, 3_600.0, "raise")
    plant.begin()
    return Batches(_Reading(plant, source, sys.stderr.isatty() if progress is None else progress))
