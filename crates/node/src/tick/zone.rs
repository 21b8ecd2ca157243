//! The local time of a tickerplant's days.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tapeline_kdb::UNIX_2000_NS;
use tapeline_measure::Nanos;
use tapeline_tickerplant::Local;

/// A time zone, with its offset at the last look.
#[derive(Debug)]
pub struct Zone {
    zone: TimeZone,
    offset_ns: i64,
}

impl Zone {
    /// Finds a zone by its name in the IANA database, such as `America/New_York`, with its offset at `now`.
    pub fn named(name: &str, now: Nanos) -> Option<Self> {
        let mut zone = Self { zone: TimeZone::get(name).ok()?, offset_ns: 0 };
        zone.look(now);
        Some(zone)
    }

    /// Updates the offset, as daylight saving time starts and ends. Not meant for each message.
    pub fn look(&mut self, now: Nanos) {
        self.offset_ns = self.offset_at(now);
    }

    /// Returns the offset at a time; beyond the calendar's range that of the last look.
    fn offset_at(&self, at: Nanos) -> i64 {
        let at = Timestamp::from_nanosecond(i128::from(at.0));
        at.map_or(self.offset_ns, |at| i64::from(self.zone.to_offset(at).seconds()) * 1_000_000_000)
    }

    /// Returns the local time with the offset at that time. Costs a search.
    pub fn local_then(&self, at: Nanos) -> Local {
        Local((at.0 as i64).saturating_sub(UNIX_2000_NS).saturating_add(self.offset_at(at)))
    }

    /// Returns the local time with the current offset.
    pub const fn local(&self, now: Nanos) -> Local {
        Local((now.0 as i64).saturating_sub(UNIX_2000_NS).saturating_add(self.offset_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_count_from_2000() {
        // 2026-07-01 03:00 UTC, which is still June in New York.
        let now = Nanos(1_782_874_800_000_000_000);
        let date = |zone| Zone::named(zone, now).unwrap().local(now).date();
        assert_eq!((date("UTC"), date("America/New_York")), (9_678, 9_677));
        let mut zone = Zone::named("America/New_York", now).unwrap();
        let hour = |zone: &Zone, now| zone.local(now).of_day_ns() / 3_600_000_000_000;
        assert_eq!(hour(&zone, now), 23);
        let of_then = |at| zone.local_then(at).of_day_ns() / 3_600_000_000_000;
        assert_eq!((of_then(now), of_then(Nanos(now.0 - 180 * 86_400_000_000_000))), (23, 22));
        let winter = Nanos(now.0 - 180 * 86_400_000_000_000);
        zone.look(winter);
        assert_eq!(hour(&zone, winter), 22);
        assert!(Zone::named("Nowhere/At_All", now).is_none());
    }
}
