//! The kdb+ log of each day: the file that an RDB replays with `-11!`.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tapeline_kdb::{Atom, LogWriter, Order};

use crate::failure::Hinted;
use crate::kdb::log_file::LogFile;

/// Where logs go, and how they are called: as `tick.q`'s, the name with the date behind it.
#[derive(Clone, Debug)]
pub(super) struct LogConfig {
    pub(super) folder: PathBuf,
    pub(super) name: String,
}

/// The log of one day, to be appended to.
#[derive(Debug)]
pub(super) struct DayLog {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl DayLog {
    /// Opens the log of a day, in days since 2000, and what knows how far it goes. One that is there goes on; a message at its end
    /// that was being written when a tickerplant died is cut off, which is said.
    ///
    /// # Errors
    /// The file cannot be had, is no log, or is damaged before its end.
    pub(super) fn open(config: &LogConfig, date: i32) -> anyhow::Result<(Self, LogWriter)> {
        fs::create_dir_all(&config.folder)
            .with_context(|| format!("cannot make the folder {}", config.folder.display()))?;
        let folder = config.folder.canonicalize().unwrap_or_else(|_| config.folder.clone());
        let path = folder.join(format!("{}{}", config.name, Atom::<&[u8]>::Date(date)));
        let made = OpenOptions::new().append(true).create_new(true).open(&path);
        match made {
            Ok(file) => {
                let mut header = [0; 8];
                let (writer, _) = LogWriter::begin(&mut header)?;
                let mut log = Self { file, path, bytes: 0 };
                log.append(&header)?;
                Ok((log, writer))
            }
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => Self::go_on(path),
            Err(cause) => Err(cause).with_context(|| format!("cannot make the log {}", path.display())),
        }
    }

    fn go_on(path: PathBuf) -> anyhow::Result<(Self, LogWriter)> {
        let mut read = LogFile::open(&path, Order::Little)?;
        let mut messages = 0;
        let tail = read.each(|_, _| {
            messages += 1;
            true
        });
        if let Some(cause) = read.failure() {
            anyhow::bail!("cannot read {}: {cause}", path.display());
        }
        let whole = tail.as_ref().map_or(read.offset(), |tail| tail.offset);
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.with_context(|| format!("cannot append to {}", path.display()))?;
        if let Some(tail) = tail {
            let is_torn = tail.order.is_none() && matches!(tail.fault, tapeline_kdb::Fault::Cut { .. });
            if !is_torn {
                let what = format!(
                    "{} is damaged at byte {}: {} bytes are behind its last whole message",
                    path.display(),
                    tail.fault_offset,
                    tail.bytes
                );
                let hint =
                    "`tapeline kdb inspect` shows what is in it; move it away, or cut it to that length";
                return Err(Hinted::new(what, hint).into());
            }
            file.set_len(whole).with_context(|| format!("cannot cut {}", path.display()))?;
            anstream::eprintln!(
                "warning: the last message of {} was not whole: {} bytes cut off, {messages} messages stay",
                path.display(),
                tail.bytes
            );
        }
        Ok((Self { file, path, bytes: whole }, LogWriter::resume(messages, whole)))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends messages. After an error none of them is there.
    pub(super) fn append(&mut self, messages: &[u8]) -> anyhow::Result<()> {
        if let Err(cause) = self.file.write_all(messages) {
            // What is torn would be taken for the log's end when the tickerplant starts again; so it is as well if this fails.
            let _ = self.file.set_len(self.bytes);
            let what = format!(
                "cannot append to the log {}: nothing is published that is not in it",
                self.path.display()
            );
            let hint =
                "make room, then start again: the log goes on where it ends, and subscribers replay it";
            return Err(anyhow::Error::new(cause).context(Hinted::new(what, hint)));
        }
        self.bytes += messages.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_log_goes_on_and_what_is_torn_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let config = LogConfig { folder: folder.path().join("logs"), name: "sym".to_owned() };
        let mut message = [0; 64];
        let (mut log, mut writer) = DayLog::open(&config, 9_822).unwrap();
        assert!(log.path().ends_with("sym2026.11.22"), "{}", log.path().display());
        let len = writer.append(&mut message, |out| out.symbol(b"tick")).unwrap();
        for _ in 0..3 {
            log.append(&message[..len]).unwrap();
        }
        // The process dies while it writes the fourth.
        log.append(&message[..len - 2]).unwrap();
        drop(log);
        let (mut log, writer) = DayLog::open(&config, 9_822).unwrap();
        assert_eq!((writer.messages(), writer.bytes()), (3, 8 + 3 * len as u64));
        log.append(&message[..len]).unwrap();
        drop(log);
        let (log, writer) = DayLog::open(&config, 9_822).unwrap();
        assert_eq!(writer.messages(), 4);
        // Damage in the middle is not passed over.
        let mut bytes = fs::read(log.path()).unwrap();
        bytes[8 + len] = 55;
        fs::write(log.path(), bytes).unwrap();
        let said = DayLog::open(&config, 9_822).unwrap_err().to_string();
        assert!(said.contains(&format!("damaged at byte {}", 8 + len)), "{said}");
    }
}
