"""The ring: live ticks as batches."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import tapeline

pl = pytest.importorskip("polars")


def test_batches_follow_each_other_without_a_gap(plant):
    awaited = None
    with plant.ring.batches(max_wait=0.05) as batches:
        for batch, _ in zip(batches, range(10)):
            assert awaited is None or batch.first_sequence == awaited
            assert batch.missing == 0
            frame = pl.DataFrame(batch)
            assert len(frame) == len(batch) == batch.last_sequence - batch.first_sequence + 1
            assert frame["sequence"].to_list() == list(range(batch.first_sequence, batch.last_sequence + 1))
            awaited = batch.last_sequence + 1


def test_values_have_the_types_of_their_fields(plant):
    columns = ["sequence", "item", "published_time", "suspect", "BID", "ASKSIZE", "TRDTIM_MS", "service", "body"]
    with plant.ring.batches(columns, max_wait=0.5) as batches:
        frame = pl.DataFrame(next(batches))
    assert frame.columns == columns
    assert frame.schema["published_time"] == pl.Datetime("ns", "UTC")
    assert frame.schema["BID"] == pl.Float64
    bids = frame["BID"].drop_nulls().drop_nans()
    # Prices of the simulated exchange are whole cents.
    assert len(bids) > 0 and ((bids * 100).round() - bids * 100).abs().max() < 1e-6
    assert frame["body"].bin.size().min() > 0


def test_other_libraries_take_a_batch(plant):
    pa, pd, duckdb = map(pytest.importorskip, ["pyarrow", "pandas", "duckdb"])
    with plant.ring.batches(["sequence", "item", "BID"], max_wait=0.3) as batches:
        batch = next(batches)
    table = arrow = pa.table(batch)
    assert table.num_rows == len(batch)
    assert pa.record_batch(batch).num_rows == len(batch)
    assert isinstance(table.to_pandas(), pd.DataFrame)
    assert duckdb.sql("select count(*) from arrow").fetchall()[0][0] == len(batch)
    assert table["sequence"].to_numpy()[0] == batch.first_sequence


def test_a_batch_leaves_when_it_is_full(plant):
    with plant.ring.batches(max_rows=7, max_wait=60) as batches:
        assert len(next(batches)) == 7


def test_async_for(plant):
    async def read() -> int:
        rows = 0
        with plant.ring.batches(max_wait=0.05) as batches:
            async for batch in batches:
                rows += len(batch)
                if rows > 100:
                    return rows
        return 0

    assert asyncio.run(read()) > 100


def test_a_cancelled_wait_loses_no_batch(plant):
    async def read() -> None:
        awaited = None
        with plant.ring.batches(max_rows=50, max_wait=0.01) as batches:
            while awaited is None or awaited < 2_000:
                try:
                    batch = await asyncio.wait_for(anext(batches), 0.001)
                except TimeoutError:
                    continue
                except asyncio.TimeoutError:
                    continue
                assert awaited is None or batch.first_sequence == awaited
                awaited = batch.last_sequence + 1

    asyncio.run(read())


def test_a_callback_ends_by_false(plant):
    seen = []
    with plant.ring.batches(max_wait=0.05) as batches:
        batches.each(lambda batch: seen.append(batch) or len(seen) < 3)
    assert len(seen) == 3


def test_the_end_of_the_plant_ends_the_loop():
    with tapeline.plant(rate=10_000, symbols=2) as plant:
        batches = plant.ring.batches(max_wait=0.05)
        next(batches)
        end = threading.Timer(0.2, plant.close)
        end.start()
        last = 0
        for batch in batches:
            last = batch.last_sequence
        assert last > 0
        assert list(batches) == []
        end.join()


@pytest.mark.parametrize("on_gap", ["raise", "row", "ignore"])
def test_a_reader_that_sleeps_is_told_what_it_missed(on_gap):
    with tapeline.plant(rate=400_000, symbols=10) as plant:
        with plant.ring.batches(["sequence", "kind", "missing"], on_gap=on_gap, max_wait=0.05) as batches:
            first = next(batches)
            assert first.missing == 0
            time.sleep(4)
            missing, rows, last = 0, 0, first.last_sequence
            while missing == 0:
                try:
                    batch = next(batches)
                except tapeline.GapError as gap:
                    assert on_gap == "raise" and "ticks are missing" in str(gap) and "hint" in str(gap)
                    # The reader can go on behind the gap.
                    batch = next(batches)
                    assert batch.first_sequence > last + 1
                    return
                assert batch.first_sequence == last + 1 or batch.missing > 0
                missing = batch.missing
                if missing:
                    frame = pl.DataFrame(batch)
                    gaps = frame.filter(pl.col("kind") == "gap")
                    assert len(gaps) == (on_gap == "row")
                    if on_gap == "row":
                        assert gaps["missing"][0] == missing
                        assert gaps["sequence"][0] == last + 1
                    else:
                        assert batch.first_sequence == last + 1 + missing
                last = batch.last_sequence
            assert on_gap != "raise"


def test_wrong_input_is_told_with_a_hint(plant):
    with pytest.raises(tapeline.NotFoundError, match="(?s)no ring.*hint: .*tapeline ring ls"):
        tapeline.ring("not-there").batches()
    with pytest.raises(tapeline.ArgumentError, match='(?s)no column "bid".*did you mean "BID"'):
        plant.ring.batches(["bid"])
    with pytest.raises(tapeline.ArgumentError, match="columns is a list of names"):
        plant.ring.batches("BID")
    with pytest.raises(tapeline.ArgumentError, match="named twice"):
        plant.ring.batches(["BID", "BID"])
    with pytest.raises(tapeline.ArgumentError, match="max_rows is 0"):
        plant.ring.batches(max_rows=0)
    with pytest.raises(ValueError, match="on_gap is"):
        plant.ring.batches(on_gap="warn")
    with pytest.raises(ValueError, match="start is"):
        plant.ring.batches(start="first")
    with pytest.raises(ValueError, match="max_wait"):
        plant.ring.batches(max_wait=-1)
    with pytest.raises(tapeline.TapelineError, match="cannot be a ring's name"):
        tapeline.ring("no/slash").batches()


def test_a_child_after_a_fork_is_refused(plant):
    with plant.ring.batches(max_wait=0.05) as batches:
        next(batches)
        child = os.fork()
        if child == 0:
            try:
                next(batches)
                os._exit(1)
            except tapeline.ForkedError:
                os._exit(0)
            finally:
                os._exit(2)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        next(batches)


def test_the_end_of_a_child_leaves_the_parents_position(plant):
    with plant.ring.batches(max_wait=0.05) as batches:
        first = next(batches)
        child = os.fork()
        if child == 0:
            del batches
            os._exit(0)
        os.waitpid(child, 0)
        assert next(batches).first_sequence == first.last_sequence + 1


def test_ctrl_c_ends_a_waiting_reader():
    program = """
import tapeline
with tapeline.plant(rate=1, symbols=1) as plant:
    batches = plant.ring.batches()
    print("reading", flush=True)
    for batch in batches:
        pass
"""
    reader = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert reader.stdout.readline() == "reading\n"
    reader.send_signal(signal.SIGINT)
    _, said = reader.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    assert "panicked" not in said
