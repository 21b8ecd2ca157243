//! `tapeline omm decode`: decodes bytes to messages.

mod captured;
mod input;
mod streams;
mod texts;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use serde_json::{Map, Value as Json};
use tapeline_console::near::nearest;
use tapeline_console::omm::dictionaries::DictionaryArgs;
use tapeline_console::output;
use tapeline_feed::capture::{self, Recording};
use tapeline_omm::Dictionary;
use tapeline_omm::rwf::{Container, DataType, MessageView, SetDefinitions};

use self::captured::Sent;
use self::input::{Content, Found, Piece};
use self::texts::{Names, Said};
use super::lines::LineFormat;
use super::shown;

/// Decode messages from hexadecimal text, JSON or files.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline omm decode 00090406000000030004010800... a message in hexadecimal\n  \
    tapeline omm decode message.bin --format json       a file, as JSON\n  \
    xxd -p message.bin | tapeline omm decode            the same from a pipe\n  \
    tapeline omm decode --lines messages.hex --dictionary RDMFieldDictionary --enums enumtype.def\n  \
    tapeline omm decode --type field-list 08000100160...\n  \
    tapeline omm decode '{\"ID\":2,\"Key\":{\"Name\":\"A\"}}'    JSON of the WebSocket API, as a message\n  \
    tapeline omm decode connection.pcap                 all messages of the RSSL connections in a capture")]
pub(crate) struct DecodeArgs {
    /// Hexadecimal bytes, JSON, or a file: bytes, hexadecimal text, JSON or a capture (pcap, pcapng) [default: standard input]
    #[arg(value_name = "HEX|FILE")]
    input: Vec<String>,
    /// Type of the bytes: a message, or a container such as field-list or map
    #[arg(long = "type", value_name = "TYPE", default_value = "msg", value_parser = container)]
    data_type: DataType,
    /// Decode each line of text separately; without it, an empty line ends a block of hexadecimal digits
    #[arg(long)]
    lines: bool,
    #[command(flatten)]
    dictionary: DictionaryArgs,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: LineFormat,
}

impl DecodeArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let decoder = Decoder { args: self, dictionary: self.dictionary.load()?, names: Names::default() };
        let mut is_good = true;
        if self.input.is_empty() {
            is_good &= decoder.show(&input::standard_input(self.lines)?)?;
        }
        for word in &self.input {
            let path = PathBuf::from(word);
            let found = match path.exists() {
                true => input::file(&path, self.lines)?,
                false => Found::Pieces(vec![input::word(word)?]),
            };
            is_good &= decoder.show(&found)?;
        }
        for (id, name) in decoder.names.all() {
            anstream::eprintln!(
                "note: JSON has names of services where RWF has numbers: {id} stands for {name}"
            );
        }
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// What the decoding of all inputs shares.
struct Decoder<'a> {
    args: &'a DecodeArgs,
    dictionary: Arc<Dictionary>,
    names: Names,
}

impl Decoder<'_> {
    /// Shows an input; returns whether all of it could be read.
    fn show(&self, found: &Found) -> anyhow::Result<bool> {
        let pieces = match found {
            Found::Pieces(pieces) => pieces,
            Found::Capture(source, bytes) => return self.show_capture(source, bytes),
        };
        let mut is_good = true;
        for piece in pieces {
            is_good &= match &piece.content {
                Content::Bytes(bytes) => self.show_bytes(piece, bytes)?,
                Content::Text(text) => self.show_text(piece, text)?,
            };
        }
        Ok(is_good)
    }

    /// Shows a capture; returns whether every connection could be followed to its end.
    fn show_capture(&self, source: &str, bytes: &[u8]) -> anyhow::Result<bool> {
        let recording = capture::open(bytes).with_context(|| format!("cannot read {source}"))?;
        let Recording::Datagrams(mut capture) = recording else {
            anyhow::bail!("{source} is not a packet capture");
        };
        let streams = streams::streams(&mut capture)?;
        let (sent, lost) = captured::messages(&streams);
        for message in &sent {
            self.show_sent(message)?;
        }
        if sent.is_empty() && lost.is_empty() {
            anstream::eprintln!("note: there is no connection over TCP in {source}");
        }
        for lost in &lost {
            anstream::eprintln!("note: {lost}");
        }
        Ok(lost.is_empty() && !sent.is_empty())
    }

    fn show_sent(&self, sent: &Sent) -> anyhow::Result<()> {
        let Sent { moment, source, destination, offset, is_json, bytes } = sent;
        let said = match is_json {
            true => texts::messages(&String::from_utf8_lossy(bytes), &self.dictionary, &self.names),
            false => vec![Said::Message(bytes.clone())],
        };
        for said in &said {
            if self.args.format == LineFormat::Json {
                let mut line = Map::new();
                line.insert("event".into(), "message".into());
                line.insert("packet".into(), moment.packet.into());
                line.insert("time_ns".into(), moment.time.0.into());
                line.insert("from".into(), source.to_string().into());
                line.insert("to".into(), destination.to_string().into());
                tell(&mut line, said, &self.dictionary);
                output::print_json_line(&line)?;
            } else {
                let head = format!("packet {}  {source} → {destination}  byte {offset}", moment.packet);
                output::print(&format!("{head}\n{}\n", outline(said, &self.dictionary)))?;
            }
        }
        Ok(())
    }

    /// Shows a text of JSON; returns whether all of it could be read.
    fn show_text(&self, piece: &Piece, text: &str) -> anyhow::Result<bool> {
        let mut is_good = true;
        for said in &texts::messages(text, &self.dictionary, &self.names) {
            if let Said::Fault(why) = said {
                anstream::eprintln!("error: {}: {why}", piece.place);
                is_good = false;
            } else if self.args.format == LineFormat::Json {
                let mut line = Map::new();
                line.insert("event".into(), "".into());
                tell(&mut line, said, &self.dictionary);
                output::print_json_line(&line)?;
            } else {
                output::print(&outline(said, &self.dictionary))?;
            }
        }
        Ok(is_good)
    }

    /// Shows bytes; returns whether they decode as the requested type.
    fn show_bytes(&self, piece: &Piece, bytes: &[u8]) -> anyhow::Result<bool> {
        let data_type = self.args.data_type;
        let opened = if data_type == DataType::MSG {
            MessageView::parse(bytes).and_then(|message| {
                message.header()?;
                message.open()?;
                Ok(Container::Message(message))
            })
        } else {
            Container::parse(data_type, bytes, &SetDefinitions::NONE)
        };
        let container = match opened {
            Ok(container) => container,
            Err(fault) => {
                let (place, count) = (&piece.place, bytes.len());
                anstream::eprintln!("error: {place}: {fault}, of {count} bytes of a {data_type}");
                return Ok(false);
            }
        };
        if self.args.format == LineFormat::Json {
            let mut line = Map::new();
            match &container {
                Container::Message(message) => {
                    line.insert("event".into(), "".into());
                    line.insert("stream_id".into(), message.stream_id().into());
                    shown::describe(&mut line, message, &self.dictionary);
                }
                container => shown::carry(&mut line, container, &self.dictionary),
            }
            output::print_json_line(&line)?;
        } else {
            output::print(&container.outline(&self.dictionary).to_string())?;
        }
        Ok(true)
    }
}

/// One decoded text item as members of a JSON object.
fn tell(line: &mut Map<String, Json>, said: &Said, dictionary: &Dictionary) {
    match said {
        Said::Message(bytes) => match MessageView::parse(bytes) {
            Ok(message) => {
                line.insert("stream_id".into(), message.stream_id().into());
                shown::describe(line, &message, dictionary);
            }
            Err(fault) => drop(line.insert("fault".into(), fault.to_string().into())),
        },
        Said::Ping => drop(line.insert("event".into(), "ping".into())),
        Said::Pong => drop(line.insert("event".into(), "pong".into())),
        Said::Complaint(text) => {
            line.insert("event".into(), "error".into());
            line.insert("text".into(), text.as_str().into());
        }
        Said::Fault(why) => drop(line.insert("fault".into(), why.as_str().into())),
    }
}

/// One decoded text item as lines of text.
fn outline(said: &Said, dictionary: &Dictionary) -> String {
    match said {
        Said::Message(bytes) => match MessageView::parse(bytes) {
            Ok(message) => message.outline(dictionary).to_string(),
            Err(fault) => format!("<{fault}>"),
        },
        Said::Ping => "Ping".to_owned(),
        Said::Pong => "Pong".to_owned(),
        Said::Complaint(text) => format!("Error {}", text.escape_debug()),
        Said::Fault(why) => format!("<{why}>"),
    }
}

/// Parses the name of a container, in any case, with hyphens or underscores: a value parser for clap.
fn container(text: &str) -> Result<DataType, String> {
    let wanted = text.replace('-', "_").to_ascii_uppercase();
    let all = || (130..=142).map(DataType).filter_map(|data_type| Some((data_type, data_type.name()?)));
    if let Some((data_type, _)) = all().find(|(_, name)| *name == wanted) {
        return Ok(data_type);
    }
    let names: Vec<&str> = all().map(|(_, name)| name).collect();
    let near = nearest(&wanted, &names).map(|near| format!("; there is {near}")).unwrap_or_default();
    Err(format!("'{text}' is not a container, such as msg, field-list, element-list or map{near}"))
}
