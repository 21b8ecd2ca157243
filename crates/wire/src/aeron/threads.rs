//! Both ends may move from one thread to another, which `rusteron-client` does not promise for all that they own.
//!
//! Sound because of three things: with the feature `multi-threaded` all its reference counts are atomic; nothing of what an end owns is lent
//! out, and every use needs the end exclusively, so that one thread at a time uses the client in C; and the pointer in a receiver's assembler
//! is that of a closure during `receive` alone, because `AeronFragmentClosureAssembler::poll` clears it before it returns.

#![allow(unsafe_code)]

use super::{AeronReceiver, AeronSender};

// SAFETY: see above. The test `both_ends_move_to_another_thread` uses them in two threads.
unsafe impl Send for AeronSender {}
// SAFETY: see above, and the same test.
unsafe impl Send for AeronReceiver {}
