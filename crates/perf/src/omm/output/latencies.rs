//! The file of every single latency (the guide's chapter 9.3): its columns, then the due time and the response time.

use std::io::{self, Write};

use crate::omm::stamp::Unit;
use crate::omm::tally::{Kind, Timed};
use crate::omm::tool::Tool;

/// Names of the columns. Times and latencies are in one unit.
pub(super) fn header(tool: Tool, unit: Unit) -> String {
    if tool == Tool::Transport {
        // As in TransportPerf.
        return "Send Time, Receive Time, Latency(nsec), Due Time, Response(nsec)".to_owned();
    }
    let unit = match unit {
        Unit::Micros => "usec",
        Unit::Nanos => "nsec",
    };
    format!("Message type, Send time, Receive time, Latency ({unit}), Due time, Response ({unit})")
}

/// Writes a row; due time and response are empty if the sender does not state the due time.
pub(super) fn write_row(out: &mut impl Write, tool: Tool, unit: Unit, timed: &Timed) -> io::Result<()> {
    let kind = match timed.kind {
        Kind::Update if tool == Tool::Transport => "",
        Kind::Update => "Upd, ",
        Kind::Post => "Pst, ",
        Kind::Generic => "Gen, ",
    };
    let [sent, received] = [timed.sent, timed.received].map(|ns| unit.wire_of(ns));
    // Negative if the clocks of two machines disagree.
    let since = |time: u64| received.wrapping_sub(time).cast_signed();
    write!(out, "{kind}{sent}, {received}, {}, ", since(sent))?;
    match timed.due.map(|ns| unit.wire_of(ns)) {
        Some(due) => writeln!(out, "{due}, {}", since(due)),
        None => writeln!(out, ", "),
    }
}
