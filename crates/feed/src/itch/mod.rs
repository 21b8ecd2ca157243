//! NASDAQ TotalView-ITCH 5.0: messages as views over the received bytes.
//!
//! Source: NASDAQ TotalView-ITCH 5.0 specification, and its later addition of type `O`. All numbers are big-endian
//! and unsigned, text is ASCII, left-justified, padded with spaces. Every message begins with the same eleven bytes:
//! type, stock locate, tracking number, nanoseconds since midnight in New York (there is no date on the wire).
//!
//! [`decode`] checks type and length once; after that a view's accessors read fixed offsets of a fixed-size array, so they need no check. Later
//! additions to the specification are no error: a longer message keeps its known fields, an unknown type is [`Message::Unknown`], an unknown code
//! is passed on unchanged.

pub mod encode;
mod field;
pub mod framing;
mod message;
mod message_type;
mod record;
mod table;

pub use field::{Code, ItchText, Locate, MatchNumber, Mpid, OrderRef, Price4, Price8, Side, Symbol};
pub use message::*;
pub use message_type::{ByType, MalformedItchMessage, MessageKind, MessageType};
pub use record::{Decoder, ItchRecord, RECORD_BYTES};
pub(crate) use record::{ROWS, Row};
