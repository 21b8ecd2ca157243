"""Live ticks, journals and OMM services of Tapeline, as Arrow batches.

    >>> import tapeline
    >>> for batch in tapeline.ring("tapeline").batches():    # doctest: +SKIP
    ...     print(batch.to_polars())

Each batch speaks Arrow's PyCapsule interface: ``polars.DataFrame(batch)``, ``pyarrow.record_batch(batch)``,
``duckdb.from_arrow(...)`` and others take it without a copy.
"""

from ._batches import Batches, Table
from ._consumer import Consumer
from ._journal import Journal, Scan, journal
from ._plant import Plant, plant
from ._publish import Provider, Publisher
from ._read import read
from ._ring import Ring, ring
from ._tapeline import (
    ArgumentError,
    Batch,
    DamagedError,
    EndedError,
    ForkedError,
    GapError,
    NotFoundError,
    TapelineError,
)

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "Batch",
    "Batches",
    "Consumer",
    "DamagedError",
    "EndedError",
    "ForkedError",
    "GapError",
    "Journal",
    "NotFoundError",
    "Plant",
    "Provider",
    "Publisher",
    "Ring",
    "Scan",
    "Table",
    "TapelineError",
    "journal",
    "plant",
    "read",
    "ring",
]
