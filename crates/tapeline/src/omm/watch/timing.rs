//! `--timed`: the age of updates on arrival, from the time of day in nanoseconds in a plant's updates.

use serde_json::Value as Json;
use tapeline_measure::{Clock, Nanos, Recorder};
use tapeline_omm::rwf::{DataType, MessageView};
use tapeline_omm::{Fid, FieldList, fid};
use tapeline_perf::path::to_hex;

#[derive(Debug)]
pub(super) struct Timing {
    /// Updates during the warm-up run with cold caches and are not recorded.
    warm_up_ns: u64,
    warm_from: Option<Nanos>,
    ages: Recorder,
    /// A clock of its own: the consumer uses one time for many messages.
    clock: Clock,
}

/// Time of the quote or of the trade.
const TIMES: [Fid; 2] = [fid::QUOTIM_NS, fid::SALTIM_NS];
const DAY_NS: i64 = 86_400_000_000_000;
/// An older time is from an earlier quote that this update did not change, or from a replayed feed.
const LIVE_NS: i64 = 10_000_000_000;

impl Timing {
    pub(super) fn new(warm_up_ns: u64, clock: Clock) -> Self {
        Self { warm_up_ns, warm_from: None, ages: Recorder::new(), clock }
    }

    pub(super) fn update(&mut self, message: &MessageView<'_>) {
        let now = self.clock.now();
        let warm_from = *self.warm_from.get_or_insert(now + self.warm_up_ns);
        if now < warm_from {
            return;
        }
        if let Some(age) = time_of_day(message).map(|due| age(now, due))
            && age.abs() < LIVE_NS
        {
            self.ages.record(age);
        }
    }

    /// The percentiles, and the whole distribution so that it can be merged with others.
    pub(super) fn shown(&self) -> Json {
        let mut shown = serde_json::to_value(self.ages.percentiles()).unwrap_or_default();
        shown["histogram"] = to_hex(&self.ages.encode()).into();
        shown
    }
}

/// Age in ns from a time of day to now, also across midnight.
fn age(now: Nanos, due: i64) -> i64 {
    // Cannot truncate: less than a day.
    let now = (now.0 % DAY_NS.unsigned_abs()) as i64;
    (now - due + DAY_NS / 2).rem_euclid(DAY_NS) - DAY_NS / 2
}

/// The latest time in the update, in ns since midnight GMT: of its quote or of its trade.
fn time_of_day(message: &MessageView<'_>) -> Option<i64> {
    if message.container() != DataType::FIELD_LIST {
        return None;
    }
    let fields = FieldList::parse(message.payload()).ok()?;
    let times = fields.iter().map_while(Result::ok).filter(|field| TIMES.contains(&field.fid));
    let times = times.filter_map(|field| i64::try_from(field.time().ok()??.ns_of_day()?).ok());
    times.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_goes_across_midnight() {
        let day = DAY_NS.unsigned_abs();
        assert_eq!(age(Nanos(20_000 * day + 5_000), 3_000), 2_000);
        assert_eq!(age(Nanos(20_000 * day + 500), DAY_NS - 500), 1_000);
        assert_eq!(age(Nanos(20_000 * day - 500), 500), -1_000);
    }
}
