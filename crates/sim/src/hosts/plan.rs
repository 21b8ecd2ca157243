//! What happens in a world of hosts, drawn from its seed.

use crate::chance::Chance;

pub(super) const MS: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000 * MS;

/// A plant below and its link.
#[derive(Debug)]
pub(super) struct BelowPlan {
    pub(super) has_journal: bool,
    /// It begins with the whole epoch in place of images.
    pub(super) whole_epoch: bool,
    pub(super) starts: u64,
    /// When it is killed, and when it starts again.
    pub(super) kills: Vec<(u64, u64)>,
    /// Between these times nothing passes.
    pub(super) cuts: Vec<(u64, u64)>,
    /// Of a thousand datagrams so many are lost, come twice, come late.
    pub(super) loss: u64,
    pub(super) twice: u64,
    pub(super) late: u64,
    /// The least and the greatest delay in ns.
    pub(super) delay: (u64, u64),
    /// Ticks and bytes that are held behind a hole.
    pub(super) window: (usize, usize),
}

impl BelowPlan {
    pub(super) fn is_cut(&self, now: u64) -> bool {
        self.cuts.iter().any(|(from, to)| (*from..*to).contains(&now))
    }

    /// When the cut of this moment ends; this moment if there is none.
    pub(super) fn end_of_cut(&self, now: u64) -> u64 {
        self.cuts
            .iter()
            .filter(|(from, to)| (*from..*to).contains(&now))
            .map(|(_, to)| *to)
            .max()
            .unwrap_or(now)
    }
}

/// A world of hosts.
#[derive(Debug)]
pub(crate) struct HostsPlan {
    pub(super) seed: u64,
    pub(super) has_journal: bool,
    pub(super) lines: usize,
    /// The longest time between two numberings, and the most ticks of a burst.
    pub(super) most_between: u64,
    pub(super) burst: u64,
    pub(super) packet_bytes: usize,
    /// Ticks in the memory of the plant above.
    pub(super) history: usize,
    pub(super) kills_above: Vec<(u64, u64)>,
    pub(super) belows: Vec<BelowPlan>,
    /// From here on nothing goes wrong; the last tick; the end.
    pub(super) calm: u64,
    pub(super) last_tick: u64,
    pub(super) ends: u64,
}

impl HostsPlan {
    /// Draws the world of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut chance = Chance::of(seed, 1);
        let calm = 6 * SECOND;
        let mut times = |most: u64, longest: u64| {
            let mut times: Vec<_> = (0..chance.within(0, most))
                .map(|_| {
                    let at = chance.below(calm - longest - SECOND);
                    (at, at + chance.within(50 * MS, longest))
                })
                .collect();
            times.sort_unstable();
            // One after the other.
            times.dedup_by(|next, before| next.0 <= before.1 + 10 * MS);
            times
        };
        let kills_above = times(3, 2 * SECOND);
        let kills_and_cuts: Vec<_> = (0..4).map(|_| (times(2, 2 * SECOND), times(3, 3 * SECOND))).collect();
        let count = chance.within(1, 4) as usize;
        let belows = kills_and_cuts.into_iter().take(count).map(|(kills, cuts)| {
            let starts = if chance.one_in(3) { chance.below(5 * SECOND) } else { 0 };
            BelowPlan {
                has_journal: chance.one_in(2),
                whole_epoch: chance.one_in(4),
                starts,
                kills: kills.into_iter().filter(|(at, _)| *at > starts).collect(),
                cuts,
                loss: if chance.one_in(3) { 0 } else { chance.below(150) },
                twice: chance.below(100),
                late: chance.below(50),
                delay: (100_000, 100_000 + chance.below(8 * MS)),
                window: (chance.within(8, 2_000) as usize, chance.within(2_000, 1 << 18) as usize),
            }
        });
        let belows = belows.collect();
        Self {
            seed,
            has_journal: !chance.one_in(4),
            lines: chance.within(1, 3) as usize,
            most_between: chance.within(MS, 20 * MS),
            burst: chance.within(5, 400),
            packet_bytes: chance.within(200, 1_400) as usize,
            history: chance.within(16, 4_096) as usize,
            kills_above,
            belows,
            calm,
            last_tick: calm + SECOND,
            // The longest way: five seconds until a silent connection is given up, then another one.
            ends: calm + 9 * SECOND,
        }
    }
}
