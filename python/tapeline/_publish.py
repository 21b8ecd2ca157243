"""Publishers and providers."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ._tapeline import EndedError, ProviderSource, PublisherSource, TapelineError


class _Publishing:
    _source: PublisherSource | ProviderSource

    def publish(self, table_or_item: Any, fields: Mapping[str, Any] | None = None) -> int:
        """Publishes a table, or the fields of one item: ``publish(df)``, ``publish("IBM.N", {"BID": 39.91})``.

        A table has a column ``item``; its other columns are named as fields of the dictionary. A null in it leaves the
        field as it is; ``None`` in a dict makes the field blank. Returns the number of rows.
        """
        if fields is not None:
            self._source.publish(table_or_item, dict(fields))
            return 1
        return self._source.publish_table(table_or_item)

    _closed = False

    def close(self) -> None:
        """Closes the connection, or stops listening."""
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        self.close()


class Publisher(_Publishing):
    """A non-interactive provider: publishes the items of one service to a hub, which needs no request for them.

    It keeps the last value of each field, so that a hub that comes back begins with images. A hub that takes none for a
    while gets the newest values.
    """

    def __init__(
        self, hub: str, service: str, *, service_id: int = 1, user: str = "user", password: str | None = None
    ) -> None:
        self.hub, self.service = hub, service
        self._source: PublisherSource = PublisherSource(hub, user, password, service_id, service)

    def wait(self, timeout: float = 30.0) -> "Publisher":
        """Waits until the hub has accepted the login; a ``TapelineError`` after ``timeout`` seconds."""
        if not self._source.wait_ready(timeout):
            why = self._source.disconnected() or "there is no answer"
            raise TapelineError(f"{self.hub} has not accepted the login after {timeout} s: {why}\nhint: does it listen for providers at this port?")
        return self

    def close(self, timeout: float = 5.0) -> None:
        """Sends what was published, for at most ``timeout`` seconds, then closes the connection.

        A ``TapelineError`` names the items that were not sent.
        """
        self._closed = True
        self._source.end(timeout)

    def __enter__(self) -> "Publisher":
        return self


class Provider(_Publishing):
    """An interactive provider: consumers connect to it and request items of its service."""

    def __init__(self, address: str = "127.0.0.1:14002", service: str = "DIRECT_FEED") -> None:
        self.service = service
        self._source: ProviderSource = ProviderSource(address, service)
        #: The address with the port that was taken.
        self.address = self._source.address

    def take(self, timeout: float) -> tuple[str, str] | None:
        """The next event: ``("opened", item)`` for an item without values, ``("logged_in", user)``, ``("closed", …)``."""
        return self._source.take(timeout)

    def serve(self, answer: Callable[[str], Mapping[str, Any] | None], *, until: Callable[[], bool] = lambda: False) -> None:
        """Answers each request by ``answer(item)``: the fields of its image, or ``None`` if there is no such item.

        Returns when ``until()`` is true, or when the provider is closed by another thread.
        """
        while not until():
            try:
                taken = self.take(0.1)
            except EndedError:
                if self._closed:
                    return
                raise
            if taken is not None and taken[0] == "opened":
                fields = answer(taken[1])
                if fields is None:
                    self.close_item(taken[1], "There is no such item")
                else:
                    self.publish(taken[1], fields)

    def close(self) -> None:
        """Stops listening, and disconnects the consumers."""
        self._closed = True
        self._source.end()

    def close_item(self, item: str, why: str = "closed by the provider") -> None:
        """Closes an item for all consumers."""
        self._source.close_item(item, why)

    def __enter__(self) -> "Provider":
        return self
