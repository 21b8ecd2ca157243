//! Reports to the service manager that started the plant: systemd's notification protocol (`sd_notify(3)`).
//!
//! The plant's thread reports once a second. The watchdog is fed only while every thread of the plant works, so that
//! systemd restarts a plant that hangs.

use std::ffi::OsString;
use std::sync::OnceLock;

use tapeline_console::log;
use tapeline_measure::{Clock, figures, monotonic_ns};
use tapeline_node::Liveness;
use tapeline_node::stat::snapshot::Snapshot;
use tapeline_wire::ServiceManager;

/// A thread counts as hung after five seconds of silence. With a shorter time-out systemd would restart a plant that only
/// paused.
const SHORTEST_WATCHDOG_US: u64 = 10_000_000;

/// The service manager, if one has started this process.
fn manager() -> Option<&'static ServiceManager> {
    static MANAGER: OnceLock<Option<ServiceManager>> = OnceLock::new();
    MANAGER
        .get_or_init(|| {
            let address = std::env::var_os("NOTIFY_SOCKET").filter(|address| !address.is_empty())?;
            let opened = ServiceManager::open(&address);
            opened.map_err(|error| complain(&address, &error)).ok()
        })
        .as_ref()
}

fn complain(address: &OsString, error: &std::io::Error) {
    log::warning_with(
        format_args!(
            "cannot report to the service manager at NOTIFY_SOCKET={}: {error}",
            address.to_string_lossy()
        ),
        "without a service manager, start the plant without NOTIFY_SOCKET",
    );
}

fn tell(message: &str) {
    if let Some(manager) = manager() {
        // A manager that does not read gets the next message: the watchdog's repeat each second.
        let _ = manager.tell(message);
    }
}

/// The plant is ready: its ports are open and its ring has a name.
pub(crate) fn ready() {
    tell(&format!("READY=1\nMAINPID={}", std::process::id()));
}

/// The plant begins to reload its files. [`ready`] reports the end.
pub(crate) fn reloading() {
    tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_ns() / 1_000));
}

/// The plant was asked to end, or cannot continue.
pub(crate) fn stopping() {
    tell("STOPPING=1\nSTATUS=ending");
}

/// Reports the state of a plant once a second, and feeds the watchdog.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    liveness: Liveness,
    clock: Clock,
    /// Whether systemd expects `WATCHDOG=1`.
    is_watched: bool,
    /// The state as reported last.
    status: String,
    /// A failed thread was reported.
    has_failed: bool,
}

impl Heartbeat {
    /// `None` if no service manager has started this process.
    pub(crate) fn of(liveness: Liveness) -> Option<Self> {
        manager()?;
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog_us = number("WATCHDOG_USEC").filter(|us| is_ours && *us > 0);
        if watchdog_us.is_some_and(|us| us < SHORTEST_WATCHDOG_US) {
            log::warning_with(
                "the watchdog's time-out is shorter than the time after which a thread counts as hung",
                "WatchdogSec=10s or more",
            );
        }
        Some(Self {
            liveness,
            clock: Clock::calibrate(),
            is_watched: watchdog_us.is_some(),
            status: String::new(),
            has_failed: false,
        })
    }

    /// Sends what has changed. The plant's thread calls this about once a second.
    pub(crate) fn beat(&mut self) {
        let failed = self.liveness.failed_thread(self.clock.now());
        let snapshot = self.liveness.snapshot();
        // Before their first report, threads are not late.
        if snapshot.heard_ns == 0 {
            return self.feed();
        }
        let status = match &failed {
            Some(thread) => format!("not working: {thread}"),
            None => summary(&snapshot),
        };
        if status != self.status {
            tell(&format!("STATUS={status}"));
            self.status = status;
        }
        match failed {
            None => {
                self.has_failed = false;
                self.feed();
            }
            Some(thread) if !std::mem::replace(&mut self.has_failed, true) => {
                log::warning(format_args!(
                    "a thread of the plant does not work ({thread}): the watchdog is not fed"
                ));
            }
            Some(_) => {}
        }
    }

    fn feed(&self) {
        if self.is_watched {
            tell("WATCHDOG=1");
        }
    }
}

/// One line for `systemctl status`.
fn summary(snapshot: &Snapshot) -> String {
    let mut parts = vec![format!("{} ticks", figures::thousands(snapshot.ticks))];
    let feeds = snapshot.feeds.iter();
    parts.extend(feeds.map(|feed| {
        let missing = match feed.missing {
            0 => String::new(),
            missing => format!(", {} messages missing", figures::thousands(missing)),
        };
        format!("feed {} {}{missing}", feed.name, feed.state)
    }));
    if let Some(hub) = &snapshot.hub {
        parts.push(format!("{} sessions", hub.sessions.len()));
    }
    if snapshot.ring_removed {
        parts.push("the ring's name was removed".to_owned());
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapeline_node::stat::snapshot::FeedSnapshot;

    #[test]
    fn the_status_names_feeds_and_losses() {
        let feed = |name: &str, state: &str, missing| FeedSnapshot {
            name: name.to_owned(),
            state: state.to_owned(),
            missing,
            ..FeedSnapshot::default()
        };
        let snapshot = Snapshot {
            ticks: 1_234,
            feeds: vec![feed("itch", "live", 0), feed("iex", "stale", 7)],
            ring_removed: true,
            ..Snapshot::default()
        };
        assert_eq!(
            summary(&snapshot),
            "1,234 ticks; feed itch live; feed iex stale, 7 messages missing; the ring's name was removed"
        );
    }
}
