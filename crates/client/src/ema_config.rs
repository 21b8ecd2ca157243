//! Configuration with EMA's names: `EmaConfig.xml` unchanged, or the same settings in TOML.
//!
//! | file | owns |
//! |---|---|
//! | `tree.rs` | the common form of both file formats: names, values, lines |
//! | `xml.rs`, `toml_file.rs` | the readers of both formats |
//! | `schema.rs` | the known settings and their ranges |
//! | `check.rs` | settings that are unknown, out of range or contradict each other, each with its line |
//! | `chosen.rs` | one consumer, provider or NI provider of a file: its connections, services and dictionary |
//!
//! Names, ranges and defaults: *EMA C++ Configuration Guide* and *EMA Java Configuration Guide*, release 3.9.

mod check;
mod chosen;
mod schema;
mod toml_file;
mod tree;
mod xml;

use std::path::Path;

use crate::Error;

pub use chosen::{Chosen, Host, StandbyMode, StandbyServer, WarmStandby};
pub use schema::Group;
use tree::{Fault, Node};

/// The largest file, in bytes: a hundred times the largest of LSEG's examples.
const MOST_BYTES: u64 = 4 << 20;

/// A configuration file that has passed all checks.
#[derive(Debug)]
pub struct Config {
    file: String,
    root: Node,
}

impl Config {
    /// Reads and checks a file: XML if it begins with `<`, TOML otherwise.
    ///
    /// # Errors
    /// The file cannot be read, or has a fault: the first one, with its line and a hint.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = crate::xml::text(path, MOST_BYTES, "a configuration")?;
        Self::parse(path.display().to_string(), &text)
    }

    /// Parses and checks the text of a file of this name.
    ///
    /// # Errors
    /// The first fault, with its line and a hint.
    pub fn parse(file: String, text: &str) -> Result<Self, Error> {
        match parse(text) {
            Ok(root) => Ok(Self { file, root }),
            Err(fault) => Err(fault.in_file(&file)),
        }
    }

    /// Returns `true` if the group has an entry of this name.
    pub fn has(&self, group: Group, name: &str) -> bool {
        group.entry(&self.root, name).is_some()
    }

    /// Returns the settings of one consumer, provider or NI provider: the entry of this name, or the file's default.
    ///
    /// # Errors
    /// There is no such entry, or it uses a function that Tapeline does not have.
    pub fn choose(&self, group: Group, name: Option<&str>) -> Result<Chosen, Error> {
        chosen::choose(&self.root, group, name).map_err(|fault| fault.in_file(&self.file))
    }
}

/// Parses a text to a tree of settings, and checks that they are known and do not contradict each other.
fn parse(text: &str) -> Result<Node, Fault> {
    let root = if text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
        xml::parse(text)?
    } else {
        toml_file::parse(text)?
    };
    check::check(&root)?;
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"<EmaConfig>
<ConsumerGroup><ConsumerList>
    <Consumer><Name value="A"/><Channel value="Channel_1"/></Consumer>
</ConsumerList></ConsumerGroup>
<ChannelGroup><ChannelList>
    <Channel><Name value="Channel_1"/><Host value="feed"/><Port value="14002"/></Channel>
</ChannelList></ChannelGroup>
</EmaConfig>
"#;
    const SMALL_TOML: &str = r#"
[[Consumer]]
Name = "A"
Channel = "Channel_1"

[[Channel]]
Name = "Channel_1"
Host = "feed"
Port = 14002
"#;

    fn refusal(text: &str) -> (usize, String, String) {
        let fault = parse(text).unwrap_err();
        (fault.line, fault.what, fault.hint)
    }

    #[test]
    fn both_kinds_of_file_say_the_same() {
        for text in [SMALL, SMALL_TOML] {
            let chosen = chosen::choose(&parse(text).unwrap(), Group::Consumer, None).unwrap();
            assert_eq!(chosen.hosts[0].server, "feed:14002");
        }
    }

    #[test]
    fn a_consumer_reserves_memory_for_its_items() {
        let text = SMALL_TOML.replacen("Channel =", "ItemCountHint = 5\nChannel =", 1);
        let chosen = chosen::choose(&parse(&text).unwrap(), Group::Consumer, None).unwrap();
        assert_eq!((chosen.consumer().expected_items, &chosen.idle[..]), (5, &[][..]));
        let plain = chosen::choose(&parse(SMALL_TOML).unwrap(), Group::Consumer, None).unwrap();
        assert_eq!(plain.consumer().expected_items, 0);
    }

    #[test]
    fn what_is_wrong_has_its_line_and_a_hint() {
        let unknown = SMALL.replace("<Host ", "<Hots ");
        assert_eq!(refusal(&unknown), (6, "Channel has no setting Hots".into(), "there is Host".into()));
        let value = SMALL.replace("14002", "140020");
        let (line, what, _) = refusal(&value);
        assert_eq!((line, what.as_str()), (6, "Port is '140020'; expected a number from 0 to 65535"));
        let missing = SMALL.replace("Channel value=\"Channel_1\"", "Channel value=\"Channel_2\"");
        let (line, what, hint) = refusal(&missing);
        assert_eq!(
            (line, what.as_str(), hint.as_str()),
            (3, "there is no Channel called Channel_2", "there is Channel_1")
        );
        let both =
            SMALL.replace("<Name value=\"A\"/>", "<Name value=\"A\"/><ChannelSet value=\"Channel_1\"/>");
        let (line, what, _) = refusal(&both);
        assert_eq!((line, what.as_str()), (3, "ChannelSet and Channel are both given; expected one"));
        let twice = SMALL.replace("<Host ", "<Port value=\"1\"/><Host ");
        assert_eq!(refusal(&twice).1, "Port is given twice");
        let (line, what, _) = refusal(&SMALL_TOML.replace("Host =", "Hots ="));
        assert_eq!((line, what.as_str()), (8, "Channel has no setting Hots"));
        let (line, what, _) = refusal(&SMALL_TOML.replace("[[Channel]]", "[[Chanel]]"));
        assert_eq!((line, what.as_str()), (6, "there is no group Chanel"));
    }

    #[test]
    fn what_has_no_effect_is_named_with_its_line() {
        let with = |from: &str, to: &str| {
            let text = SMALL.replace(from, to);
            chosen::choose(&parse(&text).unwrap(), Group::Consumer, None).unwrap().idle
        };
        assert_eq!(with("", ""), []);
        let idle = with("<Host ", "<ProxyHost value=\"p\"/>\n<DirectWrite value=\"1\"/><Host ");
        assert_eq!(idle, [("ProxyHost".to_owned(), 6), ("DirectWrite".to_owned(), 7)]);
        let idle = with("<ConsumerGroup>", "<GlobalConfig/>\n<ConsumerGroup>");
        assert_eq!(idle, [("GlobalConfig".to_owned(), 2)]);
        let toml = SMALL_TOML.replace("Host =", "TunnelingType = \"x\"\nHost =");
        let idle = chosen::choose(&parse(&toml).unwrap(), Group::Consumer, None).unwrap().idle;
        assert_eq!(idle, [("TunnelingType".to_owned(), 8)]);
    }

    #[test]
    fn how_json_is_written_is_taken() {
        let text = SMALL.replace(
            "<Name value=\"A\"/>",
            "<Name value=\"A\"/><JsonExpandedEnumFields value=\"1\"/><CatchUnknownJsonFids value=\"0\"/>\
             <CatchUnknownJsonKeys value=\"1\"/><DefaultServiceID value=\"9\"/>",
        );
        let json = chosen::choose(&parse(&text).unwrap(), Group::Consumer, None).unwrap().json;
        assert!(json.expand_enumerations && !json.catch_unknown_fields && json.catch_unknown_members);
        assert_eq!(json.default_service, Some(9));
    }

    /// Returns `SMALL` with two groups of servers: `W` with two servers, and `V`.
    fn with_standby(consumer: &str, mode: &str) -> String {
        let groups = format!(
            r#"</ConsumerGroup><WarmStandbyGroup><WarmStandbyList>
<WarmStandbyChannel><Name value="W"/><StartingActiveServer value="S1"/><StandbyServerSet value="S2"/>{mode}</WarmStandbyChannel>
<WarmStandbyChannel><Name value="V"/></WarmStandbyChannel>
</WarmStandbyList></WarmStandbyGroup><WarmStandbyServerInfoGroup><WarmStandbyServerInfoList>
<WarmStandbyServerInfo><Name value="S1"/><Channel value="Channel_2"/></WarmStandbyServerInfo>
<WarmStandbyServerInfo><Name value="S2"/><Channel value="Channel_3"/><PerServiceNameSet value="ONE, TWO"/></WarmStandbyServerInfo>
</WarmStandbyServerInfoList></WarmStandbyServerInfoGroup>"#
        );
        let channel = |number: u8| {
            format!("<Channel><Name value=\"Channel_{number}\"/><Host value=\"h{number}\"/></Channel>")
        };
        let text = SMALL.replace("</ConsumerGroup>", &groups);
        let text = text.replace("<ChannelList>", &format!("<ChannelList>{}{}", channel(2), channel(3)));
        text.replace("<Channel value=\"Channel_1\"/>", consumer)
    }

    fn chosen(text: &str) -> Result<Chosen, Fault> {
        chosen::choose(&parse(text).unwrap(), Group::Consumer, None)
    }

    #[test]
    fn servers_that_stand_by_are_read() {
        let set = "<WarmStandbyChannelSet value=\"W\"/>";
        for (mode, expected) in [
            ("", StandbyMode::Login),
            ("<WarmStandbyMode value=\"WarmStandbyMode::LOGIN_BASED\"/>", StandbyMode::Login),
            ("<WarmStandbyMode value=\"WarmStandbyMode::SERVICE_BASED\"/>", StandbyMode::Service),
        ] {
            let chosen = chosen(&with_standby(set, mode)).unwrap();
            assert_eq!((chosen.hosts.len(), chosen.idle), (0, vec![]));
            let standby = chosen.standby.unwrap();
            assert_eq!(standby.mode, expected);
            let servers =
                standby.servers.iter().map(|server| (server.host.server.as_str(), &server.services[..]));
            let named = ["ONE".to_owned(), "TWO".to_owned()];
            assert_eq!(servers.collect::<Vec<_>>(), [("h2:14002", &[][..]), ("h3:14002", &named[..])]);
        }
        // With a channel in addition, and in a program with one connection.
        let mut both = chosen(&with_standby(&format!("{set}<Channel value=\"Channel_1\"/>"), "")).unwrap();
        assert_eq!((both.hosts.len(), both.standby.is_some()), (1, true));
        both.one_after_the_other();
        let hosts: Vec<&str> = both.hosts.iter().map(|host| host.server.as_str()).collect();
        assert_eq!(hosts, ["h2:14002", "h3:14002", "feed:14002"]);
    }

    #[test]
    fn servers_that_stand_by_say_what_they_lack() {
        let set = |names: &str| with_standby(&format!("<WarmStandbyChannelSet value=\"{names}\"/>"), "");
        let other = chosen(&set("W, V")).unwrap();
        assert_eq!(other.idle, [("WarmStandbyChannel V".to_owned(), 3)]);
        let fault = chosen(&set("V")).unwrap_err();
        assert_eq!((fault.line, fault.hint.as_str()), (6, "give it a StartingActiveServer"));
        let nowhere = set("W").replace("<Channel value=\"Channel_3\"/>", "");
        let fault = chosen(&nowhere).unwrap_err();
        assert_eq!((fault.line, fault.hint.as_str()), (9, "give it a Channel"));
        assert_eq!(refusal(&set("U")).1, "there is no WarmStandbyChannel called U");
        let session = with_standby("<SessionChannelSet value=\"\"/>", "");
        assert_eq!(chosen(&session).unwrap_err().hint, "give it a Channel or a ChannelSet");
    }

    #[test]
    fn broken_files_say_where() {
        assert_eq!(refusal("<EmaConfig>\n<ConsumerGroup>\n").0, 2);
        assert_eq!(refusal("<EmaConfig>\n</ConsumerGroup>\n").0, 2);
        assert!(
            refusal("<!DOCTYPE x [<!ENTITY a \"b\">]><EmaConfig/>").1.contains("there is a document type")
        );
        assert_eq!(refusal("\n\n[Consumer\n").0, 3);
        let deep = "<A>".repeat(50);
        assert!(refusal(&deep).1.contains("deeper"));
    }

    /// Every text is accepted or refused; none causes a panic.
    #[test]
    fn any_text() {
        let mut state = 7_u64;
        let mut chance = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let pieces = [
            "<", ">", "/>", "\"", "value=", "Name", "[[", "]]", "=", "\n", "&lt;", "&#0;", "\u{0}", "é",
            "Channel",
        ];
        let (mut taken, mut refused) = (0, 0);
        for text in [SMALL, SMALL_TOML] {
            for _ in 0..5_000 {
                let mut changed: Vec<char> = text.chars().collect();
                for _ in 0..=chance(3) {
                    let at = chance(changed.len());
                    match chance(3) {
                        0 => drop(changed.remove(at)),
                        1 => changed[at] = char::from(chance(127) as u8),
                        _ => {
                            let piece = pieces[chance(pieces.len())];
                            changed.splice(at..at, piece.chars());
                        }
                    }
                }
                let changed: String = changed.into_iter().collect();
                match parse(&changed) {
                    Ok(root) => {
                        taken += 1;
                        let _ = chosen::choose(&root, Group::Consumer, None);
                    }
                    Err(fault) => {
                        refused += 1;
                        assert!(fault.line >= 1 && fault.line <= changed.lines().count() + 1, "{fault:?}");
                    }
                }
            }
        }
        assert!(taken > 100 && refused > 1_000, "{taken} {refused}");
    }
}
