//! A ring's snapshot for programs.

use serde::Serialize;
use serde_json::{Value, json};
use tapeline_ring::{Snapshot, SubscriberView};

/// A ring, as JSON.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct RingView(Value);

impl RingView {
    /// The snapshot of a ring for output.
    pub fn new(name: &str, ring: &Snapshot) -> Self {
        let publisher = &ring.publisher;
        let subscriber = |view: &SubscriberView| {
            json!({
                "slot": view.slot,
                "pid": view.pid,
                "alive": view.alive,
                "evicted": view.evicted,
                "parked": view.parked,
                "label": view.label,
                "position": view.position.0,
                "lag_bytes": view.lag_bytes,
            })
        };
        Self(json!({
            "name": name,
            "state": state(ring),
            "path": ring.path.display().to_string(),
            "capacity": ring.capacity,
            "max_frame": ring.max_frame,
            "file_bytes": ring.file_bytes,
            "mode": format!("{:04o}", ring.mode),
            "created_ns": ring.created_ns,
            "policy": ring.policy.to_string(),
            "framing": ring.framing.to_string(),
            // Zero: a subscriber may block the full ring without limit.
            "stall_limit_ns": u64::try_from(ring.stall_limit.as_nanos()).unwrap_or(u64::MAX),
            "huge_pages": ring.huge_pages,
            "oldest_position": ring.oldest.0,
            "publisher": {
                "pid": publisher.pid,
                "alive": publisher.alive,
                "ended": publisher.ended,
                "epoch": publisher.epoch,
                "position": publisher.position.0,
                "frames": publisher.frames,
                "full": publisher.full,
                "reclaimed": publisher.reclaimed,
                "evicted": publisher.evicted,
            },
            "subscribers": ring.subscribers.iter().map(subscriber).collect::<Vec<_>>(),
        }))
    }
}

/// The state of a ring's publisher: live, ended (the publisher closed the ring) or dead.
pub fn state(ring: &Snapshot) -> &'static str {
    match (ring.publisher.ended, ring.publisher.alive) {
        (true, _) => "ended",
        (false, true) => "live",
        (false, false) => "dead",
    }
}

/// Bytes in the largest unit that fits: `1 MiB`, `1.5 MiB`, `1023 B`.
pub fn bytes(bytes: u64) -> String {
    for (unit, size) in [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes >= size {
            let value = bytes as f64 / size as f64;
            return if bytes.is_multiple_of(size) {
                format!("{value:.0} {unit}")
            } else {
                format!("{value:.1} {unit}")
            };
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_read_well() {
        for (bytes, text) in
            [(0, "0 B"), (1023, "1023 B"), (4096, "4 KiB"), (1 << 20, "1 MiB"), (1_600_000, "1.5 MiB")]
        {
            assert_eq!(super::bytes(bytes), text);
        }
    }
}
