//! One stream, and one item on it.

use tapeline_nanos::Nanos;

use super::StreamKey;
use super::slots::NOWHERE;
use crate::rwf::{DataState, Priority};

/// Progress of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not requested, or no longer: there is no connection, no service that can serve it, or the wait is not over.
    Waiting,
    /// Requested; the time-out is [`Stream::due`].
    Asked,
    /// Answered by a complete image.
    Open,
}

/// View: the requested fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ViewOf {
    /// Sorted, without duplicates.
    Fids(Box<[i16]>),
    Names(Box<[Box<[u8]>]>),
}

/// A stream: requested, open, or wanted.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) key: StreamKey,
    /// Newest item on the stream.
    pub(super) first: u32,
    /// Id on the connection; 0 if there is none.
    pub(crate) id: i32,
    /// Time at which an answer is late, or at which to request again.
    pub(crate) due: Option<Nanos>,
    /// Time at which the stream was last opened.
    pub(crate) opened: Nanos,
    /// Number of the batch, equal for all requests of one batch; 0 is none.
    pub(crate) batch: u32,
    /// Number of refusals since the stream was last open.
    pub(crate) failures: u8,
    pub(crate) phase: Phase,
    /// A part of an image has arrived, but not the last part.
    pub(crate) is_in_parts: bool,
    /// The provider was asked to pause updates.
    pub(crate) is_paused: bool,
    pub(super) is_queued: bool,
    /// The stream waits in the queue of its service.
    pub(crate) is_blocked: bool,
    /// The stream must be closed before it is requested again.
    pub(crate) is_late: bool,
    /// The request counts as unanswered.
    pub(crate) is_counted: bool,
    /// The application changed the request.
    pub(crate) is_reissued: bool,
    /// All items on the stream want the image again.
    pub(crate) wants_image: bool,
    /// The next solicited image is for all items on the stream.
    pub(crate) image_is_for_all: bool,
    /// The items were last informed that their data is suspect.
    pub(crate) is_suspect: bool,
    /// Id of the service at the time of the request.
    pub(crate) service_id: u16,
    /// Priority as last sent.
    pub(crate) priority: Priority,
    /// View as last sent to the provider; `None` is all fields.
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

    /// Records a data state that the items receive. Returns `true` if the data became good or suspect.
    pub(crate) fn note(&mut self, data: DataState) -> bool {
        let is_suspect = match data {
            DataState::OK => false,
            DataState::SUSPECT => true,
            _ => return false,
        };
        std::mem::replace(&mut self.is_suspect, is_suspect) != is_suspect
    }

    /// Returns `true` if no item uses the stream.
    pub(crate) const fn is_forsaken(&self) -> bool {
        self.first == NOWHERE
    }
}

/// Progress of an item's image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Image {
    /// To be requested.
    Wanted,
    /// Requested.
    Asked,
    /// The first part has arrived.
    Coming,
    /// The image has arrived.
    There,
}

/// An item of the application.
#[derive(Debug)]
pub(crate) struct Interest {
    pub(super) stream: u32,
    pub(super) next: u32,
    pub(super) previous: u32,
    pub(crate) image: Image,
    pub(crate) is_paused: bool,
    pub(crate) priority: Priority,
    pub(crate) view: Option<Box<ViewOf>>,
    /// The application's number for the item.
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
