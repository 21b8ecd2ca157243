"""Consumers of Open Message Model services."""

from __future__ import annotations

import os
import time
from typing import Any, Iterable, Mapping, Sequence

from ._batches import Batches, names
from ._tapeline import Batch, ConsumerSource, TapelineError


class Consumer:
    """A consumer of a provider or of Tapeline's hub, with a thread of its own that keeps the connection.

    ``server``: ``"host:port"``, or several that are tried in turn. ``json=True`` speaks simplified JSON over a
    WebSocket, else RWF over TCP. ``tls=True`` trusts the system's certificates, ``tls="ca.pem"`` those of a file. A lost connection is made again, and items are requested again.
    """

    def __init__(
        self,
        server: str | Sequence[str],
        *,
        user: str = "user",
        password: str | None = None,
        service: str | None = None,
        json: bool = False,
        tls: bool | str | os.PathLike[str] = False,
    ) -> None:
        servers = [server] if isinstance(server, str) else list(server)
        self.servers = servers
        self.service = service
        trusted = None if isinstance(tls, bool) else os.fspath(tls)
        self._source = ConsumerSource(servers, user, password, json, tls is not False, trusted)

    def __repr__(self) -> str:
        return f"<tapeline.Consumer of {', '.join(self.servers)}: {self._source.connection}>"

    @property
    def connection(self) -> str:
        """What the connection did last, in words."""
        return self._source.connection

    def subscribe(
        self,
        items: str | Iterable[str],
        *,
        service: str | None = None,
        fields: Sequence[str] | None = None,
        domain: str = "market_price",
        streaming: bool = True,
    ) -> "Consumer":
        """Requests items; ``fields`` asks for these alone. Returns the consumer."""
        service = service or self.service
        if service is None:
            raise TapelineError("no service is named\nhint: Consumer(..., service=\"TAPELINE\"), or subscribe(..., service=...)")
        wanted = [items] if isinstance(items, str) else list(items)
        self._know(fields)
        self._source.open(service, wanted, domain, names(fields), streaming)
        return self

    def unsubscribe(self, items: str | Iterable[str], *, service: str | None = None) -> None:
        """Closes items of a service; if neither this call nor the consumer names one, those of every service."""
        self._source.close_items([items] if isinstance(items, str) else list(items), service or self.service)

    def wait(self, timeout: float = 30.0) -> "Consumer":
        """Waits until each item has its image or its refusal; a ``TapelineError`` after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while not self._source.wait_ready(0.1) or self._source.pending:
            if time.monotonic() >= deadline:
                pending, such_as = self._source.pending, self._source.first_pending
                raise TapelineError(
                    f"{pending} items have no image after {timeout} s, such as {such_as!r}: {self.connection}\n"
                    "hint: is the server up, and does it have the service and the items?"
                )
            self._source.wait_change(0.1)
        return self

    def batches(
        self, columns: Sequence[str] | None = None, *, max_rows: int = 65_536, max_wait: float = 0.05
    ) -> Batches:
        """Images, updates and statuses from now on, as batches; one row each, or one for each entry of a map.

        A batch leaves with ``max_rows`` rows, or ``max_wait`` seconds after its first one. While 64 batches wait to be
        taken, nothing more is read of the connection: ``close()`` an iterator that is kept and not used any more.
        """
        self._know(columns)
        self._source.gather(names(columns), max_rows, max_wait)
        return Batches(self._source)

    def snapshot(self, columns: Sequence[str] | None = None) -> Batch:
        """The last value of each field of each item: images with their updates merged.

        One row for each item, in the order of the subscriptions. The column ``service`` has the number of its service.
        """
        self._know(columns)
        return self._source.snapshot(names(columns))

    def post(
        self, item: str, fields: Mapping[str, Any], *, service: str | None = None, timeout: float = 20.0
    ) -> None:
        """Posts fields to an open item, and waits for the answer; a ``TapelineError`` if the post is refused."""
        answer = self._source.answer(self._source.post(item, service or self.service, dict(fields)), timeout)
        if answer is None:
            raise TapelineError(f"the post to {item} was not answered within {timeout} s: {self.connection}")
        if answer:
            raise TapelineError(f"the post to {item} was refused: {answer}\nhint: may this user post, and is the item open?")

    def _know(self, names: Sequence[str] | None) -> None:
        """Fields have the names of the server's dictionary, which comes with the connection."""
        if names is not None:
            self._source.wait_ready(5.0)

    def close(self) -> None:
        """Logs out, and closes the connection."""
        self._source.end()

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
