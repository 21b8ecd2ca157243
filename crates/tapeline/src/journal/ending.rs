//! Reports about a torn end of a journal.

use serde_json::{Value, json};
use tapeline_console::log;
use tapeline_journal::Tail;
use tapeline_measure::figures::thousands;

/// The member `torn` of the JSON reports.
pub(super) fn torn_json(tail: &Tail) -> Value {
    json!({ "segment": tail.segment, "offset": tail.offset, "bytes": tail.bytes, "records": tail.records })
}

/// The note for people, on standard error.
pub(in crate::journal) fn say_torn(tail: &Tail) {
    let (Tail { segment, after, offset, .. }, bytes) = (tail, thousands(tail.bytes));
    log::note(format_args!(
        "{segment}: {bytes} bytes after record {after}, from byte {offset} on, are not a record: torn by a crash, or still being written"
    ));
}
