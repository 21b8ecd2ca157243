//! Rows of ticks, read back from the files.

use bytes::Bytes;
use parquet::basic::LogicalType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use tapeline_export::{Batch, Error, KdbLog, Numbers, ParquetFile, Rows, Sink, SortBy, Table, schema, types};
use tapeline_kdb::{Column, Log, Order, Update, View};
use tapeline_nanos::Nanos;
use tapeline_omm::rwf::{
    self, DataType, Domain, MapAction, MapEncoder, MapHead, RefreshHeader, State as RwfState, StatusHeader,
    StreamState, Time, UpdateType, flags,
};
use tapeline_omm::{Fid, FieldListEncoder, Real, fid};
use tapeline_plant::tick::{Flags, Header, Kind, Tick};
use tapeline_plant::{ItemId, Seq, State};

const NOON: u64 = 1_763_726_400_000_000_000;

/// A sink that stores all rows in memory.
struct All(Vec<Batch>);

impl All {
    fn new(numbers: Numbers) -> Self {
        Self(Table::ALL.map(|table| Batch::new(table, numbers)).into())
    }

    fn rows(&self) -> [usize; 6] {
        [0, 1, 2, 3, 4, 5].map(|at| self.0[at].rows())
    }

    /// Writes a table's rows to Parquet and reads them back. Returns the cells of each row as text.
    fn read(&mut self, table: Table) -> Vec<Vec<String>> {
        let batch = self.0.iter_mut().find(|batch| batch.table() == table).unwrap();
        let mut file = ParquetFile::begin(Vec::new(), table, batch.numbers()).unwrap();
        let rows = batch.rows() as u64;
        file.write(batch).unwrap();
        assert_eq!((file.rows(), batch.rows()), (rows, 0));
        let reader = SerializedFileReader::new(Bytes::from(file.finish().unwrap())).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().get_column_iter().map(|(_, field)| shown(field)).collect()).collect()
    }

    /// Returns the cells of the named columns of a table.
    fn cells(&mut self, table: Table, names: &[&str]) -> Vec<Vec<String>> {
        let at = |name: &&str| table.columns().iter().position(|column| column.name == *name).unwrap();
        let at: Vec<_> = names.iter().map(at).collect();
        self.read(table).iter().map(|row| at.iter().map(|at| row[*at].clone()).collect()).collect()
    }
}

fn shown(field: &Field) -> String {
    match field {
        Field::Null => "-".to_owned(),
        Field::Str(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Sink for All {
    fn wants(&self, _: Table) -> bool {
        true
    }

    fn batch(&mut self, table: Table) -> Result<&mut Batch, Error> {
        Ok(self.0.iter_mut().find(|batch| batch.table() == table).unwrap())
    }
}

/// Returns a tick of AAPL.
fn tick<'a>(seq: u64, kind: Kind, flags: Flags, body: &'a [u8]) -> Tick<'a> {
    let header = Header {
        seq: Seq(seq),
        feed_seq: 70 + seq,
        event: Nanos(NOON + seq),
        wire: Nanos(0),
        decoded: Nanos(NOON + 10 + seq),
        sequenced: Nanos(NOON + 20 + seq),
        item: ItemId(3),
        service: 5,
        channel: 6,
        kind,
        flags,
        source_type: 0,
        state: State::Live,
    };
    Tick { header, name: "AAPL", body, source: b"\x01src" }
}

fn update(write: impl FnOnce(&mut FieldListEncoder<'_>)) -> Vec<u8> {
    let mut out = vec![0; 512];
    let list = DataType::FIELD_LIST;
    let header =
        rwf::update_header(&mut out, Domain::MARKET_PRICE, 0, UpdateType::UNSPECIFIED, list).unwrap();
    finish(out, header, write)
}

fn image(flags: rwf::Flags, write: impl FnOnce(&mut FieldListEncoder<'_>)) -> Vec<u8> {
    let mut out = vec![0; 512];
    let mut refresh = RefreshHeader::new(Domain::MARKET_PRICE, 0, RwfState::OPEN_OK, DataType::FIELD_LIST);
    refresh.flags = flags;
    let header = refresh.encode(&mut out).unwrap();
    finish(out, header, write)
}

fn finish(mut out: Vec<u8>, header: usize, write: impl FnOnce(&mut FieldListEncoder<'_>)) -> Vec<u8> {
    let mut fields = FieldListEncoder::new(&mut out[header..]).unwrap();
    write(&mut fields);
    let len = header + fields.finish();
    out.truncate(len);
    out
}

fn trade(fields: &mut FieldListEncoder<'_>) {
    fields.real(fid::TRDPRC_1, Real::decimal(842_850, 4)).unwrap();
    fields.real(fid::BID, Real::decimal(8_428, 2)).unwrap();
    fields.real(fid::ACVOL_1, Real::integer(5_000_000_000)).unwrap();
    fields.real(fid::NUM_MOVES, Real::integer(17)).unwrap();
    fields.real(fid::TRDVOL_1, Real::integer(42)).unwrap();
    fields.rmtes(fid::TRADE_ID, b"9007199254740993").unwrap();
    fields.rmtes(fid::COND_N, b"FI").unwrap();
    fields.enumeration(fid::TRD_STATUS, 2).unwrap();
    fields.enumeration(fid::AGGRS_SID1, 1).unwrap();
    fields.time(fid::SALTIM_NS, Time::from_ns_of_day(43_200_000_000_001)).unwrap();
}

#[test]
fn a_tick_is_a_trade_a_quote_and_fields() {
    let (mut rows, mut all) = (Rows::default(), All::new(Numbers::Exact));
    let quote = image(flags::refresh::CLEAR_CACHE, |fields| {
        fields.real(fid::TRDPRC_1, Real::decimal(84, 0)).unwrap();
        fields.real(fid::ASK, Real::decimal(843, 1)).unwrap();
        fields.real(fid::ASKSIZE, Real::integer(100)).unwrap();
    });
    rows.add(&tick(1, Kind::Refresh, Flags::default(), &quote), &mut all).unwrap();
    rows.add(&tick(2, Kind::Update, Flags::SUSPECT, &update(trade)), &mut all).unwrap();
    // The trade of an image is an earlier one, so it becomes a field, not a trade.
    assert_eq!(all.rows(), [2, 1, 2, 0, 0, 2]);
    let trades = all.read(Table::Trades);
    let time = |ns: u64| (NOON + ns).to_string();
    let expected = [
        &time(22),
        "AAPL",
        "2",
        "5",
        &time(2),
        "-",
        "trade",
        "9007199254740993",
        "buy",
        "FI",
        "84.285000000",
        "42",
        "5000000000",
        "17",
        "43200000000001",
        "unknown",
    ];
    assert_eq!(trades, [expected.map(str::to_owned).to_vec()]);
    let quotes = all.cells(Table::Quotes, &["sequence", "bid", "bid_size", "ask", "ask_size"]);
    assert_eq!(
        quotes,
        [["1", "-", "-", "84.300000000", "100"], ["2", "84.280000000", "-", "84.300000000", "100"]]
    );
    let fields = all.cells(Table::Fields, &["sequence", "fid", "field", "data_type", "text", "number"]);
    assert_eq!(
        fields,
        [["1", "6", "TRDPRC_1", "REAL", "84", "84.0"], ["2", "6614", "TRD_STATUS", "ENUM", "H", "2.0"]]
    );
    let ticks = all.cells(Table::Ticks, &["sequence", "item", "kind", "feed_sequence", "state", "quality"]);
    assert_eq!(
        ticks,
        [["1", "3", "refresh", "71", "live", "good"], ["2", "3", "update", "72", "live", "unknown"]]
    );
}

fn broken(fields: &mut FieldListEncoder<'_>) {
    fields.real(fid::ACVOL_1, Real::integer(900)).unwrap();
    fields.real(fid::NUM_MOVES, Real::integer(16)).unwrap();
    fields.real(fid::CAN_PRC, Real::decimal(842_850, 4)).unwrap();
    fields.int(fid::CAN_VOL, 42).unwrap();
    fields.rmtes(fid::CAN_TRD_ID, b"9007199254740993").unwrap();
    fields.time(fid::CAN_TIM_NS, Time::from_ns_of_day(NOON + 1)).unwrap();
}

fn imbalance(fields: &mut FieldListEncoder<'_>) {
    fields.rmtes(fid::INDAUCTYPE, b"C").unwrap();
    fields.blank(fid::IMB_PR_FR).unwrap();
    fields.real(fid::IMB_PR_NR, Real::decimal(3_214_100, 4)).unwrap();
    fields.real(fid::IMB_PR_REF, Real::decimal(3_214_000, 4)).unwrap();
    fields.real(fid::IMB_PR_SH, Real::integer(5_000)).unwrap();
    fields.real(fid::IMB_SH, Real::integer(300)).unwrap();
    fields.enumeration(fid::IMB_SIDE, 3).unwrap();
    fields.enumeration(fid::IMB_VA_IND, 11).unwrap();
    fields.time(fid::AUC_TIME, Time::from_ns_of_day(57_600_000_000_000)).unwrap();
    fields.real(fid::AUC_EX_NO, Real::integer(1)).unwrap();
    fields.time(fid::IMB_TIM_NS, Time::from_ns_of_day(NOON + 1)).unwrap();
}

/// A break is a row in the table of trades with the number of the trade; in an image only if the break is new.
#[test]
fn a_broken_trade_is_a_row_that_names_it() {
    let (mut rows, mut all) = (Rows::default(), All::new(Numbers::Exact));
    rows.add(&tick(1, Kind::Update, Flags::default(), &update(broken)), &mut all).unwrap();
    // A break with nothing but the number.
    let alone = update(|fields| {
        fields.blank(fid::CAN_PRC).unwrap();
        fields.blank(fid::CAN_VOL).unwrap();
        fields.rmtes(fid::CAN_TRD_ID, b"17").unwrap();
    });
    rows.add(&tick(2, Kind::Update, Flags::default(), &alone), &mut all).unwrap();
    assert_eq!(all.rows(), [2, 2, 0, 0, 0, 0]);
    let columns =
        ["action", "trade_id", "side", "conditions", "price", "size", "volume", "trades", "trade_time_ns"];
    assert_eq!(
        all.cells(Table::Trades, &columns),
        [
            ["break", "9007199254740993", "-", "-", "84.285000000", "42", "900", "16", "43200000000001"],
            ["break", "17", "-", "-", "-", "-", "-", "-", "-"]
        ]
    );
    for (seq, breaks) in [(1, 1), (2, 0)] {
        let (mut rows, mut all) = (Rows::default(), All::new(Numbers::Exact));
        let body = image(flags::refresh::CLEAR_CACHE, broken);
        rows.add(&tick(seq, Kind::Refresh, Flags::default(), &body), &mut all).unwrap();
        assert_eq!(all.rows()[1], breaks, "the event was at {seq}");
    }
}

#[test]
fn the_state_of_an_auction_is_a_row() {
    let (mut rows, mut all) = (Rows::default(), All::new(Numbers::Exact));
    rows.add(&tick(1, Kind::Update, Flags::default(), &update(imbalance)), &mut all).unwrap();
    let old = image(flags::refresh::CLEAR_CACHE, imbalance);
    rows.add(&tick(2, Kind::Refresh, Flags::default(), &old), &mut all).unwrap();
    // The earlier values in an image become fields.
    assert_eq!(all.rows(), [2, 0, 0, 0, 1, 11]);
    let auctions = all.read(Table::Auctions);
    let cells = [
        "C",
        "sell",
        "5000",
        "300",
        "321.400000000",
        "321.410000000",
        "-",
        "A",
        "57600000000000",
        "1",
        "43200000000001",
        "good",
    ];
    assert_eq!(auctions[0][6..], cells);
}

/// Rows of a file are in the order of items and times, also in columns that do not have a cell in every row.
#[test]
fn rows_are_sorted_by_item_and_time() {
    let fill = || {
        let (mut rows, mut all) = (Rows::default(), All::new(Numbers::Exact));
        for (seq, name) in (1..).zip(["B", "", "A", "B", "A", "C", "A"]) {
            let body = if seq % 2 == 0 { update(broken) } else { update(trade) };
            let mut tick = tick(seq, Kind::Update, Flags::default(), &body);
            tick.name = name;
            // Each event is earlier than the event of the tick before.
            tick.header.event = Nanos(NOON - seq);
            rows.add(&tick, &mut all).unwrap();
        }
        all
    };
    for (by, expected) in [(SortBy::Published, [2, 3, 5, 7, 1, 4, 6]), (SortBy::Event, [2, 7, 5, 3, 4, 1, 6])]
    {
        for table in [Table::Ticks, Table::Trades] {
            let unsorted = fill().read(table);
            let mut of = fill();
            let before = of.0.iter_mut().find(|batch| batch.table() == table).unwrap();
            assert!(before.bytes() > 7 * 8);
            let mut file = ParquetFile::begin_sorted(Vec::new(), table, Numbers::Exact, Some(by)).unwrap();
            before.write_sorted(by, |part| file.write(part)).unwrap();
            assert_eq!((before.rows(), before.bytes()), (0, 0));
            let reader = SerializedFileReader::new(Bytes::from(file.finish().unwrap())).unwrap();
            let order = reader.metadata().row_group(0).sorting_columns().unwrap();
            assert_eq!(order[0].column_idx, 1, "the name");
            let columns = table.columns();
            let said = columns[order[1].column_idx as usize].name;
            assert_eq!(said, if by == SortBy::Event { "event_time" } else { "time" });
            let found: Vec<Vec<_>> = reader
                .get_row_iter(None)
                .unwrap()
                .map(|row| row.unwrap().get_column_iter().map(|(_, field)| shown(field)).collect())
                .collect();
            // Cells stay with their row.
            assert_eq!(found, expected.map(|seq| unsorted[seq - 1].clone()), "{table:?} {by:?}");
        }
    }
}

/// Nothing is carried on past an image that clears the cache, an item's end, or a hole.
#[test]
fn quotes_are_carried_on_as_long_as_they_are_known() {
    let (mut rows, mut all) = (Rows::default(), All::new(Numbers::Exact));
    let bid = |price| update(move |fields| fields.real(fid::BID, Real::integer(price)).unwrap());
    let ask = |price| update(move |fields| fields.real(fid::ASK, Real::integer(price)).unwrap());
    let (one, two) = (bid(1), ask(2));
    let cleared = image(flags::refresh::CLEAR_CACHE, |fields| fields.blank(fid::ASK).unwrap());
    let plain = |seq, body| tick(seq, Kind::Update, Flags::default(), body);
    rows.add(&plain(1, &one), &mut all).unwrap();
    rows.add(&plain(2, &two), &mut all).unwrap();
    rows.add(&tick(3, Kind::Refresh, Flags::RESET, &cleared), &mut all).unwrap();
    rows.add(&tick(4, Kind::Update, Flags::LAST, &one), &mut all).unwrap();
    rows.add(&plain(5, &two), &mut all).unwrap();
    rows.forget();
    rows.add(&plain(6, &one), &mut all).unwrap();
    let quotes = all.cells(Table::Quotes, &["sequence", "bid", "ask"]);
    let (one, two) = ("1.000000000", "2.000000000");
    assert_eq!(
        quotes,
        [
            ["1", one, "-"],
            ["2", one, two],
            // The third tick has neither.
            ["4", one, "-"],
            ["5", "-", two],
            ["6", one, "-"]
        ]
    );
}

#[test]
fn orders_and_entries_of_other_maps_are_rows() {
    let mut out = vec![0; 512];
    let by_order = |out: &mut [u8], domain| {
        let header = rwf::update_header(out, domain, 0, UpdateType::UNSPECIFIED, DataType::MAP).unwrap();
        let mut map =
            MapEncoder::new(&mut out[header..], &MapHead::new(DataType::BUFFER, DataType::FIELD_LIST))
                .unwrap();
        map.entry_in_place(MapAction::ADD, b"17", None, |room| {
            let mut fields = FieldListEncoder::new(room)?;
            fields.real(fid::ORDER_PRC, Real::decimal(5, 1))?;
            fields.enumeration(fid::ORDER_SIDE, 2)?;
            fields.real(fid::ORDER_SIZE, Real::integer(70))?;
            fields.real(Fid(32_000), Real::integer(1))?;
            Ok(fields.finish())
        })
        .unwrap();
        map.delete(b"18").unwrap();
        header + map.finish()
    };
    let (mut rows, mut all) = (Rows::default(), All::new(Numbers::Exact));
    for (seq, domain) in [(1, Domain::MARKET_BY_ORDER), (2, Domain::MARKET_BY_PRICE)] {
        let len = by_order(&mut out, domain);
        rows.add(&tick(seq, Kind::Update, Flags::default(), &out[..len]), &mut all).unwrap();
    }
    let orders = all.cells(Table::Orders, &["sequence", "action", "order_id", "side", "price", "size"]);
    assert_eq!(
        orders,
        [["1", "add", "17", "ask", "0.500000000", "70"], ["1", "delete", "18", "-", "-", "-"]]
    );
    let fields = all.cells(Table::Fields, &["sequence", "action", "entry", "field", "text"]);
    assert_eq!(
        fields,
        [
            // A field that is not in the dictionary: its bytes.
            ["1", "add", "17", "-", "0e01"],
            ["2", "add", "17", "ORDER_PRC", "0.5"],
            ["2", "add", "17", "ORDER_SIDE", "ASK"],
            ["2", "add", "17", "ORDER_SIZE", "70"],
            ["2", "add", "17", "-", "0e01"],
            ["2", "delete", "18", "-", "-"]
        ]
    );
}

/// The first tick of an item is an image; if it has the tick's own trade, it is a trade.
#[test]
fn an_image_with_the_ticks_own_trade_is_a_trade() {
    for (behind_ns, trades) in [(1, 1), (2, 0)] {
        let (mut rows, mut all) = (Rows::default(), All::new(Numbers::Exact));
        let body = image(flags::refresh::CLEAR_CACHE, |fields| {
            fields.real(fid::TRDPRC_1, Real::decimal(842_850, 4)).unwrap();
            fields.time(fid::SALTIM_NS, Time::from_ns_of_day(NOON + behind_ns)).unwrap();
        });
        rows.add(&tick(1, Kind::Refresh, Flags::default(), &body), &mut all).unwrap();
        assert_eq!(all.rows()[1], trades, "{behind_ns}");
    }
}

/// A kdb+ client's first row of an item is an image too, and a trade like the later rows. In an image made for a feed's
/// message, the time of the trade says if the trade is new.
#[test]
fn an_image_that_is_a_publishers_row_is_a_trade() {
    let body = image(flags::refresh::REFRESH_COMPLETE, |fields| {
        fields.real(fid::TRDPRC_1, Real::decimal(842_850, 4)).unwrap();
        fields.real(fid::TRDVOL_1, Real::integer(42)).unwrap();
    });
    let without_price = image(flags::refresh::REFRESH_COMPLETE, |fields| {
        fields.blank(fid::TRDPRC_1).unwrap();
        fields.real(fid::TRDVOL_1, Real::integer(42)).unwrap();
    });
    let of_row = Flags::SOURCE | Flags::LAST_ROW;
    for (flags, source_type, body, trades) in [
        (of_row, 0, &body, 1),
        (Flags::SOURCE, 0, &body, 1),
        (Flags::SOURCE, b'P', &body, 0),
        (Flags::default(), 0, &body, 0),
        (of_row, 0, &without_price, 0),
    ] {
        let (mut rows, mut all) = (Rows::default(), All::new(Numbers::Exact));
        let mut tick = tick(1, Kind::Refresh, flags, body);
        tick.header.source_type = source_type;
        rows.add(&tick, &mut all).unwrap();
        assert_eq!(all.rows()[1], trades, "{flags:?} {source_type}");
        if trades == 1 {
            let found = all.cells(Table::Trades, &["price", "size", "trade_time_ns"]);
            assert_eq!(found, [["84.285000000", "42", "-"]]);
        }
    }
}

/// An image has all fields: blank fields are no quote, and neither are a quote's other fields alone.
#[test]
fn an_image_without_bid_and_ask_is_no_quote() {
    let (mut rows, mut all) = (Rows::default(), All::new(Numbers::Exact));
    let listing = image(flags::refresh::REFRESH_COMPLETE, |fields| {
        [fid::BID, fid::ASK, fid::BIDSIZE, fid::ASKSIZE].iter().for_each(|fid| fields.blank(*fid).unwrap());
    });
    let venue = update(|fields| fields.rmtes(fid::BID_SRC, b"N").unwrap());
    let bid = update(|fields| fields.real(fid::BID, Real::integer(1)).unwrap());
    let gone = update(|fields| fields.blank(fid::BID).unwrap());
    rows.add(&tick(1, Kind::Refresh, Flags::default(), &listing), &mut all).unwrap();
    for (seq, body) in [(2, &venue), (3, &bid), (4, &gone)] {
        rows.add(&tick(seq, Kind::Update, Flags::default(), body), &mut all).unwrap();
    }
    let quotes = all.cells(Table::Quotes, &["sequence", "bid", "bid_source"]);
    assert_eq!(quotes, [["3", "1.000000000", "N"], ["4", "-", "N"]]);
    // No field is left out.
    let fields = all.cells(Table::Fields, &["sequence", "field", "text"]);
    assert_eq!(
        fields,
        [
            ["1", "BID", "-"],
            ["1", "ASK", "-"],
            ["1", "BIDSIZE", "-"],
            ["1", "ASKSIZE", "-"],
            ["2", "BID_SRC", "N"]
        ]
    );
}

#[test]
fn a_status_says_its_text() {
    let mut out = [0; 128];
    let mut header = StatusHeader::new(Domain::MARKET_PRICE, 0);
    header.state = Some(RwfState { stream: StreamState::OPEN, text: b"gone", ..RwfState::OPEN_OK });
    let len = header.encode(&mut out).unwrap();
    let (mut rows, mut all) = (Rows::default(), All::new(Numbers::Exact));
    rows.add(&tick(1, Kind::Status, Flags::GAP, &out[..len]), &mut all).unwrap();
    assert_eq!(all.rows(), [1, 0, 0, 0, 0, 0]);
    assert_eq!(all.cells(Table::Ticks, &["kind", "text", "gap"]), [["status", "gone", "true"]]);
}

/// A number that is not exact is refused, with its place, unless doubles are requested.
#[test]
fn numbers_are_exact_or_refused() {
    let body = |fid, real| update(move |fields| fields.real(fid, real).unwrap());
    for (fid, real, is_exact) in [
        (fid::BID, Real::decimal(999_999_999_999_999_999, 9), true),
        (fid::BID, Real::decimal(1_000_000_000_000_000_000, 9), false),
        (fid::BID, Real::decimal(1, 10), false),
        (fid::BID, Real::INFINITY, false),
        (fid::BIDSIZE, Real::integer(i64::MAX), true),
        (fid::BIDSIZE, Real::decimal(15, 1), false),
    ] {
        let body = body(fid, real);
        let tick = tick(7, Kind::Update, Flags::default(), &body);
        let added = Rows::default().add(&tick, &mut All::new(Numbers::Exact));
        match added {
            Ok(()) => assert!(is_exact, "{real}"),
            Err(Error::Number { seq: 7, column, .. }) => {
                assert!(!is_exact && column.starts_with("bid"), "{real}");
            }
            Err(other) => panic!("{other}"),
        }
        Rows::default().add(&tick, &mut All::new(Numbers::Double)).unwrap();
    }
    let broken = &update(trade)[..40];
    let error =
        Rows::default().add(&tick(9, Kind::Update, Flags::default(), broken), &mut All::new(Numbers::Exact));
    assert!(matches!(error, Err(Error::Message { seq: 9, .. })), "{error:?}");
}

#[test]
fn columns_of_parquet_have_their_types() {
    let file = ParquetFile::begin(Vec::new(), Table::Trades, Numbers::Exact).unwrap().finish().unwrap();
    let reader = SerializedFileReader::new(Bytes::from(file)).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let kind = |name| {
        let column = schema.columns().iter().find(|column| column.name() == name).unwrap();
        column.logical_type_ref().cloned()
    };
    assert_eq!(kind("price"), Some(LogicalType::decimal(9, 18)));
    assert_eq!(kind("size"), None);
    assert_eq!(kind("name"), Some(LogicalType::String));
    let nanos = parquet::basic::TimeUnit::NANOS;
    assert_eq!(kind("event_time"), Some(LogicalType::timestamp(true, nanos)));
}

#[test]
fn a_kdb_log_has_them_as_q_does() {
    let (mut rows, mut all) = (Rows::default(), All::new(Numbers::WholeSizes));
    rows.add(&tick(2, Kind::Update, Flags::SUSPECT, &update(trade)), &mut all).unwrap();
    let mut log = KdbLog::begin(Vec::new()).unwrap();
    all.0.iter_mut().filter(|batch| batch.rows() > 0).for_each(|batch| log.write(batch).unwrap());
    let bytes = log.finish();
    let mut log = Log::parse(&bytes, Order::Little).unwrap();
    let updates: Vec<_> = log.by_ref().map(|entry| Update::of(&entry.value).unwrap()).collect();
    assert_eq!(log.torn(), None);
    let tables: Vec<_> =
        updates.iter().map(|update| (update.function, update.table, update.rows.len())).collect();
    let upd = &b"upd"[..];
    assert_eq!(tables, [(upd, &b"tick"[..], 1), (upd, b"trade", 1), (upd, b"quote", 1), (upd, b"field", 1)]);
    let first = |column: Column<'_>| match column {
        Column::Vector(vector) => vector.last().unwrap().to_string(),
        Column::List(list) => match list.iter().next().unwrap() {
            View::Vector(text) => String::from_utf8_lossy(text.text().unwrap()).into_owned(),
            other => format!("{:?}", other.to_value()),
        },
    };
    let trade: Vec<_> = updates[1].rows.columns().map(first).collect();
    assert_eq!(
        trade,
        [
            "2025.11.21D12:00:00.000000022",
            "`AAPL",
            "2",
            "5",
            "2025.11.21D12:00:00.000000002",
            "0Np",
            "`trade",
            "9007199254740993",
            "`buy",
            "`FI",
            "84.285",
            "42",
            "5000000000",
            "17",
            "43200000000001",
            "`unknown"
        ]
    );
    let found: String = updates[1].rows.columns().map(|column| column.kind().letter()).collect();
    assert_eq!(found, "psjjpps ssfjjjjs");
    // `types` is right for every table.
    for update in &updates {
        let table = Table::ALL.into_iter().find(|table| table.kdb_name().as_bytes() == update.table).unwrap();
        let found: Vec<_> = update.rows.columns().map(|column| column.kind()).collect();
        assert_eq!(found, types(table, Numbers::WholeSizes), "{table:?}");
    }
    assert_eq!(
        schema(&[Table::Trades], Numbers::WholeSizes),
        "trade:([]time:`timestamp$();sym:`symbol$();sequence:`long$();service:`long$();eventtime:`timestamp$();\
         receivedtime:`timestamp$();action:`symbol$();tradeid:();side:`symbol$();conditions:`symbol$();\
         price:`float$();size:`long$();volume:`long$();trades:`long$();\
         tradetimens:`long$();quality:`symbol$())\n"
    );
}
