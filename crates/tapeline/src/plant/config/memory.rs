//! The most memory that a plant's hub takes, as its configuration has it.

use super::hub::HubConfig;
use crate::plant::access::MOST_MEMORY_KIB;
use crate::plant::sources::BETWEEN;

/// The longest message that a hub sends, bytes: an image of a field list has 64 KiB at most, and its JSON may be eight times as
/// long.
const LONGEST_SENT: usize = 512 << 10;
/// What is received of messages in one turn of a connection, and the longest message three times over: in pieces, put together,
/// and inflated.
const AT_HAND: usize = (2 << 20) + 3 * (16 << 20);
/// What checking one password takes at most: as much as a hash in the file of users may ask for.
const PASSWORD: usize = (MOST_MEMORY_KIB as usize + 1024) << 10;

/// What is counted for the counters' thread: two sets of figures and one of all time, of four histograms each, 300 KB in every one;
/// what is known of a session, in each of them and as text.
const FIGURES: usize = 3 * 4 * (400 << 10);
const SESSION_FIGURES: usize = 4 << 10;

impl HubConfig {
    /// What may take memory, and how much of it at most, bytes: whatever clients do. The system's socket buffers are not in it,
    /// nor what the plant has without a hub.
    pub(crate) fn memory_bound(&self) -> [(&'static str, usize); 13] {
        let hub = self.settings.memory_bound(self.max_connections);
        // Beside what a connection's own buffers hold, one message waits to be sent: as RWF and as JSON.
        let connection = self.transport.memory_bound(LONGEST_SENT) + 2 * LONGEST_SENT;
        [
            ("connections", self.max_connections.saturating_mul(connection)),
            ("incoming messages (incoming_size)", self.incoming_bytes.saturating_add(AT_HAND)),
            ("images (cache_size)", hub.images),
            ("items (max_items)", hub.items),
            ("sessions: updates that wait for clients (slow_bytes)", hub.sessions),
            ("images in parts that wait for clients (waiting_size)", hub.waiting),
            ("streams (streams_in_all, max_streams)", hub.streams),
            ("views", hub.views),
            ("demand, posts, private streams", hub.demand),
            ("between hub and sources", BETWEEN),
            ("notes, messages at hand", hub.rest),
            ("figures", self.max_connections.saturating_mul(SESSION_FIGURES).saturating_add(FIGURES)),
            ("checking passwords", PASSWORD),
        ]
    }
}
