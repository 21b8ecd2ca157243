//! How a line grows, and where it bends.

use crate::Line;

/// A line bends where it grows by this power of the size more than before.
const BENDS: f64 = 0.2;

/// The growth of a line.
pub(crate) struct Growth {
    /// The power of the size that fits all points best (least squares of the logarithms): 0 is constant, 1 proportional.
    pub(crate) power: f64,
    /// Index of the sizes between which the line bends, and why.
    pub(crate) bend: Option<(usize, String)>,
}

/// A cache of the processor.
pub(crate) struct Cache {
    pub(crate) name: &'static str,
    pub(crate) bytes: u64,
}

/// The caches of the first core, as the system knows them.
pub(crate) fn caches() -> Vec<Cache> {
    let read = |index: usize| {
        let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        let text = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).ok();
        let level = text("level")?;
        let name = if level.trim() == "2" { "L2" } else { "L3" };
        let size = text("size")?;
        let bytes = size.trim().strip_suffix('K')?.parse::<u64>().ok()? << 10;
        (level.trim() >= "2").then_some(Cache { name, bytes })
    };
    (0..8).filter_map(read).collect()
}

/// The middle of the turns.
pub(crate) fn median(turns: &[f64]) -> Option<f64> {
    let mut sorted = turns.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// How this line grows over these sizes; `None` with fewer than two points.
pub(crate) fn growth(sizes: &[u64], line: &Line, caches: &[Cache]) -> Option<Growth> {
    let points: Vec<(usize, f64, f64)> = sizes
        .iter()
        .zip(&line.figures)
        .enumerate()
        .filter_map(|(place, (size, turns))| Some((place, (*size as f64).ln(), median(turns)?.ln())))
        .collect();
    let count = points.len() as f64;
    if points.len() < 2 {
        return None;
    }
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.1 / count, y + point.2 / count));
    let (over, under) = points.iter().fold((0.0, 0.0), |(over, under), point| {
        (over + (point.1 - x) * (point.2 - y), under + (point.1 - x).powi(2))
    });
    let slope = |pair: &[(usize, f64, f64)]| (pair[1].2 - pair[0].2) / (pair[1].1 - pair[0].1);
    let rise = |at: usize, pair: &[(usize, f64, f64)]| slope(pair) - slope(&points[at - 1..]);
    // Not where the turns of both sizes overlap: that may be chance.
    let is_apart = |pair: &[(usize, f64, f64)]| {
        let range = |place: usize| {
            let turns = line.figures[place].iter().copied();
            (turns.clone().fold(f64::INFINITY, f64::min), turns.fold(0.0, f64::max))
        };
        let (from, to) = (range(pair[0].0), range(pair[1].0));
        from.1 < to.0 || to.1 < from.0
    };
    let most = points
        .windows(2)
        .enumerate()
        .skip(1)
        .filter(|(_, pair)| is_apart(pair))
        .max_by(|a, b| rise(a.0, a.1).total_cmp(&rise(b.0, b.1)));
    let bend = most.filter(|(at, pair)| rise(*at, pair) > BENDS).map(|(_, pair)| {
        let (from, to) = (pair[0].0, pair[1].0);
        let at = |place: usize| line.bytes.get(place).copied().unwrap_or(0);
        let crossed = |cache: &&Cache| at(from) <= cache.bytes && at(to) > cache.bytes;
        // The largest that the memory outgrows there; what the bench knows of the line, if its memory is larger than all or does not count.
        let is_beyond = line.bytes.is_empty() || caches.iter().all(|cache| at(from) > cache.bytes);
        let why = match caches.iter().rev().find(crossed) {
            Some(cache) => format!("{} outgrow {} ({} KiB)", line.memory, cache.name, cache.bytes >> 10),
            None if is_beyond => line.bend.to_owned(),
            None => String::new(),
        };
        (from, why)
    });
    Some(Growth { power: over / under, bend })
}
