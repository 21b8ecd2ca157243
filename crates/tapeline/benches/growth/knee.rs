//! Latency by load, up to where the plant no longer keeps up.

use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;
use tapeline_perf::plot::Scale;

use crate::{Drawing, Line, Measuring};

/// What the demo measures from the wire to its subscribers, by rate.
pub(crate) fn load(measuring: &Measuring) -> anyhow::Result<Drawing> {
    const RATES: [u64; 9] =
        [25_000, 50_000, 100_000, 200_000, 400_000, 600_000, 800_000, 1_200_000, 1_600_000];
    let mut sizes = measuring.sizes(&RATES, 4);
    let mut lines = ["bare relay, p50", "p50", "p99", "p99.9"].map(Line::new);
    // In turns, so that a minute of other work on the machine does not hit one rate alone.
    let mut figures = vec![vec![Vec::new(); sizes.len()]; lines.len()];
    for _ in 0..measuring.turns.min(3) {
        for (place, rate) in sizes.iter().enumerate() {
            let Some(latency) = demo(*rate)? else { continue };
            for (line, value) in figures.iter_mut().zip(latency).filter(|(_, value)| value.is_finite()) {
                line[place].push(value);
            }
        }
    }
    // What lies above the knee has no latency: messages pile up or are lost.
    let most = measuring.turns.min(3);
    for turns in figures.iter_mut().flatten().filter(|turns| turns.len() * 2 <= most) {
        turns.clear();
    }
    let kept = figures[1].iter().take_while(|turns| !turns.is_empty()).count();
    sizes.truncate(kept + 1);
    for (line, mut turns) in lines.iter_mut().zip(figures) {
        turns.truncate(sizes.len());
        line.figures = turns;
        line.bend = match line.name {
            "bare relay, p50" => "",
            _ => "the knee: the cores are busy, and messages wait for each other",
        };
    }
    Ok(Drawing {
        name: "growth-load",
        title: "Latency by load",
        x_title: "messages a second",
        y_title: "µs",
        scale: Scale::Logarithmic,
        what: "`tapeline demo --rate …` without a journal: simulated exchange, plant, two subscribers, hub and clients on this machine's cores. From the \
               kernel's receive stamp to the subscriber. *Bare relay*: the same sender, sockets, ring and subscribers without a plant, in the same run. No point: in half of the turns or more, messages were lost or piled up, or the sender missed its schedule.",
        sizes,
        lines: lines.into(),
    })
}

/// The median of the relay and the percentiles of the whole way, in µs; `None` if the plant or the sender did not keep up.
fn demo(rate: u64) -> anyhow::Result<Option<[f64; 4]>> {
    let folder = tempfile::tempdir()?;
    let output = Command::new(env!("CARGO_BIN_EXE_tapeline"))
        .args([
            "demo",
            "--duration",
            "3s",
            "--journal",
            "none",
            "--format",
            "json",
            "--rate",
            &rate.to_string(),
        ])
        .arg("--run-folder")
        .arg(folder.path().join("run"))
        .output()?;
    ensure!(
        output.status.success() || output.status.code() == Some(3),
        "tapeline demo ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let run: Value = serde_json::from_slice(&output.stdout).context("the demo's result")?;
    if !matches!(run["verdict"].as_str(), Some("PASS" | "NOISY")) {
        return Ok(None);
    }
    let hop = run["hops"].as_array().into_iter().flatten().find(|hop| hop["name"] == "wire→received");
    let hop = hop.context("the demo has no hop wire→received")?;
    let us = |rank: &str| {
        hop["latency_ns"][rank].as_f64().map(|ns| ns / 1e3).with_context(|| format!("no {rank}: {hop}"))
    };
    let steps = run["steps"].as_array().into_iter().flatten();
    let relay = steps
        .filter(|step| step["name"] == "wire→received")
        .find_map(|step| step["relay_median_ns"].as_f64());
    Ok(Some([relay.map_or(f64::NAN, |ns| ns / 1e3), us("p50")?, us("p99")?, us("p99.9")?]))
}
