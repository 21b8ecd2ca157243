//! The ring of a plant: its options, and what is said while a subscriber keeps it full.

use crate::Stop;
use crate::config::Config;
use crate::events::Events;

/// The ring of a plant.
pub(crate) fn ring_options(config: &Config) -> tapeline_ring::Options {
    tapeline_ring::Options {
        capacity: config.ring_bytes,
        keep: config.keep_ring,
        stall_limit: config.stall_limit,
        // Datagrams bring many messages at once: the plant wakes subscribers once for several.
        wake_on_commit: false,
        ..tapeline_ring::Options::default()
    }
}

/// While a subscriber keeps the ring full: names it after 1 s, 2 s, 4 s and so on, and at least once a minute, until it moves or a stop is
/// requested.
pub(crate) fn on_stall(ring: tapeline_ring::Name, stop: Stop, events: Events) -> tapeline_plant::OnStall {
    let (mut said, mut next) = (0, 1);
    Box::new(move |_, stalled| {
        let seconds = stalled.as_secs();
        if seconds < said {
            (said, next) = (0, 1);
        }
        if seconds >= next {
            (said, next) = (seconds, seconds + seconds.min(60));
            let holders =
                tapeline_ring::inspect(&ring).map(|view| crate::report::slowest(&view)).unwrap_or_default();
            events.warning(format_args!("the ring {ring} has been full for {seconds} s: {holders}"));
        }
        !stop.is_requested()
    })
}
