//! A whole distribution of latencies.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};

use crate::error::Error;
use crate::percentiles::Percentiles;

/// The longest distinguishable latency: one hour. Longer ones count as one hour, and their number is counted.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits of every recorded value, so that a percentile is accurate to 0.1 %.
const DIGITS: u8 = 3;

/// Records latencies from 1 ns to one hour to three significant digits (an HdrHistogram, about 300 KB), and the
/// smallest and largest exactly.
///
/// A negative latency means that two clocks disagree by more than the latency. Negative samples are counted
/// ([`negatives`](Self::negatives)) and shown with the result, but are in no percentile.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorder {
    histogram: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
    negatives: u64,
    most_negative_ns: i64,
    clamped: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// Creates an empty recorder whose memory is already touched: the first samples cause no page faults.
    #[must_use]
    #[allow(clippy::unwrap_used)]
    pub fn new() -> Self {
        // Cannot fail: the bounds are constants that the histogram accepts (a test makes one).
        let mut histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).unwrap();
        // Writes zeros over the untouched pages, which maps them.
        histogram.reset();
        Self { histogram, min_ns: u64::MAX, max_ns: 0, negatives: 0, most_negative_ns: 0, clamped: 0 }
    }

    /// Adds one latency in nanoseconds. No allocation; takes some nanoseconds (bench `clock`).
    #[inline]
    pub fn record(&mut self, ns: i64) {
        self.record_n(ns, 1);
    }

    /// Adds the same latency `count` times, at the cost of one.
    #[inline]
    pub fn record_n(&mut self, ns: i64, count: u64) {
        if count == 0 {
            return;
        }
        match u64::try_from(ns) {
            Ok(ns) => self.record_unsigned(ns, count),
            Err(_) => {
                self.negatives += count;
                self.most_negative_ns = self.most_negative_ns.min(ns);
            }
        }
    }

    #[inline]
    fn record_unsigned(&mut self, ns: u64, count: u64) {
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        if ns > LONGEST_NS {
            self.clamped += count;
        }
        self.histogram.saturating_record_n(ns, count);
    }

    /// Adds all samples of another recorder, as if they had been recorded in this one.
    pub fn merge(&mut self, other: &Self) {
        // Cannot fail: all recorders have the same bounds, `decode` included.
        let added = self.histogram.add(&other.histogram);
        debug_assert!(added.is_ok());
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.negatives += other.negatives;
        self.most_negative_ns = self.most_negative_ns.min(other.most_negative_ns);
        self.clamped += other.clamped;
    }

    /// Clears all samples, for instance at the end of a warm-up, without freeing memory.
    pub fn clear(&mut self) {
        self.histogram.reset();
        self.min_ns = u64::MAX;
        self.max_ns = 0;
        self.negatives = 0;
        self.most_negative_ns = 0;
        self.clamped = 0;
    }

    /// Returns the number of samples in the distribution, without negative ones.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the number of negative samples, which measure the error of the clocks and not a latency.
    #[must_use]
    pub fn negatives(&self) -> u64 {
        self.negatives
    }

    /// Returns the most negative sample in nanoseconds; 0 if there was none.
    #[must_use]
    pub fn most_negative_ns(&self) -> i64 {
        self.most_negative_ns
    }

    /// Returns the number of samples above one hour, which the percentiles count as one hour.
    #[must_use]
    pub fn clamped(&self) -> u64 {
        self.clamped
    }

    /// Returns the smallest sample, exact, in nanoseconds; `None` without samples.
    #[must_use]
    pub fn min_ns(&self) -> Option<u64> {
        (self.samples() > 0).then_some(self.min_ns)
    }

    /// Returns the largest sample, exact, in nanoseconds; `None` without samples.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (self.samples() > 0).then_some(self.max_ns)
    }

    /// Returns the arithmetic mean in nanoseconds, to three digits; 0 without samples.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.histogram.mean()
    }

    /// Returns the standard deviation in nanoseconds, to three digits; 0 without samples.
    #[must_use]
    pub fn deviation_ns(&self) -> f64 {
        self.histogram.stdev()
    }

    /// Returns the latency that the share `quantile` (0 to 1) of the samples does not exceed, in nanoseconds, to three
    /// digits; `None` without samples. Does not check how many samples support the value: see
    /// [`percentiles`](Self::percentiles).
    #[must_use]
    pub fn value_at(&self, quantile: f64) -> Option<u64> {
        (self.samples() > 0).then(|| {
            self.histogram.value_at_quantile(quantile.clamp(0.0, 1.0)).clamp(self.min_ns, self.max_ns)
        })
    }

    /// Returns the number of samples from one latency to another, both included, to three digits.
    #[must_use]
    pub fn count_between(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.histogram.count_between(from_ns, to_ns)
    }

    /// Returns the percentiles that the samples support.
    #[must_use]
    pub fn percentiles(&self) -> Percentiles {
        Percentiles::of(self)
    }

    pub(crate) fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// Encodes the recorder for another process: 44 bytes of counters and an HdrHistogram in the V2 encoding.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4096);
        bytes.extend_from_slice(MAGIC);
        for word in
            [self.min_ns, self.max_ns, self.negatives, self.most_negative_ns.unsigned_abs(), self.clamped]
        {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        // Cannot fail: this writes to memory, and the histogram is far from the encoding's limits.
        let written = V2Serializer::new().serialize(&self.histogram, &mut bytes);
        debug_assert!(written.is_ok());
        bytes
    }

    /// Decodes a recorder that [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::NotARecorder`] for anything else. Never takes more memory than a recorder and the bytes given.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |reason: &str| Error::NotARecorder { reason: reason.to_owned() };
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| wrong("it does not begin as one"))?;
        let (words, rest) = rest.split_first_chunk::<40>().ok_or_else(|| wrong("it is cut short"))?;
        let mut words = words.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let [min_ns, max_ns, negatives, most_negative, clamped] =
            std::array::from_fn(|_| words.next().unwrap_or(0));
        let histogram = histogram_of(rest)?;
        if !histogram.is_empty() && min_ns > max_ns {
            return Err(wrong("its minimum is above its maximum"));
        }
        let most_negative_ns = 0_i64.saturating_sub_unsigned(most_negative);
        Ok(Self { histogram, min_ns, max_ns, negatives, most_negative_ns, clamped })
    }

    /// Decodes a histogram in the V2 encoding; smallest and largest sample are accurate to three digits.
    pub(crate) fn of_v2(bytes: &[u8]) -> Result<Self, Error> {
        let histogram = histogram_of(bytes)?;
        let is_empty = histogram.is_empty();
        let (min_ns, max_ns) = if is_empty { (u64::MAX, 0) } else { (histogram.min(), histogram.max()) };
        Ok(Self { histogram, min_ns, max_ns, ..Self::default() })
    }
}

/// Decodes a histogram that has the bounds of all recorders.
fn histogram_of(bytes: &[u8]) -> Result<Histogram<u64>, Error> {
    check_histogram_header(bytes).map_err(|reason| Error::NotARecorder { reason: reason.to_owned() })?;
    let histogram = Deserializer::new().deserialize(&mut &*bytes);
    histogram.map_err(|error| Error::NotARecorder { reason: error.to_string() })
}

const MAGIC: &[u8; 4] = b"TLR1";

/// Checks the header of a V2 histogram: cookie, payload length, offset, digits (32 bits each), lowest, highest,
/// ratio (64 bits each), all big-endian. The decoder allocates memory by the header before it reads on, so the
/// header must be the one that `encode` writes.
fn check_histogram_header(bytes: &[u8]) -> Result<(), &'static str> {
    const LENGTH: usize = 40;
    let (header, payload) = bytes.split_at_checked(LENGTH).ok_or("its histogram is cut short")?;
    let word = |at: usize| header[at..at + 4].iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    let long = |at: usize| word(at) << 32 | word(at + 4);
    if word(4) != payload.len() as u64 {
        return Err("its histogram has another length than it says");
    }
    if word(12) != u64::from(DIGITS) || long(16) != 1 || long(24) != LONGEST_NS {
        return Err("its histogram has other bounds");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keeps_extremes_exactly_and_negatives_apart() {
        let mut recorder = Recorder::new();
        for ns in [123_457, 1, -40, 3, -7, LONGEST_NS as i64 + 1, i64::MAX, i64::MIN] {
            recorder.record(ns);
        }
        assert_eq!((recorder.samples(), recorder.negatives()), (5, 3));
        assert_eq!((recorder.min_ns(), recorder.max_ns()), (Some(1), Some(i64::MAX as u64)));
        assert_eq!((recorder.most_negative_ns(), recorder.clamped()), (i64::MIN, 2));
        recorder.clear();
        assert_eq!(recorder, Recorder::new());
        assert_eq!((recorder.min_ns(), recorder.value_at(0.5)), (None, None));
        assert_eq!((recorder.mean_ns(), recorder.deviation_ns()), (0.0, 0.0));
        recorder.record(200);
        recorder.record(400);
        assert_eq!((recorder.mean_ns(), recorder.deviation_ns()), (300.0, 100.0));
    }

    #[test]
    fn zero_is_a_latency() {
        let mut recorder = Recorder::new();
        recorder.record(0);
        assert_eq!((recorder.min_ns(), recorder.value_at(0.5), recorder.negatives()), (Some(0), Some(0), 0));
    }

    proptest! {
        #[test]
        fn many_at_once_equal_one_by_one(ns: i64, count in 0..20_u64) {
            let (mut at_once, mut one_by_one) = (Recorder::new(), Recorder::new());
            at_once.record_n(ns, count);
            (0..count).for_each(|_| one_by_one.record(ns));
            prop_assert_eq!(at_once, one_by_one);
        }

        #[test]
        fn merging_equals_recording_everything(a: Vec<i32>, b: Vec<i32>) {
            let (mut one, mut other, mut both) = (Recorder::new(), Recorder::new(), Recorder::new());
            for ns in a {
                one.record(ns.into());
                both.record(ns.into());
            }
            for ns in b {
                other.record(ns.into());
                both.record(ns.into());
            }
            one.merge(&other);
            prop_assert_eq!(&one, &both);
            prop_assert_eq!(Recorder::decode(&both.encode()).unwrap(), both);
        }

        #[test]
        fn values_are_right_to_three_digits(samples in prop::collection::vec(0..LONGEST_NS, 1..200), q in 0.0..=1.0_f64) {
            let mut recorder = Recorder::new();
            for ns in &samples {
                recorder.record(*ns as i64);
            }
            let mut sorted = samples;
            sorted.sort_unstable();
            let exact = sorted[((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1];
            let shown = recorder.value_at(q).unwrap();
            prop_assert!(shown.abs_diff(exact) <= exact / 1_000 + 1, "{} for {}", shown, exact);
        }

        #[test]
        fn hostile_bytes_are_refused_or_harmless(mut bytes: Vec<u8>, at: prop::sample::Index, value: u8, keep: bool) {
            if keep {
                let mut recorder = Recorder::new();
                recorder.record(100);
                recorder.record(70_000);
                bytes = recorder.encode();
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            if let Ok(recorder) = Recorder::decode(&bytes) {
                let _ = recorder.percentiles();
            }
        }
    }

    #[test]
    fn a_histogram_that_claims_gigabytes_is_refused() {
        let mut bytes = Recorder::new().encode();
        bytes[48..52].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(Recorder::decode(&bytes).unwrap_err().to_string().contains("another length"));
    }
}
