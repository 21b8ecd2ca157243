//! All faults of a file at once: after a fault, the rest of the file is checked all the same.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use tapeline_console::near::nearest;
use tapeline_console::paths;
use tapeline_node::Config;

use super::source::quoted;
use super::{RawConfig, SimulatedFeed, Source};

/// Maximum number of faults of keys that are reported: a file with more is another kind of file.
const MOST: usize = 100;

/// Checks the text of a configuration. Returns the configuration to run with its simulated exchanges, or all faults.
pub(crate) fn check(path: &Path, text: &str) -> Result<(Config, Vec<SimulatedFeed>), Vec<anyhow::Error>> {
    let source = Source::of(path, text);
    let config = source.raw().and_then(|raw| source.check(raw));
    let mut faults = source.faults.into_inner();
    let mut said = BTreeSet::new();
    faults.retain(|fault| said.insert(fault.to_string()));
    match config {
        Some(config) if faults.is_empty() => Ok((config, source.simulated.into_inner())),
        _ => Err(faults),
    }
}

impl<'a> Source<'a> {
    pub(crate) fn of(path: &Path, text: &'a str) -> Self {
        let path = paths::absolute(path);
        let file = paths::shown(&path).to_string();
        Self { file, path, text, faults: RefCell::default(), simulated: RefCell::default() }
    }

    /// Returns the checked value. An error goes to the faults, and `otherwise` replaces the value, so that the rest
    /// is checked too.
    pub(crate) fn or<T>(&self, checked: anyhow::Result<T>, otherwise: T) -> T {
        self.sound(checked).unwrap_or(otherwise)
    }

    /// The same, if no other value can replace it.
    pub(crate) fn sound<T>(&self, checked: anyhow::Result<T>) -> Option<T> {
        checked.map_err(|fault| self.faults.borrow_mut().push(fault)).ok()
    }

    /// The content of the file. An unknown key is reported and replaced by the key that was probably meant, or left
    /// out; a key with a value of another type is reported and left out. `None` if the rest cannot be parsed.
    fn raw(&self) -> Option<RawConfig> {
        let mut text = self.text.to_owned();
        for _ in 0..MOST {
            let error = match toml::from_str(&text) {
                Ok(raw) => return Some(raw),
                Err(error) => error,
            };
            let is = |what: &str| error.message().starts_with(what);
            let is_first = self.faults.borrow().is_empty();
            // A key that was left out may now be missing, or its value may have had more lines.
            let is_follow_up =
                !is_first && (is("missing field") || toml::from_str::<toml::Table>(&text).is_err());
            if !is_follow_up {
                self.faults.borrow_mut().push(self.not_toml(&error));
            }
            if !is("unknown field") && !is("invalid type") {
                return None;
            }
            let at = error.span()?.start;
            match meant(&text, at, error.message()) {
                Some(meant) => text = meant,
                None => leave_out(&mut text, at),
            }
        }
        None
    }
}

/// The same file with the unknown key at `at` replaced by the key that was probably meant, everything else in place;
/// `None` if no key is similar, the key does not fit in the space, or it already exists.
fn meant(text: &str, at: usize, message: &str) -> Option<String> {
    let (unknown, known) =
        quoted(message).split_first().map(|(unknown, known)| (*unknown, known.to_vec()))?;
    let key = nearest(unknown, &known).filter(|_| message.starts_with("unknown field"))?;
    let rest = text.get(at..)?.strip_prefix(unknown)?;
    let value = rest.trim_start_matches(' ').strip_prefix('=')?.trim_start_matches(' ');
    let room = (text.len() - value.len()).checked_sub(at)?;
    let width = room.checked_sub(1).filter(|width| *width >= key.len())?;
    let meant = format!("{}{key:width$}={value}", &text[..at]);
    toml::from_str::<toml::Table>(&meant).is_ok().then_some(meant)
}

/// Removes the line at `at`, or the table that begins there, and leaves everything else in place.
fn leave_out(text: &mut String, at: usize) {
    let end_of_line = |from: usize| text[from..].find('\n').map_or(text.len(), |length| from + length);
    let start = text[..at].rfind('\n').map_or(0, |before| before + 1);
    let mut end = end_of_line(start);
    if text[start..].trim_start().starts_with('[') {
        while end < text.len() && !text[end + 1..].trim_start_matches(' ').starts_with('[') {
            end = end_of_line(end + 1);
        }
    }
    text.replace_range(start..end, &" ".repeat(end - start));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        check(Path::new("plant.toml"), text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    fn assert_said(text: &str, expected: &[&str]) {
        let said = said(text);
        for expected in expected {
            assert!(said.iter().any(|said| said.starts_with(expected)), "{expected}: {said:#?}");
        }
        assert_eq!(said.len(), expected.len(), "{said:#?}");
    }

    const FEED: &str = "[[feed]]\nname = \"f\"\nprotocol = \"itch50-moldudp64\"\n[[feed.line]]\naddress = \
                        \"239.1.1.1:1\"\ninterface = \"127.0.0.1\"\n";

    #[test]
    fn every_key_of_every_table_is_looked_at() {
        assert_said(
            "[plant]\nring = \"a b\"\nring_size = \"9\"\npublish = \"all\"\nwait = \"no\"\nstall_limit = \"soon\"\n\
             [[feed]]\nname = \"f\"\nprotocol = \"pitch\"\nstart = \"now\"\nstale_after = \"x\"\nvenue = \"\"\n\
             [[feed.line]]\naddress = \"here\"\nsource = \"there\"\n[[feed.line]]\naddress = \"239.1.1.1\"\n\
             [hub]\nbind = \"here\"\nslow = \"drop\"\nmax_connections = 0\nping_timeout = \"1ms\"\n\
             [hub.web]\nbind = \"x\"\n[hub.zeromq]\nbody = \"xml\"\nqueue = \"1KiB\"\n",
            &[
                "plant.toml:2:8: ",
                "plant.toml:3:13: ring_size is 9 bytes",
                "plant.toml:4:11: publish is \"all\"",
                "plant.toml:5:8: wait is \"no\"",
                "plant.toml:6:15: ",
                "plant.toml:9:12: protocol \"pitch\" is not known",
                "plant.toml:10:9: start is \"now\"",
                "plant.toml:11:15: ",
                "plant.toml:12:9: venue is \"\"",
                "plant.toml:14:11: address \"here\"",
                "plant.toml:15:10: source \"there\"",
                "plant.toml:17:11: address \"239.1.1.1\"",
                "plant.toml:19:8: bind is \"here\"",
                "plant.toml:20:8: slow is \"drop\"",
                "plant.toml:21:19: max_connections is 0",
                "plant.toml:22:16: ping_timeout",
                "plant.toml:24:8: bind is \"x\"",
                "plant.toml:26:8: body is \"xml\"",
                "plant.toml:27:9: queue is 1024 bytes",
            ],
        );
    }

    #[test]
    fn so_is_every_service_and_provider() {
        assert_said(
            "[plant]\nring = \"r\"\n[publishers]\nbind = \"x\"\nmax_connections = 0\n\
             [[service]]\nname = \"A\"\nid = 2\nposts = \"take\"\nrequest_timeout = \"x\"\n\
             [[service]]\nname = \"B\"\nid = 2\nproviders = [\"p\", \"q\"]\nsources = \"all\"\n\
             [[provider]]\nname = \"p\"\nservers = []\nuser = \"\"\nwebsocket = \"xml\"\n",
            &[
                "plant.toml:4:8: bind is \"x\"",
                "plant.toml:5:19: max_connections is 0",
                "plant.toml:9:9: posts is \"take\"",
                "plant.toml:10:19: ",
                "plant.toml:13:6: id 2",
                "plant.toml:14:19: there is no provider \"q\"",
                "plant.toml:15:11: sources is \"all\"",
                "plant.toml:18:11: servers is empty",
                "plant.toml:19:8: user has 0 bytes",
                "plant.toml:20:13: websocket is \"xml\"",
            ],
        );
    }

    #[test]
    fn keys_that_nobody_knows_are_told_all_and_hide_nothing() {
        let text = format!(
            "[plant]\nring = \"r\"\npulish = \"x\"\nwait = 5\n{FEED}[hbu]\nport = 1\n[hub]\nprot = 2\nslow = \"drop\"\n"
        );
        assert_said(
            &text,
            &[
                "plant.toml:3:1: unknown key `pulish`",
                "plant.toml:3:10: publish is \"x\"",
                "plant.toml:4:8: invalid type: integer `5`",
                "plant.toml:11:2: unknown key `hbu`",
                "plant.toml:14:1: unknown key `prot`",
                "plant.toml:15:8: slow is \"drop\"",
            ],
        );
    }

    #[test]
    fn behind_an_unknown_key_in_the_place_of_a_required_one_the_rest_is_looked_at() {
        let text = format!(
            "[plant]\nrng   =   \"a b\"\nrng_size = \"9\"\n{FEED}[hub]\nslow = \"drop\"\nslw = \"x\"\nunrelated = 1\n"
        );
        assert_said(
            &text,
            &[
                "plant.toml:2:1: unknown key `rng`",
                "plant.toml:2:11: ",
                "plant.toml:3:1: unknown key `rng_size`",
                "plant.toml:3:12: ring_size is 9 bytes",
                "plant.toml:11:8: slow is \"drop\"",
                "plant.toml:12:1: unknown key `slw`",
                "plant.toml:13:1: unknown key `unrelated`",
            ],
        );
        // No known key is similar: the missing key is a consequence and not reported.
        assert_said(&format!("[plant]\nunrelated = 1\n{FEED}"), &["plant.toml:2:1: unknown key `unrelated`"]);
    }

    #[test]
    fn what_follows_from_another_fault_is_not_told() {
        assert_said(&format!("[plant]\nrng = \"r\"\n{FEED}"), &["plant.toml:2:1: unknown key `rng`"]);
        let several = format!("[plant]\nring = \"r\"\nkeys = [\n  1,\n]\n{FEED}");
        assert_said(&several, &["plant.toml:3:1: unknown key `keys`"]);
        let named = format!("[plant]\nring = \"r\"\n{FEED}[nbbo]\nfeeds = [\"f\"]\n").replace("itch50", "x");
        assert_said(&named, &["plant.toml:5:12: protocol"]);
    }
}
