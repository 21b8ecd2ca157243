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
    """The port of a venue that sends these messages on each connection, and then nothing."""

    class Venue(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            # The subscription begins to arrive; what else the plant sends is not looked at.
            self.rfile.read(1)
            for message in messages:
                text = json.dumps(message).encode()
                self.wfile.write(b"\x81" + length(len(text)) + text)
            self.wfile.flush()
            while self.rfile.read(1):
                pass
            self.close_connection = True

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Venue) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()
