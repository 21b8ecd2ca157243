//! The log of a long-running command, on standard error: text for people, or one line a fact for machines.
//!
//! Text is what a user at a terminal reads: `warning: …`, a cause and a hint on lines of their own. A service that has
//! begun to work ([`time_each_line`]) puts the time before each line. logfmt and JSON have the time, the level, the part of
//! the program, the message, and fields. If standard error is the journal of systemd,
//! each line begins with its priority (`<4>`, see `sd-daemon(3)`), which the journal removes.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use tapeline_measure::{Nanos, utc_now};

use crate::{Hinted, failure};

/// The variable for the format if `--log` is not given.
const VARIABLE: &str = "TAPELINE_LOG";

/// The format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// Key=value pairs, one line a fact
    Logfmt,
    /// An object, one line a fact
    Json,
}

/// The option of every long-running command.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct LogArgs {
    /// Format of the log on standard error [default: text, or the variable TAPELINE_LOG]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub log: Option<LogFormat>,
}

/// How severe a line is, in the words of syslog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something ordinary happened.
    Info,
    /// Something that an operator may want to know.
    Notice,
    /// Something is wrong, and the program continues.
    Warning,
    /// Something failed.
    Error,
}

impl Level {
    /// The name in logfmt and JSON, the beginning of a line of text, and the priority of syslog.
    const fn told(self) -> (&'static str, &'static str, u8) {
        match self {
            Self::Info => ("info", "", 6),
            Self::Notice => ("notice", "note: ", 5),
            Self::Warning => ("warning", "warning: ", 4),
            Self::Error => ("error", "error: ", 3),
        }
    }
}

/// A fact for the log.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// When it happened. `None` for now, which text does not say.
    pub time: Option<Nanos>,
    /// How severe it is.
    pub level: Level,
    /// The thread or the area; `None` for the command itself.
    pub part: Option<&'a str>,
    /// What happened.
    pub message: &'a str,
    /// The causes, the nearest first.
    pub causes: Vec<String>,
    /// Advice to the operator.
    pub hints: Vec<String>,
    /// What a machine may select by.
    pub fields: Map<String, Value>,
}

/// The chosen format, and the name of the command for lines without a part.
static CHOSEN: OnceLock<(LogFormat, &'static str)> = OnceLock::new();
/// Whether each line has its time. It orders nothing else, so `Relaxed` is enough.
static IS_TIMED: AtomicBool = AtomicBool::new(false);

impl LogArgs {
    /// Chooses the format of every later line of this process. `command` is the part in lines that have no other.
    ///
    /// # Errors
    /// The variable has another value than the option may have.
    pub fn begin(self, command: &'static str) -> anyhow::Result<()> {
        let format = match (self.log, std::env::var_os(VARIABLE)) {
            (Some(format), _) => format,
            (None, None) => LogFormat::Text,
            (None, Some(value)) => LogFormat::from_str(&value.to_string_lossy(), false).map_err(|_| {
                let what = format!("{VARIABLE} is \"{}\"", value.to_string_lossy().escape_debug());
                Hinted::of_options(what, "text, logfmt or json")
            })?,
        };
        let _ = CHOSEN.set((format, command));
        Ok(())
    }
}

/// Whether each fact is one line with fields.
pub fn is_for_machines() -> bool {
    CHOSEN.get().is_some_and(|(format, _)| *format != LogFormat::Text)
}

/// Says that this process is a service that has read its configuration: every later line has its time, in text as well.
/// An operator reads the lines days later, and next to those of other hosts.
pub fn time_each_line() {
    IS_TIMED.store(true, Ordering::Relaxed);
}

/// Writes something ordinary.
pub fn info(message: impl fmt::Display) {
    Line::new(Level::Info, &message.to_string()).write();
}

/// Writes something that an operator may want to know.
pub fn note(message: impl fmt::Display) {
    Line::new(Level::Notice, &message.to_string()).write();
}

/// Writes a warning.
pub fn warning(message: impl fmt::Display) {
    Line::new(Level::Warning, &message.to_string()).write();
}

/// Writes a warning with advice.
pub fn warning_with(message: impl fmt::Display, hint: impl Into<String>) {
    Line { hints: vec![hint.into()], ..Line::new(Level::Warning, &message.to_string()) }.write();
}

/// Writes an error with its causes and hints. `spelled` rewrites a text so that it names options as the user does.
pub fn error(error: &anyhow::Error, spelled: &dyn Fn(&str) -> String) {
    let causes = error.chain().skip(1).map(|cause| spelled(&cause.to_string())).collect();
    let hints = failure::hints(error).iter().map(|hint| spelled(hint)).collect();
    Line { causes, hints, ..Line::new(Level::Error, &spelled(&error.to_string())) }.write();
}

impl<'a> Line<'a> {
    /// Creates a line of the command itself, of now.
    #[must_use]
    pub fn new(level: Level, message: &'a str) -> Self {
        Self {
            time: IS_TIMED.load(Ordering::Relaxed).then(utc_now),
            level,
            part: None,
            message,
            causes: Vec::new(),
            hints: Vec::new(),
            fields: Map::new(),
        }
    }

    /// Writes the line. A reader of the log that has gone is no reason to end.
    pub fn write(self) {
        let (format, command) = CHOSEN.get().copied().unwrap_or_default();
        let priority = is_journal().then(|| self.level.told().2);
        let text = match format {
            LogFormat::Text => self.text(),
            LogFormat::Json => json(&Value::Object(self.members(command, utc_now()))),
            LogFormat::Logfmt => logfmt(&self.members(command, utc_now())),
        };
        let mut all = String::with_capacity(text.len() + 8);
        for line in text.lines() {
            if let Some(priority) = priority {
                all.push_str(&format!("<{priority}>"));
            }
            all.push_str(line);
            all.push('\n');
        }
        // In one call, so that lines of several threads do not mix.
        let _ = anstream::stderr().lock().write_all(all.as_bytes());
    }

    fn text(&self) -> String {
        let time = self.time.map_or_else(String::new, |time| format!("{} ", Utc(time, 6)));
        let mut text = format!("{time}{}{}", self.level.told().1, self.message);
        self.causes.iter().for_each(|cause| text.push_str(&format!("\n  because: {cause}")));
        self.hints.iter().for_each(|hint| text.push_str(&format!("\nhint: {hint}")));
        text
    }

    /// The members of a line for machines. A field never replaces one of the first.
    fn members(self, command: &str, now: Nanos) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("time".to_owned(), Utc(self.time.unwrap_or(now), 3).to_string().into());
        members.insert("level".to_owned(), self.level.told().0.into());
        members.insert("part".to_owned(), self.part.unwrap_or(command).into());
        members.insert("message".to_owned(), self.message.into());
        if !self.causes.is_empty() {
            members.insert("causes".to_owned(), self.causes.into());
        }
        if !self.hints.is_empty() {
            members.insert("hint".to_owned(), self.hints.join("; ").into());
        }
        for (name, value) in self.fields {
            members.entry(name).or_insert(value);
        }
        members
    }
}

/// JSON in printable ASCII: text from clients must not move a terminal's cursor or reverse its text.
fn json(value: &Value) -> String {
    let text = value.to_string();
    let mut ascii = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => ascii.push(c),
            // Only strings have such characters.
            _ => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| ascii.push_str(&format!("\\u{unit:04x}")));
            }
        }
    }
    ascii
}

/// Pairs of logfmt. A value with a blank, a quote, an equals sign or a character beyond ASCII is quoted as in JSON.
fn logfmt(members: &Map<String, Value>) -> String {
    let pairs = members.iter().map(|(name, value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Array(texts) => {
                texts.iter().map(|text| text.as_str().unwrap_or_default()).collect::<Vec<_>>().join("; ")
            }
            other => other.to_string(),
        };
        let is_plain = |byte: u8| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b'=' | b'\\');
        match !value.is_empty() && value.bytes().all(is_plain) {
            true => format!("{name}={value}"),
            false => format!("{name}={}", json(&Value::String(value))),
        }
    });
    pairs.collect::<Vec<_>>().join(" ")
}

/// Whether standard error is the journal of systemd: `JOURNAL_STREAM` then names its device and inode.
fn is_journal() -> bool {
    static IS_JOURNAL: OnceLock<bool> = OnceLock::new();
    *IS_JOURNAL.get_or_init(|| {
        let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
        !std::io::stderr().is_terminal()
            && rustix::fs::fstat(std::io::stderr())
                .is_ok_and(|about| stream == format!("{}:{}", about.st_dev, about.st_ino))
    })
}

/// A time in RFC 3339 with so many digits of the second; empty if outside the calendar's range.
struct Utc(Nanos, usize);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(i128::from(self.0.0)) {
            Ok(time) => write!(f, "{time:.*}", self.1),
            Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Nanos = Nanos(1_800_000_000_123_456_789);

    fn line() -> Line<'static> {
        let fields = [("feed".to_owned(), "it ch".into()), ("level".to_owned(), 7.into())];
        Line {
            time: Some(AT),
            part: Some("hub"),
            hints: vec!["look".to_owned()],
            causes: vec!["a \"disk\"".to_owned()],
            fields: Map::from_iter(fields),
            ..Line::new(Level::Warning, "no\nspace")
        }
    }

    #[test]
    fn a_line_of_each_format_has_all_that_is_known_of_a_fact() {
        assert_eq!(
            line().text(),
            "2027-01-15T08:00:00.123456Z warning: no\nspace\n  because: a \"disk\"\nhint: look"
        );
        let members = line().members("plant", Nanos(1));
        assert_eq!(
            Value::Object(members.clone()).to_string(),
            r#"{"time":"2027-01-15T08:00:00.123Z","level":"warning","part":"hub","message":"no\nspace","causes":["a \"disk\""],"hint":"look","feed":"it ch"}"#
        );
        assert_eq!(
            logfmt(&members),
            r#"time=2027-01-15T08:00:00.123Z level=warning part=hub message="no\nspace" causes="a \"disk\"" hint=look feed="it ch""#
        );
    }

    #[test]
    fn what_clients_say_moves_no_cursor_and_can_be_read_back() {
        let user = "a\u{9b}2J\u{202e}\u{e9}\u{1f600}\u{7f}\u{1b}[2J";
        let line = json(&user.into());
        assert!(line.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{line:?}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), user);
    }

    #[test]
    fn a_line_without_time_and_part_is_of_the_command_and_of_now() {
        let members = Line::new(Level::Info, "").members("plant", AT);
        assert_eq!(logfmt(&members), r#"time=2027-01-15T08:00:00.123Z level=info part=plant message="""#);
    }
}
