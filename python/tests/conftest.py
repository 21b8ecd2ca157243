"""Plants for the tests: each has a ring of its own name and a port of its own."""

from __future__ import annotations

import faulthandler
from typing import Iterator

import pytest

import tapeline

# A test that hangs says where.
faulthandler.dump_traceback_later(1_200, exit=True)


@pytest.fixture
def plant() -> Iterator[tapeline.Plant]:
    with tapeline.plant(rate=20_000, symbols=10) as running:
        yield running


@pytest.fixture
def names(plant: tapeline.Plant) -> list[str]:
    """The names of some items that have ticks."""
    pl = pytest.importorskip("polars")
    with plant.ring.batches(["item"], max_wait=0.5) as batches:
        items = pl.DataFrame(next(batches))["item"].cast(pl.String)
    return sorted(set(items) - {""})
