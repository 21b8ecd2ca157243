//! `tapeline omm decode`: shows what bytes say.

mod input;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::Map;
use tapeline_omm::Dictionary;
use tapeline_omm::rwf::{Container, DataType, MessageView, SetDefinitions};

use self::input::Piece;
use super::dictionaries::DictionaryArgs;
use super::lines::LineFormat;
use super::shown;
use crate::near::nearest;
use crate::output;

/// Show messages of bytes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline omm decode 00090406000000030004010800... a message in hexadecimal\n  \
    tapeline omm decode message.bin --format json       a file, as JSON\n  \
    xxd -p message.bin | tapeline omm decode            the same from a pipe\n  \
    tapeline omm decode --lines messages.hex --dictionary RDMFieldDictionary --enums enumtype.def\n  \
    tapeline omm decode --type field-list 08000100160...")]
pub(crate) struct DecodeArgs {
    /// Bytes in hexadecimal, or a file of bytes or of hexadecimal text; standard input if not said
    #[arg(value_name = "HEX|FILE")]
    input: Vec<String>,
    /// What the bytes are: a message, or a container such as field-list or map
    #[arg(long = "type", value_name = "TYPE", default_value = "msg", value_parser = container)]
    data_type: DataType,
    /// Each line of hexadecimal text is one of its own; otherwise empty lines separate them
    #[arg(long)]
    lines: bool,
    #[command(flatten)]
    dictionary: DictionaryArgs,
    /// How to print; text if not said
    #[arg(long, value_enum, default_value = "text")]
    format: LineFormat,
}

impl DecodeArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let dictionary = self.dictionary.load()?;
        let mut pieces = Vec::new();
        if self.input.is_empty() {
            pieces.extend(input::standard_input(self.lines)?);
        }
        for word in &self.input {
            let path = PathBuf::from(word);
            if path.exists() {
                pieces.extend(input::file(&path, self.lines)?);
            } else {
                pieces.push(input::word(word)?);
            }
        }
        let mut is_good = true;
        for piece in &pieces {
            is_good &= self.show(piece, &dictionary)?;
        }
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Whether the bytes were what they were said to be.
    fn show(&self, piece: &Piece, dictionary: &Dictionary) -> anyhow::Result<bool> {
        let opened = if self.data_type == DataType::MSG {
            MessageView::parse(&piece.bytes).and_then(|message| {
                message.header()?;
                message.open()?;
                Ok(Container::Message(message))
            })
        } else {
            Container::parse(self.data_type, &piece.bytes, &SetDefinitions::NONE)
        };
        let container = match opened {
            Ok(container) => container,
            Err(fault) => {
                let (place, count) = (&piece.place, piece.bytes.len());
                anstream::eprintln!("error: {place}: {fault}, of {count} bytes of a {}", self.data_type);
                return Ok(false);
            }
        };
        if self.format == LineFormat::Json {
            let mut line = Map::new();
            match &container {
                Container::Message(message) => {
                    line.insert("event".into(), "".into());
                    line.insert("stream_id".into(), message.stream_id().into());
                    shown::describe(&mut line, message, dictionary);
                }
                container => shown::carry(&mut line, container, dictionary),
            }
            output::print_json_line(&line)?;
        } else {
            output::print(&container.outline(dictionary).to_string())?;
        }
        Ok(true)
    }
}

/// The name of a container, in any case, with hyphens or underscores: a value parser for clap.
fn container(text: &str) -> Result<DataType, String> {
    let wanted = text.replace('-', "_").to_ascii_uppercase();
    let all = || (130..=142).map(DataType).filter_map(|data_type| Some((data_type, data_type.name()?)));
    if let Some((data_type, _)) = all().find(|(_, name)| *name == wanted) {
        return Ok(data_type);
    }
    let names: Vec<&str> = all().map(|(_, name)| name).collect();
    let near = nearest(&wanted, &names).map(|near| format!("; there is {near}")).unwrap_or_default();
    Err(format!("'{text}' is no container, such as msg, field-list, element-list or map{near}"))
}
