"""The package's rates beside other libraries' on their own data, in one run: make bench-python

One process on one core, medians of some turns with the least and the most. A simulated day goes through a plant, whose ring
and journal are kept; what is read afterwards is what programs read. Databento's client reads trades of its own, from
memory and from a gateway on this machine, and polars reads the journal's rows from a Parquet file. Consumers, each in a process of its own, read updates of 13
fields from `tapeline omm provider`: ours as batches, LSEG's library `lseg-data` by its callback. A library that is not
installed is left out, with a line that says so.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable

import polars as pl

import tapeline

FACTS = ["sequence", "item", "published_time"]
UNDECODED = ["sequence", "item", "published_time", "kind", "body"]
QUOTES = ["item", "BID", "ASK"]
FIELDS = ["item", "BID", "ASK", "BIDSIZE", "ASKSIZE", "TRDPRC_1", "TRDVOL_1"]

UPDATE = [
    "item", "BID", "BIDSIZE", "ASK", "ASKSIZE", "BID_NET_CH", "BID_TICK_1", "PRC_QL_CD", "PRC_QL2", "BID_MMID1", "ASK_MMID1",
    "GV1_TEXT", "QUOTIM", "QUOTIM_MS",
]
#: Trades of a live session.
LIVE_RECORDS = 300_000
ITEMS = [f"RDT{number}" for number in range(1_000)]
#: What consumes, and updates a second that are sent to it.
CONSUMERS = [("tapeline", 100_000), ("tapeline", 2_000_000), ("lseg-data", 5_000), ("lseg-data", 50_000)]
#: Seconds of a consumer's turn, after its images.
SECONDS = 4.0

#: Reads all rows once. Returns their number, and the seconds that it took.
Turn = Callable[[], tuple[int, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tapeline", default="tapeline", help="the program, of the same version")
    parser.add_argument("--messages", type=int, default=4_000_000, help="messages of the simulated day")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--gateway", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--consume", nargs=2, metavar=("WHAT", "PORT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.gateway:
        gateway()
        return
    if options.consume:
        what, port = options.consume
        os.sched_setaffinity(0, {options.core})
        print(json.dumps(consume_by_lseg(port) if what == "lseg-data" else consume(port)))
        return
    program = str(Path(options.tapeline).resolve()) if os.sep in options.tapeline else options.tapeline
    with tempfile.TemporaryDirectory() as folder:
        ring = f"python-bench-{os.getpid()}"
        ticks = day(program, Path(folder), ring, options.messages)
        os.sched_setaffinity(0, {options.core})
        try:
            rows = list(measure(cases(Path(folder), ring, ticks), options.turns))
        finally:
            subprocess.run([program, "ring", "rm", ring], stdout=subprocess.DEVNULL, check=False)
        consumed = list(consumers(program, Path(folder), options.core, options.turns))
    if options.json:
        print(json.dumps({"ticks": ticks, "rows": rows, "consumers": consumed}))
        return
    print(f"\n{ticks:,} ticks; million rows/s, median (least to most)")
    for row in rows:
        print(f"{row['name']:<52} {row['median']:>7.2f} ({row['least']:.2f} to {row['most']:.2f})")
    print("\nconsumers of 13 fields: sent, received in thousands a second, share of a core; medians (least to most)")
    for row in consumed:
        received, core = row["received"], row["core"]
        print(
            f"{row['what']:<12} {row['sent'] / 1e3:>7,.0f} {received[1] / 1e3:>9.1f} ({received[0] / 1e3:.1f} to {received[2] / 1e3:.1f})"
            f" {core[1]:>7.2f} ({core[0]:.2f} to {core[2]:.2f})"
        )


def day(program: str, folder: Path, ring: str, messages: int) -> int:
    """Runs a simulated day through a plant that keeps its ring and its journal. Returns the number of ticks."""
    say(f"a day of {messages:,} messages through a plant")
    run([program, "feed", "simulate", "--write", str(folder / "day.itch"), "--messages", str(messages)])
    (folder / "plant.toml").write_text(
        f'[plant]\nring = "{ring}"\nring_size = "1GiB"\nkeep_ring = true\n[journal]\nfolder = "journal"\n'
        f'[[feed]]\nname = "itch"\nprotocol = "itch50-moldudp64"\nfile = "day.itch"\npace = "fast"\n'
    )
    run([program, "plant", "--config", str(folder / "plant.toml"), "--until-end-of-session"])
    return sum(len(batch) for batch in tapeline.journal(folder / "journal").scan(["sequence"]))


def cases(folder: Path, ring: str, ticks: int) -> list[tuple[str, Turn]]:
    journal = tapeline.journal(folder / "journal")
    parquet = folder / "ticks.parquet"
    journal.scan(["sequence", "published_time", *FIELDS]).to_polars().write_parquet(parquet)

    def of_ring(columns: list[str]) -> Turn:
        def turn() -> tuple[int, float]:
            # Joining maps a ring of 1 GiB, once in the life of a program.
            with tapeline.ring(ring).batches(columns, start="oldest", on_gap="ignore") as batches:
                return timed(lambda: sum(len(pl.DataFrame(batch)) for batch in batches))

        return turn

    def of_journal(columns: list[str]) -> Turn:
        return lambda: timed(lambda: sum(len(batch) for batch in journal.scan(columns)))

    def of_parquet(columns: list[str]) -> Turn:
        return lambda: timed(lambda: len(pl.read_parquet(parquet, columns=columns)))

    return [
        ("ring into polars, bodies undecoded", of_ring(UNDECODED)),
        ("ring into polars, item and six fields", of_ring(FIELDS)),
        ("journal, three facts", of_journal(FACTS)),
        ("journal, item, BID and ASK", of_journal(QUOTES)),
        ("journal, item and six fields", of_journal(FIELDS)),
        ("journal into one polars frame, item, BID and ASK", lambda: timed(lambda: len(journal.scan(QUOTES).to_polars()))),
        ("Parquet by polars, three facts", of_parquet(FACTS)),
        ("Parquet by polars, item, BID and ASK", of_parquet(QUOTES)),
        *of_databento(min(ticks, 1_000_000)),
    ]


def trades(records: int) -> bytes:
    """Trades as Databento encodes them."""
    import databento_dbn as dbn

    start = 1_700_000_000_000_000_000
    metadata = dbn.Metadata(
        dataset="XNAS.ITCH", start=start, stype_out=dbn.SType.INSTRUMENT_ID, schema=dbn.Schema.TRADES,
        stype_in=dbn.SType.RAW_SYMBOL, symbols=["AAPL"], partial=[], not_found=[], mappings=[],
    )
    trade = dbn.TradeMsg(
        publisher_id=2, instrument_id=1, ts_event=start, price=100_000_000_000, size=100, action=dbn.Action.TRADE,
        side=dbn.Side.BID, depth=0, ts_recv=start, flags=0, ts_in_delta=0, sequence=1,
    )
    return metadata.encode() + bytes(trade) * records


def of_databento(records: int) -> list[tuple[str, Turn]]:
    """Databento's client on trades in memory, and live on those of a gateway on this machine."""
    try:
        import databento
    except ImportError as error:
        say(f"Databento's client is left out: {error}")
        return []
    day = trades(records)

    def store() -> databento.DBNStore:
        return databento.DBNStore.from_bytes(day)

    def live() -> databento.Live:
        client = databento.Live(key="db-" + "x" * 29, gateway="127.0.0.1", port=port)
        client.subscribe(dataset="XNAS.ITCH", schema="trades", symbols="AAPL")
        return client

    def counted(start: Callable[[Callable[[object], None]], None]) -> int:
        seen = 0

        def count(_: object) -> None:
            nonlocal seen
            seen += 1

        start(count)
        return seen

    def live_callback() -> tuple[int, float]:
        client = live()

        def run(count: Callable[[object], None]) -> None:
            client.add_callback(count)
            client.start()
            client.block_for_close()

        return timed(lambda: counted(run))

    def live_iteration() -> tuple[int, float]:
        client = live()
        return timed(lambda: sum(1 for _ in client))

    serving = subprocess.Popen([sys.executable, __file__, "--gateway"], stdout=subprocess.PIPE, text=True)
    atexit.register(serving.kill)
    port = int(serving.stdout.readline())
    return [
        ("databento, iteration over trades in memory", lambda: timed(lambda: sum(1 for _ in store()))),
        ("databento, callback, in memory", lambda: timed(lambda: counted(lambda count: store().replay(count)))),
        ("databento, to_df, in memory", lambda: timed(lambda: len(store().to_df()))),
        ("databento, live, iteration", live_iteration),
        ("databento, live, callback", live_callback),
    ]


def gateway() -> None:
    """Serves trades to one live client after the other, as Databento's gateway does, until it is killed."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    day = trades(LIVE_RECORDS)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            client, _ = listening.accept()
            with client, client.makefile("r") as said:
                client.sendall(b"lsg_version=1.0.0\ncram=challenge\n")
                for line in said:
                    if line.startswith("auth="):
                        client.sendall(b"success=1|session_id=1\n")
                    elif line.startswith("start_session="):
                        break
                client.sendall(day)


def timed(read: Callable[[], int]) -> tuple[int, float]:
    begun = time.perf_counter()
    rows = read()
    return rows, time.perf_counter() - begun


def measure(cases: list[tuple[str, Turn]], turns: int):
    """The cases take turns. Yields name, median, least and most in million rows a second."""
    rates: dict[str, list[float]] = {name: [] for name, _ in cases}
    for number in range(turns):
        say(f"turn {number + 1} of {turns}")
        for name, turn in cases:
            rows, seconds = turn()
            rates[name].append(rows / seconds / 1e6)
    for name, its in rates.items():
        yield {"name": name, "median": statistics.median(its), "least": min(its), "most": max(its)}


def consumers(program: str, folder: Path, core: int, turns: int):
    """The consumers take turns. Yields what they received, and what they took of a core: least, median, most."""
    all: dict[tuple[str, int], list[dict[str, float]]] = {}
    for number in range(turns):
        say(f"consumers, turn {number + 1} of {turns}")
        for what, rate in CONSUMERS:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            provider = subprocess.Popen(
                [program, "omm", "provider", "--port", str(port), "--update-rate", str(rate), "--run-time", "60",
                 "--no-display-stats", "--run-folder", str(folder / f"{what}-{rate}-{number}"),
                 *(["--websocket", "json"] if what == "lseg-data" else [])],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder,
            )
            # It listens once it says so.
            provider.stdout.readline()
            command = [sys.executable, __file__, "--core", str(core), "--consume", what, str(port)]
            consumer = subprocess.run(command, capture_output=True, text=True, cwd=folder)
            provider.kill()
            provider.wait()
            if consumer.returncode == 0:
                all.setdefault((what, rate), []).append(json.loads(consumer.stdout.splitlines()[-1]))
            elif number == 0:
                say(f"{what} is left out: {consumer.stderr.strip().splitlines()[-1]}")
    for (what, rate), its in all.items():
        spread = {
            key: [min(one[key] for one in its), statistics.median(one[key] for one in its), max(one[key] for one in its)]
            for key in ("received", "core")
        }
        yield {"what": what, "sent": rate, **spread}


def consume(port: str) -> dict[str, float]:
    with tapeline.Consumer(f"127.0.0.1:{port}", service="DIRECT_FEED") as consumer:
        consumer.subscribe(ITEMS)
        consumer.wait()
        batches = consumer.batches(UPDATE)
        next(batches)
        begun, used, rows = time.perf_counter(), time.process_time(), 0
        for batch in batches:
            rows += len(batch)
            since = time.perf_counter() - begun
            if since >= SECONDS:
                return {"received": rows / since, "core": (time.process_time() - used) / since}
    raise SystemExit("the provider has ended")


def consume_by_lseg(port: str) -> dict[str, float]:
    from lseg.data import session
    from lseg.data.content import pricing

    its = session.platform.Definition(
        app_key="256", deployed_platform_host=f"127.0.0.1:{port}", deployed_platform_username="user",
        dacs_position="127.0.0.1/net", dacs_application_id="256",
    ).get_session()
    session.set_default(its)
    its.open()
    seen = 0

    def update(fields: object, name: object, stream: object) -> None:
        nonlocal seen
        seen += 1

    stream = pricing.Definition(universe=ITEMS[:100], service="DIRECT_FEED").get_stream()
    stream.on_update(update)
    stream.open()
    begun, used, before = time.perf_counter(), time.process_time(), seen
    time.sleep(SECONDS)
    since = time.perf_counter() - begun
    print(json.dumps({"received": (seen - before) / since, "core": (time.process_time() - used) / since}), flush=True)
    # Closing its threads takes longer than the turn.
    os._exit(0)


def run(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def say(what: str) -> None:
    print(f"bench-python: {what}", file=sys.stderr)


if __name__ == "__main__":
    main()
