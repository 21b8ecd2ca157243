//! The open items of one consumer: which one is updated next, and which wait for an answer.

use std::collections::VecDeque;

use tapeline_omm::role::provider::{Provider, StreamHandle};
use tapeline_omm::rwf::StateCode;

/// An item that has had its image.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProvidedItem {
    pub(super) stream: StreamHandle,
    pub(super) is_book: bool,
    /// Indices of its next update and its next generic message.
    pub(super) update: u32,
    pub(super) generic: u32,
}

/// The answer that a stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Image,
    /// The request is refused.
    Closed(StateCode, &'static [u8]),
}

/// One consumer's items.
#[derive(Debug, Default)]
pub(super) struct Items {
    open: Vec<ProvidedItem>,
    /// Indexed by stream.
    spots: Vec<Spot>,
    answers: VecDeque<(StreamHandle, Answer)>,
    /// Requested items that are not closed.
    pub(super) asked: usize,
    pub(super) next_update: usize,
    pub(super) next_generic: usize,
}

/// State of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Spot {
    /// Its index among the open items plus 1; 0 before its image.
    place: u32,
    /// It was requested and is not closed.
    is_asked: bool,
    /// It waits for an image.
    is_waiting: bool,
}

/// Answers to closed streams are removed only if the queue is longer than twice the open streams plus this number.
const MOST_CLOSED: usize = 1024;

impl Items {
    /// Items that have had their image.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    pub(super) fn ask(&mut self, provider: &Provider, stream: StreamHandle) {
        self.asked += 1;
        let index = stream.index();
        if self.spots.len() <= index {
            self.spots.resize(index + 1, Spot::default());
        }
        self.spots[index] = Spot { place: 0, is_asked: true, is_waiting: true };
        self.owe(provider, stream, Answer::Image);
    }

    pub(super) fn ask_again(&mut self, provider: &Provider, stream: StreamHandle) {
        if let Some(spot) = self.spots.get_mut(stream.index()).filter(|spot| spot.is_asked)
            && !std::mem::replace(&mut spot.is_waiting, true)
        {
            self.owe(provider, stream, Answer::Image);
        }
    }

    /// Requests images for items that were on standby and have had no data.
    pub(super) fn take_over(&mut self, provider: &Provider) {
        for place in 0..self.open.len() {
            let stream = self.open[place].stream;
            if !provider.has_image(stream) && !provider.stands_by(stream) {
                self.ask_again(provider, stream);
            }
        }
    }

    pub(super) fn first_answer(&self) -> Option<(StreamHandle, Answer)> {
        self.answers.front().copied()
    }

    pub(super) fn owes(&self) -> bool {
        !self.answers.is_empty()
    }

    /// The first answer was sent, or is no longer needed.
    pub(super) fn answered(&mut self) {
        self.answers.pop_front();
    }

    /// A stream has had an image, and is open.
    pub(super) fn has_image(&mut self, stream: StreamHandle, is_book: bool) {
        let Some(spot) = self.spots.get_mut(stream.index()).filter(|spot| spot.is_asked) else { return };
        spot.is_waiting = false;
        if spot.place == 0 {
            self.open.push(ProvidedItem { stream, is_book, update: 0, generic: 0 });
            // There are at most as many items as streams, whose indices have 32 bits.
            spot.place = self.open.len() as u32;
        }
    }

    pub(super) fn close(&mut self, stream: StreamHandle) {
        let spot = self.spots.get_mut(stream.index()).map(std::mem::take).unwrap_or_default();
        self.asked -= usize::from(spot.is_asked);
        let Some(place) = spot.place.checked_sub(1) else { return };
        self.open.swap_remove(place as usize);
        if let Some(moved) = self.open.get(place as usize)
            && let Some(spot) = self.spots.get_mut(moved.stream.index())
        {
            spot.place = place + 1;
        }
    }

    /// The next item to update, if any.
    #[inline]
    pub(super) fn next_update(&mut self) -> Option<&mut ProvidedItem> {
        if self.next_update >= self.open.len() {
            self.next_update = 0;
        }
        self.open.get_mut(self.next_update)
    }

    /// The next item for a generic message, if any.
    #[inline]
    pub(super) fn next_generic(&mut self) -> Option<&mut ProvidedItem> {
        if self.next_generic >= self.open.len() {
            self.next_generic = 0;
        }
        self.open.get_mut(self.next_generic)
    }

    /// Queues an answer. If a stream was closed and reopened repeatedly, only its last answer is of use.
    pub(super) fn owe(&mut self, provider: &Provider, stream: StreamHandle, answer: Answer) {
        if self.answers.len() >= 2 * provider.open_streams() + MOST_CLOSED {
            self.answers.retain(|(stream, _)| provider.stream_id(*stream).is_some());
        }
        self.answers.push_back((stream, answer));
    }
}
