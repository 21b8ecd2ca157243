"""Clients of kdb+ at a tickerplant: qpython3, and pykx without a licence.

    tickerplant.py --server HOST:PORT [--user USER --password PASSWORD] STEP…

The tickerplant has three tables: `trade` (time, sym, price, size, note), `types`, which has a column of each type behind time and sym, and `others`,
which has them without q's datetime, of which pykx makes none.
"""

import argparse
import asyncio
import os
import sys
import time
import uuid

import numpy as np
from qpython import qconnection
from qpython.qcollection import qlist
from qpython import qtype
from qpython.qtype import QException

from steps import PATIENCE_S, expect, take

# Before the library is loaded: there is no q, and nothing is to be asked for.
os.environ["PYKX_UNLICENSED"] = "true"
os.environ["PYKX_SUPPRESS_WARNINGS"] = "true"
import pykx

START = "(.u.sub[`;`];`.u `i`L)"

# Two items of each type behind time and sym, in the order of the columns: the second is q's null where there is one.
NULL = np.iinfo(np.int64).min
TYPES = [
    (qtype.QBOOL_LIST, [True, False]),
    (qtype.QGUID_LIST, np.array([uuid.UUID("01020304-0506-0708-090a-0b0c0d0e0f10"), uuid.UUID(int=0)])),
    (qtype.QBYTE_LIST, np.array([42, 255], dtype=np.byte)),
    (qtype.QSHORT_LIST, np.array([-234, np.iinfo(np.int16).min], dtype=np.int16)),
    (qtype.QINT_LIST, np.array([7, np.iinfo(np.int32).min], dtype=np.int32)),
    (qtype.QLONG_LIST, np.array([np.iinfo(np.int64).max, NULL])),
    (qtype.QFLOAT_LIST, np.array([5.5, np.nan], dtype=np.float32)),
    (qtype.QDOUBLE_LIST, np.array([np.inf, np.nan])),
    (qtype.QSTRING, np.frombuffer(b"x ", dtype=np.byte)),
    (qtype.QSYMBOL_LIST, np.array(["AAPL", ""], dtype="S")),
    (qtype.QTIMESTAMP_LIST, np.array([708_697_697_727_152_000, NULL])),
    (qtype.QMONTH_LIST, np.array([12, np.iinfo(np.int32).min], dtype=np.int32)),
    (qtype.QDATE_LIST, np.array([366, np.iinfo(np.int32).min], dtype=np.int32)),
    (qtype.QDATETIME_LIST, np.array([3.5, np.nan])),
    (qtype.QTIMESPAN_LIST, np.array([20_217_600_000_000, NULL])),
    (qtype.QMINUTE_LIST, np.array([721, np.iinfo(np.int32).min], dtype=np.int32)),
    (qtype.QSECOND_LIST, np.array([43_500, np.iinfo(np.int32).min], dtype=np.int32)),
    (qtype.QTIME_LIST, np.array([43_499_123, np.iinfo(np.int32).min], dtype=np.int32)),
]


# The same as pykx makes them without a licence, and no datetimes.
OTHERS = [
    (np.array([True, False]), pykx.BooleanVector),
    ([uuid.UUID("01020304-0506-0708-090a-0b0c0d0e0f10"), uuid.UUID(int=0)], pykx.GUIDVector),
    (np.array([42, 255], dtype=np.uint8), pykx.ByteVector),
    (np.array([-234, np.iinfo(np.int16).min], dtype=np.int16), pykx.ShortVector),
    (np.array([7, np.iinfo(np.int32).min], dtype=np.int32), pykx.IntVector),
    (np.array([np.iinfo(np.int64).max, NULL]), pykx.LongVector),
    (np.array([5.5, np.nan], dtype=np.float32), pykx.RealVector),
    (np.array([np.inf, np.nan]), pykx.FloatVector),
    (b"x ", pykx.CharVector),
    (["AAPL", ""], pykx.SymbolVector),
    (np.array(["2022-06-16T12:28:17.727152", "NaT"], dtype="datetime64[ns]"), pykx.TimestampVector),
    (np.array(["2001-01", "NaT"], dtype="datetime64[M]"), pykx.MonthVector),
    (np.array(["2001-01-01", "NaT"], dtype="datetime64[D]"), pykx.DateVector),
    (np.array([20_217_600_000_000, NULL], dtype="timedelta64[ns]"), pykx.TimespanVector),
    (np.array([721, NULL], dtype="timedelta64[m]"), pykx.MinuteVector),
    (np.array([43_500, NULL], dtype="timedelta64[s]"), pykx.SecondVector),
    (np.array([43_499_123, NULL], dtype="timedelta64[ms]"), pykx.TimeVector),
]
TABLES = ["trade", "types", "others"]


def symbols(*names):
    return qlist(np.array(names, dtype="S"), qtype=qtype.QSYMBOL_LIST)


class Client:
    def __init__(self, options):
        self.host, port = options.server.rsplit(":", 1)
        self.port = int(port)
        self.user, self.password = options.user, options.password

    def qpython(self, password=None):
        connection = qconnection.QConnection(
            self.host, self.port, username=self.user, password=password or self.password, timeout=PATIENCE_S
        )
        connection.open()
        return connection

    def pykx_options(self):
        return {"no_ctx": True, "username": self.user, "password": self.password}

    def qpython_subscribes(self):
        """What r.q asks; then a row and columns from another connection, for all symbols and for one."""
        feed = self.qpython()
        with self.qpython() as everything, self.qpython() as some:
            tables, (count, log) = everything.sendSync(START)
            names = [name for name, _ in tables]
            expect(names == [name.encode() for name in TABLES], "all tables", names)
            columns = tables[0][1].dtype.names
            expect(columns == ("time", "sym", "price", "size", "note"), "the columns of trade", columns)
            expect(count >= 0 and log.startswith(b":/"), "a count and a path", (count, log))
            name, _ = some.sendSync(".u.sub", np.bytes_("trade"), symbols("B", "C"))
            expect(name == b"trade", "trade", name)
            feed.sendAsync(".u.upd", np.bytes_("trade"), [np.bytes_("A"), 1.5, 10, "note"])
            row = everything.receive()
            expect((row[0], row[1], row[2]["price"].tolist()) == (b"upd", b"trade", [1.5]), "the row", row)
            prices = qlist(np.array([1.0, 2.0, 3.0]), qtype=qtype.QDOUBLE_LIST)
            sizes = qlist(np.array([1, 2, 3]), qtype=qtype.QLONG_LIST)
            feed.sendAsync(".u.upd", np.bytes_("trade"), [symbols("A", "B", "C"), prices, sizes, ["x", "", "zz"]])
            every, chosen = everything.receive()[2], some.receive()[2]
            expect(every["sym"].tolist() == [b"A", b"B", b"C"], "all symbols", every)
            expect(chosen["sym"].tolist() == [b"B", b"C"] and chosen["size"].tolist() == [2, 3], "B and C", chosen)
            expect(everything.sendSync(".u.i") == count + 2, f"{count + 2} messages in the log", "another number")
        feed.close()

    def qpython_types(self):
        """Each type there and back again."""
        with self.qpython() as subscriber, self.qpython() as feed:
            subscriber.sendSync(".u.sub", np.bytes_("types"), np.bytes_(""))
            columns = [qlist(items, qtype=kind) for kind, items in TYPES]
            feed.sendSync(".u.upd", np.bytes_("types"), [symbols("A", "B"), *columns])
            table = subscriber.receive()[2]
            for (kind, items), name in zip(TYPES, table.dtype.names[2:]):
                came = table[name].view(items.dtype) if kind == qtype.QSTRING else table[name]
                same = np.array_equal(came, np.asarray(items), equal_nan=came.dtype.kind == "f")
                expect(same and abs(table.meta[name]) == abs(kind), f"{items} of type {kind}", (came, table.meta[name]))

    def qpython_errors(self):
        """What is no part of it is an error, and the connection goes on."""
        with self.qpython() as client:
            for query in ["2+2", "exit 0", ".u.sub[`orders;`]", "system \"ls\""]:
                try:
                    answer = client.sendSync(query)
                except QException as error:
                    expect(len(str(error)) > 3, "a reason", error)
                else:
                    expect(False, f"an error for {query}", answer)
            tables = client.sendSync(".u.t").tolist()
            expect(tables == [name.encode() for name in TABLES], "the tables", tables)

    def qpython_turned_away(self):
        """Who does not know the password is not let in."""
        try:
            self.qpython(password="wrong")
        except Exception:
            return
        expect(False, "a closed connection", "an open one")

    def pykx_publishes(self):
        """A row, waiting for the answer and not; an error; variables."""
        with pykx.SyncQConnection(self.host, self.port, **self.pykx_options()) as client:
            before = client(".u.i").py()
            client(".u.upd", "trade", ["K", 1.5, 10, b"note"])
            client(".u.upd", "trade", ["K", 2.5, 10, b"note"], wait=False)
            now = client(".u.i").py()
            expect(now == before + 2, f"{before + 2} messages", now)
            tables = client(".u.t").py()
            expect(tables == TABLES, "the tables", tables)
            try:
                answer = client("2+2")
            except pykx.QError as error:
                expect("evaluated" in str(error), "a reason", error)
            else:
                expect(False, "an error", answer)

    def pykx_comes_back(self, table, columns):
        """What a subscriber is given of columns that another connection publishes."""

        async def run():
            async with pykx.RawQConnection(self.host, self.port, **self.pykx_options()) as subscriber:
                answer = subscriber(".u.sub", table, "")
                came = []

                async def until(is_so, what):
                    end = time.monotonic() + PATIENCE_S
                    while not is_so():
                        expect(time.monotonic() < end, what, came)
                        subscriber.poll_send(0)
                        message = subscriber.poll_recv()
                        if message is not None:
                            came.append(message.py())
                        await asyncio.sleep(0.01)

                await until(answer.done, "an answer to .u.sub")
                with pykx.SyncQConnection(self.host, self.port, **self.pykx_options()) as feed:
                    feed(".u.upd", table, columns)
                await until(lambda: any(message[0] == "upd" for message in came), "rows")
                return next(message for message in came if message[0] == "upd")

        return asyncio.run(run())

    def pykx_subscribes(self):
        """A row, and columns."""
        row = self.pykx_comes_back("trade", ["K", 3.5, 10, b"note"])
        expect((row[1], row[2]["sym"], row[2]["price"]) == ("trade", ["K"], [3.5]), "the row", row)
        names = pykx.toq(["A", "B", "C"], pykx.SymbolVector)
        columns = [names, np.array([1.0, 2.0, 3.0]), np.array([1, 2, 3]), [b"xx", b"yy", b"zz"]]
        rows = self.pykx_comes_back("trade", columns)[2]
        expect((rows["sym"], rows["size"]) == (["A", "B", "C"], [1, 2, 3]), "three rows", rows)
        expect(rows["note"] == [b"xx", b"yy", b"zz"], "their notes", rows)

    def pykx_types(self):
        """Each type there and back again, but q's datetime."""
        columns = [pykx.toq(items, kind) for items, kind in OTHERS]
        names = pykx.toq(["A", "B"], pykx.SymbolVector)
        table = self.pykx_comes_back("others", [names, *columns])[2]
        for sent, (name, came) in zip(columns, list(table.items())[2:], strict=True):
            # As text, in which a null is what it is.
            expect(str(came) == str(sent.py()), f"{sent.py()} in {name}", came)


parser = argparse.ArgumentParser()
parser.add_argument("--server", required=True)
parser.add_argument("--user", default="")
parser.add_argument("--password", default="")
parser.add_argument("steps", nargs="+")
options = parser.parse_args()
sys.exit(take(Client(options), options.steps))
