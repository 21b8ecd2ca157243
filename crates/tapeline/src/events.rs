//! Writes the events that parts of a plant report to the log, on standard error.

use tapeline_console::log::{Level, Line};
use tapeline_node::{Event, Events, Severity};

/// Writes each event as a line of the log.
pub(crate) fn printed() -> Events {
    Events::new(|event| write(event, tapeline_console::log::is_for_machines()))
}

fn write(event: &Event, is_for_machines: bool) {
    let level = match event.severity {
        Severity::Info => Level::Info,
        Severity::Note => Level::Notice,
        Severity::Warning => Level::Warning,
        Severity::Error => Level::Error,
    };
    let mut fields = event.fields.clone();
    // A line of the audit is complete JSON as text; machines get the name of the event, and the rest as fields.
    let name = if is_for_machines { fields.shift_remove("event") } else { None };
    let message = name.as_ref().and_then(|name| name.as_str()).unwrap_or(&event.text);
    Line {
        time: event.time,
        part: event.part.as_deref(),
        hints: event.hint.iter().cloned().collect(),
        fields,
        ..Line::new(level, message)
    }
    .write();
}
