"""A plant of the command line that follows a crypto venue: its ticks, from the ring, the hub and the journal.

The plant is the program that TAPELINE names; without it the tests are skipped. The recorded session is in the folder that TAPELINE_SHARED names,
or beside the repository.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

import pytest

import tapeline

pl = pytest.importorskip("polars")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/ops"))
from venue import venue  # noqa: E402

PROGRAM = os.environ.get("TAPELINE")
RECORDING = (
    pathlib.Path(os.environ.get("TAPELINE_SHARED", ROOT.parent / "shared"))
    / "data/crypto-ws-captures-2021/COINBASE.ws.28.0.txt.gz"
)
pytestmark = pytest.mark.skipif(not PROGRAM, reason="no plant: TAPELINE names no program")
Message = dict[str, Any]


def by_hand() -> list[Message]:
    return [
        {"type": "snapshot", "product_id": "BTC-USD", "bids": [["61837.50", "1.5"]], "asks": [["61837.75", "2"]]},
        {"type": "l2update", "product_id": "BTC-USD", "changes": [["buy", "61837.60", "0.25"]], "time": "2024-08-08T23:54:15.5Z"},
        match("BTC-USD", 7),
    ]


def match(symbol: str, number: int) -> Message:
    trade = {"type": "match", "trade_id": number, "side": "sell", "size": "0.02", "price": "61837.75", "product_id": symbol}
    return trade | {"time": "2024-08-08T23:54:16Z"}


def recorded() -> list[Message]:
    """What Coinbase sent on 2021-04-17, and one more trade, which is the next of its symbol."""
    if not RECORDING.exists():
        pytest.skip(f"no recording: {RECORDING} does not exist (TAPELINE_SHARED)")
    with gzip.open(RECORDING, "rt") as lines:
        parts = [line.partition(": ") for line in lines if not line.startswith("wss:")]
    messages = [json.loads(text) for _, _, text in parts if text]
    last = [message for message in messages if message["type"] == "match"][-1]
    return [*messages, match(last["product_id"], last["trade_id"] + 1)]


def truth(messages: list[Message]) -> dict[str, tuple[float, float]]:
    """The best bid and ask of each symbol in the end, from plain maps of its levels."""
    books: dict[str, dict[str, dict[str, str]]] = {}
    for message in messages:
        if message["type"] == "snapshot":
            books[message["product_id"]] = {"buy": dict(message["bids"]), "sell": dict(message["asks"])}
        for side, price, size in message.get("changes", []):
            levels = books[message["product_id"]][side]
            levels[price] = size
            if float(size) == 0:
                del levels[price]
    return {symbol: (max(map(float, book["buy"])), min(map(float, book["sell"]))) for symbol, book in books.items()}


@pytest.mark.parametrize("session", [by_hand, recorded], ids=lambda session: session.__name__)
def test_books_and_trades_of_a_venue_are_ticks_like_any_other(session, tmp_path):
    messages = session()
    name = f"python-venue-{session.__name__}-{os.getpid()}"
    with venue(*messages) as port:
        (tmp_path / "plant.toml").write_text(
            f'[plant]\nring = "{name}"\n[[feed]]\nname = "coinbase"\nprotocol = "coinbase"\nsymbols = {json.dumps(list(truth(messages)))}\n'
            f'url = "ws://127.0.0.1:{port}/"\n[journal]\nfolder = "journal"\n[hub]\nport = 0\n'
        )
        words = [PROGRAM, "plant", "--config", tmp_path / "plant.toml", "--format", "json"]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as plant:
            try:
                check(name, messages, json.loads(plant.stdout.readline()), tmp_path / "journal")
            finally:
                plant.terminate()


def check(name: str, messages: list[Message], ready: dict[str, str], journal: pathlib.Path) -> None:
    books, last = truth(messages), messages[-1]
    trades = sorted(str(message["trade_id"]) for message in messages if message["type"] == "match")
    columns = ["item", "event_time", "BID", "ASK", "TRDPRC_1", "TRDVOL_1", "TRADE_ID", "NUM_MOVES"]
    frames, ends = [], time.monotonic() + 60
    with tapeline.ring(name).batches(columns, start="oldest", max_wait=0.05) as batches:
        while time.monotonic() < ends:
            batch = batches.take(1.0)
            if batch is None:
                continue
            assert batch.missing == 0
            frames.append(pl.DataFrame(batch).with_columns(pl.col("item").cast(pl.String), pl.col("TRADE_ID").cast(pl.String)))
            if str(last["trade_id"]) in frames[-1]["TRADE_ID"]:
                break
    ticks = pl.concat(frames)
    # What Coinbase calls `last_match` was before the subscription: it is no trade of this session.
    of_trades = ticks.filter(pl.col("TRADE_ID").is_in(trades))
    assert sorted(of_trades["TRADE_ID"]) == trades
    trade = of_trades.row(-1, named=True)
    assert (trade["item"], trade["TRDPRC_1"], trade["TRDVOL_1"]) == (last["product_id"], 61837.75, 0.02)
    assert trade["event_time"].isoformat() == "2024-08-08T23:54:16+00:00"
    best = ticks.group_by("item").agg(pl.col("BID", "ASK").drop_nulls().last())
    assert {item: (bid, ask) for item, bid, ask in best.iter_rows() if item} == books
    with tapeline.Consumer(ready["hub"], service="TAPELINE") as consumer:
        consumer.subscribe(list(books)).wait()
        images = consumer.snapshot(["item", "BID", "ASK"]).to_polars().with_columns(pl.col("item").cast(pl.String))
        assert {item: (bid, ask) for item, bid, ask in images.iter_rows()} == books
    kept = tapeline.journal(journal).scan(["TRADE_ID"]).to_polars()["TRADE_ID"].cast(pl.String)
    assert sorted(kept.filter(kept.is_in(trades))) == trades
