//! Joining late: how long until a plant below has the ticks since the plant above started, beside a subscriber of Aeron Archive.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, bail};
use serde::Deserialize;
use tapeline_measure::Clock;
use tapeline_plant::tick::Tick;

use crate::bare::MESSAGE_BYTES;
use crate::plants::{Plant, day, each_tick, feed, unbound};

/// Ticks a second, also while one joins.
pub(crate) const RATE: u64 = 100_000;
/// Ticks that there are when one joins.
pub(crate) const PAST: u64 = 1_000_000;
/// The length of the day: the past, and as long for joining.
const SECONDS: u64 = 2 * PAST / RATE;
/// One that is behind by less than what comes in 10 ms is level.
const LEVEL: u64 = RATE / 100;

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
    let note = |tick: &Tick<'_>| last.store(tick.header.seq.0, Ordering::Relaxed);
    each_tick(&above.ring, |tick| {
        note(tick);
        tick.header.seq.0 < PAST
    })?;
    let joined = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            each_tick(&above.ring, |tick| {
                note(tick);
                !is_over.load(Ordering::Relaxed)
            })
        });
        let upstream = format!(
            "[[upstream]]\nplant = \"UP\"\nserver = \"{server}\"\nstart = \"epoch\"\nstale_after = \"0s\"\n\
             [[upstream.line]]\naddress = \"{line}\"\n"
        );
        let joined = join(folder, &last, &upstream);
        is_over.store(true, Ordering::Relaxed);
        reader.join().expect("the reader has panicked").and(joined)
    });
    above.end()?;
    std::fs::remove_dir_all(folder.join("late-journal"))?;
    joined
}

/// Starts a plant below; `last` has the last tick of the plant above.
fn join(folder: &Path, last: &AtomicU64, upstream: &str) -> anyhow::Result<LateJoin> {
    let clock = Clock::calibrate();
    let (begun, past) = (clock.now(), last.load(Ordering::Relaxed));
    let below = Plant::begin(folder, "late-below", upstream)?;
    let (mut past_s, mut level_s) = (None, None);
    let told = each_tick(&below.ring, |tick| {
        let (seq, elapsed) = (tick.header.seq.0, clock.now().since(begun) as f64 / 1e9);
        if seq >= past {
            past_s.get_or_insert(elapsed);
            level_s = (seq + LEVEL >= last.load(Ordering::Relaxed)).then_some(elapsed);
        }
        level_s.is_none()
    });
    below.end()?;
    told?;
    let (past_s, level_s) =
        past_s.zip(level_s).context("the day was over before the plant below was level")?;
    Ok(LateJoin { past, past_s, level_s })
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
