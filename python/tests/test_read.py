"""Captures: real files, from the folder that TAPELINE_SHARED names, or beside the repository."""

from __future__ import annotations

import os
import pathlib

import pytest

import tapeline

pl = pytest.importorskip("polars")

DATA = pathlib.Path(os.environ.get("TAPELINE_SHARED", pathlib.Path(__file__).resolve().parents[3] / "shared")) / "data"


def capture(name: str) -> pathlib.Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("itch50-synthetic-ritch/ritch-framed.itch", None),
        ("iex-deep-20170425/deep10-lastsession-head.pcap", "iex-deep-1.0"),
        ("moldudp64-derived/aapl5000-clean.pcap", None),
        ("dbn-cme-opra/futures_mbp-1_2024-07-01.dbn.zst", None),
        ("dbn-cme-opra/orderbooks_mbo_2024-05-08.dbn.zst", None),
    ],
)
def test_real_captures(name, protocol):
    frame = tapeline.read(capture(name), ["sequence", "item", "kind", "BID", "ASK"], protocol=protocol).to_polars()
    assert frame["sequence"].to_list() == list(range(1, len(frame) + 1))
    assert frame["BID"].drop_nulls().len() > 0
    pytest.importorskip("pyarrow")
    assert tapeline.read(capture(name), ["sequence"], protocol=protocol, max_rows=100).to_arrow().num_rows == len(frame)


def test_wrong_files_are_told_with_a_hint(tmp_path):
    with pytest.raises(tapeline.TapelineError, match="(?s)does not say its protocol.*hint"):
        tapeline.read("day.bin")
    with pytest.raises(tapeline.TapelineError, match="not-there.itch"):
        tapeline.read(tmp_path / "not-there.itch")
    with pytest.raises(tapeline.ArgumentError, match="(?s)protocol.*itch50-moldudp64"):
        tapeline.read("day.itch", protocol="itch")
    (tmp_path / "other.dbn").write_bytes(b"this is not DBN")
    with pytest.raises(tapeline.TapelineError):
        list(tapeline.read(tmp_path / "other.dbn"))


def test_a_reader_that_stops_early_ends_its_plant():
    with tapeline.read(capture("dbn-cme-opra/orderbooks_mbo_2024-05-08.dbn.zst"), max_rows=10) as batches:
        assert len(next(batches)) == 10
