"""A venue of Coinbase's kind: a WebSocket (RFC 6455) that answers a subscription with these messages."""

import base64
import contextlib
import hashlib
import http.server
import json
import threading


def length(count):
    """The length of an unmasked frame, in as few bytes as can be."""
    if count < 126:
        return bytes([count])
    return b"\x7e" + count.to_bytes(2, "big") if count < 1 << 16 else b"\x7f" + count.to_bytes(8, "big")


@contextlib.contextmanager
def venue(*messages):
    """The port of a venue that sends these messages on each connection, and then answers pings."""

    class Venue(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            for number, opcode in enumerate(self.frames()):
                if number == 0:
                    # The subscription.
                    for message in messages:
                        text = json.dumps(message).encode()
                        self.wfile.write(b"\x81" + length(len(text)) + text)
                elif opcode == 9:
                    # A pong for a ping without contents.
                    self.wfile.write(b"\x8a\x00")
                self.wfile.flush()
            self.close_connection = True

        def frames(self):
            """The opcodes of the plant's frames, until it has gone; their contents are not looked at."""
            while len(head := self.rfile.read(2)) == 2:
                count = head[1] & 127
                if count > 125:
                    count = int.from_bytes(self.rfile.read(2 if count == 126 else 8), "big")
                self.rfile.read(4 + count)
                yield head[0] & 15

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Venue) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()
