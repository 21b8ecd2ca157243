//! The throughput of journal writes and reads, compared with bare files.
//!
//! ```text
//! cargo bench -p tapeline-journal --bench journal -- [--mib N] [--turns N] [--body BYTES] [--seconds N] [--folder FOLDER] [--to PAGE]
//! ```
//!
//! First the page cache, in turns. `append` writes records with durability `written`, without waiting for input.
//! `bare writes` writes the same bytes in 1 MiB pieces to a preallocated file. `replay` reads the records. `bare reads`
//! reads the bare file in 1 MiB pieces, with CRC-32C over each. Then the disk, three times: `--seconds` of appends and
//! the sync that follows, compared with the same number of bare bytes; and groups of records, each group synced before
//! the next. A record contains a tick: a header of 64 bytes, a name of 4, and the body.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

#[path = "../../tapeline/benches/hub/turns.rs"]
mod turns;

use std::fmt::Write as _;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tapeline_journal::{Directory, Durability, Next, Reader, Settings, Writer};
use tapeline_measure::figures::{duration, thousands};
use tapeline_measure::{Clock, Environment, Nanos};

use self::turns::{ratios, spread};

const PIECE: usize = 1 << 20;
/// Records per sync: from one up to about one write of a busy ring.
const GROUPS: [usize; 4] = [1, 10, 100, 1_000];
/// The measuring time for each group size.
const SYNCING: Duration = Duration::from_secs(2);
/// The number of disk runs.
const ON_DISK: usize = 3;
/// A disk run also ends after this number of bytes.
const MOST_ON_DISK: usize = 16 << 30;

fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// The folder and the record of a run.
struct Bench {
    folder: PathBuf,
    tick: Vec<u8>,
    /// Bytes of a record in the file.
    size: usize,
}

fn main() {
    let number = |name, usual: usize| option(name).map_or(usual, |text| text.parse().expect("a number"));
    let (mib, turns, body) = (number("--mib", 1_024), number("--turns", 5), number("--body", 100));
    let seconds = number("--seconds", 10);
    let parent = option("--folder").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = parent.join(format!("journal-bench-{}", std::process::id()));
    let tick = vec![0x5A; 64 + 4 + body];
    let size = (24 + tick.len()).next_multiple_of(8);
    let bench = Bench { folder, tick, size };
    let records = (mib << 20) / size;
    let [mut appends, mut writes, mut replays, mut reads] = [const { Vec::new() }; 4];
    for turn in 1..=turns {
        eprintln!("journal: page cache, turn {turn} of {turns}");
        appends.push(bench.append(records));
        writes.push(bench.bare_writes(records * size, false));
        replays.push(bench.replay(records));
        reads.push(bench.bare_reads());
        bench.clear();
    }
    let [mut on_disk, mut bare_on_disk] = [const { Vec::new() }; 2];
    for turn in 1..=ON_DISK {
        eprintln!("journal: {seconds} s on the disk, turn {turn} of {ON_DISK}");
        let (written, took) = bench.append_to_disk(Duration::from_secs(seconds as u64));
        let bytes = (written * size) as f64 / 1e9;
        on_disk.push(bytes / took);
        bare_on_disk.push(bytes / bench.bare_writes(written * size, true));
        bench.clear();
    }
    let mut page = String::new();
    let figures = |all: &[f64], decimals, per_s: f64| {
        spread(&all.iter().map(|seconds| per_s / seconds).collect::<Vec<_>>(), decimals)
    };
    let (millions, gigabytes) = (records as f64 / 1e6, (records * size) as f64 / 1e9);
    let environment = Environment::read(&Clock::calibrate()).summary();
    let _ = write!(
        page,
        "# The journal compared with bare files\n\n\
         Written by `make bench-journal DOC=1`: {turns} turns, each figure as min / **median** / max of the turns. Another machine, or this one at another \
         hour, has other figures.\n\n```text\n{}\n```\n\n\
         The journal stores every tick that a plant publishes. Here {} ticks of {} bytes ({body} of them the body) are appended and then \
         replayed, in all {} MiB of records, through the page cache of the file system of {}. For comparison, a program writes and reads the \
         same bytes in pieces of 1 MiB and does nothing else (bare writes and reads), except that it computes CRC-32C over the bytes that it \
         reads. The aims are 60 % of the bare rate, 5 million ticks/s appended, and 10 million ticks/s replayed.\n\n\
         | | million ticks/s | GB/s | ratio to bare |\n|---|---|---|---|\n",
        environment.trim_end(),
        thousands(records as u64),
        bench.tick.len(),
        mib,
        if option("--folder").is_some() { "a given folder" } else { "the temporary files" },
    );
    for (name, ours, bare) in [("append", &appends, &writes), ("replay", &replays, &reads)] {
        let _ = writeln!(
            page,
            "| {name} | {} | {} | {} |\n| bare {} | | {} | |",
            figures(ours, 2, millions),
            figures(ours, 2, gigabytes),
            spread(&ratios(bare, ours), 2),
            if name == "append" { "writes" } else { "reads" },
            figures(bare, 2, gigabytes),
        );
    }
    let _ = write!(
        page,
        "\n## On the disk\n\nWith durability `written`, ticks are appended for {seconds} s and then everything is synced to the disk, in \
         {ON_DISK} turns: {} GB/s. Writing and syncing the same number of bytes without a journal: {} GB/s. Ratio of the rates: {}; aim: at least 0.6.\n\n\
         With durability `synced`, records are synced to the disk in groups of a fixed number. The bare file gets the same bytes and one \
         `fdatasync` for each group. The last column is the journal's time divided by the bare file's: below 1 the journal is faster.\n\n\
         | records in a group | ticks/s | time for a group: median | p99 | ratio to bare (median) |\n|---:|---:|---:|---:|---:|\n",
        spread(&on_disk, 2),
        spread(&bare_on_disk, 2),
        spread(&ratios(&on_disk, &bare_on_disk), 2),
    );
    for group in GROUPS {
        eprintln!("journal: synced, groups of {group}");
        let (ours, bare) = (bench.synced(group), bench.bare_syncs(group));
        bench.clear();
        let _ = writeln!(
            page,
            "| {group} | {} | {} | {} | {:.2} |",
            thousands(((group * ours.len()) as f64 / ours.iter().sum::<Duration>().as_secs_f64()) as u64),
            duration(at(&ours, 50)),
            duration(at(&ours, 99)),
            at(&ours, 50) as f64 / at(&bare, 50) as f64,
        );
    }
    match option("--to") {
        Some(to) => std::fs::write(to, page).unwrap(),
        None => print!("{page}"),
    }
}

/// Returns a percentile of sorted times, in ns.
fn at(sorted: &[Duration], percent: usize) -> u64 {
    sorted[(sorted.len() - 1) * percent / 100].as_nanos() as u64
}

impl Bench {
    fn writer(&self, durability: Durability) -> Writer<Directory> {
        let settings = Settings { durability, ..Settings::default() };
        Writer::open(Directory::create(&self.folder).unwrap(), settings).unwrap().0
    }

    fn append(&self, records: usize) -> f64 {
        let mut writer = self.writer(Durability::Written);
        let begun = Instant::now();
        for seq in 1..=records as u64 {
            assert!(writer.append(seq, Nanos(seq), &self.tick).is_kept());
        }
        assert!(writer.flush().is_kept());
        begun.elapsed().as_secs_f64()
    }

    /// Appends for `time`, then syncs everything. Returns the number of records and the total seconds.
    fn append_to_disk(&self, time: Duration) -> (usize, f64) {
        let mut writer = self.writer(Durability::Written);
        let (begun, mut records) = (Instant::now(), 0);
        while begun.elapsed() < time && records * self.size < MOST_ON_DISK {
            for _ in 0..4_096 {
                records += 1;
                assert!(writer.append(records as u64, Nanos(records as u64), &self.tick).is_kept());
            }
        }
        assert!(writer.finish().is_kept());
        for entry in std::fs::read_dir(&self.folder).unwrap() {
            File::open(entry.unwrap().path()).unwrap().sync_data().unwrap();
        }
        (records, begun.elapsed().as_secs_f64())
    }

    fn bare_writes(&self, bytes: usize, is_synced: bool) -> f64 {
        let piece = vec![0x5A; PIECE];
        let begun = Instant::now();
        let file = bare(&self.folder, bytes);
        for at in (0..bytes).step_by(PIECE) {
            file.write_all_at(&piece[..PIECE.min(bytes - at)], at as u64).unwrap();
        }
        if is_synced {
            file.sync_data().unwrap();
        }
        begun.elapsed().as_secs_f64()
    }

    fn replay(&self, records: usize) -> f64 {
        let mut reader = Reader::open(Directory::open(&self.folder).unwrap()).unwrap();
        let begun = Instant::now();
        let mut count = 0;
        while let Next::Record(record) = reader.next().unwrap() {
            black_box(record.body);
            count += 1;
        }
        assert_eq!(count, records);
        begun.elapsed().as_secs_f64()
    }

    fn bare_reads(&self) -> f64 {
        let file = File::open(self.folder.join("bare")).unwrap();
        let mut piece = vec![0; PIECE];
        let begun = Instant::now();
        let mut at = 0;
        loop {
            let count = file.read_at(&mut piece, at).unwrap();
            if count == 0 {
                return begun.elapsed().as_secs_f64();
            }
            black_box(crc32c::crc32c(&piece[..count]));
            at += count as u64;
        }
    }

    /// Returns the sorted times from append to sync, one per group.
    fn synced(&self, group: usize) -> Vec<Duration> {
        let mut writer = self.writer(Durability::Synced);
        let mut seq = 0;
        timed(|| {
            for _ in 0..group {
                seq += 1;
                assert!(writer.append(seq, Nanos(seq), &self.tick).is_kept());
            }
            assert!(writer.flush().is_kept());
        })
    }

    /// Returns the same times for a bare file.
    fn bare_syncs(&self, group: usize) -> Vec<Duration> {
        let piece = vec![0x5A; group * self.size];
        let file = bare(&self.folder, 256 << 20);
        let mut at = 0;
        timed(|| {
            file.write_all_at(&piece, at).unwrap();
            file.sync_data().unwrap();
            at = (at + piece.len() as u64) % (255 << 20);
        })
    }

    fn clear(&self) {
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// Creates a file that is preallocated to its final size.
fn bare(folder: &Path, bytes: usize) -> File {
    let path = folder.join("bare");
    let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes as u64).unwrap();
    file
}

/// Repeats `what` for [`SYNCING`]. Returns the sorted times.
fn timed(mut what: impl FnMut()) -> Vec<Duration> {
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < SYNCING {
        let now = Instant::now();
        what();
        times.push(now.elapsed());
    }
    times.sort();
    times
}
