//! The items that one consumer has open: which is updated next, and which wait for an answer.

use std::collections::VecDeque;

use tapeline_omm::role::provider::{Provider, StreamHandle};
use tapeline_omm::rwf::StateCode;

/// An item that has had its image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) stream: StreamHandle,
    pub(super) is_book: bool,
    /// Which update, and which generic message, is its next, of those that there are.
    pub(super) update: u32,
    pub(super) generic: u32,
}

/// What a stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Image,
    /// What it was asked for is refused.
    Closed(StateCode, &'static [u8]),
}

/// One consumer's items.
#[derive(Debug, Default)]
pub(super) struct Items {
    open: Vec<Item>,
    /// By the streams' indices.
    spots: Vec<Spot>,
    answers: VecDeque<(StreamHandle, Answer)>,
    /// Asked for, and not closed.
    asked: usize,
    next_update: usize,
    next_generic: usize,
}

/// What is known of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Spot {
    /// Its place among the open items, and one more; 0 before its image.
    place: u32,
    /// It was asked for, and is not closed.
    is_asked: bool,
    /// It waits for an image.
    is_waiting: bool,
}

/// Answers to streams that are closed meanwhile are looked for only above so many.
const MOST_STALE: usize = 1024;

impl Items {
    /// Items that were asked for and are not closed.
    pub(super) fn asked(&self) -> usize {
        self.asked
    }

    /// Items that have had their image.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// An item was asked for.
    pub(super) fn ask(&mut self, provider: &Provider, stream: StreamHandle) {
        self.asked += 1;
        let index = stream.index();
        if self.spots.len() <= index {
            self.spots.resize(index + 1, Spot::default());
        }
        self.spots[index] = Spot { place: 0, is_asked: true, is_waiting: true };
        self.owe(provider, stream, Answer::Image);
    }

    /// An image is wanted again.
    pub(super) fn ask_again(&mut self, provider: &Provider, stream: StreamHandle) {
        if let Some(spot) = self.spots.get_mut(stream.index()).filter(|spot| spot.is_asked)
            && !std::mem::replace(&mut spot.is_waiting, true)
        {
            self.owe(provider, stream, Answer::Image);
        }
    }

    /// Items that stood by, and have had no data, want their images.
    pub(super) fn take_over(&mut self, provider: &Provider) {
        for place in 0..self.open.len() {
            let stream = self.open[place].stream;
            if !provider.has_image(stream) && !provider.stands_by(stream) {
                self.ask_again(provider, stream);
            }
        }
    }

    /// A stream is refused.
    pub(super) fn refuse(
        &mut self,
        provider: &Provider,
        stream: StreamHandle,
        code: StateCode,
        text: &'static [u8],
    ) {
        self.owe(provider, stream, Answer::Closed(code, text));
    }

    /// What is owed first.
    pub(super) fn first_answer(&self) -> Option<(StreamHandle, Answer)> {
        self.answers.front().copied()
    }

    /// Whether anything is owed.
    pub(super) fn owes(&self) -> bool {
        !self.answers.is_empty()
    }

    /// The first answer was given, or nobody waits for it.
    pub(super) fn answered(&mut self) {
        self.answers.pop_front();
    }

    /// A stream has had an image, and is open.
    pub(super) fn has_image(&mut self, stream: StreamHandle, is_book: bool) {
        let Some(spot) = self.spots.get_mut(stream.index()).filter(|spot| spot.is_asked) else { return };
        spot.is_waiting = false;
        if spot.place == 0 {
            self.open.push(Item { stream, is_book, update: 0, generic: 0 });
            // There are no more than streams, whose indices have 32 bits.
            spot.place = self.open.len() as u32;
        }
    }

    /// An item is closed.
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

    /// The item whose turn it is to be updated, if there is any.
    #[inline]
    pub(super) fn next_update(&mut self) -> Option<&mut Item> {
        if self.next_update >= self.open.len() {
            self.next_update = 0;
        }
        self.open.get_mut(self.next_update)
    }

    /// It had its turn.
    #[inline]
    pub(super) fn updated(&mut self) {
        self.next_update += 1;
    }

    /// The item whose turn it is to be sent a generic message.
    #[inline]
    pub(super) fn next_generic(&mut self) -> Option<&mut Item> {
        if self.next_generic >= self.open.len() {
            self.next_generic = 0;
        }
        self.open.get_mut(self.next_generic)
    }

    /// It had its turn.
    #[inline]
    pub(super) fn sent_generic(&mut self) {
        self.next_generic += 1;
    }

    /// Of a stream that was closed and opened again and again, only the last answer is of use.
    fn owe(&mut self, provider: &Provider, stream: StreamHandle, answer: Answer) {
        if self.answers.len() >= 2 * provider.open_streams() + MOST_STALE {
            self.answers.retain(|(stream, _)| provider.stream_id(*stream).is_some());
        }
        self.answers.push_back((stream, answer));
    }
}
