//! A kdb+ log: a message for each batch.

use std::fmt::Write as _;
use std::io::Write;

use tapeline_kdb::{Encoder, LogWriter, Refused, Type, UNIX_2000_NS};

use crate::Error;
use crate::batch::{Batch, Cells, Numbers, Values, texts};
use crate::table::{Kind, Table};

/// The initial buffer for a message, in bytes; doubled for longer messages.
const ROOM: usize = 1 << 16;

/// A kdb+ log being written: the file that `-11!` replays.
#[derive(Debug)]
pub struct KdbLog<W> {
    out: W,
    writer: LogWriter,
    room: Vec<u8>,
}

impl<W: Write> KdbLog<W> {
    /// Begins a log.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(mut out: W) -> Result<Self, Error> {
        let mut room = vec![0; ROOM];
        let (writer, length) = LogWriter::begin(&mut room)?;
        out.write_all(&room[..length])?;
        Ok(Self { out, writer, room })
    }

    /// Writes a batch's rows as `` (`upd;`trade;columns) ``, as a tickerplant logs them, and removes them from the
    /// batch. A missing value is the type's null, times are timestamps; symbols, strings, longs, floats and booleans
    /// have their q types.
    ///
    /// # Errors
    /// It cannot be written, or a symbol has a zero byte; the log is valid up to the message before.
    pub fn write(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let length = loop {
            match self.writer.append(&mut self.room, |message| update(message, batch)) {
                // The batch is bounded, and so is the buffer.
                Err(Refused::Full) => self.room.resize(self.room.len() * 2, 0),
                done => break done?,
            }
        };
        self.out.write_all(&self.room[..length])?;
        batch.clear();
        Ok(())
    }

    /// Returns the output.
    pub fn finish(self) -> W {
        self.out
    }
}

fn update(message: &mut Encoder<'_>, batch: &Batch) -> Result<(), Refused> {
    message.list(3)?;
    message.symbol(b"upd")?;
    message.symbol(batch.table().kdb_name().as_bytes())?;
    message.list(batch.columns().len())?;
    batch.columns().iter().try_for_each(|cells| column(message, cells))
}

fn column(message: &mut Encoder<'_>, cells: &Cells) -> Result<(), Refused> {
    let levels = &cells.levels;
    match &cells.values {
        Values::Whole(values) if cells.kind == Kind::Time => {
            let since_2000 = values.iter().map(|ns| ns.saturating_sub(UNIX_2000_NS));
            message.column(Type::TIMESTAMP, spread(levels, since_2000, i64::MIN))
        }
        Values::Whole(values) => message.column(Type::LONG, spread(levels, values.iter().copied(), i64::MIN)),
        Values::Double(values) => {
            message.column(Type::FLOAT, spread(levels, values.iter().copied(), f64::NAN))
        }
        Values::Flag(values) => message.column(Type::BOOLEAN, spread(levels, values.iter().copied(), false)),
        Values::Text { bytes, ends } => {
            let mut cells_of = spread(levels, texts(bytes, ends), &[][..]).into_iter();
            if cells.kind == Kind::Symbol {
                return message.symbols(cells_of);
            }
            message.list(levels.len())?;
            match cells.kind {
                Kind::Bytes => cells_of.try_for_each(|cell| message.column(Type::BYTE, cell.iter().copied())),
                _ => cells_of.try_for_each(|cell| message.string(cell)),
            }
        }
    }
}

/// Returns a value for each row: the null for rows without a value.
fn spread<T: Copy>(levels: &[i16], mut values: impl Iterator<Item = T>, null: T) -> Vec<T> {
    levels.iter().map(|level| if *level == 1 { values.next().unwrap_or(null) } else { null }).collect()
}

/// Returns the types of a table's columns in a log. The log itself has no column names.
#[must_use]
pub fn types(table: Table, numbers: Numbers) -> Vec<Type> {
    let kinds = table.columns().iter().map(|column| column.kind);
    let types = kinds.map(|kind| match (kind, Values::of(kind, numbers)) {
        (Kind::Time, _) => Type::TIMESTAMP,
        (Kind::Symbol, _) => Type::SYMBOL,
        (_, Values::Whole(_)) => Type::LONG,
        (_, Values::Double(_)) => Type::FLOAT,
        (_, Values::Flag(_)) => Type::BOOLEAN,
        (_, Values::Text { .. }) => Type::LIST,
    });
    types.collect()
}

/// Returns the q definitions of the empty tables into which a log's messages are inserted.
#[must_use]
pub fn schema(tables: &[Table], numbers: Numbers) -> String {
    let mut text = String::new();
    for table in tables {
        let columns = table.columns().iter().zip(types(*table, numbers)).map(|(column, kind)| match kind {
            Type::LIST => format!("{}:()", column.kdb_name()),
            kind => format!("{}:`{}$()", column.kdb_name(), kind.name()),
        });
        let columns: Vec<_> = columns.collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}:([]{})", table.kdb_name(), columns.join(";"));
    }
    text
}
