//! One stream, and one item on it.

use tapeline_nanos::Nanos;

use super::StreamKey;
use super::slots::NOWHERE;
use crate::rwf::{DataState, Priority};

/// How far a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not asked for, or not any more: there is no connection, no service that can serve it, or it is too soon.
    Waiting,
    /// Asked for; the time-out is [`Stream::due`].
    Asked,
    /// Answered by a complete image.
    Open,
}

/// A view: the fields that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ViewOf {
    /// Sorted, each once.
    Fids(Box<[i16]>),
    Names(Box<[Box<[u8]>]>),
}

/// A stream: asked for, open, or wanted.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) key: StreamKey,
    /// The newest item on it.
    pub(super) first: u32,
    /// Its number on the connection; 0 if it has none.
    pub(crate) id: i32,
    /// When an answer is late, or when to ask again.
    pub(crate) due: Option<Nanos>,
    /// When it was last opened.
    pub(crate) opened: Nanos,
    /// Requests of one batch have the same number; 0 is none.
    pub(crate) batch: u32,
    /// How often it was refused since it was last open.
    pub(crate) failures: u8,
    pub(crate) phase: Phase,
    /// A part of an image came, and the last did not.
    pub(crate) is_in_parts: bool,
    /// The provider was asked to hold updates back.
    pub(crate) is_paused: bool,
    pub(super) is_queued: bool,
    /// It waits for its service, in that one's line.
    pub(crate) is_blocked: bool,
    /// It is to be closed before it is asked for again.
    pub(crate) is_late: bool,
    /// Its request counts as unanswered.
    pub(crate) is_counted: bool,
    /// The application changed it.
    pub(crate) is_reissued: bool,
    /// All items on it want the image once more.
    pub(crate) wants_image: bool,
    /// The next solicited image is for all items on it.
    pub(crate) image_is_for_all: bool,
    /// Its items were told last that their data is suspect.
    pub(crate) is_suspect: bool,
    /// The service's number under which it was asked for.
    pub(crate) service_id: u16,
    /// As it was last sent.
    pub(crate) priority: Priority,
    /// The view that the provider was sent; none is all fields.
    pub(crate) view: Option<Box<ViewOf>>,
    pub(crate) group: Box<[u8]>,
}

impl Stream {
    pub(super) fn new(key: StreamKey, batch: u32) -> Self {
        Self {
            key,
            first: NOWHERE,
            id: 0,
            due: None,
            batch,
            failures: 0,
            phase: Phase::Waiting,
            is_in_parts: false,
            is_paused: false,
            is_queued: false,
            is_blocked: false,
            is_late: false,
            is_counted: false,
            is_reissued: false,
            wants_image: false,
            image_is_for_all: false,
            opened: Nanos(0),
            is_suspect: false,
            service_id: 0,
            priority: Priority { class: 1, count: 1 },
            view: None,
            group: Box::default(),
        }
    }

    /// Takes note of a state that its items are told. Whether their data can be trusted again, or no longer.
    pub(crate) fn note(&mut self, data: DataState) -> bool {
        let is_suspect = match data {
            DataState::OK => false,
            DataState::SUSPECT => true,
            _ => return false,
        };
        std::mem::replace(&mut self.is_suspect, is_suspect) != is_suspect
    }

    /// Whether nobody wants it any more.
    pub(crate) const fn is_forsaken(&self) -> bool {
        self.first == NOWHERE
    }
}

/// How an item stands with its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Image {
    /// To be asked for.
    Wanted,
    /// Asked for.
    Asked,
    /// Its first part is there.
    Coming,
    /// It is there.
    There,
}

/// An item of the application's.
#[derive(Debug)]
pub(crate) struct Interest {
    pub(super) stream: u32,
    pub(super) next: u32,
    pub(super) previous: u32,
    pub(crate) image: Image,
    pub(crate) is_paused: bool,
    pub(crate) priority: Priority,
    pub(crate) view: Option<Box<ViewOf>>,
    /// The application's own number for it.
    pub(crate) closure: u64,
}

impl Interest {
    pub(crate) const fn new(priority: Priority, view: Option<Box<ViewOf>>, closure: u64) -> Self {
        Self {
            stream: NOWHERE,
            next: NOWHERE,
            previous: NOWHERE,
            image: Image::Wanted,
            is_paused: false,
            priority,
            view,
            closure,
        }
    }
}
