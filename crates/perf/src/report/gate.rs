//! Gates: limits on how much worse a figure may get, such as `p99=+10%`.

use std::fmt;
use std::str::FromStr;

use super::groups::{Alike, Compared, Groups};
use super::loaded::Figure;

/// A figure, and how much worse than in the first group it may be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gate {
    name: String,
    figure: Figure,
    /// Signed, in per cent.
    percent: f64,
}

/// The result of a gate for one group.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) is_good: bool,
    said: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "'{text}' is no gate; write a figure, a sign and per cent, such as p99=+10% or throughput=-5%"
            )
        };
        let (name, limit) = text.split_once('=').ok_or_else(expected)?;
        let percent: f64 =
            limit.strip_suffix('%').and_then(|limit| limit.parse().ok()).ok_or_else(expected)?;
        let figure = Figure::named(name).ok_or_else(|| {
            format!(
                "'{name}' is no figure; there are min, p1 to p99.99, max, mean, throughput, lost, cpu and memory"
            )
        })?;
        if !limit.starts_with(['+', '-']) || !percent.is_finite() {
            return Err(expected());
        }
        if (percent < 0.0) != figure.is_better_high() && percent != 0.0 {
            let (way, example) = if figure.is_better_high() { ("less", "-5%") } else { ("more", "+10%") };
            return Err(format!(
                "{name} is worse the {way} it is: write how much that may be, such as {name}={example}"
            ));
        }
        Ok(Self { name: name.to_owned(), figure, percent })
    }
}

/// Checks each gate for each group except the first of its kind. A missing figure fails the gate.
pub(super) fn judge(gates: &[Gate], groups: &Groups) -> Vec<Verdict> {
    let Some(first) = groups.all.first() else { return Vec::new() };
    let mut all = Vec::new();
    let fail = |said: String| Verdict { is_good: false, said: format!("FAIL {said}") };
    if groups.alike().next().is_none() {
        all.extend(gates.iter().map(|Gate { name, .. }| {
            fail(format!("{name}: there is nothing to compare {} with; name another run", first.name))
        }));
    }
    for (gate, alike) in gates.iter().flat_map(|gate| groups.alike().map(move |alike| (gate, alike))) {
        let (name, Alike { first, others, compared }) = (&gate.name, alike);
        let is_latency = matches!(gate.figure, Figure::Latency(_) | Figure::Mean);
        if is_latency && *compared == Compared::Nothing {
            all.push(fail(format!("{name}: the runs measured different things, and have no hop in common")));
            continue;
        }
        let of = match compared {
            Compared::Whole(hop) if is_latency => format!(" ({hop})"),
            Compared::ServiceTime if is_latency => " (service time)".to_owned(),
            _ => String::new(),
        };
        for group in others {
            let pair = first.spread(gate.figure).zip(group.spread(gate.figure));
            let Some((before, after)) = pair else {
                all.push(fail(format!(
                    "{name}: {} and {} do not both have it (a percentile needs ten samples beyond it)",
                    first.name, group.name
                )));
                continue;
            };
            let limit = before.median * (1.0 + gate.percent / 100.0);
            let is_good =
                if gate.figure.is_better_high() { after.median >= limit } else { after.median <= limit };
            let by = match before.median {
                0.0 if after.median == 0.0 => "the same".to_owned(),
                0.0 => "from nothing".to_owned(),
                before => format!("{:+.1} %", (after.median / before - 1.0) * 100.0),
            };
            let word = if is_good { "PASS" } else { "FAIL" };
            let said = format!(
                "{word} {name}{of}: {} against {}: {by}, {:+} % allowed",
                group.name, first.name, gate.percent
            );
            all.push(Verdict { is_good, said });
        }
    }
    all
}
