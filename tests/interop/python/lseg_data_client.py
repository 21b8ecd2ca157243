"""LSEG's own Python library, unchanged, with a deployed platform session at a hub.

    lseg_data_client.py --server 127.0.0.1:PORT --items TAPE,SENA [--service TAPELINE] STEP…
"""

import argparse
import os
import sys
import warnings

import lseg.data as ld
from lseg.data.content import pricing
from lseg.data.delivery import omm_stream

from steps import expect, say, take, wait_for

FIELDS = ["BID", "ASK", "TRDPRC_1"]
UNKNOWN = "UNKNOWN"
# What the library's session calls it.
LOGGED_IN = "StreamAuthenticationSuccess"


class Client:
    def __init__(self, options):
        self.items = options.items.split(",")
        self.service = options.service
        self.events = []
        self.session = ld.session.platform.Definition(
            app_key="tapeline",
            deployed_platform_host=options.server,
            deployed_platform_username="interop",
        ).get_session()
        self.session.on_event(lambda code, message, session: self.events.append(code.name))

    def stream(self, items=None, fields=FIELDS, service=None):
        return pricing.Definition(items or self.items, fields=fields, service=service).get_stream(self.session)

    def session_opens(self):
        state = self.session.open()
        ld.session.set_default(self.session)
        expect(state == ld.OpenState.Opened, "an open session", (state, self.events))
        # The library connects with the first stream.
        stream = self.stream()
        stream.open(with_updates=False)
        stream.close()
        wait_for(lambda: LOGGED_IN in self.events, "a login that is accepted", lambda: self.events)

    def pricing(self):
        """Streams of some items and of one that nobody has: an image, then updates, of the fields asked for alone."""
        refreshed, updated, closed = {}, {}, {}
        stream = self.stream([*self.items, UNKNOWN], service=self.service)
        stream.on_refresh(lambda fields, item, _: refreshed.setdefault(item, (dict(fields), item in updated)))
        stream.on_update(lambda fields, item, _: updated.setdefault(item, []).append(fields))
        stream.on_status(lambda status, item, _: closed.setdefault(item, status))
        stream.open()
        wait_for(lambda: all(len(updated.get(item, [])) >= 3 for item in self.items), "updates of each item",
                 lambda: {item: len(got) for item, got in updated.items()})
        wait_for(lambda: UNKNOWN in closed, "a status of the unknown item")
        stream.close()
        for item in self.items:
            fields, was_updated = refreshed[item]
            expect(set(fields) == set(FIELDS), f"an image of {item} with {FIELDS}", fields)
            expect(not was_updated, f"the image of {item} before its updates", updated[item][:1])
        strangers = {name for got in updated.values() for fields in got for name in fields} - set(FIELDS)
        expect(not strangers, "no field but those asked for", strangers)
        state = closed[UNKNOWN]["State"]
        expect((state["Stream"], state["Code"]) == ("Closed", "NotFound"), "UNKNOWN closed, not found", state)
        return {"updates": sum(len(got) for got in updated.values())}

    def snapshot(self):
        """Images without streams behind them, of a service that is not named."""
        stream = self.stream()
        stream.open(with_updates=False)
        frame = stream.get_snapshot()
        stream.close()
        self.whole(frame)

    def data_frame(self):
        """What most people call: prices as a table of pandas."""
        self.whole(ld.get_data(self.items, FIELDS))

    def whole(self, frame):
        columns = list(frame.columns)
        expect(columns[0] == "Instrument" and set(columns[1:]) == set(FIELDS), f"columns Instrument and {FIELDS}", columns)
        expect(list(frame["Instrument"]) == self.items, f"a row of each of {self.items}", list(frame["Instrument"]))
        expect(frame["BID"].notna().any() and (frame["BID"].dropna() > 0).all(), "prices", frame.to_dict())

    def omm(self):
        """A stream of messages as they are: refresh first, then updates; closed, nothing more comes."""
        got = []
        stream = omm_stream.Definition(self.items[0], domain="MarketPrice", service=self.service).get_stream(self.session)
        for on in (stream.on_refresh, stream.on_update):
            on(lambda message, _: got.append(message))
        stream.open()
        wait_for(lambda: len(got) > 2, "a refresh and updates", lambda: got)
        stream.close()
        kinds = [message["Type"] for message in got]
        expect(kinds[0] == "Refresh" and set(kinds[1:]) == {"Update"}, "a refresh and updates", kinds)
        expect(got[0]["Key"] == {"Service": self.service, "Name": self.items[0]}, "the key asked for", got[0]["Key"])

    def contribution(self):
        """A post on an item's stream and one beside it: each is answered, taken or refused."""
        stream = omm_stream.Definition(self.items[0], domain="MarketPrice", service=self.service).get_stream(self.session)
        stream.open()
        on = stream.contribute({"BID": 1.0})
        stream.close()
        off = omm_stream.contribute(name=self.items[0], fields={"BID": 1.0}, service=self.service, session=self.session)
        for answer in (on, off):
            message = getattr(answer, "_message", answer)
            expect(message and message.get("Type") == "Ack", "an Ack", answer)
        return {"answer": str(off)}

    def reconnect(self):
        """Who started us kills the plant when it reads `ready`, and starts it again at the same address."""
        refreshed, updates = [], []
        stream = self.stream(self.items[:1], service=self.service)
        stream.on_refresh(lambda fields, item, _: refreshed.append(fields))
        stream.on_update(lambda fields, item, _: updates.append(fields))
        stream.open()
        wait_for(lambda: updates, "an update before the plant is killed")
        del self.events[:]
        images = len(refreshed)
        say("ready", **{"for": "reconnect"})
        wait_for(lambda: "StreamReconnecting" in self.events, "the library to miss the plant", lambda: self.events)
        wait_for(lambda: len(refreshed) > images, "another image", lambda: self.events)
        so_far = len(updates)
        wait_for(lambda: len(updates) > so_far + 2, "updates from the plant that is back")
        stream.close()
        return {"events": self.events[:10]}


def main():
    # What the library says of pandas, at each table.
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--items", required=True)
    parser.add_argument("--service", default="TAPELINE")
    parser.add_argument("steps", nargs="+")
    options = parser.parse_args()
    client = Client(options)
    code = take(client, options.steps)
    client.session.close()
    sys.stdout.flush()
    # The library's threads would otherwise keep the process.
    os._exit(code)


if __name__ == "__main__":
    main()
