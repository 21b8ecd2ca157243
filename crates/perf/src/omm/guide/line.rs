//! A command line during translation. If an option is given twice, once in the guide's spelling, the last one counts.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Args, Command};

use crate::omm::options::{ConsumerArgs, NiProviderArgs, ProviderArgs, TransportPerfArgs};
use crate::omm::tool::Tool;

/// Options that combine when given several times.
const CUMULATIVE: &[&str] = &["tls-version"];

/// The arguments of one tool.
pub(super) struct Line {
    /// The options that the tool has.
    options: Command,
    given: Vec<Given>,
}

/// An option with its value, or another word.
struct Given {
    /// The option's name, without dashes.
    option: Option<String>,
    words: Vec<OsString>,
    /// Whether it was in the guide's spelling.
    is_guides: bool,
}

/// The options of a tool.
pub(super) fn options(tool: Tool) -> Command {
    let command = Command::new("tool");
    match tool {
        Tool::Consumer => ConsumerArgs::augment_args(command),
        Tool::Provider => ProviderArgs::augment_args(command),
        Tool::NiProvider => NiProviderArgs::augment_args(command),
        Tool::Transport => TransportPerfArgs::augment_args(command),
    }
}

impl Line {
    pub(super) fn new(tool: Tool) -> Self {
        Self { options: options(tool), given: Vec::new() }
    }

    /// Finds the option with this name or alias: its name, and whether its value is the next word.
    pub(super) fn option(&self, name: &str) -> Option<(&str, bool)> {
        let is_it = |arg: &&Arg| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(name) || aliases.contains(&name)
        };
        let arg = self.options.get_arguments().find(is_it)?;
        let has_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        Some((arg.get_long()?, has_value && !arg.is_require_equals_set()))
    }

    /// Adds a word that is not an option of the tool.
    pub(super) fn word(&mut self, word: OsString) {
        self.given.push(Given { option: None, words: vec![word], is_guides: false });
    }

    /// Adds an option in Tapeline's spelling, with its value.
    pub(super) fn plain(&mut self, option: &str, words: Vec<OsString>) {
        self.forget(option, |given| given.is_guides);
        self.given.push(Given { option: Some(option.to_owned()), words, is_guides: false });
    }

    /// Adds an option of the guide, in Tapeline's spelling without dashes: `item-count=5`.
    pub(super) fn guides(&mut self, text: &str) {
        let option = text.split_once('=').map_or(text, |(option, _)| option);
        self.forget(option, |_| true);
        let words = vec![format!("--{text}").into()];
        self.given.push(Given { option: Some(option.to_owned()), words, is_guides: true });
    }

    /// Removes a given option.
    pub(super) fn withdraw(&mut self, option: &str) {
        self.given.retain(|given| given.option.as_deref() != Some(option));
    }

    pub(super) fn has(&self, option: &str) -> bool {
        self.given.iter().any(|given| given.option.as_deref() == Some(option))
    }

    pub(super) fn has_word(&self, word: &str) -> bool {
        self.given.iter().any(|given| given.option.is_none() && given.words.iter().any(|it| it == word))
    }

    /// The value of an option in Tapeline's spelling; the last one if there are several.
    pub(super) fn value(&self, option: &str) -> Option<&str> {
        let given = self.given.iter().rev().find(|given| given.option.as_deref() == Some(option))?;
        match given.words.as_slice() {
            [_, value] => value.to_str(),
            [word] => word.to_str()?.split_once('=').map(|(_, value)| value),
            _ => None,
        }
    }

    /// All words in order.
    pub(super) fn words(self) -> impl Iterator<Item = OsString> {
        self.given.into_iter().flat_map(|given| given.words)
    }

    fn forget(&mut self, option: &str, which: impl Fn(&Given) -> bool) {
        if !CUMULATIVE.contains(&option) {
            self.given.retain(|given| given.option.as_deref() != Some(option) || !which(given));
        }
    }
}
