//! The kdb+ log of each day: an RDB replays it with `-11!`.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use tapeline_kdb::{Atom, Fault, LOG_HEADER, LogWriter, Order, Update, check_header};

use crate::Error;
use crate::error::Context;
use crate::events::Events;
use crate::tick::log_file::LogFile;

/// The folder and name of logs: the name is followed by the date, as in `tick.q`.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// The folder.
    pub folder: PathBuf,
    /// The name before the date.
    pub name: String,
    /// Whether appended messages are on disk before anything is published; otherwise they are in the page
    /// cache.
    pub is_synced: bool,
}

/// The log of one day, open for appending.
#[derive(Debug)]
pub(super) struct DayLog {
    file: File,
    pub(super) path: PathBuf,
    bytes: u64,
    is_synced: bool,
}

impl DayLog {
    /// Opens the log of a day, in days since 2000, with a writer for its end. An existing log is continued;
    /// an incomplete message at its end, left by a tickerplant that died, is cut off with a warning.
    ///
    /// # Errors
    /// The file cannot be opened, is not a log, or is damaged before its end.
    pub(super) fn open(config: &LogConfig, date: i32, events: &Events) -> crate::Result<(Self, LogWriter)> {
        let folder = &config.folder;
        // Rows contain trades: readable by this user only, as a journal is.
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("cannot create the folder {}", folder.display()))?;
        let path = folder.join(format!("{}{}", config.name, Atom::<&[u8]>::Date(date)));
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path);
        let file = file.map_err(|cause| {
            let what = format!("cannot open the log {}", path.display());
            Error::hinted(what, "log_folder names another folder for the log, kdb_log = false leaves it out")
                .because(cause)
        })?;
        if file.try_lock().is_err() {
            let what = format!("another process writes the log {}", path.display());
            return Err(Error::hinted(
                what,
                "set log_folder or log_name to give this tickerplant its own log",
            ));
        }
        let mut begin = Vec::new();
        let read = Read::take(&file, LOG_HEADER.len() as u64).read_to_end(&mut begin);
        read.with_context(|| format!("cannot read {}", path.display()))?;
        let mut log = Self { file, path, bytes: 0, is_synced: config.is_synced };
        if begin.len() < LOG_HEADER.len() && LOG_HEADER.starts_with(&begin) {
            // A new file, or one left by a tickerplant that died or had no disk space before the header was
            // written.
            log.cut(0)?;
            let mut header = [0; 8];
            let (writer, _) = LogWriter::begin(&mut header)?;
            log.append(&header)?;
            if config.is_synced {
                // The file's name must be on disk as well.
                let synced = File::open(folder).and_then(|folder| folder.sync_all());
                synced.with_context(|| format!("cannot sync the folder {}", folder.display()))?;
            }
            return Ok((log, writer));
        }
        check_header(&begin).with_context(|| log.path.display().to_string())?;
        let writer = log.go_on(events)?;
        if config.is_synced {
            // What a killed tickerplant wrote may be in memory only, and from here on subscribers rely on it.
            log.file.sync_all().with_context(|| format!("cannot sync {}", log.path.display()))?;
        }
        Ok((log, writer))
    }

    /// Finds the end of an existing log, and cuts off an incomplete message.
    fn go_on(&mut self, events: &Events) -> crate::Result<LogWriter> {
        let mut read = LogFile::open(&self.path, &self.path.display(), Order::Little)?;
        let (mut messages, mut other) = (0, None);
        let tail = read.each(|offset, message| {
            // Zeros, which a crashed machine may leave, are an empty list.
            let is_update = Update::of(message).is_ok();
            messages += u64::from(is_update);
            if !is_update {
                other = Some(offset);
            }
            is_update
        });
        if let Some(cause) = &read.failure {
            crate::error::bail!("cannot read {}: {cause}", self.path.display());
        }
        let damaged = |offset, what: &str| {
            let what = format!("{} is damaged at byte {offset}: {what}", self.path.display());
            let hint = "`tapeline kdb inspect` shows its content; move the file away, or cut it after the last whole message";
            Err(Error::hinted(what, hint))
        };
        if let Some(offset) = other {
            return damaged(offset, "something other than an update is there");
        }
        self.bytes = tail.as_ref().map_or(read.offset, |tail| tail.offset);
        if let Some(tail) = tail {
            if tail.order.is_some() || !matches!(tail.fault, Fault::Cut { .. }) {
                return damaged(
                    tail.fault_offset,
                    &format!("{} bytes follow its last whole message", tail.bytes),
                );
            }
            self.cut(self.bytes)?;
            events.warning(format_args!(
                "the last message of {} was incomplete: {} bytes were cut off, {messages} messages remain",
                self.path.display(),
                tail.bytes
            ));
        }
        Ok(LogWriter::resume(messages, self.bytes))
    }

    fn cut(&self, bytes: u64) -> crate::Result<()> {
        self.file.set_len(bytes).with_context(|| format!("cannot cut {}", self.path.display()))
    }

    /// Appends messages, and waits for the disk if configured. After an error none of them is in the file.
    pub(super) fn append(&mut self, messages: &[u8]) -> crate::Result<()> {
        let written = self.file.write_all(messages);
        // The messages of one turn of the loop cost one wait.
        if let Err(cause) = written.and_then(|()| if self.is_synced { self.file.sync_data() } else { Ok(()) })
        {
            // An incomplete message would be cut off at the next start, so a failure here does no harm.
            let _ = self.file.set_len(self.bytes);
            let what = format!(
                "cannot append to the log {}: updates that are not in the log are not published",
                self.path.display()
            );
            let hint = "free disk space, then start again: the log continues where it ends, and subscribers replay it";
            return Err(Error::hinted(what, hint).because(cause));
        }
        self.bytes += messages.len() as u64;
        Ok(())
    }
}

impl Drop for DayLog {
    /// Releases the lock now: a process that was just forked has the file open until it executes a program.
    fn drop(&mut self) {
        // A lock that cannot be released ends with the process.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use tapeline_kdb::Encoder;

    use super::*;

    #[test]
    fn a_log_goes_on_and_what_is_torn_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let config =
            LogConfig { folder: folder.path().join("logs"), name: "sym".to_owned(), is_synced: false };
        let mut message = [0; 64];
        let (mut log, mut writer) = DayLog::open(&config, 9_822, &Events::default()).unwrap();
        assert!(log.path.ends_with("sym2026.11.22"), "{}", log.path.display());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&log.path), mode(&config.folder)), (0o600, 0o700), "for this user alone");
        let update = |out: &mut Encoder<'_>| {
            out.list(3)?;
            out.symbol(b"upd")?;
            out.symbol(b"trade")?;
            out.list(0)
        };
        let len = writer.append(&mut message, update).unwrap();
        for _ in 0..3 {
            log.append(&message[..len]).unwrap();
        }
        // The process dies while it writes the fourth message.
        log.append(&message[..len - 2]).unwrap();
        // A child between fork and exec has the same open file, and must not keep the lock.
        let _forked = log.file.try_clone().unwrap();
        drop(log);
        let (mut log, writer) = DayLog::open(&config, 9_822, &Events::default()).unwrap();
        assert_eq!((writer.messages(), writer.bytes()), (3, 8 + 3 * len as u64));
        log.append(&message[..len]).unwrap();
        drop(log);
        let (log, writer) = DayLog::open(&config, 9_822, &Events::default()).unwrap();
        assert_eq!(writer.messages(), 4);
        // Two tickerplants would cut off each other's messages.
        let said = DayLog::open(&config, 9_822, &Events::default()).unwrap_err().to_string();
        assert!(said.contains("another process writes"), "{said}");
        // Damage in the middle is reported.
        let mut bytes = fs::read(&log.path).unwrap();
        bytes[8 + len] = 55;
        fs::write(&log.path, bytes).unwrap();
        drop(log);
        let said = DayLog::open(&config, 9_822, &Events::default()).unwrap_err().to_string();
        assert!(said.contains(&format!("damaged at byte {}", 8 + len)), "{said}");
    }

    #[test]
    fn what_dies_before_the_header_is_begun_anew_and_zeros_are_damage() {
        let folder = tempfile::tempdir().unwrap();
        let config = LogConfig { folder: folder.path().to_owned(), name: "sym".to_owned(), is_synced: false };
        let path = folder.path().join("sym2026.11.22");
        for left in 0..LOG_HEADER.len() {
            fs::write(&path, &LOG_HEADER[..left]).unwrap();
            let (_, writer) = DayLog::open(&config, 9_822, &Events::default()).unwrap();
            assert_eq!(
                (writer.messages(), fs::read(&path).unwrap()),
                (0, LOG_HEADER.to_vec()),
                "{left} bytes"
            );
        }
        for (bytes, says) in [
            ([&LOG_HEADER[..], &[0; 64]].concat(), "damaged at byte 8"),
            (b"other".to_vec(), "sym2026.11.22"),
            (vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3], "sym2026.11.22"),
        ] {
            fs::write(&path, &bytes).unwrap();
            let said = format!("{:#}", DayLog::open(&config, 9_822, &Events::default()).unwrap_err());
            assert!(said.contains(says), "{said}");
            assert_eq!(fs::read(&path).unwrap(), bytes, "it is as it was");
        }
    }
}
