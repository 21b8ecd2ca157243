//! When first copies came.

use tapeline_measure::Nanos;

use super::Line;

/// Remembered packets: at one packet a microsecond, lines that are 8 ms apart can still be compared.
const PLACES: usize = 8_192;

/// The sequences at which packets began to be new, with their times and lines. A later packet overwrites one of
/// [`PLACES`] sequences before.
#[derive(Debug)]
pub(super) struct Arrivals(Box<[(u64, Nanos, Line)]>);

impl Arrivals {
    pub(super) fn new() -> Self {
        Self(vec![(0, Nanos(0), Line::A); PLACES].into())
    }

    pub(super) fn clear(&mut self) {
        self.0.fill((0, Nanos(0), Line::A));
    }

    /// The first copy of `sequence` came on `line`, and the message before it did not come with it.
    #[inline]
    pub(super) fn record(&mut self, sequence: u64, line: Line, received: Nanos) {
        self.0[sequence as usize % PLACES] = (sequence, received, line);
    }

    /// When the first copy came, if it is remembered and another line brought it.
    #[inline]
    pub(super) fn on_another_line(&self, sequence: u64, line: Line) -> Option<Nanos> {
        let (known, received, first) = self.0[sequence as usize % PLACES];
        (known == sequence && first != line).then_some(received)
    }
}
