"""The WebSocket protocol as LSEG documents it, spoken by hand over the usual Python client: no library knows our hub.

    websocket_client.py --server HOST:PORT --items TAPE,SENA [--protocol tr_json2] [--ca FILE] [--service TAPELINE] STEP…
"""

import argparse
import json
import sys

import websocket

from steps import PATIENCE_S, expect, take

UNKNOWN = "UNKNOWN"
VIEW = ["BID", "ASK"]
LOGIN = 1


class Client:
    def __init__(self, options):
        self.items = options.items.split(",")
        self.service = options.service
        scheme, tls = ("wss", {"ca_certs": options.ca}) if options.ca else ("ws", None)
        self.socket = websocket.create_connection(
            f"{scheme}://{options.server}/WebSocket",
            subprotocols=[options.protocol],
            header=["User-Agent: Python"],
            timeout=PATIENCE_S,
            sslopt=tls,
        )
        expect(self.socket.subprotocol == options.protocol, f"the protocol {options.protocol}", self.socket.subprotocol)
        self.next_id = LOGIN + 1
        self.waiting = []

    def send(self, message):
        self.socket.send(message if isinstance(message, str) else json.dumps(message))

    def receive(self):
        """The next message; pings are answered on the way."""
        while not self.waiting:
            text = self.socket.recv()
            expect(text, "a message", "the end of the connection")
            messages = json.loads(text)
            expect(isinstance(messages, list), "an array of messages", text[:200])
            for message in messages:
                if message["Type"] == "Ping":
                    self.send({"Type": "Pong"})
                else:
                    self.waiting.append(message)
        return self.waiting.pop(0)

    def of(self, ids):
        """The next message on one of these streams; what comes on others is left out."""
        while True:
            message = self.receive()
            expect(message["Type"] != "Error", "no error", message)
            if message.get("ID") in ids:
                return message

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def open(self, name, **more):
        """Asks for an item: the stream's id."""
        stream = self.new_id()
        self.send({"ID": stream, "Key": {"Name": name, "Service": self.service}, **more})
        return stream

    def close(self, stream):
        """Closes a stream, or several: nothing of them comes once the hub has answered what was sent after that."""
        self.send({"ID": stream, "Type": "Close"})
        ids = stream if isinstance(stream, list) else [stream]
        self.send({"Type": "Ping"})
        while True:
            message = self.receive()
            if message["Type"] == "Pong":
                break
        self.send({"Type": "Ping"})
        while True:
            message = self.receive()
            if message["Type"] == "Pong":
                return
            expect(message.get("ID") not in ids, f"nothing on {ids} after its close", message)

    def login(self):
        elements = {"ApplicationId": "256", "Position": "127.0.0.1/net"}
        self.send({"ID": LOGIN, "Domain": "Login", "Key": {"Name": "interop", "Elements": elements}})
        answer = self.of([LOGIN])
        expect(answer["Type"] == "Refresh" and answer["Domain"] == "Login", "a login refresh", answer)
        expect(answer["State"]["Stream"] == "Open" and answer["State"]["Data"] == "Ok", "a login that is open", answer)
        expect(answer["Elements"]["PingTimeout"] > 0, "a ping time-out", answer["Elements"])
        return {"elements": answer["Elements"]}

    def directory(self):
        stream = self.new_id()
        self.send({"ID": stream, "Domain": "Source", "Key": {"Filter": 3}})
        answer = self.of([stream])
        entries = answer["Map"]["Entries"]
        names = [part["Elements"]["Name"] for entry in entries for part in entry["FilterList"]["Entries"] if part["ID"] == 1]
        expect(self.service in names, f"the service {self.service}", names)
        self.close(stream)

    def item(self):
        """An item without its domain, by its number and by its name; without the service, too."""
        name = self.items[0]
        asked = [
            self.open(name),
            self.open(name, Domain="MarketPrice"),
            self.open(name, Domain=6),
        ]
        unnamed = self.new_id()
        self.send({"ID": unnamed, "Key": {"Name": name}})
        asked.append(unnamed)
        seen = {stream: [] for stream in asked}
        while any(len(kinds) < 3 for kinds in seen.values()):
            message = self.of(asked)
            seen[message["ID"]].append(message["Type"])
            if message["Type"] == "Refresh":
                expect(message["Key"]["Name"] == name, f"the key of {name}", message["Key"])
                expect(message["Fields"], "fields", message)
        for kinds in seen.values():
            expect(kinds[0] == "Refresh" and set(kinds[1:]) == {"Update"}, "an image and then updates", kinds)
        self.close(asked)
        return {"messages": sum(map(len, seen.values()))}

    def batch(self):
        """One request for several items: a stream for each, numbered from behind the batch's on, which is closed."""
        stream = self.open([*self.items, UNKNOWN])
        ids = [stream + number + 1 for number in range(len(self.items) + 1)]
        self.next_id = ids[-1]
        first = {}
        while len(first) < 1 + len(ids):
            message = self.of([stream, *ids])
            first.setdefault(message["ID"], message)
        expect(first[stream]["Type"] == "Status" and first[stream]["State"]["Stream"] == "Closed", "the batch closed", first[stream])
        for name, id in zip(self.items, ids):
            expect(first[id]["Type"] == "Refresh" and first[id]["Key"]["Name"] == name, f"an image of {name}", first[id])
        state = first[ids[-1]]["State"]
        expect((state["Stream"], state["Code"]) == ("Closed", "NotFound"), f"{UNKNOWN} closed, not found", state)
        self.close(ids[:-1])

    def view(self):
        stream = self.open(self.items[0], View=VIEW)
        for number in range(5):
            message = self.of([stream])
            expect(message["Type"] == ("Update" if number else "Refresh"), "an image and then updates", message)
            expect(message["Fields"] and set(message["Fields"]) <= set(VIEW), f"no fields but {VIEW}", message["Fields"])
        # Another choice, on the same stream: an image of that.
        self.send({"ID": stream, "Key": {"Name": self.items[0], "Service": self.service}, "View": ["TRDPRC_1"]})
        while (message := self.of([stream]))["Type"] == "Update":
            pass
        expect(set(message["Fields"]) == {"TRDPRC_1"}, "TRDPRC_1 alone", message["Fields"])
        self.close(stream)

    def snapshot(self):
        stream = self.open(self.items[0], Streaming=False)
        message = self.of([stream])
        expect(message["Type"] == "Refresh" and message["State"]["Stream"] == "NonStreaming", "a snapshot", message)
        self.send({"Type": "Ping"})
        while (message := self.receive())["Type"] != "Pong":
            expect(message.get("ID") != stream, "nothing behind a snapshot", message)

    def ping(self):
        self.send({"Type": "Ping"})
        while self.receive()["Type"] != "Pong":
            pass

    def post(self):
        """On an item's stream and on the login's: taken or refused, but answered."""
        stream = self.open(self.items[0])
        self.of([stream])
        inside = {"ID": 0, "Type": "Update", "Key": {"Name": self.items[0], "Service": self.service}, "Fields": {"BID": 1.5}}
        on = {"ID": stream, "Type": "Post", "Domain": "MarketPrice", "Ack": True, "PostID": 11, "Message": inside}
        off = {**on, "ID": LOGIN, "PostID": 12, "Key": inside["Key"]}
        for post in (on, off):
            self.send(post)
            while (answer := self.of([post["ID"]]))["Type"] in ("Update", "Refresh"):
                pass
            expect(answer["Type"] == "Ack" and answer["AckID"] == post["PostID"], f"an Ack of {post['PostID']}", answer)
        self.close(stream)
        return {"answer": answer.get("NakCode", "ack")}

    def errors(self):
        """What is no message is answered, and the connection goes on."""
        for text in ("garbage", '{"ID":', '{"ID": 77, "Type": "Nothing"}', '{"ID": 78, "Domain": "Nowhere", "Key": {"Name": "A"}}', "[1]"):
            self.send(text)
            while (answer := self.receive())["Type"] in ("Update", "Refresh"):
                pass
            expect(answer["Type"] == "Error" and answer["Text"], f"an error for {text}", answer)
        self.ping()

    def logout(self):
        self.send({"ID": LOGIN, "Domain": "Login", "Type": "Close"})
        try:
            while self.socket.recv():
                pass
        except (websocket.WebSocketConnectionClosedException, ConnectionError):
            pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--items", required=True)
    parser.add_argument("--service", default="TAPELINE")
    parser.add_argument("--protocol", default="tr_json2")
    parser.add_argument("--ca")
    parser.add_argument("steps", nargs="+")
    options = parser.parse_args()
    sys.exit(take(Client(options), options.steps))


if __name__ == "__main__":
    main()
