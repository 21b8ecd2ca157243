//! The invariants of the rows of arbitrary ticks, for `hostile.rs` and the fuzz target.
use tapeline_export::{Batch, Error, KdbLog, Numbers, ParquetFile, Rows, Sink, Table};
use tapeline_kdb::{Log, Order, Refused, Update};
use tapeline_plant::tick::Tick;

/// A sink that stores all rows in memory.
struct All(Vec<Batch>);

impl Sink for All {
    fn wants(&self, _: Table) -> bool {
        true
    }

    fn batch(&mut self, table: Table) -> Result<&mut Batch, Error> {
        Ok(self.0.iter_mut().find(|batch| batch.table() == table).unwrap())
    }
}

/// Reads arbitrary bytes as ticks, each after a length of two bytes. All rows of valid ticks can be written in each
/// format; other ticks return an error.
pub(crate) fn rows(bytes: &[u8]) {
    for numbers in [Numbers::Exact, Numbers::WholeSizes, Numbers::Double] {
        let mut all = All(Table::ALL.map(|table| Batch::new(table, numbers)).into());
        let (mut rows, mut rest) = (Rows::default(), bytes);
        while let [low, high, behind @ ..] = rest {
            let length = usize::from(u16::from_le_bytes([*low, *high])).min(behind.len());
            let (frame, behind) = behind.split_at(length);
            rest = behind;
            let Ok(tick) = Tick::parse(frame) else { continue };
            let before = all.batch(Table::Ticks).unwrap().rows();
            if let Err(error) = rows.add(&tick, &mut all) {
                assert!(numbers != Numbers::Double || !matches!(error, Error::Number { .. }), "{error}");
                // The rows of this tick may be incomplete.
                return;
            }
            assert_eq!(all.batch(Table::Ticks).unwrap().rows(), before + 1);
        }
        for batch in &mut all.0 {
            write(batch);
        }
    }
}

/// Writes a batch in the format for its representation of numbers, which refuses columns of different lengths.
fn write(batch: &mut Batch) {
    let (rows, columns) = (batch.rows(), batch.table().columns().len());
    if rows == 0 {
        return;
    }
    if batch.numbers() != Numbers::WholeSizes {
        let mut file = ParquetFile::begin(Vec::new(), batch.table(), batch.numbers()).unwrap();
        file.write(batch).unwrap();
        assert_eq!((file.rows(), batch.rows()), (rows as u64, 0));
        file.finish().unwrap();
        return;
    }
    let mut log = KdbLog::begin(Vec::new()).unwrap();
    match log.write(batch) {
        Ok(()) => {}
        Err(Error::Kdb(Refused::Zero)) => return,
        Err(other) => panic!("{other}"),
    }
    let bytes = log.finish();
    let mut log = Log::parse(&bytes, Order::Little).unwrap();
    let entry = log.next().unwrap();
    let update = Update::of(&entry.value).unwrap();
    assert_eq!((update.rows.len(), update.rows.columns().len()), (rows, columns));
    assert!(log.next().is_none() && log.torn().is_none());
}
