"""Consumers, providers and publishers."""

from __future__ import annotations

import random
import threading

import pytest

import tapeline

pl = pytest.importorskip("polars")

PRICES = {"BID": 39.91, "ASK": 39.93, "BIDSIZE": 9, "BID_SRC": "XNAS"}


@pytest.fixture
def provider():
    with tapeline.Provider("127.0.0.1:0", service="TEST") as provider:
        ended = threading.Event()
        answer = lambda item: None if item.startswith("NO") else PRICES
        thread = threading.Thread(target=provider.serve, args=(answer,), kwargs={"until": ended.is_set})
        thread.start()
        yield provider
        ended.set()
        thread.join()


def row(frame, item):
    return frame.filter(pl.col("item").cast(pl.String) == item).row(0, named=True)


@pytest.mark.parametrize("json", [False, True])
def test_images_updates_and_refusals(provider, json):
    with tapeline.Consumer(provider.address, service="TEST", json=json) as consumer:
        consumer.subscribe(["A", "B", "NOT"]).wait()
        frame = consumer.snapshot(["item", "state", "text", "BID", "ASK", "BID_SRC"]).to_polars()
        assert len(frame) == 3
        assert row(frame, "A") == {"item": "A", "state": "open", "text": None, "BID": 39.91, "ASK": 39.93, "BID_SRC": "XNAS"}
        assert row(frame, "NOT")["state"] == "closed" and "no such item" in row(frame, "NOT")["text"]
        batches = consumer.batches(["item", "kind", "BID", "ASK"], max_wait=0.2)
        provider.publish("A", {"BID": 40.125})
        update = pl.DataFrame(next(batches)).row(0, named=True)
        assert update == {"item": "A", "kind": "update", "BID": 40.125, "ASK": None}
        provider.publish("A", {"ASK": None})
        # Not a number: made blank. Null: not in this update.
        blanked = pl.DataFrame(next(batches)).row(0, named=True)
        assert blanked["BID"] is None and blanked["ASK"] != blanked["ASK"]
        merged = row(consumer.snapshot(["item", "BID", "ASK"]).to_polars(), "A")
        assert merged == {"item": "A", "BID": 40.125, "ASK": None}


def test_a_table_is_published(provider):
    table = pl.DataFrame({"item": ["X", "Y", "X"], "BID": [1.5, 2.25, 1.75], "BIDSIZE": [100, None, 300], "BID_SRC": ["x", "y", None]})
    assert provider.publish(table) == 3
    with tapeline.Consumer(provider.address, service="TEST") as consumer:
        consumer.subscribe(["X", "Y"], fields=["BID", "BIDSIZE", "BID_SRC"]).wait()
        frame = consumer.snapshot(["item", "BID", "BIDSIZE", "BID_SRC"]).to_polars()
        assert row(frame, "X") == {"item": "X", "BID": 1.75, "BIDSIZE": 300.0, "BID_SRC": "x"}
        assert row(frame, "Y") == {"item": "Y", "BID": 2.25, "BIDSIZE": None, "BID_SRC": "y"}


def test_tables_of_other_libraries_are_published(provider):
    pa, pd = map(pytest.importorskip, ["pyarrow", "pandas"])
    for table in (pa.table({"item": ["P"], "BID": [1]}), pd.DataFrame({"item": ["P"], "BID": [1.0]})):
        assert provider.publish(table) == 1


def test_a_table_that_does_not_fit_is_refused(provider):
    with pytest.raises(tapeline.ArgumentError, match='no column "item"'):
        provider.publish(pl.DataFrame({"name": ["A"]}))
    with pytest.raises(tapeline.ArgumentError, match='(?s)no column "BIDD".*did you mean "BID"'):
        provider.publish(pl.DataFrame({"item": ["A"], "BIDD": [1.0]}))
    with pytest.raises(tapeline.ArgumentError, match='row 0, item "A": the field BID is of type REAL, and cannot have the value "dear"'):
        provider.publish(pl.DataFrame({"item": ["A"], "BID": ["dear"]}))
    with pytest.raises(tapeline.ArgumentError, match="expected a table, found list"):
        provider.publish([1, 2])
    with pytest.raises(tapeline.ArgumentError, match="is not an address"):
        tapeline.Provider("nowhere")


def test_a_plants_items_by_its_hub(plant, names):
    with tapeline.Consumer(plant.hub, service=plant.service) as consumer:
        consumer.subscribe(names[:3]).wait()
        frame = consumer.snapshot(["item", "state", "BID", "ASK"]).to_polars()
        assert sorted(frame["item"].cast(pl.String)) == names[:3]
        assert set(frame["state"].cast(pl.String)) == {"open"}
        batches = consumer.batches(["item", "kind", "BID"], max_wait=0.05)
        assert len(next(batches)) > 0
        batches.close()
        consumer.unsubscribe(names[0])


def test_a_provider_that_comes_back_is_recovered(provider):
    with tapeline.Consumer(provider.address, service="TEST") as consumer:
        consumer.subscribe("A").wait()
        batches = consumer.batches(["item", "kind", "state", "BID"], max_wait=0.05)
        provider.close()
        states = pl.DataFrame(next(batches))
        assert states["state"].cast(pl.String).to_list() == ["suspect"]
        with tapeline.Provider(provider.address, service="TEST") as again:
            again.publish("A", {"BID": 41.5})
            kinds: list[str] = []
            while "image" not in kinds:
                kinds = pl.DataFrame(next(batches))["kind"].cast(pl.String).to_list()
            assert row(consumer.snapshot(["item", "state", "BID"]).to_polars(), "A") == {"item": "A", "state": "open", "BID": 41.5}


def test_nobody_at_the_port_is_told():
    with tapeline.Consumer("127.0.0.1:9", service="TEST") as consumer:
        consumer.subscribe("A")
        with pytest.raises(tapeline.TapelineError, match="(?s)1 items have no image after 0.5 s, such as 'A': no connection to 127.0.0.1:9.*hint"):
            consumer.wait(0.5)
    with pytest.raises(tapeline.TapelineError, match="has not accepted the login"):
        with tapeline.Publisher("127.0.0.1:9", "TEST") as publisher:
            publisher.wait(0.5)


def test_wrong_input_is_told_with_a_hint(provider):
    with tapeline.Consumer(provider.address) as consumer:
        with pytest.raises(tapeline.TapelineError, match="no service is named"):
            consumer.subscribe("A")
        with pytest.raises(tapeline.ArgumentError, match='did you mean "BID"'):
            consumer.subscribe("A", service="TEST", fields=["BIDD"])
        with pytest.raises(ValueError, match="domain is"):
            consumer.subscribe("A", service="TEST", domain="prices")
        with pytest.raises(tapeline.ArgumentError, match="1 to 255 bytes"):
            consumer.subscribe("", service="TEST")
        consumer.close()
        with pytest.raises(tapeline.EndedError):
            consumer.subscribe("A", service="TEST")


def test_ten_thousand_items(provider):
    table = pl.DataFrame({"item": [f"I{number}" for number in range(10_000)], "BID": [float(number) for number in range(10_000)]})
    provider.publish(table)
    with tapeline.Consumer(provider.address, service="TEST") as consumer:
        consumer.subscribe(table["item"]).wait(120)
        frame = consumer.snapshot(["item", "BID"]).to_polars().with_columns(pl.col("item").cast(pl.String))
        assert frame.sort("BID").equals(table)


def test_a_post_is_answered(plant, names):
    with tapeline.Consumer(plant.hub, service=plant.service) as consumer:
        consumer.subscribe(names[0]).wait()
        try:
            consumer.post(names[0], {"BID": 1.5})
        except tapeline.TapelineError as refused:
            assert "was refused" in str(refused)
        with pytest.raises(tapeline.TapelineError, match="the item is not open"):
            consumer.post("NOT", {"BID": 1.5})
        with pytest.raises(tapeline.ArgumentError, match='did you mean "BID"'):
            consumer.post(names[0], {"BIDD": 1.5})


def test_a_file_of_certificates_that_is_not_there(tmp_path):
    with pytest.raises(tapeline.TapelineError, match="cannot read .*ca.pem"):
        tapeline.Consumer("localhost:14002", service="TEST", tls=tmp_path / "ca.pem")


def test_last_values_of_any_length(provider):
    """Against a dict: values longer and shorter than before, in any order, and blank."""
    fields = ["BID_SRC", "ASK_SRC", "TRADE_ID", "ORDER_ID", "MMID", "COND_N", "HALT_REASN"]
    dice = random.Random(1)
    expected = dict.fromkeys(fields)
    provider.publish("V", {"BID": -1})
    with tapeline.Consumer(provider.address, service="TEST") as consumer:
        consumer.subscribe("V").wait()
        batches = consumer.batches(["BID"], max_wait=0)
        for turn in range(60):
            change = {name: dice.choice([None, *("x" * length for length in (1, 2, 9, 252, 253, 254, 255, 300))]) for name in dice.sample(fields, 3)}
            expected |= change
            provider.publish("V", {**change, "BID": turn})
            while turn not in pl.DataFrame(next(batches))["BID"].to_list():
                pass
            assert row(consumer.snapshot(["item", *fields]).to_polars(), "V") == {"item": "V", **expected}


def test_items_of_one_name_in_two_services(provider):
    with tapeline.Consumer(provider.address) as consumer:
        consumer.subscribe("A", service="TEST")
        consumer.subscribe("A", service="NONE")
        while consumer.snapshot(["state"]).to_polars()["state"].cast(pl.String)[0] != "open":
            pass
        frame = consumer.snapshot(["item", "service", "state", "BID"]).to_polars().with_columns(pl.col("item", "state").cast(pl.String))
        assert frame.rows()[0] == ("A", 1, "open", 39.91)
        assert frame.rows()[1][:2] == ("A", 0) and frame.rows()[1][2] in ("pending", "suspect")
        with pytest.raises(tapeline.TapelineError, match="name the service"):
            consumer.post("A", {"BID": 1.0})
        consumer.unsubscribe("A", service="NONE")
        while len(consumer.snapshot()) == 2:
            pass
        assert consumer.snapshot(["state"]).to_polars()["state"].cast(pl.String).to_list() == ["open"]


def test_items_of_one_name_in_two_domains(provider):
    with tapeline.Consumer(provider.address, service="TEST") as consumer:
        consumer.subscribe("A").subscribe("A", domain="market_by_order").wait()
        frame = consumer.snapshot(["item", "state", "BID"]).to_polars().with_columns(pl.col("item", "state").cast(pl.String))
        # The provider has no order books.
        assert frame.rows() == [("A", "open", 39.91), ("A", "suspect", None)]


def test_a_snapshot_has_the_order_of_the_subscriptions(provider):
    wanted = [f"I{number}" for number in random.sample(range(1_000), 1_000)]
    with tapeline.Consumer(provider.address, service="TEST") as consumer:
        consumer.subscribe(wanted).wait()
        assert consumer.snapshot(["item"]).to_polars()["item"].cast(pl.String).to_list() == wanted


def test_an_iterator_left_by_break_holds_up_nothing(provider):
    with tapeline.Consumer(provider.address, service="TEST") as consumer:
        consumer.subscribe("A").wait()
        for bid in [41.0, 42.0]:
            batches = consumer.batches(["BID"], max_rows=1)
            provider.publish("A", {"BID": bid})
            for batch in batches:
                break
            del batches
        # The first iterator is gone, else the second would have been refused.
        for number in range(200):
            provider.publish("A", {"BID": float(number)})
        while row(consumer.snapshot(["item", "BID"]).to_polars(), "A")["BID"] != 199.0:
            pass


def test_a_time_that_is_no_number_is_refused(provider):
    with tapeline.Consumer(provider.address, service="TEST") as consumer:
        batches = consumer.batches()
        for wrong in [float("nan"), -1.0]:
            with pytest.raises(ValueError, match="timeout is a time in seconds"):
                batches.take(wrong)
        with pytest.raises(ValueError, match="max_wait is a time in seconds, not NaN"):
            consumer.batches(max_wait=float("nan"))


def test_a_column_of_nulls_alone(provider):
    with pytest.raises(tapeline.ArgumentError, match='(?s)the column "ASK" has nulls alone, and no type.*cast'):
        provider.publish(pl.DataFrame({"item": ["E"], "BID": [3.5], "ASK": [None]}))
    pa = pytest.importorskip("pyarrow")
    assert provider.publish(pa.table({"item": ["E"], "BID": [3.5], "ASK": pa.nulls(1)})) == 1
    with tapeline.Consumer(provider.address, service="TEST") as consumer:
        consumer.subscribe("E").wait()
        assert row(consumer.snapshot(["item", "BID", "ASK"]).to_polars(), "E") == {"item": "E", "BID": 3.5, "ASK": None}
