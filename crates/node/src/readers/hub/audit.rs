//! The audit: a line for each login, refused login, denied item and disconnect, and for the first refused items of a second.
//!
//! A thread of its own writes the lines from a bounded queue. A full disk or a blocked terminal costs lines,
//! which are counted and reported, and never the hub's time.

use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use serde_json::{Map, Value};
use tapeline_hub::{HubEvent, Peer, SessionId, Who};
use tapeline_measure::Nanos;

use crate::Error;
use crate::access::AuditTo;
use crate::error::Context;
use crate::events::{Event, Events, Kind, Severity, Utc};

/// Maximum number of lines queued for the writer: a few MB at most.
const MOST_WAITING: usize = 10_000;
/// How long a hub that ends waits for its last lines to be written.
const LAST_LINES: Duration = Duration::from_secs(2);

/// The lines of one hub.
#[derive(Debug)]
pub(super) struct Audit {
    lines: SyncSender<Event>,
    shared: Arc<Shared>,
    is_json: bool,
    /// Carries no messages: it disconnects when the writer ends.
    written: Receiver<()>,
    events: Events,
}

#[derive(Debug, Default)]
struct Shared {
    /// Lines that did not fit in the queue or could not be written, since the last report of lost lines.
    lost: AtomicU64,
    /// The file must be reopened.
    reopen: AtomicBool,
}

impl Audit {
    /// Opens the file and starts the writer thread.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(super) fn start(to: &AuditTo, events: &Events) -> crate::Result<Self> {
        let sink = match to {
            AuditTo::File(path) => {
                let hint = "audit = \"-\" in [hub.access] writes to standard error";
                let what = || Error::hinted(format!("cannot write the audit to {}", path.display()), hint);
                Sink::File { file: Some(open(path).with_context(what)?), path: path.clone() }
            }
            AuditTo::Talk | AuditTo::Stderr => Sink::Events,
        };
        let (lines, waiting) = sync_channel(MOST_WAITING);
        let (writes, written) = sync_channel(0);
        let shared = Arc::<Shared>::default();
        let writer = Writer {
            sink,
            shared: Arc::clone(&shared),
            is_json: *to != AuditTo::Talk,
            has_failed: false,
            events: events.clone(),
        };
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                let _writes: SyncSender<()> = writes;
                writer.write(&waiting);
            })
            .context("cannot start the audit's thread")?;
        let events = events.clone();
        Ok(Self { lines, shared, is_json: *to != AuditTo::Talk, written, events })
    }

    /// Queues a line, or counts it as lost.
    pub(super) fn note(&self, now: Nanos, note: &HubEvent) {
        if self.is_json {
            json(now, note).into_iter().for_each(|line| self.line(line.event()));
        } else if let Some((kind, line)) = talk(note) {
            for event in self.events.of_peer(now, kind, Severity::Info, line) {
                // The count of lines that were left out has fields of its own.
                let is_count = !event.fields.is_empty();
                let of_note = json(now, note).filter(|_| !is_count).map(Line::fields);
                self.line(match of_note {
                    Some(fields) => Event { fields, ..event },
                    None => event,
                });
            }
        }
    }

    /// The access rules were read again. `is_set`: the new rules apply.
    pub(super) fn read_again(&self, now: Nanos, is_set: bool) {
        if self.is_json {
            let event = if is_set { "rules read" } else { "rules kept" };
            self.line(Line::at(now, event).event());
        }
    }

    /// A connection ended before it became a session.
    pub(super) fn never_opened(&self, now: Nanos, address: Option<SocketAddr>, why: &str) {
        if self.is_json {
            self.line(Line::at(now, "never opened").with_address(address).with("why", why).event());
        } else {
            let from = address.map_or("an unknown address".to_owned(), |address| address.to_string());
            let line = format_args!("hub: a connection from {from} never opened: {}", why.escape_debug());
            let events = self.events.of_peer(now, Kind::NeverOpened, Severity::Info, line);
            events.for_each(|event| self.line(event));
        }
    }

    /// `count` more connections without lines of their own, summed up for the reason `why`.
    pub(super) fn more_never_opened(&self, now: Nanos, count: u64, why: &str) {
        self.line(if self.is_json {
            Line::at(now, "never opened").with("why", why).with("connections", count).event()
        } else {
            // At most two of these lines occur in a second, so the rate limit does not apply to them.
            let text = format_args!("hub: {count} more connections never opened: {why}");
            Event { time: Some(now), ..Event::new(Severity::Info, text) }
        });
    }

    fn line(&self, line: Event) {
        if self.lines.try_send(line).is_err() {
            // Relaxed: a counter, which orders nothing.
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// From the next line on, the writer uses the file that has the name then: the old one was moved.
    pub(super) fn reopen(&self) {
        // Relaxed: any line may be the first in the new file, and none is lost.
        self.shared.reopen.store(true, Ordering::Relaxed);
    }

    /// The last line was queued: waits for a limited time until it is written.
    pub(super) fn end(self) {
        drop(self.lines);
        let _: Result<(), RecvTimeoutError> = self.written.recv_timeout(LAST_LINES);
    }
}

/// The destination of lines.
#[derive(Debug)]
enum Sink {
    Events,
    File {
        path: PathBuf,
        /// `None` while it cannot be opened.
        file: Option<File>,
    },
}

#[derive(Debug)]
struct Writer {
    sink: Sink,
    shared: Arc<Shared>,
    is_json: bool,
    has_failed: bool,
    events: Events,
}

/// Opens a file for appending. A new file is readable by its owner only.
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

impl Writer {
    fn write(mut self, lines: &Receiver<Event>) {
        for line in lines {
            // Before the line, so that the report stands where the lines are missing.
            let lost = self.shared.lost.swap(0, Ordering::Relaxed);
            if lost > 0 && !self.put(&self.lost_line(lost)) {
                self.shared.lost.fetch_add(lost, Ordering::Relaxed);
            }
            if !self.put(&line) {
                self.shared.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
        let lost = self.shared.lost.load(Ordering::Relaxed);
        if lost > 0 && !self.put(&self.lost_line(lost)) {
            self.events.warning(format_args!("{lost} lines of the audit could not be written"));
        }
    }

    fn lost_line(&self, lost: u64) -> Event {
        if self.is_json {
            Line::default().with("event", "lost").with("lines", lost).event()
        } else {
            let text =
                format!("hub: {lost} lines like these are missing here: they could not be written in time");
            Event::new(Severity::Info, text)
        }
    }

    /// Writes a line. Returns whether it was written.
    fn put(&mut self, line: &Event) -> bool {
        let is_new = self.shared.reopen.swap(false, Ordering::Relaxed);
        let written = match &mut self.sink {
            Sink::Events => {
                self.events.report(line);
                Ok(())
            }
            Sink::File { path, file } => {
                let opened = match file.take().filter(|_| !is_new) {
                    Some(file) => Ok(file),
                    None => open(path),
                };
                opened.and_then(|opened| file.insert(opened).write_all(format!("{}\n", line.text).as_bytes()))
            }
        };
        match (&written, &self.sink, self.has_failed) {
            (Err(error), Sink::File { path, .. }, false) => {
                self.events
                    .warning(format_args!("the audit cannot be written to {}: {error}", path.display()));
            }
            (Ok(()), Sink::File { path, .. }, true) => {
                self.events.note(format_args!("the audit is written to {} again", path.display()));
            }
            _ => {}
        }
        self.has_failed = written.is_err();
        written.is_ok()
    }
}

/// A line of JSON: its members in order.
#[derive(Debug, Default)]
struct Line(Map<String, Value>);

impl Line {
    /// A line of this time, in UTC to the microsecond. A time outside the calendar's range is left out.
    fn at(now: Nanos, event: &str) -> Self {
        Self::default().with_text("time", &Utc(now).to_string()).with("event", event)
    }

    /// A line about a session.
    fn of(now: Nanos, event: &str, session: SessionId, peer: &Peer, user: &str) -> Self {
        let line = Self::at(now, event).with("session", session.index()).with_address(peer.address);
        line.with("encrypted", peer.is_encrypted).with("user", user)
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a text, unless it is empty.
    fn with_text(self, name: &str, text: &str) -> Self {
        if text.is_empty() { self } else { self.with(name, text) }
    }

    fn with_address(self, address: Option<SocketAddr>) -> Self {
        self.with_text("address", &address.map_or_else(String::new, |address| address.to_string()))
    }

    fn with_who(self, who: &Who) -> Self {
        let line = self.with_text("application", &who.application_id);
        line.with_text("application_name", &who.application_name).with_text("position", &who.position)
    }

    /// The fields of an event with this line's text for people, which has a time.
    fn fields(mut self) -> Map<String, Value> {
        self.0.shift_remove("time");
        self.0.shift_remove("event");
        self.0
    }

    /// An event whose text is this line.
    fn event(self) -> Event {
        let fields = self.0.clone();
        let mut text = Value::Object(self.0).to_string();
        // The line contains text from clients: it must not move a terminal's cursor or reverse its text.
        if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            text = ascii(&text);
        }
        Event { fields, time: None, ..Event::new(Severity::Info, text) }
    }
}

fn json(now: Nanos, note: &HubEvent) -> Option<Line> {
    Some(match note {
        HubEvent::Login { session, peer, user, who } => {
            Line::of(now, "login", *session, peer, user).with_who(who)
        }
        HubEvent::Refused { session, peer, user, who, why } => {
            Line::of(now, "login refused", *session, peer, user).with_who(who).with("why", *why)
        }
        HubEvent::Denied { session, peer, user, service, domain, name, why } => {
            let line = Line::of(now, "denied", *session, peer, user).with_text("service", service);
            line.with("domain", domain.to_string()).with("item", name.as_str()).with("why", *why)
        }
        HubEvent::ItemRefused { session, peer, user, service, domain, name, why } => {
            let line = Line::of(now, "item refused", *session, peer, user).with_text("service", service);
            line.with("domain", domain.to_string()).with("item", name.as_str()).with("why", *why)
        }
        HubEvent::MoreItemsRefused { session, peer, user, items } => {
            Line::of(now, "item refused", *session, peer, user).with("items", *items)
        }
        HubEvent::Gone { session, peer, user, end, counters } => {
            let line = Line::of(now, "gone", *session, peer, user).with("why", end.to_string());
            let line = line.with("requests", counters.requests).with("refused", counters.refused);
            let line = line.with("refreshes", counters.refreshes).with("updates", counters.updates);
            line.with("conflated", counters.conflated).with("dropped", counters.dropped)
        }
        _ => return None,
    })
}

/// A line for people, with its kind for the rate limit.
fn talk(note: &HubEvent) -> Option<(Kind, String)> {
    let (kind, session, peer, what) = match note {
        HubEvent::Login { session, peer, user, .. } => {
            (Kind::Login, session, peer, format!("login {}", user.escape_debug()))
        }
        HubEvent::Gone { session, peer, user, end, counters } => {
            let what = format!(
                "gone {}: {end}; {} requests, {} refreshes, {} updates, {} conflated, {} dropped",
                user.escape_debug(),
                counters.requests,
                counters.refreshes,
                counters.updates,
                counters.conflated,
                counters.dropped
            );
            (Kind::Gone, session, peer, what)
        }
        HubEvent::Refused { session, peer, user, why, .. } => {
            (Kind::Refused, session, peer, format!("refused {}: {why}", user.escape_debug()))
        }
        HubEvent::Denied { session, peer, user, name, why, .. } => {
            let (user, name) = (user.escape_debug(), name.escape_debug());
            (Kind::Denied, session, peer, format!("denied {user}: {name}: {why}"))
        }
        HubEvent::ItemRefused { session, peer, user, service, name, why, .. } => {
            let [user, service, name] = [user, service, name].map(|text| text.escape_debug());
            (Kind::ItemRefused, session, peer, format!("item refused {user}: {name} of {service}: {why}"))
        }
        HubEvent::MoreItemsRefused { session, peer, user, items } => {
            let what = format!("item refused {}: and {items} others", user.escape_debug());
            (Kind::ItemRefused, session, peer, what)
        }
        _ => return None,
    };
    let address = peer.address.map(|address| format!(" ({address})")).unwrap_or_default();
    Some((kind, format!("hub: session {}{address} {what}", session.index())))
}

/// Escapes everything in JSON that is not printable ASCII; it occurs only in strings.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 16);
    let mut units = [0; 2];
    for c in json.chars() {
        if matches!(c, ' '..='~') {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_say_is_escaped_and_can_be_read_back() {
        let user = "a\"b\\\n\u{1b}[2J\u{9b}\u{202e}é😀\u{7f}";
        let line = Line::at(Nanos(1_800_000_000_123_456_789), "login").with("user", user).event().text;
        assert!(line.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{line:?}");
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (read["user"].as_str(), read["time"].as_str()),
            (Some(user), Some("2027-01-15T08:00:00.123456Z"))
        );
    }

    #[test]
    fn a_file_is_appended_to_opened_anew_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let read = || std::fs::read_to_string(&path).unwrap();
        let start = |path: &str| Audit::start(&AuditTo::File(folder.path().join(path)), &Events::default());
        std::fs::write(&path, "before\n").unwrap();
        let audit = start("audit.jsonl").unwrap();
        audit.read_again(Nanos(0), true);
        audit.end();
        assert_eq!(read(), "before\n{\"time\":\"1970-01-01T00:00:00.000000Z\",\"event\":\"rules read\"}\n");
        let audit = start("audit.jsonl").unwrap();
        std::fs::rename(&path, folder.path().join("audit.1")).unwrap();
        audit.reopen();
        audit.read_again(Nanos(0), false);
        audit.end();
        assert!(read().contains("rules kept"));
        assert!(start("none/audit").is_err());
        // A full disk: each line is counted as lost, and no line is waited for.
        let audit = start("/dev/full").unwrap();
        let shared = Arc::clone(&audit.shared);
        (0..100).for_each(|_| audit.read_again(Nanos(0), true));
        drop(audit.lines);
        assert!(audit.written.recv().is_err(), "the writer has ended");
        assert_eq!(shared.lost.load(Ordering::Relaxed), 100);
    }
}
