//! The output of `tapeline feed inspect`. The JSON has all findings in wire units (prices with four decimals,
//! nanoseconds); the tables are an excerpt for people.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use tapeline_console::failure::Hinted;
use tapeline_console::near::note_unknown;
use tapeline_console::output::{self, Table, table};
use tapeline_feed::line::{Line, LineStatistics};
use tapeline_measure::figures::{self, thousands};

use super::iex_report::IexReport;
use super::inspect::{Findings, Protocols};
use super::itch_report::ItchReport;

#[derive(Debug, Default, Serialize)]
pub(super) struct FileReport {
    pub(super) name: String,
    pub(super) format: &'static str,
    /// Size of the file on disk.
    pub(super) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) datagrams: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) non_udp: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) payload_bytes: Option<u64>,
    /// Packets without a datagram, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) skipped: BTreeMap<&'static str, u64>,
    /// Datagrams by destination.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) dest: BTreeMap<String, u64>,
    /// Datagrams by destination and sender.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) senders: BTreeMap<String, BTreeMap<String, u64>>,
    #[serde(rename = "pcap_first_ns", skip_serializing_if = "Option::is_none")]
    pub(super) first_ns: Option<u64>,
    #[serde(rename = "pcap_last_ns", skip_serializing_if = "Option::is_none")]
    pub(super) last_ns: Option<u64>,
    pub(super) max_payload: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes_consumed: Option<u64>,
    pub(super) trailing_bytes: u64,
    /// Whether a file of messages has its end marker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end_marker: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl FileReport {
    pub(super) fn new(path: &Path, bytes: u64, format: &'static str) -> Self {
        Self {
            name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            format,
            bytes,
            ..Self::default()
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct InspectReport<'f> {
    protocol: String,
    files: &'f [FileReport],
    /// Bytes of the messages of all files, including framing; absent for captures of packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_consumed: Option<u64>,
    /// Bytes after the last whole message or packet.
    trailing_bytes: u64,
    #[serde(flatten)]
    feed: Option<Value>,
    #[serde(flatten)]
    itch: Option<ItchReport>,
    #[serde(flatten)]
    iex: Option<IexReport>,
}

impl<'f> InspectReport<'f> {
    /// Notes on standard error which symbols are not in the feed, if its protocol is known.
    pub(super) fn note_unknown(&self, symbols: &[String]) {
        let itch = self.itch.as_ref().map(ItchReport::names);
        if let Some(names) = itch.or_else(|| self.iex.as_ref().map(IexReport::names)) {
            note_unknown(symbols, &names);
        }
    }

    /// Builds the report, with books of `symbols` of `levels` price levels a side.
    pub(super) fn of(findings: &'f Findings, symbols: &[String], levels: usize) -> Self {
        let Protocols { mold, iex, itch_files, .. } = findings.protocols;
        let itch = (itch_files > 0 || mold > 0).then(|| ItchReport::of(&findings.tally, symbols, levels));
        let is_itch = itch.as_ref().is_none_or(ItchReport::is_itch);
        let protocol = match (itch_files, mold, iex) {
            (1.., ..) if is_itch => "ITCH 5.0".to_owned(),
            (1.., ..) => "messages with lengths in front, not ITCH 5.0".to_owned(),
            (_, 1.., _) if is_itch => "ITCH 5.0 in MoldUDP64".to_owned(),
            (_, 1.., _) => "MoldUDP64, not ITCH 5.0".to_owned(),
            (_, _, 1..) => IexReport::protocol(&findings.iex),
            _ => "unknown".to_owned(),
        };
        Self {
            protocol,
            files: &findings.files,
            bytes_consumed: findings.files.iter().map(|file| file.bytes_consumed).sum(),
            trailing_bytes: findings.files.iter().map(|file| file.trailing_bytes).sum(),
            feed: (mold > 0).then(|| feed_json(findings)),
            iex: (itch.is_none() && iex > 0).then(|| IexReport::of(&findings.iex, symbols, levels)),
            itch,
        }
    }

    /// The error that names the actual protocol, if most messages are not ITCH 5.0.
    pub(super) fn not_itch(&self) -> Option<Hinted> {
        let itch = self.itch.as_ref().filter(|itch| !itch.is_itch())?;
        let (foreign, all) = (thousands(itch.foreign()), thousands(itch.messages));
        let what = format!("{}: {foreign} of {all} messages have another type or length", self.protocol);
        let hint = "other exchanges' ITCH is not decoded: sequences and gaps are right, ignore the rest";
        Some(Hinted::new(what, hint))
    }

    /// Prints tables, with the `top` stocks by number of messages.
    pub(super) fn print_tables(&self, findings: &Findings, top: usize) -> anyhow::Result<()> {
        let mut parts = vec![files_table(findings)];
        if self.feed.is_some() {
            parts.push(feed_tables(findings));
        }
        match (&self.itch, &self.iex) {
            // Types, stocks and books would be meaningless.
            (Some(itch), _) if !itch.is_itch() => {}
            (Some(itch), _) => parts.extend(itch.tables(&findings.tally, top)),
            (_, Some(iex)) => parts.extend(iex.tables(&findings.iex, top)),
            (None, None) => parts.push(match findings.protocols.other {
                0 => "nothing to decode".to_owned(),
                other => format!("{} datagrams of an unknown protocol", thousands(other)),
            }),
        }
        if self.trailing_bytes > 0 {
            parts.push(format!("{} bytes at the end are not a whole message or packet", self.trailing_bytes));
        }
        output::print(&parts.join("\n\n"))
    }
}

/// Notes on standard error that nothing went to the requested destination, and lists the other destinations.
pub(super) fn note_no_datagrams(only: SocketAddr, files: &[FileReport]) {
    const NAMED: usize = 3;
    let known: BTreeSet<&str> = files.iter().flat_map(|file| file.dest.keys().map(String::as_str)).collect();
    let named: Vec<&str> = known.iter().copied().take(NAMED).collect();
    match (known.len(), named.join(", ")) {
        (0, _) => anstream::eprintln!("note: nothing goes to {only}; there are no UDP datagrams"),
        (..=NAMED, named) => anstream::eprintln!("note: nothing goes to {only}; there is {named}"),
        (_, named) => anstream::eprintln!("note: nothing goes to {only}; there is {named} and others"),
    }
}

/// Warns on standard error that a capture has IP fragments, a possible cause of missing messages.
pub(crate) fn warn_of_fragments(name: &str, fragments: u64) {
    anstream::eprintln!(
        "warning: {name}: {} packets are IP fragments and are not reassembled: their contents are missing",
        thousands(fragments)
    );
}

fn files_table(findings: &Findings) -> String {
    let mut files =
        table(["file", "format", "bytes", "packets", "datagrams", "left over", "from", "to (UTC)"]);
    for file in &findings.files {
        files.add_row([
            file.name.clone(),
            file.format.to_owned(),
            thousands(file.bytes),
            or_dash(file.packets, thousands),
            or_dash(file.datagrams, thousands),
            thousands(file.trailing_bytes),
            or_dash(file.first_ns, utc),
            or_dash(file.last_ns, utc),
        ]);
    }
    let mut text = files.to_string();
    for file in &findings.files {
        for (destination, count) in &file.dest {
            text.push_str(&format!("\n{}: {} datagrams to {destination}", file.name, thousands(*count)));
            let senders = file.senders.get(destination).filter(|senders| senders.len() > 1);
            for (sender, count) in senders.into_iter().flatten() {
                text.push_str(&format!("\n  {} of them from {sender}", thousands(*count)));
            }
        }
        for (reason, count) in &file.skipped {
            text.push_str(&format!("\n{}: {} packets left out: {reason}", file.name, thousands(*count)));
        }
    }
    text
}

/// A value as text; a dash if there is none.
pub(super) fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}

/// A table of the `top` busiest of these, with a heading if there are more.
pub(super) fn top_table(what: &str, count: usize, top: usize, rows: &Table) -> String {
    match count > top {
        true => format!("the {top} busiest of {} {what}\n{rows}", thousands(count as u64)),
        false => rows.to_string(),
    }
}

/// A table of the price levels of both sides, the best first. The cells of a level run from the table's edge to its
/// middle.
pub(super) fn sides<const N: usize>(headings: &str, bids: &[[String; N]], asks: &[[String; N]]) -> Table {
    let mut rows = table(headings.split(", "));
    for level in 0..bids.len().max(asks.len()) {
        let cells = |side: &[[String; N]]| side.get(level).cloned().unwrap_or([const { String::new() }; N]);
        rows.add_row(cells(bids).into_iter().chain(cells(asks).into_iter().rev()));
    }
    rows
}

/// A time of the capture, to the nanosecond.
pub(super) fn utc(ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(ns))
        .map_or_else(|_| ns.to_string(), |time| time.strftime("%Y-%m-%d %H:%M:%S.%9f").to_string())
}

/// The lines of the feed, by letter.
fn lines(findings: &Findings) -> impl Iterator<Item = (char, &LineStatistics)> {
    let lines = (0..findings.files.len()).filter_map(Line::new);
    lines.map(|line| (line.letter(), findings.arbiter.line(line)))
}

/// The MoldUDP64 feed on the lines.
fn feed_json(findings: &Findings) -> Value {
    let (arbiter, summary) = (&findings.arbiter, &findings.tally.summary);
    // By line letter and kind, such as `A_data_packets`.
    let mut counts = BTreeMap::new();
    for (letter, line) in lines(findings) {
        for (kind, count) in [
            ("data_packets", line.data_packets),
            ("heartbeats", line.heartbeats),
            ("end_of_session", line.ends_of_session),
        ] {
            counts.insert(format!("{letter}_{kind}"), count);
        }
        *counts.entry("duplicate_messages".to_owned()).or_default() += line.duplicates;
    }
    let first: BTreeMap<_, _> = lines(findings).map(|(letter, line)| (letter, line.first)).collect();
    let of_lines: BTreeMap<_, _> = lines(findings).map(|(letter, line)| (letter, line_json(line))).collect();
    json!({
        "sessions": summary.sessions.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "counts": counts,
        "first_delivery_by_feed": first,
        "unique_messages": arbiter.statistics().delivered,
        "first_sequence": summary.sequences.map(|(first, _)| first),
        "next_sequence": arbiter.next_sequence(),
        "end_of_session_sequence": summary.end_of_session_sequence,
        "missing_ranges": summary.gaps,
        "missing_range_count": summary.gap_count,
        "missing_messages": summary.missing_messages,
        "lines": of_lines,
    })
}

fn line_json(line: &LineStatistics) -> Value {
    let mut report = json!({
        "datagrams": line.datagrams,
        "bytes": line.bytes,
        "data_packets": line.data_packets,
        "heartbeats": line.heartbeats,
        "end_of_session": line.ends_of_session,
        "messages": line.messages,
        "first_deliveries": line.first,
        "duplicate_messages": line.duplicates,
        "late_messages": line.late,
        // Messages that never arrived on this line.
        "missing_messages": line.missing(),
        "stale_session_packets": line.stale_session,
        "stray_packets": line.strays,
        "absurd_packets": line.absurd,
        "trailing_bytes": line.trailing_bytes,
        "malformed": line.malformed_by_reason().collect::<BTreeMap<_, _>>(),
    });
    if let Some(mean) = line.skew.mean_ns() {
        report["behind_other_lines_ns"] =
            json!({ "min": line.skew.min_ns, "mean": mean, "max": line.skew.max_ns });
    }
    report
}

fn feed_tables(findings: &Findings) -> String {
    let summary = &findings.tally.summary;
    let headings =
        "line, datagrams, data, heartbeats, ends, messages, first here, duplicates, missing here, malformed";
    let mut rows = table(headings.split(", "));
    for (letter, line) in lines(findings) {
        let counts = [
            line.datagrams,
            line.data_packets,
            line.heartbeats,
            line.ends_of_session,
            line.messages,
            line.first,
            line.duplicates,
            line.missing(),
            line.malformed_by_reason().map(|(_, count)| count).sum(),
        ];
        rows.add_row(std::iter::once(letter.to_string()).chain(counts.map(thousands)));
    }
    let mut text = rows.to_string();
    for (letter, line) in lines(findings) {
        for (reason, count) in [
            ("of another session", line.stale_session),
            ("of another session or numbering, which no second packet confirms", line.strays),
            ("sequences that cannot be (0, or far ahead)", line.absurd),
        ] {
            if count > 0 {
                text.push_str(&format!("\n{letter}: {} packets left out: {reason}", thousands(count)));
            }
        }
        let malformed: BTreeMap<_, _> = line.malformed_by_reason().filter(|(_, count)| *count > 0).collect();
        for (reason, count) in malformed {
            text.push_str(&format!("\n{letter}: {} datagrams malformed: {reason}", thousands(count)));
        }
        if let Some(mean) = line.skew.mean_ns() {
            let [mean, least, most] =
                [mean as i64, line.skew.min_ns, line.skew.max_ns].map(figures::signed_duration);
            text.push_str(&format!(
                "\n{letter}: second copies come {mean} after the first in the mean ({least} to {most})"
            ));
        }
    }
    let sessions: Vec<_> = summary.sessions.iter().map(ToString::to_string).collect();
    let next = findings.arbiter.next_sequence();
    text.push_str(&format!(
        "\nsession {}: sequences {} up to {}, end of session {}",
        sessions.join(", "),
        or_dash(summary.sequences, |(first, _)| thousands(first)),
        or_dash(next, |next| thousands(next.saturating_sub(1))),
        match summary.end_of_session_sequence {
            Some(next) => format!("announced at {}", thousands(next)),
            None => "not announced".to_owned(),
        },
    ));
    if summary.gap_count == 0 {
        text.push_str("\nno message is missing");
        return text;
    }
    const SHOWN: usize = 20;
    let ranges: Vec<_> = (summary.gaps.iter().take(SHOWN))
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}–{last}") })
        .collect();
    let more = summary.gap_count.saturating_sub(ranges.len() as u64);
    text.push_str(&format!(
        "\n{} messages are missing in {} gaps: {}{}",
        thousands(summary.missing_messages),
        thousands(summary.gap_count),
        ranges.join(", "),
        if more > 0 { format!(" and {} more", thousands(more)) } else { String::new() },
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_nanoseconds() {
        assert_eq!(utc(1_580_371_634_909_934_345), "2020-01-30 08:07:14.909934345");
    }
}
