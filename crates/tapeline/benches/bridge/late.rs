//! Joining late: how long until a plant below has the ticks since the plant above started, beside a subscriber of Aeron Archive.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use tapeline_measure::Clock;
use tapeline_node::ticks::{self, Next};
use tapeline_ring::{Name, Start, Subscriber, Wait};

use crate::bare::MESSAGE_BYTES;
use crate::plants::{Plant, day, feed, unbound};

/// Ticks a second, also while one joins.
pub(crate) const RATE: u64 = 100_000;
/// Ticks that there are when one joins.
pub(crate) const PAST: u64 = 1_000_000;
/// The length of the day: the past, and as long for joining.
const SECONDS: u64 = 2 * PAST / RATE;
/// One that is behind by less than what comes in 10 ms is level.
const LEVEL: u64 = RATE / 100;
/// In place of a last tick: the plant above is not read any more.
const NO_MORE: u64 = u64::MAX;
/// The longest silence of a ring before something is wrong.
const PATIENCE: Duration = Duration::from_secs(10);

/// What one turn gave.
#[derive(Debug, Deserialize)]
pub(crate) struct LateJoin {
    /// Messages that there were at the beginning.
    pub(crate) past: u64,
    /// Seconds until it had all of those.
    pub(crate) past_s: f64,
    /// Seconds until it had what had come meanwhile, too.
    pub(crate) level_s: f64,
}

/// A plant below that takes all ticks of the epoch from the journal of the plant above, and goes live; its process starts in that time.
/// `bridge` has further keys of the plant above.
pub(crate) fn plant(folder: &Path, bridge: &str) -> anyhow::Result<LateJoin> {
    let (server, line) = (unbound()?, unbound()?);
    let above = Plant::begin(
        folder,
        "late-above",
        &format!(
            "{}[journal]\nfolder = \"late-journal\"\n[bridge]\nplant = \"UP\"\nport = {}\n\
             {bridge}[[bridge.line]]\naddress = \"{line}\"\n",
            feed(&day(folder, RATE, SECONDS)?),
            server.port()
        ),
    )?;
    let (last, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let joined = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let told = read(&above.ring, |seq| {
                last.store(seq, Ordering::Relaxed);
                !is_over.load(Ordering::Relaxed)
            });
            last.store(NO_MORE, Ordering::Relaxed);
            told
        });
        let joined = join(
            folder,
            &last,
            &format!(
                "[[upstream]]\nplant = \"UP\"\nserver = \"{server}\"\nstart = \"epoch\"\nstale_after = \"0s\"\n[[upstream.line]]\naddress = \"{line}\"\n"
            ),
        );
        is_over.store(true, Ordering::Relaxed);
        reader.join().expect("the reader has panicked")?;
        joined
    });
    above.end()?;
    std::fs::remove_dir_all(folder.join("late-journal"))?;
    joined
}

/// Starts a plant below once the plant above has its past, of which `last` has the last tick.
fn join(folder: &Path, last: &AtomicU64, upstream: &str) -> anyhow::Result<LateJoin> {
    while last.load(Ordering::Relaxed) < PAST {
        std::thread::sleep(Duration::from_millis(1));
    }
    let clock = Clock::calibrate();
    let (begun, past) = (clock.now(), last.load(Ordering::Relaxed));
    ensure!(past != NO_MORE, "the plant above has ended");
    let below = Plant::begin(folder, "late-below", upstream)?;
    let (mut past_s, mut level_s) = (None, None);
    let told = read(&below.ring, |seq| {
        let elapsed = clock.now().since(begun) as f64 / 1e9;
        if seq >= past {
            past_s.get_or_insert(elapsed);
        }
        if seq >= past && seq + LEVEL >= last.load(Ordering::Relaxed) {
            level_s = Some(elapsed);
        }
        level_s.is_none()
    });
    below.end().and(told)?;
    let (past_s, level_s) =
        past_s.zip(level_s).context("the day was over before the plant below was level")?;
    Ok(LateJoin { past, past_s, level_s })
}

/// Reads a ring as long as `each` wants it, or to its end.
fn read(ring: &Name, mut each: impl FnMut(u64) -> bool) -> anyhow::Result<()> {
    let mut subscriber = Subscriber::join_as(ring, Start::Newest, "bench")?;
    let mut silent = Duration::ZERO;
    loop {
        match ticks::next(&mut subscriber)? {
            Next::Tick(tick) => {
                silent = Duration::ZERO;
                if !each(tick.header.seq.0) {
                    return Ok(());
                }
            }
            Next::Nothing => {
                let wait = Duration::from_millis(50);
                if !subscriber.wait(Wait::Park, wait) {
                    silent += wait;
                    ensure!(silent < PATIENCE, "the ring {ring} has been silent for {PATIENCE:?}");
                }
            }
            Next::End => return Ok(()),
            Next::Lost(lost) => return Err(lost.of("this reader").into()),
        }
    }
}

/// A subscriber of Aeron Archive that replays the recording from its beginning: `peers/aeron-archive` with this jar.
pub(crate) fn archive(folder: &Path, jar: &Path) -> anyhow::Result<LateJoin> {
    let folder = folder.join("late-archive");
    std::fs::create_dir_all(&folder)?;
    // Where a media driver has its files.
    let driver = tempfile::tempdir_in("/dev/shm")?;
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../peers/aeron-archive/LateJoin.java");
    let opens = ["java.base/sun.nio.ch=ALL-UNNAMED", "java.base/jdk.internal.misc=ALL-UNNAMED"];
    let output = Command::new("java")
        .args(opens.iter().flat_map(|module| ["--add-opens", module]))
        .arg("-cp")
        .args([jar, Path::new(program), &folder, &driver.path().join("driver")])
        .args([PAST, RATE, MESSAGE_BYTES as u64].map(|number| number.to_string()))
        .output()
        .context("java cannot be started")?;
    std::fs::remove_dir_all(&folder)?;
    match serde_json::from_slice(&output.stdout) {
        Ok(joined) if output.status.success() => Ok(joined),
        _ => bail!("Aeron Archive: {}", String::from_utf8_lossy(&output.stderr).trim_end()),
    }
}
