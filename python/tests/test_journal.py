"""The journal: scans, and what is missing in it."""

from __future__ import annotations

import datetime
import pathlib

import pytest

import tapeline

pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("plant") / "journal"
    with tapeline.plant(rate=100_000, symbols=10, messages=50_000, journal=folder, hub=None) as plant:
        with plant.ring.batches(["kind"], start="oldest", max_wait=0.1) as batches:
            while batches.take(1.0) is not None:
                pass
    return folder


def test_a_scan_has_every_tick(folder):
    frame = tapeline.journal(folder).scan().to_polars()
    assert frame["sequence"].to_list() == list(range(1, len(frame) + 1))
    assert len(frame) > 5_000
    # A scan begins anew each time, and batches have the same ticks.
    scan = tapeline.journal(folder).scan(max_rows=1_000)
    for _ in range(2):
        assert sum(len(batch) for batch in scan) == len(frame)


def test_items_sequences_and_times(folder):
    journal = tapeline.journal(folder)
    everything = journal.scan(["sequence", "item", "published_time", "BID"]).to_polars()
    name = everything["item"].cast(pl.String)[len(everything) // 2]
    one = journal.scan(["sequence", "item"], items=[name]).to_polars()
    assert one["sequence"].to_list() == everything.filter(pl.col("item").cast(pl.String) == name)["sequence"].to_list()
    some = journal.scan(["sequence"], from_sequence=10, to_sequence=19).to_polars()
    assert some["sequence"].to_list() == list(range(10, 20))
    times = everything["published_time"]
    # A datetime has microseconds.
    begin, end = times[100], times[2_000]
    between = journal.scan(["sequence", "published_time"], between=(begin, end)).to_polars()
    expected = everything.filter((pl.col("published_time") >= begin) & (pl.col("published_time") < end))
    assert between["sequence"].to_list() == expected["sequence"].to_list()
    assert len(journal.scan(["sequence"], between=(None, begin.replace(tzinfo=datetime.timezone.utc))).to_polars()) > 0


def test_duckdb_and_pandas_read_a_scan(folder):
    duckdb, pd = map(pytest.importorskip, ["duckdb", "pandas"])
    scan = tapeline.journal(folder).scan(["item", "BID"]).to_arrow()
    assert duckdb.sql("select count(*) from scan").fetchall()[0][0] == scan.num_rows
    assert isinstance(tapeline.journal(folder).scan(["item", "BID"], to_sequence=5).to_pandas(), pd.DataFrame)


def test_wrong_input_is_told_with_a_hint(folder, tmp_path):
    with pytest.raises(tapeline.NotFoundError, match="(?s)cannot read.*hint"):
        tapeline.journal(tmp_path / "nothing").scan().to_polars()
    with pytest.raises(tapeline.ArgumentError, match="did you mean"):
        tapeline.journal(folder).scan(["BIDD"]).to_polars()
    with pytest.raises(tapeline.ArgumentError, match="expected a datetime"):
        tapeline.journal(folder).scan(between=("09:30", None))
    assert len(tapeline.journal(folder).scan(from_sequence=10**9).to_polars()) == 0


def test_damage_is_an_error_behind_what_can_be_read(folder, tmp_path):
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in folder.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    segment = max(damaged.iterdir(), key=lambda file: file.stat().st_size)
    content = bytearray(segment.read_bytes())
    content[len(content.rstrip(b"\0")) // 2] ^= 0xFF
    segment.write_bytes(content)
    read = 0
    with pytest.raises(tapeline.DamagedError, match="byte .* where record"):
        for batch in tapeline.journal(damaged).scan(["sequence"], max_rows=100):
            read += len(batch)
    assert read > 100
    with pytest.raises(Exception, match="where record"):
        tapeline.journal(damaged).scan(["sequence"]).to_polars()


def test_a_missing_segment_or_range_is_a_gap(folder):
    journal = tapeline.journal(folder)
    last = journal.scan(["sequence"]).to_polars()["sequence"][-1]
    # Nothing is missing here: the same scan with each policy.
    for on_gap in ["raise", "row", "ignore"]:
        assert len(journal.scan(["sequence"], on_gap=on_gap).to_polars()) == last


def test_a_scan_goes_on_into_the_ring_without_a_gap_or_a_tick_twice(tmp_path):
    with tapeline.plant(rate=50_000, symbols=10, journal=tmp_path / "journal") as plant:
        with plant.ring.batches(["kind"], max_wait=0.1) as batches:
            while next(batches).last_sequence < 5_000:
                pass
        scan = tapeline.journal(plant.journal_folder).scan(["sequence"], follow=plant.ring)
        awaited = 1
        for batch in scan:
            sequences = batch.to_polars()["sequence"].to_list()
            assert sequences == list(range(awaited, awaited + len(sequences)))
            awaited += len(sequences)
            if awaited > 30_000:
                break
        with pytest.raises(tapeline.ArgumentError, match="has no end"):
            scan.to_polars()
