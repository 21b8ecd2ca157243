//! Distributions in the file formats of the HdrHistogram family.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError, Tag};

use crate::error::Error;
use crate::nanos::Nanos;
use crate::recorder::Recorder;

/// Steps of the `.hgrm` table for each halving of the distance to 100 %, as HdrHistogram's own tools choose.
const STEPS: u32 = 5;

/// Writes an HdrHistogram interval log (`.hlog`, version 1.3, histograms in V2): one interval from `start` over
/// `duration` for each named recorder, tagged with its name (commas and spaces become underscores), values in nanoseconds.
///
/// # Errors
/// [`Error::Write`] when `out` refuses.
pub fn write_hlog(
    out: &mut impl Write,
    start: Nanos,
    duration: Duration,
    recorders: &[(&str, &Recorder)],
) -> Result<(), Error> {
    // The format's version line comes first; readers (the Java one among them) take `#[` lines as headers.
    writeln!(out, "#[Histogram log format version 1.3]")?;
    let mut serializer = V2DeflateSerializer::new();
    let begin = SystemTime::UNIX_EPOCH + Duration::from_nanos(start.0);
    let mut log = IntervalLogWriterBuilder::new()
        .with_start_time(begin)
        .with_base_time(begin)
        .add_comment("values in nanoseconds")
        .begin_log_with(out, &mut serializer)?;
    for (name, recorder) in recorders {
        let name: String =
            name.chars().map(|c| if c == ',' || c.is_whitespace() { '_' } else { c }).collect();
        log.write_histogram(recorder.histogram(), Duration::ZERO, duration, Tag::new(&name)).map_err(
            |error| match error {
                IntervalLogWriterError::IoError(error) => error,
                IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
            },
        )?;
    }
    Ok(())
}

/// Writes a percentile distribution in the classic text form (`.hgrm`) that HdrHistogram's plotters read, values in
/// nanoseconds.
///
/// # Errors
/// [`Error::Write`] when `out` refuses.
pub fn write_hgrm(out: &mut impl Write, recorder: &Recorder) -> Result<(), Error> {
    let histogram = recorder.histogram();
    writeln!(out, "{:>12} {:>14} {:>10} {:>14}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")?;
    let mut total = 0;
    for step in histogram.iter_quantiles(STEPS) {
        total += step.count_since_last_iteration();
        let value = step.value_iterated_to() as f64;
        let quantile = step.quantile_iterated_to();
        write!(out, "{value:>12.3} {quantile:>2.12} {total:>10}")?;
        // The last row stands for 100 %, and has no distance to it.
        if quantile < 1.0 {
            writeln!(out, " {:>14.2}", 1.0 / (1.0 - quantile))?;
        } else {
            writeln!(out)?;
        }
    }
    let (mean, deviation) =
        if histogram.is_empty() { (0.0, 0.0) } else { (histogram.mean(), histogram.stdev()) };
    writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]")?;
    let max = recorder.max_ns().unwrap_or(0) as f64;
    writeln!(out, "#[Max     = {max:>12.3}, Total count    = {:>12}]", histogram.len())?;
    let sub_buckets = 2 * 10_u64.pow(u32::from(histogram.sigfig()));
    writeln!(
        out,
        "#[Buckets = {:>12}, SubBuckets     = {:>12}]",
        histogram.buckets(),
        sub_buckets.next_power_of_two()
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    fn sample() -> Recorder {
        let mut recorder = Recorder::new();
        for ns in 1..=1_000 {
            recorder.record(ns);
        }
        recorder
    }

    #[test]
    fn hlog_is_read_back() {
        let mut bytes = Vec::new();
        let start = Nanos(1_580_389_200_500_000_000);
        let recorders: [(&str, &Recorder); 2] = [("wire→decoded", &sample()), ("a, b", &Recorder::new())];
        write_hlog(&mut bytes, start, Duration::from_secs(15), &recorders).unwrap();
        assert!(bytes.starts_with(b"#[Histogram log format version 1.3]\n"));
        let entries: Vec<_> = IntervalLogIterator::new(&bytes).map(Result::unwrap).collect();
        let [
            LogEntry::StartTime(begin),
            LogEntry::BaseTime(_),
            LogEntry::Interval(one),
            LogEntry::Interval(two),
        ] = &entries[..]
        else {
            panic!("{entries:?}");
        };
        assert_eq!(begin.as_secs(), 1_580_389_200);
        assert_eq!(one.tag().unwrap().as_str(), "wire→decoded");
        assert_eq!(one.duration(), Duration::from_secs(15));
        assert!((one.max() - 1_000.0).abs() < 1.0);
        assert_eq!(two.tag().unwrap().as_str(), "a__b");
    }

    #[test]
    fn hgrm_has_the_classic_form() {
        let mut bytes = Vec::new();
        write_hgrm(&mut bytes, &sample()).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "       Value     Percentile TotalCount 1/(1-Percentile)");
        assert_eq!(lines[1], "");
        assert_eq!(lines[2], "       1.000 0.000000000000          1           1.00");
        let half = lines.iter().find(|line| line.contains(" 0.500000000000 ")).unwrap();
        assert_eq!(*half, "     500.000 0.500000000000        500           2.00");
        let end: Vec<&str> = lines[lines.len() - 4..].to_vec();
        assert_eq!(end[0], "    1000.000 1.000000000000       1000");
        assert_eq!(end[2], "#[Max     =     1000.000, Total count    =         1000]");
        assert!(end[1].starts_with("#[Mean    =      500.5") && end[3].ends_with("2048]"), "{end:?}");
    }
}
