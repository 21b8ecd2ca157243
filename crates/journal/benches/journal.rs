//! How fast a journal is written and read, beside the bare files.
//!
//! ```text
//! cargo bench -p tapeline-journal --bench journal -- [--mib N] [--turns N] [--body BYTES] [--folder FOLDER]
//! ```
//!
//! In turns: `append` writes records in `written`, as they come where the ring always has more; `bare writes` writes the same bytes
//! in 1 MiB pieces to a file that is made as long beforehand; `replay` reads the records again, and `bare reads` the file in 1 MiB pieces
//! with CRC-32C over them. Into the page cache, nothing is synced. Printed are medians over the turns and the ratios; a record holds a
//! tick: its header of 64 bytes, a name of 4, and the body.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Instant;

use tapeline_journal::{Directory, Next, Reader, Settings, Writer};
use tapeline_measure::Nanos;

const PIECE: usize = 1 << 20;

fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

fn main() {
    let number = |name, usual: usize| option(name).map_or(usual, |text| text.parse().expect("a number"));
    let (mib, turns, body) = (number("--mib", 1_024), number("--turns", 5), number("--body", 100));
    let parent = option("--folder").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = parent.join(format!("journal-bench-{}", std::process::id()));
    let tick = vec![0x5A; 64 + 4 + body];
    let size = (24 + tick.len()).next_multiple_of(8);
    let records = (mib << 20) / size;
    let mut seconds = [const { Vec::new() }; 4];
    for _ in 0..turns {
        seconds[0].push(append(&folder, &tick, records));
        seconds[1].push(bare_writes(&folder, records * size));
        seconds[2].push(replay(&folder, records));
        seconds[3].push(bare_reads(&folder));
        std::fs::remove_dir_all(&folder).unwrap();
    }
    let median = |seconds: &mut Vec<f64>| {
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2]
    };
    let [append, writes, replay, reads] = seconds.each_mut().map(median);
    let gbps = |seconds: f64| (records * size) as f64 / seconds / 1e9;
    let mps = |seconds: f64| records as f64 / seconds / 1e6;
    println!("{records} ticks of {} bytes, {mib} MiB, medians of {turns} turns", tick.len());
    println!("append       {:6.2} M ticks/s  {:5.2} GB/s", mps(append), gbps(append));
    println!(
        "bare writes                   {:5.2} GB/s   append is {:.0} %",
        gbps(writes),
        100.0 * writes / append
    );
    println!("replay       {:6.2} M ticks/s  {:5.2} GB/s", mps(replay), gbps(replay));
    println!(
        "bare reads                    {:5.2} GB/s   replay is {:.0} %",
        gbps(reads),
        100.0 * reads / replay
    );
}

fn append(folder: &std::path::Path, tick: &[u8], records: usize) -> f64 {
    let settings = Settings::default();
    let (mut writer, _) = Writer::open(Directory::create(folder).unwrap(), settings).unwrap();
    let begun = Instant::now();
    for seq in 1..=records as u64 {
        assert!(writer.append(seq, Nanos(seq), tick).is_kept());
    }
    assert!(writer.flush().is_kept());
    begun.elapsed().as_secs_f64()
}

fn bare_writes(folder: &std::path::Path, bytes: usize) -> f64 {
    let piece = vec![0x5A; PIECE];
    let begun = Instant::now();
    let file = File::options().read(true).write(true).create_new(true).open(folder.join("bare")).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes as u64).unwrap();
    for at in (0..bytes).step_by(PIECE) {
        file.write_all_at(&piece[..PIECE.min(bytes - at)], at as u64).unwrap();
    }
    begun.elapsed().as_secs_f64()
}

fn replay(folder: &std::path::Path, records: usize) -> f64 {
    let mut reader = Reader::open(Directory::open(folder).unwrap()).unwrap();
    let begun = Instant::now();
    let mut count = 0;
    while let Next::Record(record) = reader.next().unwrap() {
        black_box(record.body);
        count += 1;
    }
    assert_eq!(count, records);
    begun.elapsed().as_secs_f64()
}

fn bare_reads(folder: &std::path::Path) -> f64 {
    let file = File::open(folder.join("bare")).unwrap();
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
