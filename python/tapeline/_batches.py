"""Batches from a source, one after the other."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Iterator, Protocol, Sequence

from ._tapeline import ArgumentError, Batch, TapelineError

# Python looks for Ctrl-C between two waits.
_WAIT = 0.1


class Source(Protocol):
    """What gives batches: ``None`` if there is none within the time, an empty tuple at the end."""

    def take(self, timeout: float) -> Batch | None | tuple[()]: ...
    def close(self) -> None: ...


class Table:
    """Conversions of anything with ``__arrow_c_stream__``."""

    def to_polars(self) -> Any:
        """The rows as a ``polars.DataFrame``."""
        return _module("polars", "polars").DataFrame(self)

    def to_arrow(self) -> Any:
        """The rows as a ``pyarrow.Table``."""
        return _module("pyarrow", "arrow").table(self)

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame``."""
        _module("pandas", "pandas")
        return self.to_arrow().to_pandas()


class Batches(Table):
    """An iterator of batches, for ``for`` and ``async for``; a context manager that leaves the source at its end."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ended = False
        self._awaited: asyncio.Future[Batch | None | tuple[()]] | None = None

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        while True:
            taken = self.take(_WAIT)
            if taken is not None:
                return taken

    def take(self, timeout: float) -> Batch | None:
        """The next batch; ``None`` if there is none within ``timeout`` seconds. ``StopIteration`` at the end."""
        taken = () if self._ended else self._source.take(timeout)
        if isinstance(taken, tuple):
            self._ended = True
            raise StopIteration
        return taken

    def __aiter__(self) -> "Batches":
        return self

    async def __anext__(self) -> Batch:
        while True:
            if self._ended:
                raise StopAsyncIteration
            if self._awaited is None:
                loop = asyncio.get_running_loop()
                self._awaited = loop.run_in_executor(None, self._source.take, _WAIT)
            # A cancelled wait leaves the batch to the next one.
            taken = await asyncio.shield(self._awaited)
            self._awaited = None
            if isinstance(taken, tuple):
                self._ended = True
            elif taken is not None:
                return taken

    def to_polars(self) -> Any:
        """All rows up to the end of the source, as one ``polars.DataFrame``."""
        polars = _module("polars", "polars")
        frames = [polars.DataFrame(batch) for batch in self]
        return polars.concat(frames) if frames else polars.DataFrame()

    def to_arrow(self) -> Any:
        """All rows up to the end of the source, as one ``pyarrow.Table``."""
        arrow = _module("pyarrow", "arrow")
        batches = [arrow.record_batch(batch) for batch in self]
        return arrow.Table.from_batches(batches) if batches else arrow.table({})

    def each(self, callback: Callable[[Batch], object]) -> None:
        """Calls ``callback`` with each batch, until the source ends or the callback returns ``False``."""
        for batch in self:
            if callback(batch) is False:
                return

    def close(self) -> None:
        """Leaves the source. A plant does not wait for this reader any more."""
        self._ended = True
        self._source.close()

    def __del__(self) -> None:
        """An iterator that nobody has any more, as after ``break``, does not hold up its source."""
        if not getattr(self, "_ended", True):
            try:
                self.close()
            except Exception:  # In a child after a fork, the source is the parent's.
                pass

    def __enter__(self) -> "Batches":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def names(columns: Sequence[str] | None) -> list[str] | None:
    """Names of columns as a list."""
    if isinstance(columns, str):
        raise ArgumentError(f"columns is a list of names, not the text {columns!r}\nhint: [{columns!r}]")
    return None if columns is None else list(columns)


def _module(name: str, extra: str) -> Any:
    """A package that is not a dependency."""
    try:
        return __import__(name)
    except ImportError as error:
        raise TapelineError(
            f"{name} is not installed\nhint: pip install 'tapeline[{extra}]'"
        ) from error
