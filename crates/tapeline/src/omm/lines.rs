//! The standard output of a program: one event a line, as text or as JSON.

use std::fmt::{self, Write as _};
use std::io::{BufWriter, IsTerminal, Write};

use anyhow::Context;
use clap::ValueEnum;
use serde_json::{Map, Value as Json};
use tapeline_omm::Dictionary;
use tapeline_omm::rwf::{Container, MessageView};
use tapeline_wire::rssl::Negotiated;

use super::shown;

/// How events are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineFormat {
    /// Text, for people
    Text,
    /// One JSON object a line
    Json,
}

/// Standard output. An error is stored until the next `flush`, since event handlers cannot return it.
pub(crate) struct Lines {
    is_json: bool,
    out: BufWriter<std::io::Stdout>,
    failed: Option<std::io::Error>,
}

impl Lines {
    /// Uses the requested format; without one, text on a terminal and JSON in a pipe.
    pub(crate) fn new(format: Option<LineFormat>) -> Self {
        let is_json = match format {
            Some(format) => format == LineFormat::Json,
            None => !std::io::stdout().is_terminal(),
        };
        Self { is_json, out: BufWriter::new(std::io::stdout()), failed: None }
    }

    /// Prints an open connection: the server, if this side connected, and the negotiated settings.
    pub(crate) fn connected(&mut self, server: &str, agreed: &Negotiated) {
        let mut members: Vec<(&str, Json)> = Vec::new();
        if !server.is_empty() {
            members.push(("server", server.into()));
        }
        members.extend([
            ("peer", agreed.peer_version.as_str().into()),
            ("compression", format!("{:?}", agreed.compression).to_lowercase().into()),
            ("ping_timeout", agreed.ping_timeout.into()),
        ]);
        if let Some(websocket) = agreed.websocket {
            members.push(("websocket", format!("{websocket:?}").into()));
        }
        self.event("connected", &members);
    }

    /// Prints an event with its figures and texts.
    pub(crate) fn event(&mut self, name: &str, members: &[(&str, Json)]) {
        if self.is_json {
            let mut line = Map::new();
            line.insert("event".into(), name.into());
            line.extend(members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
            return self.text(Json::from(line));
        }
        let mut text = name.to_owned();
        for (key, value) in members {
            let _ = match value {
                Json::String(value) => write!(text, "  {key} {}", value.escape_debug()),
                value => write!(text, "  {key} {value}"),
            };
        }
        self.text(&text);
    }

    pub(crate) fn message(&mut self, item: &str, message: &MessageView<'_>, dictionary: &Dictionary) {
        if self.is_json {
            let mut line = Map::new();
            // First, as people who read JSON expect them.
            line.insert("event".into(), Json::Null);
            line.insert("item".into(), item.into());
            shown::describe(&mut line, message, dictionary);
            return self.text(Json::from(line));
        }
        let mut text = format!("{}  {}", item.escape_debug(), message.class());
        if let Ok(header) = message.header()
            && let Some(state) = header.state()
        {
            let _ = write!(text, "  {state}");
            if let Some(name) = shown::redirected(&header).and_then(|key| key.name) {
                let _ = write!(text, "  to {}", name.escape_ascii());
            }
        }
        let _ = match message.open() {
            Ok(Container::NoData) => Ok(()),
            Ok(Container::FieldList(list)) => write!(text, "  {}", list.render(dictionary)),
            Ok(Container::Map(map)) => write!(text, "  {}", map.render(dictionary)),
            Ok(container) => {
                write!(text, "  {}", container.outline(dictionary).to_string().replace('\n', " "))
            }
            Err(fault) => write!(text, "  <{fault}>"),
        };
        self.text(&text);
    }

    /// Writes out buffered lines. Call it before each wait, so that a reader gets every line.
    ///
    /// # Errors
    /// The first error of any line since the last call.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        let flushed = self.out.flush();
        match self.failed.take() {
            Some(cause) => Err(cause),
            None => flushed,
        }
        .context("cannot write to standard output")
    }

    fn text(&mut self, line: impl fmt::Display) {
        if self.failed.is_none() {
            self.failed = writeln!(self.out, "{line}").err();
        }
    }
}
