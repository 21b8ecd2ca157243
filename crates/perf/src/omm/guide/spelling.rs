//! How the user spells options: errors use the same spelling.

use std::collections::HashMap;

use super::{Means, Tool, kebab};

/// Options in Tapeline's spelling, with dashes, mapped to the user's spelling if it differs.
#[derive(Clone, Debug, Default)]
pub struct Spelling {
    names: HashMap<String, String>,
    /// Options that the user has typed: another spelling of the tool's options does not change them.
    typed: Vec<String>,
}

impl Spelling {
    /// Spells all options of a tool as in the guide, except those that the user has typed.
    pub(super) fn is_guides(&mut self, tool: Tool) {
        for word in tool.words().filter(|word| word.name != "help") {
            for (option, as_guide) in word.names() {
                let option = format!("--{option}");
                if !self.typed.contains(&option) {
                    self.names.entry(option).or_insert(as_guide);
                }
            }
        }
    }

    /// Records how the user spelled an option; `option` is Tapeline's name without dashes.
    pub(super) fn typed(&mut self, option: &str, spelled: &str) {
        let option = format!("--{option}");
        if spelled == option {
            self.names.remove(&option);
        } else {
            self.names.insert(option.clone(), spelled.to_owned());
        }
        self.typed.push(option);
    }

    /// Whether all options are in Tapeline's spelling.
    pub fn is_plain(&self) -> bool {
        self.names.is_empty()
    }

    /// Replaces each option in a text with the user's spelling.
    pub fn respelled(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("--") {
            let (before, option) = rest.split_at(at);
            out.push_str(before);
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
            let name = option.split(|letter| !is_name(letter)).next().unwrap_or_default();
            let is_start = ends_with_style(&out) || !out.ends_with(is_name);
            out.push_str(self.names.get(name).filter(|_| is_start).map_or(name, String::as_str));
            rest = &option[name.len()..];
        }
        out.push_str(rest);
        out
    }
}

/// Whether a text ends with a terminal colour code, which is not part of a word.
fn ends_with_style(text: &str) -> bool {
    let code = text.rfind("\u{1b}[").and_then(|at| text[at + 2..].strip_suffix('m'));
    code.is_some_and(|code| code.chars().all(|letter| letter.is_ascii_digit() || letter == ';'))
}

impl super::Word {
    /// The options that a word maps to, each with the guide's spelling.
    pub(super) fn names(&self) -> Vec<(String, String)> {
        let spelled = format!("-{}", self.name);
        let one = |option: &str, spelled: String| vec![(option.to_owned(), spelled)];
        let option = match self.means {
            Means::Same => return one(&kebab(self.name), spelled),
            Means::Value(option) | Means::Flag(option) | Means::OneOrZero(option) => {
                option.split_once('=').map_or(option, |(option, _)| option)
            }
            Means::ApiThreads => "api-threads",
            Means::Dispatch => return one("api-dispatch", format!("{spelled} 0")),
            Means::Host => "server",
            Means::ConnectionType => return one("tls", format!("{spelled} encrypted")),
            Means::Protocols => "websocket",
            Means::ConfigName => "config-name",
            // The resulting options are known once all arguments are read.
            Means::KeyFile => return vec![("key".to_owned(), spelled.clone()), ("ca".to_owned(), spelled)],
            Means::Port | Means::EncryptedType | Means::KeyPassword => return Vec::new(),
            Means::Always | Means::Idle(..) | Means::Refused(..) => return Vec::new(),
        };
        one(option, spelled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_named_as_they_were_spelled() {
        let mut spelling = Spelling::default();
        assert_eq!(spelling.respelled("--update-rate is 5"), "--update-rate is 5");
        spelling.typed("update-rate", "-updateRate");
        spelling.typed("tick-rate", "--tick-rate");
        spelling.is_guides(Tool::Provider);
        for (text, said) in [
            ("--update-rate is 5, less than --tick-rate", "-updateRate is 5, less than --tick-rate"),
            ("'--pre-enc', (--max-pack-count)=1", "'-preEnc', (-maxPackCount)=1"),
            ("for '\u{1b}[1;33m--run-time\u{1b}[0m'", "for '\u{1b}[1;33m-runTime\u{1b}[0m'"),
            ("--api-dispatch or --api-threads", "-useUserDispatch 0 or -apiThreads"),
            // Text that is not an option of the guide, or not an option at all.
            (
                "--jitter-time --update-rate-x a--update-rate ---",
                "--jitter-time --update-rate-x a--update-rate ---",
            ),
            ("--", "--"),
            ("", ""),
        ] {
            assert_eq!(spelling.respelled(text), said);
        }
    }
}
