//! The day to which rows belong, without a clock: the stamps of their ticks say it.

use std::path::Path;

use tapeline_kdb::{LogWriter, Type};
use tapeline_omm::rwf::{DataType, Domain, UpdateType, update_header};
use tapeline_omm::{FieldListEncoder, Real, fid};
use tapeline_plant::tick::Header;
use tapeline_tickerplant::{Column, Schema};

use super::filling::{Content, RowsOf, Stamp};
use super::*;
use crate::tick::config::LogConfig;
use crate::ticks::header;

/// 30 January 2020, 00:00 UTC: long past for the machine's own clock.
const MIDNIGHT: u64 = 1_580_342_400_000_000_000;
const MS: u64 = 1_000_000;
/// The channel of publishers' ticks.
const CHANNEL: u16 = 9;

/// Opens a tickerplant on the eve of that day.
fn rows(folder: &Path) -> Rows {
    let columns = [
        ("time", Content::Stamp(Stamp::Sequenced), Type::TIMESPAN),
        ("sym", Content::Item, Type::SYMBOL),
        ("bid", Content::Field(fid::BID, DataType::REAL), Type::FLOAT),
    ];
    let schema = columns.map(|(name, _, kind)| Column { name: name.into(), kind });
    let config = TickerplantConfig {
        address: Some(([127, 0, 0, 1], 0).into()),
        unix: None,
        publish_every: None,
        spins: false,
        queue_bytes: 1 << 20,
        most_message: 1 << 20,
        incoming_bytes: 1 << 20,
        max_connections: 10,
        timezone: "UTC".to_owned(),
        log: Some(LogConfig { folder: folder.to_owned(), name: "sym".to_owned(), is_synced: false }),
        tables: vec![Schema::new("quote", schema.into()).unwrap()],
        access: None,
    };
    let opened = (Clock::calibrate(), Nanos(MIDNIGHT - 60_000 * MS));
    let mut server = Server::open_at(config, "[kdb]", None, &Events::default(), opened).unwrap();
    server.has_added_up_to(Nanos(0));
    let columns = columns.map(|(_, content, kind)| (content, kind)).to_vec();
    let filler = Filler { table: 0, rows: RowsOf::Quotes, columns };
    let filling = Filling::new(vec![filler], 10);
    Rows { server, filling, channel: CHANNEL, open: None, day: Ok(()), report: KdbReport::default() }
}

/// Takes a feed's quote, stamped by the plant at this time.
fn take_quote(rows: &mut Rows, seq: u64, name: &str, at: u64) {
    let mut body = [0; 64];
    let begin =
        update_header(&mut body, Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST).unwrap();
    let mut fields = FieldListEncoder::new(&mut body[begin..]).unwrap();
    fields.real(fid::BID, Real::decimal(12_345, 2)).unwrap();
    let len = begin + fields.finish();
    let header = Header { sequenced: Nanos(at), ..header(1, seq) };
    rows.take(&Tick { header, name, body: &body[..len], source: &[] });
}

/// Takes a row that a kdb+ client has published, stamped by the plant at this time.
fn take_row(rows: &mut Rows, seq: u64, name: &str, at: u64) {
    let mut update = [0; 128];
    let len = LogWriter::resume(0, 0)
        .append(&mut update, |out| {
            out.list(3)?;
            out.symbol(b"upd")?;
            out.symbol(b"quote")?;
            out.list(2)?;
            out.symbols([name.as_bytes()])?;
            out.column(Type::FLOAT, [1.5_f64])
        })
        .unwrap();
    let header = Header {
        sequenced: Nanos(at),
        channel: CHANNEL,
        feed_seq: seq,
        flags: Flags::SOURCE | Flags::LAST_ROW,
        ..header(2, seq)
    };
    rows.take(&Tick { header, name, body: &[], source: &update[..len] });
}

/// The names of those that a day's log has.
fn names(folder: &Path, day: &str) -> Vec<&'static str> {
    let log = std::fs::read(folder.join(format!("sym2020.01.{day}"))).unwrap();
    let has = |name: &str| log.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    ["feed-last", "row-last", "feed-first", "row-first", "feed-later", "row-later"]
        .into_iter()
        .filter(|name| has(name))
        .collect()
}

/// The rows of one turn of the thread, read after midnight: those that were stamped before it belong to the old day.
#[test]
fn a_row_belongs_to_the_day_in_which_its_tick_was_stamped() {
    for first in ["feed", "row"] {
        let folder = tempfile::tempdir().unwrap();
        let mut rows = rows(folder.path());
        take_quote(&mut rows, 1, "feed-last", MIDNIGHT - 2);
        take_row(&mut rows, 2, "row-last", MIDNIGHT - 1);
        // Whichever comes first ends the day.
        if first == "feed" {
            take_quote(&mut rows, 3, "feed-first", MIDNIGHT);
            take_row(&mut rows, 4, "row-first", MIDNIGHT + 1);
        } else {
            take_row(&mut rows, 3, "row-first", MIDNIGHT);
            take_quote(&mut rows, 4, "feed-first", MIDNIGHT + 1);
        }
        take_quote(&mut rows, 5, "feed-later", MIDNIGHT + 3 * MS);
        take_row(&mut rows, 6, "row-later", MIDNIGHT + 3 * MS);
        rows.day.as_ref().unwrap();
        rows.server.publish_added();
        let report = rows.server.end().unwrap();
        assert_eq!((report.rows, rows.report.unusable), (6, 0), "{first}");
        assert_eq!(names(folder.path(), "29"), ["feed-last", "row-last"], "{first}");
        assert_eq!(
            names(folder.path(), "30"),
            ["feed-first", "row-first", "feed-later", "row-later"],
            "{first}"
        );
    }
}
