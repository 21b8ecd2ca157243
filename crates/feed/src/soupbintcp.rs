//! SoupBinTCP: numbered messages over TCP, with a login that sets the first sequence.
//!
//! Source: NASDAQ's SoupBinTCP protocol specification 3.00. Both directions carry logical packets: a big-endian length of 16
//! bits that counts the bytes after it, a letter for the type, and the rest. Packets carry no sequence: the login's answer
//! contains the sequence of the first message, and both ends count.
//!
//! | file | owns |
//! |---|---|
//! | `frame.rs` | one packet from the front of a stream, with any TCP segmentation |
//! | `packet.rs` | the packets of each end, read in place |
//! | `login.rs` | the login's fields: user, session, first sequence |
//! | `encode.rs` | packets as bytes |
//! | `silence.rs` | heartbeats on an idle connection, and the time-out of a silent one |
//! | `client.rs`, `server.rs` | one connection as a state machine, without socket or clock |

mod client;
mod encode;
mod frame;
mod login;
mod packet;
mod server;
mod silence;

pub use client::{ClientEvent, ClientStep, SoupClient, Violation};
pub use encode::{
    ACCEPTED_BYTES, CLIENT_HEARTBEAT, END_OF_SESSION, LOGIN_BYTES, LOGOUT, SERVER_HEARTBEAT, accepted,
    debug_header, login, rejected, sequenced_header, unsequenced_header,
};
pub use frame::{Frame, LONGEST_PACKET, Split, split};
pub use login::{Login, Password, Reject, SoupSession, Username};
pub use packet::{ClientPacket, MalformedSoupPacket, ServerPacket};
pub use server::{Accounts, Over, ServerState, SoupServer};
pub use silence::{HEARTBEAT_NS, LOGIN_NS, SILENCE_NS, Silence};
