"""Live ticks of a plant on this host."""

from __future__ import annotations

from typing import Sequence

from ._batches import Batches, names
from ._tapeline import RingSource


class Ring:
    """The ring of a plant on this host, by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"tapeline.ring({self.name!r})"

    def batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        start: str = "newest",
        max_rows: int = 65_536,
        max_wait: float = 0.05,
        on_gap: str = "raise",
    ) -> Batches:
        """Joins the ring: batches of ticks from now on.

        ``columns``: names of columns: facts of each tick (``sequence``, ``item``, ``kind``, ``event_time``,
        ``received_time``, ``published_time``, ``state``, ``suspect``, ``service``, ``missing``, ``action``, ``key``,
        ``body``), and fields of the dictionary, such as ``BID``. A field is null where a tick does not have it.
        ``start``: ``"newest"``, or ``"oldest"`` for what the ring still holds.
        ``max_rows``, ``max_wait``: a batch leaves with so many rows, or so many seconds after its first one.
        ``on_gap``: what happens where ticks are missing: ``"raise"`` a ``GapError``, show a ``"row"``, or ``"ignore"``
        (``batch.missing`` counts them in any case).

        The plant waits for a reader that does not read, for at most its ``stall_limit``: take batches as they come, or
        ``close()``.
        """
        return Batches(RingSource(self.name, start, names(columns), max_rows, max_wait, on_gap))


def ring(name: str) -> Ring:
    """The ring of a plant on this host: ``tapeline.ring("tapeline").batches()``."""
    return Ring(name)
