//! Distributions in the file formats of the HdrHistogram family.

use std::io::{self, Read, Write};
use std::time::{Duration, SystemTime};

use data_encoding::BASE64;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, IntervalLogWriterError, LogEntry, Tag,
};

use crate::error::Error;
use crate::recorder::Recorder;
use tapeline_nanos::Nanos;

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

/// Size limit of one inflated histogram, in bytes; the largest [`Recorder`] has some hundred thousand.
const LARGEST: u64 = 1 << 22;
/// Limit of distributions in one log, one for each hop of a run.
const MOST_NAMES: usize = 64;
/// Bytes of cookie and length before the deflated histogram.
const DEFLATED_HEADER: usize = 8;

/// Reads an interval log that [`write_hlog`] wrote: a recorder for each name, in the order of the file. Several
/// intervals of one name are added up. The file does not contain the counts of negative and clamped samples.
///
/// # Errors
/// [`Error::NotARecorder`], with the line's number, for anything else. Takes no more memory than 64 recorders.
pub fn read_hlog(text: &[u8]) -> Result<Vec<(String, Recorder)>, Error> {
    let mut all: Vec<(String, Recorder)> = Vec::new();
    for (number, entry) in (1..).zip(IntervalLogIterator::new(text)) {
        let wrong =
            |reason: &str| Error::NotARecorder { reason: format!("entry {number} of the log: {reason}") };
        let interval = match entry {
            Ok(LogEntry::Interval(interval)) => interval,
            Ok(_) => continue,
            Err(error) => return Err(wrong(&format!("{error:?}"))),
        };
        let name = interval.tag().map_or(String::new(), |tag| tag.as_str().to_owned());
        let bytes = BASE64
            .decode(interval.encoded_histogram().as_bytes())
            .map_err(|error| wrong(&format!("it is no base64: {error}")))?;
        let deflated = bytes.get(DEFLATED_HEADER..).ok_or_else(|| wrong("it is cut short"))?;
        let mut inflated = Vec::new();
        ZlibDecoder::new(deflated)
            .take(LARGEST)
            .read_to_end(&mut inflated)
            .map_err(|error| wrong(&format!("it cannot be inflated: {error}")))?;
        let recorder = Recorder::of_v2(&inflated).map_err(|error| wrong(&error.to_string()))?;
        if let Some((_, whole)) = all.iter_mut().find(|(known, _)| *known == name) {
            whole.merge(&recorder);
            continue;
        }
        if all.len() == MOST_NAMES {
            return Err(wrong("there are more names than any run has"));
        }
        all.push((name, recorder));
    }
    Ok(all)
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
        // The last row is 100 %, which has no distance to itself.
        if quantile < 1.0 {
            writeln!(out, " {:>14.2}", 1.0 / (1.0 - quantile))?;
        } else {
            writeln!(out)?;
        }
    }
    let (mean, deviation) = (histogram.mean(), histogram.stdev());
    writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]")?;
    let max = recorder.max_ns().unwrap_or(0) as f64;
    writeln!(out, "#[Max     = {max:>12.3}, Total count    = {:>12}]", histogram.len())?;
    let sub_buckets = 2 * 10_u64.pow(u32::from(histogram.sigfig()));
    let (buckets, sub_buckets) = (histogram.buckets(), sub_buckets.next_power_of_two());
    writeln!(out, "#[Buckets = {buckets:>12}, SubBuckets     = {sub_buckets:>12}]")?;
    Ok(())
}

#[cfg(test)]
mod tests {
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
        use LogEntry::{BaseTime, Interval, StartTime};
        let [StartTime(begin), BaseTime(_), Interval(one), Interval(two)] = &entries[..] else {
            panic!("{entries:?}");
        };
        assert_eq!(begin.as_secs(), 1_580_389_200);
        assert_eq!(one.tag().unwrap().as_str(), "wire→decoded");
        assert_eq!(one.duration(), Duration::from_secs(15));
        assert!((one.max() - 1_000.0).abs() < 1.0);
        assert_eq!(two.tag().unwrap().as_str(), "a__b");

        let read = read_hlog(&bytes).unwrap();
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["wire→decoded", "a__b"]);
        assert_eq!((read[0].1.samples(), read[0].1.max_ns(), read[1].1.samples()), (1_000, Some(1_000), 0));
        assert_eq!(read[0].1.value_at(0.5), Some(500));
        assert_eq!(read[0].1.count_between(101, 200), 100);
        // The log twice, the second time without its first line: the samples are added.
        let twice =
            [&bytes[..], &bytes[bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1..]].concat();
        assert_eq!(read_hlog(&twice).unwrap()[0].1.samples(), 2_000);
    }

    #[test]
    fn a_log_that_is_damaged_is_refused() {
        let mut bytes = Vec::new();
        write_hlog(&mut bytes, Nanos(0), Duration::from_secs(1), &[("a", &sample())]).unwrap();
        for cut in 60..bytes.len() {
            let _ = read_hlog(&bytes[..cut]);
        }
        let at = bytes.len() - 20;
        bytes[at] = b'!';
        assert!(read_hlog(&bytes).unwrap_err().to_string().contains("no base64"));
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
