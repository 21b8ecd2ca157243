//! What a media driver counts for one stream, from its counters in shared memory.

use std::collections::BTreeMap;

use rusteron_client::{Aeron, bindings};

/// The kinds of counter that are read: `aeron_counters.h`.
const SENDER_POSITION: i32 = bindings::AERON_COUNTER_SENDER_POSITION_TYPE_ID as i32;
const SENDER_LIMIT: i32 = bindings::AERON_COUNTER_SENDER_LIMIT_TYPE_ID as i32;
const NAKS_RECEIVED: i32 = bindings::AERON_COUNTER_SENDER_NAKS_RECEIVED_TYPE_ID as i32;
const RECEIVED: i32 = bindings::AERON_COUNTER_RECEIVER_HWM_TYPE_ID as i32;
const READ: i32 = bindings::AERON_COUNTER_SUBSCRIPTION_POSITION_TYPE_ID as i32;
const NAKS_SENT: i32 = bindings::AERON_COUNTER_RECEIVER_NAKS_SENT_TYPE_ID as i32;

/// The counters of a publication, or of a subscription and the images that it reads.
#[derive(Debug, Default)]
pub(super) struct DriverCounters {
    /// By the session of the sender, which is zero in a publication, and kind.
    values: BTreeMap<(i32, i32), i64>,
}

impl DriverCounters {
    /// Reads those of the stream with this registration.
    pub(super) fn read(client: &Aeron, registration: i64) -> Self {
        let (mut own, mut images) = (BTreeMap::new(), Vec::new());
        client.counters_reader().foreach_counter_fn(|value, _, kind, key, _| {
            let Some((registered, session, stream)) = stream_of(key) else { return };
            match kind {
                SENDER_POSITION | SENDER_LIMIT | NAKS_RECEIVED if registered == registration => {
                    own.insert((0, kind), value);
                }
                READ if registered == registration => {
                    own.insert((session, kind), value);
                    images.push((session, stream));
                }
                _ => {}
            }
        });
        // The counters of an image have a registration of their own; a driver has them once for all its subscriptions.
        client.counters_reader().foreach_counter_fn(|value, _, kind, key, _| {
            if let (RECEIVED | NAKS_SENT, Some((_, session, stream))) = (kind, stream_of(key))
                && images.contains(&(session, stream))
            {
                own.insert((session, kind), value);
            }
        });
        Self { values: own }
    }

    fn sum(&self, kind: i32) -> u64 {
        self.values.iter().filter(|((_, of), _)| *of == kind).map(|(_, value)| value.unsigned_abs()).sum()
    }

    /// Returns by how much one kind is ahead of another, of all senders together.
    fn ahead(&self, kind: i32, of: i32) -> u64 {
        let ahead = |((session, _), value): (&(i32, i32), &i64)| {
            let behind = self.values.get(&(*session, of))?;
            u64::try_from(value - behind).ok()
        };
        self.values.iter().filter(|((_, own), _)| *own == kind).filter_map(ahead).sum()
    }

    pub(super) fn naks_received(&self) -> u64 {
        self.sum(NAKS_RECEIVED)
    }

    pub(super) fn naks_sent(&self) -> u64 {
        self.sum(NAKS_SENT)
    }

    /// Returns `None` of a stream that no driver sends.
    pub(super) fn window(&self) -> Option<u64> {
        self.values.contains_key(&(0, SENDER_LIMIT)).then(|| self.ahead(SENDER_LIMIT, SENDER_POSITION))
    }

    pub(super) fn unread(&self) -> u64 {
        self.ahead(RECEIVED, READ)
    }
}

/// Returns registration, session and stream of a counter's key, if the counter is one of a stream's.
fn stream_of(key: &[u8]) -> Option<(i64, i32, i32)> {
    let (registration, rest) = key.split_first_chunk()?;
    let (session, rest) = rest.split_first_chunk()?;
    let (stream, _) = rest.split_first_chunk()?;
    Some((i64::from_ne_bytes(*registration), i32::from_ne_bytes(*session), i32::from_ne_bytes(*stream)))
}
