//! A command line while it is translated. LSEG's C and C++ tools take the last of an option that is given twice; so does this,
//! where one of the two is spelled as the guide has it.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Args, Command};

use super::Tool;
use crate::omm::options::{ConsumerArgs, NiProviderArgs, ProviderArgs, TransportPerfArgs};

/// Options of which several together mean something else than the last of them.
const CUMULATIVE: &[&str] = &["tls-version"];

/// What one tool is told.
pub(super) struct Line {
    /// What the tool has.
    options: Command,
    given: Vec<Given>,
}

/// An option with its value, or a word that is neither.
struct Given {
    /// The option's name, without dashes.
    option: Option<String>,
    words: Vec<OsString>,
    /// Whether it was spelled as the guide has it.
    is_guides: bool,
}

impl Line {
    pub(super) fn new(tool: Tool) -> Self {
        let command = Command::new("tool");
        let options = match tool {
            Tool::Consumer => ConsumerArgs::augment_args(command),
            Tool::Provider => ProviderArgs::augment_args(command),
            Tool::NiProvider => NiProviderArgs::augment_args(command),
            Tool::Transport => TransportPerfArgs::augment_args(command),
        };
        Self { options, given: Vec::new() }
    }

    /// The option of this name, or of this alias: its name, and whether a value comes behind it as a word of its own.
    pub(super) fn option(&self, name: &str) -> Option<(&str, bool)> {
        let is_it = |arg: &&Arg| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(name) || aliases.contains(&name)
        };
        let arg = self.options.get_arguments().find(is_it)?;
        let has_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        Some((arg.get_long()?, has_value && !arg.is_require_equals_set()))
    }

    /// A word that is no option of the tool.
    pub(super) fn word(&mut self, word: OsString) {
        self.given.push(Given { option: None, words: vec![word], is_guides: false });
    }

    /// An option in Tapeline's spelling, with its value.
    pub(super) fn plain(&mut self, option: &str, words: Vec<OsString>) {
        self.forget(option, |given| given.is_guides);
        self.given.push(Given { option: Some(option.to_owned()), words, is_guides: false });
    }

    /// An option of the guide's, as Tapeline spells it without the dashes: `item-count=5`.
    pub(super) fn guides(&mut self, text: &str) {
        let option = text.split_once('=').map_or(text, |(option, _)| option);
        self.forget(option, |_| true);
        let words = vec![format!("--{text}").into()];
        self.given.push(Given { option: Some(option.to_owned()), words, is_guides: true });
    }

    /// Takes an option back that was given.
    pub(super) fn withdraw(&mut self, option: &str) {
        self.given.retain(|given| given.option.as_deref() != Some(option));
    }

    pub(super) fn has(&self, option: &str) -> bool {
        self.given.iter().any(|given| given.option.as_deref() == Some(option))
    }

    pub(super) fn has_word(&self, word: &str) -> bool {
        self.given.iter().any(|given| given.option.is_none() && given.words.iter().any(|it| it == word))
    }

    /// The value of an option in Tapeline's spelling, the last if there are several.
    pub(super) fn value(&self, option: &str) -> Option<&str> {
        let given = self.given.iter().rev().find(|given| given.option.as_deref() == Some(option))?;
        match given.words.as_slice() {
            [_, value] => value.to_str(),
            [word] => word.to_str()?.split_once('=').map(|(_, value)| value),
            _ => None,
        }
    }

    /// All words, in their order.
    pub(super) fn words(self) -> impl Iterator<Item = OsString> {
        self.given.into_iter().flat_map(|given| given.words)
    }

    fn forget(&mut self, option: &str, which: impl Fn(&Given) -> bool) {
        if !CUMULATIVE.contains(&option) {
            self.given.retain(|given| given.option.as_deref() != Some(option) || !which(given));
        }
    }
}
