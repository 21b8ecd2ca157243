//! Commands at run time: one a line, from standard input.

use std::io::{BufRead, Read};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use tapeline_console::near::nearest;
use tapeline_console::{Hinted, arguments};
use tapeline_measure::Nanos;

/// The commands, as `help` prints them.
pub(super) const HELP: &str = "\
open ITEM…               request items, with the settings of the command line
snapshot ITEM…           request only the images of items
close ITEM…              close items
refresh ITEM…            request new images of items
view ITEM FIELD,FIELD…   request only these fields of an item; * means all fields
pause ITEM…              pause the updates of items
resume ITEM…             resume the updates of items, after a new image
post ITEM FIELD=VALUE,…  post fields to an item
generic ITEM TEXT        send a generic message on the stream of an item
list                     show the state of each item
wait [DURATION]          wait for this time; without a time, until every item has its image and the number of
                         updates of --updates, and every post is acknowledged or refused
quit                     end
With close, refresh, view, pause and resume, the item * means every open item. A line that begins with # is a comment.";

const WORDS: [&str; 14] = [
    "open", "snapshot", "close", "refresh", "view", "pause", "resume", "post", "generic", "list", "wait",
    "help", "quit", "exit",
];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum WatchCommand {
    Open { items: Vec<String>, is_snapshot: bool },
    Change(Vec<String>, Change),
    Post { item: String, fields: Vec<String> },
    Generic { item: String, text: String },
    List,
    Wait(Option<Duration>),
    Help,
    Quit,
}

/// A change to open items.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    Close,
    Refresh,
    Pause,
    Resume,
    /// Fields by name; an empty list means all.
    View(Vec<String>),
}

impl WatchCommand {
    /// Parses a line; `None` if it is empty or a comment.
    ///
    /// # Errors
    /// The line is no command, or an argument is missing.
    pub(super) fn parse(line: &str) -> anyhow::Result<Option<Self>> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let (first, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let (first, behind) = (first.to_owned(), behind.trim());
        let items = || -> Vec<String> { rest.split_whitespace().map(str::to_owned).collect() };
        let list = || behind.split(',').map(|one| one.trim().to_owned()).collect();
        let command = match word {
            "list" => Self::List,
            "help" => Self::Help,
            "quit" | "exit" => Self::Quit,
            "wait" if rest.is_empty() => Self::Wait(None),
            "wait" => {
                Self::Wait(Some(arguments::some_duration(rest).map_err(|fault| Hinted::new(fault, ""))?))
            }
            "post" | "generic" | "view" if behind.is_empty() => {
                let what = match word {
                    "post" => "ITEM FIELD=VALUE, such as post IBM.N BID=39.91",
                    "generic" => "ITEM TEXT",
                    _ => "ITEM FIELD,FIELD, such as view IBM.N BID,ASK",
                };
                return Err(Hinted::new(format!("{word} needs {what}"), "").into());
            }
            "post" => Self::Post { item: first, fields: list() },
            "generic" => Self::Generic { item: first, text: behind.to_owned() },
            "view" if behind == "*" => Self::Change(vec![first], Change::View(Vec::new())),
            "view" => Self::Change(vec![first], Change::View(list())),
            _ if WORDS.contains(&word) && rest.is_empty() => {
                return Err(Hinted::new(format!("{word} needs an item"), "").into());
            }
            "open" | "snapshot" => Self::Open { items: items(), is_snapshot: word == "snapshot" },
            "close" => Self::Change(items(), Change::Close),
            "refresh" => Self::Change(items(), Change::Refresh),
            "pause" => Self::Change(items(), Change::Pause),
            "resume" => Self::Change(items(), Change::Resume),
            _ => {
                let hint = match nearest(word, &WORDS) {
                    Some(near) => format!("there is {near}"),
                    None => "help lists them".to_owned(),
                };
                return Err(Hinted::new(format!("'{word}' is not a command"), hint).into());
            }
        };
        Ok(Some(command))
    }
}

/// The condition for reading the next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Until(Nanos),
    /// Every request is answered.
    Settled,
}

/// Lines of standard input, read by a thread.
#[derive(Debug)]
pub(super) struct Commands {
    lines: Receiver<String>,
    wait: Option<Wait>,
    /// The input has ended and all lines have been read.
    pub(super) is_over: bool,
}

/// Maximum length of a line, in bytes.
const LONGEST: u64 = 1 << 20;
/// Maximum number of queued lines, so that a long script takes no memory.
const AHEAD: usize = 64;

impl Commands {
    /// Starts to read. `wake` is called for every line and at the end of input.
    pub(super) fn begin(wake: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let (told, lines) = sync_channel(AHEAD);
        std::thread::Builder::new().name("commands".to_owned()).spawn(move || {
            let mut input = std::io::stdin().lock();
            let mut line = String::new();
            while input.by_ref().take(LONGEST).read_line(&mut line).is_ok_and(|count| count > 0) {
                if told.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
                wake();
            }
            drop(told);
            wake();
        })?;
        Ok(Self { lines, wait: None, is_over: false })
    }

    /// The next line, unless a wait is active. `is_settled`: every request is answered.
    pub(super) fn next(&mut self, now: Nanos, is_settled: bool) -> Option<String> {
        match self.wait {
            Some(Wait::Until(time)) if now < time => return None,
            Some(Wait::Settled) if !is_settled => return None,
            _ => self.wait = None,
        }
        match self.lines.try_recv() {
            Ok(line) => Some(line),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.is_over = true;
                None
            }
        }
    }

    /// Returns no line for `duration`, or until every request is answered.
    pub(super) fn wait(&mut self, now: Nanos, duration: Option<Duration>) {
        let until = |duration: Duration| Wait::Until(now + duration.as_nanos() as u64);
        self.wait = Some(duration.map_or(Wait::Settled, until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn lines_are_commands() {
        let items = words(&["A", "B.N"]);
        for (line, command) in [
            ("open A B.N", WatchCommand::Open { items: items.clone(), is_snapshot: false }),
            ("  snapshot\tA  B.N ", WatchCommand::Open { items: items.clone(), is_snapshot: true }),
            ("close A B.N", WatchCommand::Change(items.clone(), Change::Close)),
            ("pause *", WatchCommand::Change(words(&["*"]), Change::Pause)),
            ("view A BID, ASK", WatchCommand::Change(words(&["A"]), Change::View(words(&["BID", "ASK"])))),
            ("view A *", WatchCommand::Change(words(&["A"]), Change::View(Vec::new()))),
            ("post A BID=1,ASK=", WatchCommand::Post { item: "A".into(), fields: words(&["BID=1", "ASK="]) }),
            (
                "generic A who is there",
                WatchCommand::Generic { item: "A".into(), text: "who is there".into() },
            ),
            ("wait", WatchCommand::Wait(None)),
            ("wait 2s", WatchCommand::Wait(Some(Duration::from_secs(2)))),
            ("exit", WatchCommand::Quit),
        ] {
            assert_eq!(WatchCommand::parse(line).unwrap(), Some(command), "{line}");
        }
        assert_eq!(
            (WatchCommand::parse("").unwrap(), WatchCommand::parse(" # open A").unwrap()),
            (None, None)
        );
    }

    #[test]
    fn what_is_no_command_is_said() {
        for (line, said) in [
            ("clsoe A", "'clsoe' is not a command"),
            ("close", "close needs an item"),
            ("view A", "view needs ITEM FIELD"),
            ("post A", "post needs ITEM FIELD=VALUE"),
            ("wait soon", "soon"),
        ] {
            let error = WatchCommand::parse(line).unwrap_err();
            assert!(error.to_string().contains(said), "{line}: {error}");
        }
        let error = WatchCommand::parse("clsoe A").unwrap_err();
        assert_eq!(error.downcast_ref::<Hinted>().unwrap().hint(), "there is close");
    }

    #[test]
    fn help_tells_all_of_them() {
        for word in WORDS.iter().filter(|word| !["help", "exit"].contains(word)) {
            assert!(HELP.lines().any(|line| line.starts_with(word)), "{word}");
        }
    }
}
