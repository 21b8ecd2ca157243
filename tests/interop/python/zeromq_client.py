"""A subscriber with libzmq (pyzmq) at a plant that publishes with ZeroMQ.

    zeromq_client.py --server HOST:PORT --items TAPE,SENA --body rwf|json [--service TAPELINE] STEP…
"""

import argparse
import json
import struct
import sys

import zmq

from steps import PATIENCE_S, expect, say, take

# docs/zeromq.md: version, kind, flags, state, channel, domain, body, number, sequence, begun, event, wire, sequenced, sent.
HEADER = struct.Struct("<BBBBHBBQQQQQQQ")
REFRESH, STATUS, UPDATE = 2, 3, 4
IMAGE = 0x80
RWF, JSON = 0, 1
MARKET_PRICE = 6


class Client:
    def __init__(self, options):
        self.items = options.items.split(",")
        self.service = options.service
        self.address = f"tcp://{options.server}"
        self.body = JSON if options.body == "json" else RWF
        self.context = zmq.Context()

    def subscriber(self, *topics):
        socket = self.context.socket(zmq.SUB)
        socket.setsockopt(zmq.RCVTIMEO, PATIENCE_S * 1000)
        socket.setsockopt(zmq.LINGER, 0)
        for topic in topics:
            socket.subscribe(topic)
        socket.connect(self.address)
        return socket

    def receive(self, socket):
        """The next message: its topic, header and body."""
        parts = socket.recv_multipart()
        expect(len(parts) == 3, "three parts", parts)
        topic, header, body = parts
        expect(len(header) == HEADER.size, f"a header of {HEADER.size} bytes", len(header))
        version, kind, flags, _, _, domain, form, number, seq, begun, _, _, sequenced, sent = HEADER.unpack(header)
        expect((version, form) == (1, self.body), f"version 1 and body {self.body}", (version, form))
        # Two threads have stamped it, each with its own reading of the clock.
        expect(begun > 0 and sent > sequenced - 1_000_000 > 0 and seq > 0, "times and a sequence", header)
        if form == JSON:
            message = json.loads(body)
            expect(message["Type"] == {REFRESH: "Refresh", STATUS: "Status", UPDATE: "Update"}[kind], f"a {kind}", message)
        else:
            # RWF: two bytes of length of the header, then the message's class and domain (RWF, message header).
            expect((body[2] & 0x1F, body[3]) == (kind, domain), f"RWF of class {kind}, domain {domain}", body[:8])
        return topic.decode(), (kind, flags, domain, number, seq), body

    def everything(self):
        """All topics: of each, numbers without a gap from the first that came on."""
        socket = self.subscriber("")
        last, sequence, images = {}, 0, 0
        while sum(number - first for first, number in last.values()) < 2000:
            topic, (kind, flags, domain, number, seq), _ = self.receive(socket)
            if flags & IMAGE:
                images += 1
                expect(kind == REFRESH, "an image to be a refresh", kind)
                expect(topic not in last or number == last[topic][1], f"an image of {topic} as of its last message", number)
                continue
            expect(seq > sequence, f"a sequence above {sequence}", seq)
            sequence = seq
            first, before = last.get(topic, (number, number - 1))
            expect(number == before + 1, f"number {before + 1} of {topic}", number)
            last[topic] = (first, number)
        socket.close()
        return {"topics": len(last), "images": images}

    def prefix(self):
        """One item, and the beginning of another's name: nothing else comes; unsubscribed, nothing of it."""
        name, other = f"{self.service}/{self.items[0]}", f"{self.service}/{self.items[1]}"
        socket = self.subscriber(name, other[:-1])
        seen = set()
        while not {name, other} <= seen:
            topic, _, _ = self.receive(socket)
            expect(topic.startswith((name, other[:-1])), f"topics that begin as {name} or {other[:-1]}", topic)
            seen.add(topic)
        socket.unsubscribe(other[:-1])
        # What was on its way when the publisher heard of it.
        for _ in range(100):
            topic, _, _ = self.receive(socket)
        for _ in range(20):
            topic, _, _ = self.receive(socket)
            expect(topic == name, f"{name} alone", topic)
        socket.close()

    def image(self):
        """Who comes late gets an image, whole, and from there on every message by its number."""
        name = f"{self.service}/{self.items[0]}"
        socket = self.subscriber(name)
        while True:
            topic, (kind, flags, domain, number, _), body = self.receive(socket)
            if topic == name and flags & IMAGE:
                break
        expect(kind == REFRESH and domain == MARKET_PRICE, "a refresh of a price", (kind, domain))
        if self.body == JSON:
            fields = json.loads(body)["Fields"]
            expect({"BID", "ASK", "TRDPRC_1"} <= set(fields), "prices", fields)
        for _ in range(20):
            topic, (kind, flags, _, after, _), _ = self.receive(socket)
            if topic == name and not flags & IMAGE:
                expect(after == number + 1, f"number {number + 1} behind the image", after)
                number = after
        socket.close()

    def xsub(self):
        """libzmq's other kind of subscriber, which says itself what goes over the wire."""
        socket = self.context.socket(zmq.XSUB)
        socket.setsockopt(zmq.RCVTIMEO, PATIENCE_S * 1000)
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(self.address)
        name = f"{self.service}/{self.items[0]}".encode()
        socket.send(b"\x01" + name)
        for _ in range(3):
            topic, _, _ = self.receive(socket)
            expect(topic.startswith(name.decode()), f"{name}", topic)
        socket.close()

    def heartbeat(self):
        """libzmq pings, and hangs up on who does not answer: the subscription goes on for longer than that."""
        socket = self.context.socket(zmq.SUB)
        for option, value in ((zmq.RCVTIMEO, PATIENCE_S * 1000), (zmq.LINGER, 0), (zmq.HEARTBEAT_IVL, 100), (zmq.HEARTBEAT_TIMEOUT, 2000)):
            socket.setsockopt(option, value)
        monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        socket.connect(self.address)
        socket.subscribe(f"{self.service}/NOBODY")
        # Nothing comes of that topic: pings and pongs alone keep the connection, for longer than the time-out.
        expect(not monitor.poll(3000), "a connection that lasts", "its end")
        socket.disable_monitor()
        socket.close()

    def reconnect(self):
        """Who started us kills the plant when it reads `ready`, and starts it again at the same address."""
        name = f"{self.service}/{self.items[0]}"
        socket = self.subscriber(name)
        begun = HEADER.unpack(socket.recv_multipart()[1])[9]
        say("ready", **{"for": "reconnect"})
        # What was on its way comes first; libzmq connects again by itself.
        while HEADER.unpack(socket.recv_multipart()[1])[9] == begun:
            pass
        self.receive(socket)
        socket.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--items", required=True)
    parser.add_argument("--service", default="TAPELINE")
    parser.add_argument("--body", choices=("rwf", "json"), required=True)
    parser.add_argument("steps", nargs="+")
    options = parser.parse_args()
    sys.exit(take(Client(options), options.steps))


if __name__ == "__main__":
    main()
