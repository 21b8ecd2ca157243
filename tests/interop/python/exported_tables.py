"""What DuckDB and Polars find in exported tables: counts, sums and types by table, as JSON on standard output.

    exported_tables.py FOLDER
"""

import json
import sys

import duckdb
import polars

folder = sys.argv[1]


def by_duckdb():
    trades = f"read_parquet('{folder}/trades/*/*.parquet', hive_partitioning = true)"
    count = lambda table: duckdb.sql(f"SELECT count(*) FROM read_parquet('{folder}/{table}/*/*.parquet')").fetchall()[0][0]
    rows, size, notional, days = duckdb.sql(
        f"SELECT count(*), sum(size), sum(price * size), count(DISTINCT date) FROM {trades}"
    ).fetchall()[0]
    types = duckdb.sql(f"SELECT typeof(price), typeof(size), typeof(time), typeof(name) FROM {trades} LIMIT 1").fetchall()[0]
    bid, ask = duckdb.sql(
        f"SELECT sum(bid), sum(ask) FROM read_parquet('{folder}/quotes/*/*.parquet')"
    ).fetchall()[0]
    last = duckdb.sql(f"SELECT max(sequence), epoch_ns(max(time)) FROM read_parquet('{folder}/ticks/*/*.parquet')").fetchall()[0]
    return {
        "rows": {table: count(table) for table in ("ticks", "trades", "quotes", "orders", "auctions", "fields")},
        "days": days,
        "size": int(size),
        "notional": f"{notional:.9f}",
        "bid": f"{bid:.9f}",
        "ask": f"{ask:.9f}",
        "last": list(last),
    }, list(types)


def by_polars():
    scan = lambda table: polars.scan_parquet(f"{folder}/{table}", hive_partitioning=True)
    count = lambda table: scan(table).select(polars.len()).collect().item()
    trades = scan("trades").collect()
    # Polars keeps a product's places at those of its factors: the same nine.
    notional = sum(price * size for price, size in trades.select("price", "size").iter_rows())
    quotes = scan("quotes").select(polars.col("bid").sum(), polars.col("ask").sum()).collect()
    ticks = scan("ticks").select(polars.col("sequence").max(), polars.col("time").max().dt.epoch("ns")).collect()
    return {
        "rows": {table: count(table) for table in ("ticks", "trades", "quotes", "orders", "auctions", "fields")},
        "days": trades["date"].n_unique(),
        "size": trades["size"].sum(),
        "notional": f"{notional:.9f}",
        "bid": f"{quotes['bid'].item():.9f}",
        "ask": f"{quotes['ask'].item():.9f}",
        "last": list(ticks.row(0)),
    }, [str(trades.schema[column]) for column in ("price", "size", "time", "name")]


(duck, duck_types), (polar, polar_types) = by_duckdb(), by_polars()
print(json.dumps({"duckdb": duck, "polars": polar, "duckdb_types": duck_types, "polars_types": polar_types}))
