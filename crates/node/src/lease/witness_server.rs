//! A witness: grants leases over UDP, and writes down what it granted.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapeline_measure::{boot_time, utc_now};
use tapeline_plant::Seq;
use tapeline_plant::bridge::Epoch;
use tapeline_plant::bridge::lease::{
    JournalEnd, LEASE_BYTES, LeaseOutcome, LeaseRecord, LeaseRequest, Witness, WitnessSettings,
};
use tapeline_wire::udp::{Batch, ReceiveOptions, UdpReceiver};

use crate::events::{Events, Kind, Severity};
use crate::{Error, Result, Stop};

/// Requests taken at once.
const REQUESTS: usize = 64;
/// The longest sleep, so that the end is noticed.
const SLEEP: Duration = Duration::from_millis(50);
/// The first line of the file; another layout has another last digit.
const LAYOUT: &str = "tapeline-witness-1";

/// A witness.
#[derive(Clone, Debug)]
pub struct WitnessConfig {
    /// Where plants ask; port 0 takes a free one.
    pub bind: SocketAddrV4,
    /// The file that survives the witness.
    pub file: PathBuf,
    /// The limits.
    pub settings: WitnessSettings,
}

/// Totals of a witness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessReport {
    /// Leases granted.
    pub granted: u64,
    /// Leases renewed.
    pub renewed: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Datagrams that are no requests.
    pub malformed: u64,
}

/// A witness with its socket and its file.
#[derive(Debug)]
pub struct WitnessServer {
    witness: Witness,
    socket: UdpReceiver,
    file: PathBuf,
    /// Keeps a second witness from the file.
    _lock: fs::File,
    report: WitnessReport,
    has_complained: bool,
    events: Events,
}

impl WitnessServer {
    /// Opens the file and the port.
    ///
    /// # Errors
    /// The file cannot be read or written, has something else in it, or is another witness's; the port is taken.
    pub fn open(config: &WitnessConfig, events: &Events) -> Result<Self> {
        let failed = |what: &str| {
            let hint = "a witness writes this file, and grants an epoch twice without it; another path begins another witness";
            Error::hinted(format!("cannot use {}{what}", config.file.display()), hint)
        };
        let lock = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(config.file.with_extension("lock"))
            .map_err(|error| failed("").because(error))?;
        lock.try_lock().map_err(|_| failed(": another witness uses it"))?;
        let text = match fs::read_to_string(&config.file) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed("").because(error)),
        };
        let records = text.as_deref().map_or(Some(Vec::new()), |text| read(text, &config.settings));
        let records = records.ok_or_else(|| failed(": a line is not a lease"))?;
        // Now rather than at the first grant: a folder that cannot be written is told at the start.
        write(&config.file, &records).map_err(|error| failed("").because(error))?;
        let socket = UdpReceiver::open(&ReceiveOptions::new(config.bind)).map_err(|error| {
            Error::of_port(format!("the witness cannot be asked at {}", config.bind), "--bind", error)
        })?;
        Ok(Self {
            witness: Witness::new(config.settings, &records, boot_time()),
            socket,
            file: config.file.clone(),
            _lock: lock,
            report: WitnessReport::default(),
            has_complained: false,
            events: events.clone(),
        })
    }

    /// Returns where plants ask.
    #[must_use]
    pub fn address(&self) -> SocketAddrV4 {
        self.socket.local_address()
    }

    /// Answers until a stop is requested.
    ///
    /// # Errors
    /// The socket cannot be read.
    pub fn run(mut self, stop: &Stop) -> Result<WitnessReport> {
        let mut batch = Batch::new(REQUESTS, LEASE_BYTES + 1);
        while !stop.is_requested() {
            let count = self.socket.receive(&mut batch)?;
            for datagram in batch.iter() {
                match LeaseRequest::decode(datagram.bytes) {
                    Some(request) => self.answer(&request, datagram.source),
                    None => {
                        self.report.malformed += 1;
                        let said = format_args!("witness: {} sends what is no request", datagram.source);
                        self.events.peer(utc_now(), Kind::Bridge, Severity::Warning, said);
                    }
                }
            }
            if count == 0 {
                self.socket.wait(SLEEP);
            }
        }
        self.events.end(utc_now());
        Ok(self.report)
    }

    fn answer(&mut self, request: &LeaseRequest, to: SocketAddrV4) {
        let (mut written, mut is_new) = (Ok(()), false);
        let answer = self.witness.take(request, boot_time(), |records| {
            is_new = true;
            written = write(&self.file, records);
            written.is_ok()
        });
        match answer.outcome {
            LeaseOutcome::Granted if is_new => {
                self.report.granted += 1;
                self.events.info(format_args!(
                    "witness: plant {} is led by {} from epoch {} on, who asks from {to}",
                    answer.plant, answer.holder, answer.epoch.0
                ));
            }
            LeaseOutcome::Granted => self.report.renewed += 1,
            LeaseOutcome::Free => {}
            _ => self.report.refused += 1,
        }
        match written {
            Ok(()) => self.has_complained &= !is_new,
            Err(error) if !self.has_complained => {
                self.has_complained = true;
                let said = format_args!(
                    "witness: cannot write {}: {error}; it grants nothing new",
                    self.file.display()
                );
                self.events.warning(said);
            }
            Err(_) => {}
        }
        // An answer that cannot be sent is asked for again.
        let _ = self.socket.send_to(&answer.encode(), to);
    }
}

/// Reads the leases of a file; `None` if it has something else in it.
fn read(text: &str, settings: &WitnessSettings) -> Option<Vec<LeaseRecord>> {
    let mut lines = text.lines();
    (lines.next()? == LAYOUT).then_some(())?;
    let record = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [plant, holder, rest @ ..] = words.as_slice() else { return None };
        let numbers: Vec<u64> = rest.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [epoch, incarnation, duration_ns, of_epoch, last] = *numbers.as_slice() else { return None };
        let (shortest, longest) = settings.durations_ns;
        let is_sound = (shortest..=longest).contains(&duration_ns) && epoch.max(of_epoch) <= Epoch::LAST.0;
        is_sound.then_some(LeaseRecord {
            plant: plant.parse().ok()?,
            epoch: Epoch(epoch),
            holder: holder.parse().ok()?,
            incarnation,
            duration_ns,
            position: JournalEnd { epoch: Epoch(of_epoch), last: Seq(last) },
        })
    };
    lines.map(record).collect::<Option<Vec<_>>>().filter(|records| records.len() <= settings.max_plants)
}

/// Writes the leases: afterwards the file has these or, after an error or a crash, those before.
fn write(file: &Path, records: &[LeaseRecord]) -> io::Result<()> {
    let line = |record: &LeaseRecord| {
        let LeaseRecord { plant, epoch, holder, incarnation, duration_ns, position } = record;
        let JournalEnd { epoch: of_epoch, last } = position;
        format!("{plant} {holder} {} {incarnation} {duration_ns} {} {}\n", epoch.0, of_epoch.0, last.0)
    };
    let text: String = std::iter::once(format!("{LAYOUT}\n")).chain(records.iter().map(line)).collect();
    let new = file.with_extension("new");
    let mut out = fs::File::create(&new)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    fs::rename(&new, file)?;
    // The name must survive the machine too.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_granted_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("witness");
        let record = LeaseRecord {
            plant: "NY1".parse().unwrap(),
            epoch: Epoch(7),
            holder: "host-a".parse().unwrap(),
            incarnation: u64::MAX,
            duration_ns: 1_000_000_000,
            position: JournalEnd { epoch: Epoch(6), last: Seq(99) },
        };
        let other = LeaseRecord { plant: "LN".parse().unwrap(), ..record };
        write(&file, &[record, other]).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let settings = WitnessSettings::default();
        assert_eq!(read(&text, &settings), Some(vec![record, other]));
        for damaged in [
            text.replace("witness-1", "witness-2"),
            text.replace("NY1 ", "NY1  "),
            text.replace(" 99", " "),
            text.replace("1000000000", "1"),
            text.replace(" 7 ", " 99999999999999 "),
            format!("{text}\n"),
        ] {
            assert_eq!(read(&damaged, &settings), None, "{damaged}");
        }
        assert_eq!(read(&text, &WitnessSettings { max_plants: 1, ..settings }), None);
    }

    #[test]
    fn one_file_has_one_witness() {
        let folder = tempfile::tempdir().unwrap();
        let config = WitnessConfig {
            bind: "127.0.0.1:0".parse().unwrap(),
            file: folder.path().join("witness"),
            settings: WitnessSettings::default(),
        };
        let events = Events::default();
        let first = WitnessServer::open(&config, &events).unwrap();
        let said = format!("{:#}", WitnessServer::open(&config, &events).unwrap_err());
        assert!(said.contains("another witness uses it"), "{said}");
        drop(first);
        drop(WitnessServer::open(&config, &events).unwrap());
        fs::write(&config.file, "what\n").unwrap();
        assert!(WitnessServer::open(&config, &events).is_err());
    }
}
