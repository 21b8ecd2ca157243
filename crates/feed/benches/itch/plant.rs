//! What a plant does with messages: books to drafts, and packets on two lines.

use std::hint::black_box;

use tapeline_feed::itch::framing::{FileFraming, Frames};
use tapeline_feed::line::{self, Arbiter, Line, Sink};
use tapeline_feed::normalise::Normaliser;
use tapeline_nanos::Nanos;

#[inline(never)]
pub(crate) fn normalise(file: &[u8], normaliser: &mut Normaliser) -> u64 {
    let mut sum = 0_u64;
    for bytes in Frames::with(file, FileFraming::Length) {
        if let Ok(applied) = normaliser.apply(bytes)
            && let Some(draft) = &applied.change
        {
            sum = sum.wrapping_add(black_box(draft).trades + 1);
        }
    }
    sum
}

/// Sums lengths, or hands on to a normaliser.
pub(crate) struct Taken {
    pub(crate) sum: u64,
    pub(crate) gaps: u64,
    pub(crate) normaliser: Option<Normaliser>,
}

impl Sink for Taken {
    #[inline]
    fn message(&mut self, _sequence: u64, bytes: &[u8], _received: Nanos) {
        match &mut self.normaliser {
            Some(normaliser) => {
                let change = normaliser.apply(bytes).ok().and_then(|applied| applied.change);
                if let Some(draft) = &change {
                    self.sum = self.sum.wrapping_add(black_box(draft).trades + 1);
                }
            }
            None => self.sum += bytes.len() as u64,
        }
    }

    fn gap(&mut self, _first: u64, _last: u64) {
        self.gaps += 1;
    }

    fn end_of_session(&mut self, _next: u64) {}

    fn reset(&mut self, _session: line::Session) {}
}

pub(crate) fn channel(packets: &[u8], lines: &[Line], arbiter: &mut Arbiter, taken: &mut Taken) -> u64 {
    for (time, packet) in Frames::with(packets, FileFraming::Length).enumerate() {
        for line in lines {
            arbiter.datagram(*line, packet, Nanos(time as u64), taken).unwrap();
        }
    }
    assert_eq!(taken.gaps, 0);
    taken.sum
}
