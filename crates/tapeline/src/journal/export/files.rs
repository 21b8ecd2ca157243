//! The files of an export. An incomplete file has another name, and is removed if the export fails.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tapeline_console::failure::Hinted;
use tapeline_export::{Batch, Error, KdbLog, Numbers, ParquetFile, SortBy, Table, schema};
use tapeline_kdb::{Atom, UNIX_2000_NS};
use tapeline_omm::rwf::Date;

/// Days from 1970 to 2000.
const DAYS_TO_2000: u64 = UNIX_2000_NS as u64 / 86_400_000_000_000;
/// Rows of a message in a kdb+ log: as many as a publisher would send at once.
const MOST_LOGGED: usize = 1_000;

/// The files being written, and their folder.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    numbers: Numbers,
    /// The order of a file's rows, if it differs from the order of arrival.
    sorted: Option<SortBy>,
    open: Open,
    /// Number of files by name: a clock that is set back past midnight starts a day twice.
    parts: HashMap<PathBuf, usize>,
}

/// A Parquet file under its temporary name.
type OpenParquet = (NewFile, ParquetFile<BufWriter<File>>);

#[derive(Debug)]
enum Open {
    Parquet(HashMap<(u64, Table), OpenParquet>),
    KdbLog(HashMap<u64, (NewFile, KdbLog<BufWriter<File>>)>),
}

impl Files {
    /// Parquet files, one for each table and day.
    pub(super) fn parquet(folder: &Path, numbers: Numbers, sorted: Option<SortBy>) -> anyhow::Result<Self> {
        let files = Self::begin(folder, numbers, Open::Parquet(HashMap::new()))?;
        Ok(Self { sorted, ..files })
    }

    /// One kdb+ log for each day, next to the tables' definitions.
    pub(super) fn kdb_logs(folder: &Path, tables: &[Table], numbers: Numbers) -> anyhow::Result<Self> {
        let files = Self::begin(folder, numbers, Open::KdbLog(HashMap::new()))?;
        let path = folder.join("tables.q");
        fs::write(&path, schema(tables, numbers))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(files)
    }

    fn begin(folder: &Path, numbers: Numbers, open: Open) -> anyhow::Result<Self> {
        let there = || format!("cannot make the folder {}", folder.display());
        fs::create_dir_all(folder).with_context(there)?;
        if fs::read_dir(folder).with_context(there)?.next().is_some() {
            let what = format!("{} is not empty", folder.display());
            return Err(
                Hinted::new(what, "rows would be duplicated: name another folder, or empty it").into()
            );
        }
        Ok(Self { folder: folder.to_owned(), numbers, sorted: None, open, parts: HashMap::new() })
    }

    /// Whether rows of different tables stay in the order in which they arrived.
    pub(super) const fn keeps_order(&self) -> bool {
        matches!(self.open, Open::KdbLog(_))
    }

    /// Whether a batch must be written before it takes another row.
    pub(super) fn is_full(&self, batch: &Batch) -> bool {
        batch.is_full() || self.keeps_order() && batch.rows() >= MOST_LOGGED
    }

    /// Writes rows of a day, counted from 1970; returns the day as `2026-11-21`.
    pub(super) fn write(&mut self, day: u64, batch: &mut Batch) -> Result<String, Error> {
        let table = batch.table();
        // A time has 64 bits of ns: its year is 2554 at most.
        let date = Date::from_unix_days(day.cast_signed()).unwrap_or_default().to_string();
        match &mut self.open {
            Open::Parquet(files) => {
                let (_, file) = match files.entry((day, table)) {
                    Entry::Occupied(open) => open.into_mut(),
                    Entry::Vacant(new) => {
                        let folder = self.folder.join(table.name()).join(format!("date={date}"));
                        let part = next(&mut self.parts, &folder);
                        let (name, file) = NewFile::create(&folder, &format!("part-{part}.parquet"))?;
                        new.insert((name, ParquetFile::begin_sorted(file, table, self.numbers, self.sorted)?))
                    }
                };
                file.write(batch)?;
            }
            Open::KdbLog(open) => {
                let (_, log) = match open.entry(day) {
                    Entry::Occupied(open) => open.into_mut(),
                    Entry::Vacant(new) => {
                        let since_2000 = day.cast_signed() - DAYS_TO_2000.cast_signed();
                        let day = Atom::<&[u8]>::Date(i32::try_from(since_2000).unwrap_or_default());
                        let mut name = format!("tapeline{day}");
                        match next(&mut self.parts, &self.folder.join(&name)) {
                            0 => {}
                            part => name.push_str(&format!(".{part}")),
                        }
                        let (name, file) = NewFile::create(&self.folder, &name)?;
                        new.insert((name, KdbLog::begin(file)?))
                    }
                };
                log.write(batch)?;
            }
        }
        Ok(date)
    }

    /// Completes the files of a day, and syncs them to disk.
    pub(super) fn end_day(&mut self, day: u64) -> Result<(), Error> {
        match &mut self.open {
            Open::Parquet(files) => {
                for table in Table::ALL {
                    if let Some((name, file)) = files.remove(&(day, table)) {
                        name.finish(file.finish()?)?;
                    }
                }
            }
            Open::KdbLog(open) => {
                if let Some((name, log)) = open.remove(&day) {
                    name.finish(log.finish())?;
                }
            }
        }
        Ok(())
    }
}

/// The number of the next file of this name, from 0 on.
fn next(parts: &mut HashMap<PathBuf, usize>, name: &Path) -> usize {
    let part = parts.entry(name.to_owned()).or_default();
    *part += 1;
    *part - 1
}

/// A file under a temporary name until it is complete.
#[derive(Debug)]
struct NewFile {
    path: PathBuf,
    unfinished: PathBuf,
}

impl NewFile {
    fn create(folder: &Path, name: &str) -> Result<(Self, BufWriter<File>), Error> {
        fs::create_dir_all(folder)?;
        let unfinished = folder.join(format!(".{name}.unfinished"));
        let file = File::create(&unfinished)?;
        Ok((Self { path: folder.join(name), unfinished }, BufWriter::with_capacity(1 << 20, file)))
    }

    /// Syncs the complete file, and gives it its name.
    fn finish(self, mut file: BufWriter<File>) -> Result<(), Error> {
        file.flush()?;
        file.get_ref().sync_all()?;
        fs::rename(&self.unfinished, &self.path)?;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After a rename, the temporary file no longer exists.
        let _ = fs::remove_file(&self.unfinished);
    }
}
