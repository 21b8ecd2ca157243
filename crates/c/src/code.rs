//! The results of calls: outcomes of normal work, and errors.

use tapeline_ring::{Error, Refused};

/// The result of a call. Zero or above: an outcome. Below zero: an error; tapeline_last_error() returns its text.
/// Later releases may add both.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum tapeline_code {
    /// Done.
    TAPELINE_OK = 0,
    /// A frame.
    TAPELINE_FRAME = 1,
    /// No frame yet. More may come, also from another publisher if this one has died.
    TAPELINE_EMPTY = 2,
    /// No frame, and the publisher has ended the ring.
    TAPELINE_ENDED = 3,
    /// Something other than a publisher has written into the ring. The subscriber cannot continue.
    TAPELINE_DAMAGED = 4,
    /// The timeout passed before a frame came.
    TAPELINE_TIMED_OUT = 5,
    /// A subscriber has not released the space yet. Try again: nothing is lost.
    TAPELINE_FULL = 6,
    /// Longer than the ring's longest frame, than what was claimed, or than the buffer to copy to.
    TAPELINE_TOO_LONG = 7,
    /// This subscriber blocked the full ring for longer than its stall limit and was evicted. Eviction is permanent:
    /// leave, and join again.
    TAPELINE_EVICTED = 8,
    /// The publisher of a broadcast ring has overtaken this subscriber, which continues at the oldest intact frame;
    /// tapeline_ring_subscriber_lost() returns the loss.
    TAPELINE_LOST = 9,
    /// A tick of a journal.
    TAPELINE_TICK = 10,
    /// Ticks are not in the journal; tapeline_journal_missing() returns which. The next call returns what follows them.
    TAPELINE_MISSING = 11,
    /// A field.
    TAPELINE_FIELD = 12,
    /// The message has other contents than fields, or none.
    TAPELINE_NO_FIELDS = 13,
    /// An event of a consumer.
    TAPELINE_EVENT = 14,

    /// A NULL where none is allowed.
    TAPELINE_ERROR_NULL = -1,
    /// An argument without a valid value, or text that is not UTF-8.
    TAPELINE_ERROR_ARGUMENT = -2,
    /// A call in the wrong order: a claim or a batch is open, or none is.
    TAPELINE_ERROR_ORDER = -3,
    /// A bug: the library panicked. The handle can only be freed.
    TAPELINE_ERROR_PANIC = -4,
    /// An invalid ring name.
    TAPELINE_ERROR_NAME = -5,
    /// Invalid options, or options that this release does not know.
    TAPELINE_ERROR_OPTIONS = -6,
    /// There is no such ring.
    TAPELINE_ERROR_NOT_FOUND = -7,
    /// Another publisher owns the ring.
    TAPELINE_ERROR_PUBLISHER_ALIVE = -8,
    /// The ring exists with another shape than requested.
    TAPELINE_ERROR_OTHER_SHAPE = -9,
    /// The file is not a ring.
    TAPELINE_ERROR_FOREIGN = -10,
    /// The ring has another layout version than this release reads.
    TAPELINE_ERROR_LAYOUT = -11,
    /// Something has overwritten the ring.
    TAPELINE_ERROR_DAMAGED = -12,
    /// The ring has the maximum number of subscribers.
    TAPELINE_ERROR_NO_SLOT = -13,
    /// The shared-memory file system has too little free space.
    TAPELINE_ERROR_NO_ROOM = -14,
    /// A system call failed.
    TAPELINE_ERROR_SYSTEM = -15,
    /// The ring has the other policy.
    TAPELINE_ERROR_OTHER_POLICY = -16,
    /// The machine provides no huge pages.
    TAPELINE_ERROR_NO_HUGE_PAGES = -17,
    /// Bytes that are no tick, no message, or no value of their field's type.
    TAPELINE_ERROR_MALFORMED = -18,
    /// There is no such field in the dictionary, or it cannot have the value.
    TAPELINE_ERROR_FIELD = -19,
    /// The journal cannot be opened or read.
    TAPELINE_ERROR_JOURNAL = -20,
    /// A file of the journal is damaged. Ticks before the damage have been returned.
    TAPELINE_ERROR_JOURNAL_DAMAGED = -21,
    /// The settings of a connection cannot be used: a server's name, a certificate, a login.
    TAPELINE_ERROR_CONNECTION = -22,
    /// The session is over for good: the login was refused or closed. Free the handle.
    TAPELINE_ERROR_SESSION_OVER = -23,
    /// Another error.
    TAPELINE_ERROR_OTHER = -99,
}

use tapeline_code::*;

impl From<&Error> for tapeline_code {
    fn from(error: &Error) -> Self {
        match error {
            Error::BadName { .. } => TAPELINE_ERROR_NAME,
            Error::BadOptions { .. } => TAPELINE_ERROR_OPTIONS,
            Error::NotFound { .. } => TAPELINE_ERROR_NOT_FOUND,
            Error::PublisherAlive { .. } => TAPELINE_ERROR_PUBLISHER_ALIVE,
            Error::OtherShape { .. } => TAPELINE_ERROR_OTHER_SHAPE,
            Error::Foreign { .. } => TAPELINE_ERROR_FOREIGN,
            Error::Layout { .. } => TAPELINE_ERROR_LAYOUT,
            Error::Damaged { .. } => TAPELINE_ERROR_DAMAGED,
            Error::NoSlot { .. } => TAPELINE_ERROR_NO_SLOT,
            Error::NoRoom { .. } => TAPELINE_ERROR_NO_ROOM,
            Error::System { .. } => TAPELINE_ERROR_SYSTEM,
            Error::OtherPolicy { .. } => TAPELINE_ERROR_OTHER_POLICY,
            Error::NoHugePages { .. } => TAPELINE_ERROR_NO_HUGE_PAGES,
            _ => TAPELINE_ERROR_OTHER,
        }
    }
}

impl From<&::tapeline_journal::Error> for tapeline_code {
    fn from(error: &::tapeline_journal::Error) -> Self {
        match error {
            ::tapeline_journal::Error::Corrupt { .. } => TAPELINE_ERROR_JOURNAL_DAMAGED,
            ::tapeline_journal::Error::Io { .. } => TAPELINE_ERROR_JOURNAL,
            _ => TAPELINE_ERROR_OTHER,
        }
    }
}

impl From<&tapeline_client::Error> for tapeline_code {
    fn from(error: &tapeline_client::Error) -> Self {
        use tapeline_client::Error;
        match error {
            Error::Ended(_) => TAPELINE_ERROR_SESSION_OVER,
            Error::Refused(_) | Error::Malformed(_) | Error::NotOpened(_) | Error::NotAdded(_) => {
                TAPELINE_ERROR_ARGUMENT
            }
            _ => TAPELINE_ERROR_CONNECTION,
        }
    }
}

impl From<Refused> for tapeline_code {
    #[inline]
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full => TAPELINE_FULL,
            Refused::TooLong => TAPELINE_TOO_LONG,
        }
    }
}
