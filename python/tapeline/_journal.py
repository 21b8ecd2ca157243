"""Ticks of a journal."""

from __future__ import annotations

import datetime
import os
from typing import Any, Iterable, Sequence

from ._batches import Batches, Table, names
from ._ring import Ring
from ._tapeline import ArgumentError, JournalSource


class Scan(Table):
    """A scan of a journal that has not begun: iterate it, or convert it. Memory holds one batch at a time."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __iter__(self) -> Batches:
        return Batches(JournalSource(*self._arguments))

    batches = __iter__

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return JournalSource(*self._arguments).__arrow_c_stream__(requested_schema)


class Journal:
    """The journal of a plant, by its folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)

    def __repr__(self) -> str:
        return f"tapeline.journal({self.folder!r})"

    def scan(
        self,
        columns: Sequence[str] | None = None,
        *,
        items: str | Iterable[str] | None = None,
        from_sequence: int | None = None,
        to_sequence: int | None = None,
        between: tuple[datetime.datetime | None, datetime.datetime | None] | None = None,
        max_rows: int = 65_536,
        on_gap: str = "raise",
        follow: str | Ring | None = None,
    ) -> Scan:
        """Ticks in sequence; nothing is read before the scan is iterated or converted.

        ``columns`` as for a ring's batches; only they are decoded. ``items``: names. ``from_sequence``,
        ``to_sequence``: the first and the last sequence. ``between``: times of publication, the second one excluded;
        a time without a zone is UTC. ``follow``: the ring of the plant that writes the journal: behind the journal's end
        the batches go on with live ticks, without a gap and without a tick twice.
        """
        begin, end = between or (None, None)
        return Scan(
            self.folder,
            None if items is None else {items} if isinstance(items, str) else set(items),
            names(columns),
            from_sequence,
            to_sequence,
            _nanoseconds(begin),
            _nanoseconds(end),
            max_rows,
            on_gap,
            follow.name if isinstance(follow, Ring) else follow,
        )


def journal(folder: str | os.PathLike[str]) -> Journal:
    """The journal in a folder: ``tapeline.journal("journal").scan(["item", "BID"]).to_polars()``."""
    return Journal(folder)


def _nanoseconds(time: datetime.datetime | None) -> int | None:
    if time is None:
        return None
    if not isinstance(time, datetime.datetime):
        raise ArgumentError(f"expected a datetime, found {time!r}\nhint: datetime(2026, 11, 27, 9, 30, tzinfo=UTC)")
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.timezone.utc)
    since = time - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000
