//! The guide's own spelling: `-itemCount 100000` for `--item-count 100000`, and links with the names of LSEG's tools.
//!
//! Arguments are translated before the command line is parsed. If an option cannot apply here, one line gives the
//! reason and an alternative.

mod line;
mod spelling;

use std::ffi::OsString;
use std::path::Path;

use tapeline_console::failure::Hinted;
use tapeline_console::near;

use self::line::Line;
pub use self::spelling::Spelling;
use super::tool::Tool;

/// Bits of the tools that have an option.
const C: u8 = 1 << Tool::Consumer as u8;
const P: u8 = 1 << Tool::Provider as u8;
const N: u8 = 1 << Tool::NiProvider as u8;
const T: u8 = 1 << Tool::Transport as u8;

impl Tool {
    /// LSEG's names for the tool, EMA's first.
    const fn links(self) -> &'static [&'static str] {
        match self {
            Self::Consumer => &["EmaCppConsPerf", "ConsPerf"],
            Self::Provider => &["EmaCppIProvPerf", "ProvPerf"],
            Self::NiProvider => &["EmaCppNIProvPerf", "NIProvPerf"],
            Self::Transport => &["TransportPerf"],
        }
    }

    /// Default port of the hub or provider.
    const fn usual_port(self) -> &'static str {
        match self {
            Self::NiProvider => "14003",
            _ => "14002",
        }
    }

    /// Its options.
    fn words(self) -> impl Iterator<Item = Word> {
        let of_tool = WORDS.iter().filter(move |(tools, ..)| tools & (1 << self as u8) != 0);
        of_tool.flat_map(|(_, means, names)| names.iter().map(|name| Word { name, means: *means }))
    }
}

/// An option of the guide, or of the public tools.
#[derive(Clone, Copy)]
struct Word {
    name: &'static str,
    means: Means,
}

/// What an option maps to.
#[derive(Clone, Copy)]
enum Means {
    /// The option of the same name, with its value.
    Same,
    /// The option of this name, with its value.
    Value(&'static str),
    /// The option of this name, without a value.
    Flag(&'static str),
    /// The flag of this name for 1, nothing for 0.
    OneOrZero(&'static str),
    /// Tapeline always does this.
    Always,
    /// The dispatch mode: 1 is Tapeline's default (user dispatch), 0 the default of EMA's tools (API dispatch).
    Dispatch,
    /// Cores of the API dispatch threads.
    ApiThreads,
    Host,
    Port,
    ConnectionType,
    EncryptedType,
    Protocols,
    /// The name of the consumer or provider in `EmaConfig.xml`.
    ConfigName,
    /// An option of Java's tools that has no effect here, with the reason. `true` if it has a value.
    Idle(bool, &'static str),
    /// Java's key store, here a PEM file: a server's certificate and key, or the certificates that a client trusts.
    KeyFile,
    KeyPassword,
    /// Unsupported: the reason and an alternative. `true` if it has a value.
    Refused(bool, &'static str, &'static str),
}

const NO_TUNNEL: Means = Means::Refused(false, "there are no tunnel streams", "leave it out");
const NO_TUNNEL_VALUE: Means = Means::Refused(true, "there are no tunnel streams", "leave it out");
const NO_MULTICAST: Means =
    Means::Refused(true, "there is no multicast to hubs", "leave it out, and connect with -h and -p");

const NO_PROXY: Means = Means::Refused(true, "connections are not made through a proxy", "leave it out");

/// The options of the guide's tables 2 to 4, of the public tools and of TransportPerf: who has them, meaning, names.
#[rustfmt::skip]
const WORDS: &[(u8, Means, &[&str])] = &[
    (C | P | N | T, Means::Same, &[
        "tickRate", "threads", "mainThread", "summaryFile", "statsFile", "latencyFile", "writeStatsInterval",
        "highWaterMark",
    ]),
    (C | P | N | T, Means::Flag("no-display-stats"), &["noDisplayStats"]),
    (C | P | N, Means::Flag("nano-time"), &["nanoTime"]),
    (C | P | N, Means::Same, &["msgFile", "serviceName"]),
    (C | N, Means::Same, &["itemFile", "itemCount", "commonItemCount"]),
    (P | N, Means::Same, &["serviceId", "updateRate", "latencyUpdateRate", "refreshBurstSize", "maxPackCount"]),
    (C, Means::OneOrZero("use-service-id"), &["useServiceId"]),
    // Published messages carry the service's number and no name.
    (N, Means::Always, &["useServiceId"]),
    (C, Means::Idle(false, "there is no virtual machine to warm up"), &["primeJVM"]),
    (C, Means::Idle(false, "fields are decoded by their types, in one way"), &["downcastDecoding"]),
    (C | P | N | T, Means::Flag("help"), &["help"]),
    (C, Means::Same, &["requestRate", "steadyStateTime", "delaySteadyStateCalc", "postingRate", "postingLatencyRate"]),
    (C, Means::Flag("snapshot"), &["snapshot"]),
    (C | P, Means::Same, &["genericMsgRate", "genericMsgLatencyRate"]),
    (P | N, Means::Flag("pre-enc"), &["preEnc"]),
    (P | N, Means::Flag("measure-encode"), &["measureEncode"]),
    (C | P | N, Means::Flag("measure-decode"), &["measureDecode"]),
    (P | N | T, Means::Same, &["runTime", "maxFragmentSize"]),
    (P, Means::Same, &["openLimit"]),
    (P | N, Means::Value("pack-buffer-size"), &["packBufSize"]),
    (C | N, Means::Value("user"), &["uname"]),
    (C, Means::ConfigName, &["consumerName"]),
    (P | N, Means::ConfigName, &["providerName"]),
    (C | N, Means::Host, &["h"]),
    (C | P | N, Means::Port, &["p"]),
    (P | T, Means::Value("bind"), &["if"]),
    (C | N, Means::Value("interface"), &["if"]),
    (C | P | N, Means::ConnectionType, &["connType"]),
    // encryptedConnectionType and c are Java's names.
    (C | N, Means::EncryptedType, &["encryptedConnType", "encryptedConnectionType"]),
    (P, Means::ConnectionType, &["c"]),
    (C | P, Means::Protocols, &["pl"]),
    (C, Means::Protocols, &["websocket"]),
    (C | N | T, Means::Value("ca"), &["castore"]),
    (C | P | N | T, Means::KeyFile, &["keyfile"]),
    (C | P | N | T, Means::KeyPassword, &["keypasswd"]),
    (P | T, Means::Same, &["cert"]),
    (C | P | N | T, Means::Value("guaranteed-output-buffers"), &["outputBufs"]),
    (C | P | N, Means::Value("num-input-buffers"), &["inputBufs"]),
    (C | P | N | T, Means::Value("sys-send-buf-size"), &["sendBufSize"]),
    (C | P | N | T, Means::Value("sys-recv-buf-size"), &["recvBufSize"]),
    (C | P | N, Means::Flag("tcp-nodelay=false"), &["tcpDelay"]),
    (P | N, Means::Flag("high-water-mark=0"), &["directWrite"]),
    // TransportPerf's options: the guide has no chapter on it.
    (T, Means::Same, &[
        "appType", "msgRate", "latencyMsgRate", "msgSize", "pack", "compressionLevel", "connType",
        "encryptedConnType", "pl",
    ]),
    (T, Means::Flag("reflect-msgs"), &["reflectMsgs"]),
    (C | T, Means::Flag("busy-read"), &["busyRead"]),
    (T, Means::Flag("tcp-delay"), &["tcpDelay"]),
    (T, Means::Flag("direct-write"), &["directWrite"]),
    (T, Means::Value("compression"), &["compressionType"]),
    (T, Means::Value("summary-file"), &["summaryFileStatic"]),
    (T, Means::Value("stats-file"), &["statsFileStatic"]),
    (T, Means::Value("host"), &["h"]),
    (T, Means::Value("port"), &["p"]),
    // Every connection uses a reactor, and every consumer connection has a watchlist.
    (C | P | N, Means::Always, &["reactor"]),
    (C, Means::Always, &["watchlist"]),
    (C | P | N | T, Means::Flag("tls-version=1.2"), &["spTLSv1.2"]),
    (C | P | N | T, Means::Flag("tls-version=1.3"), &["spTLSv1.3"]),
    (C | P | N, Means::Dispatch, &["useUserDispatch"]),
    (C | P | N, Means::ApiThreads, &["apiThreads"]),
    (P, Means::Refused(true, "ciphers are those of TLS 1.2 and 1.3 that are safe, and not chosen by name", "leave it out"), &["cipher"]),
    (P, Means::Refused(true, "a connection has the output buffers that -outputBufs says, and no more when it needs them", "raise -outputBufs"), &["maxOutputBufs"]),
    (C, Means::Refused(false, "the time of conversion is not told apart: latencies of JSON have it in them", "leave it out"), &["calcRWFJSONConversionLatency"]),
    (C, NO_TUNNEL, &["tunnel", "tunnelAuth"]),
    (C | P, NO_TUNNEL, &["tunnelStreamBuffersUsed"]),
    (C | P, NO_TUNNEL_VALUE, &["tunnelStreamOutputBufs"]),
    (N | T, NO_MULTICAST, &["rp", "sp", "u", "ra", "sa"]),
    (T, NO_MULTICAST, &["tp", "prr"]),
    (T, Means::Refused(false, "connections are not made through a proxy", "leave it out"), &["proxy"]),
    (T, NO_PROXY, &["ph", "pp", "plogin", "ppasswd", "pdomain", "krbfile"]),
    (N | T, Means::Refused(false, "there is no multicast to hubs", "leave it out"), &["mcastStats"]),
    (N, Means::Refused(false, "there is no multicast to hubs", "leave it out"), &["takeMCastStats"]),
];

/// EMA's configuration file in the working directory.
const EMA_CONFIG: &str = "EmaConfig.xml";

/// Options that must be interpreted together.
#[derive(Default)]
struct Said {
    host: Option<String>,
    port: Option<String>,
    /// Value and the option's spelling.
    connection: Option<(String, String)>,
    encrypted: Option<(String, String)>,
    protocols: Option<(String, String)>,
    config_name: Option<(String, String)>,
    has_user_dispatch: bool,
    /// The dispatch mode was given, whichever it is.
    has_dispatch: bool,
    api_threads: Option<String>,
    /// Each message is sent at once, whatever the high-water mark.
    is_direct: bool,
    key_file: Option<String>,
    has_key_password: bool,
    /// Options that have no effect.
    notes: Vec<String>,
}

/// A command line in Tapeline's spelling.
#[derive(Debug, Default)]
pub struct Translated {
    /// The command line for clap.
    pub arguments: Vec<OsString>,
    /// How errors spell the options.
    pub spelling: Spelling,
    /// Notes for the user on options that have no effect.
    pub notes: Vec<String>,
}

/// Translates arguments to Tapeline's spelling; the first is the program's name. Arguments in Tapeline's spelling,
/// and those of other commands, stay unchanged. `folder` is the working directory.
///
/// # Errors
/// An option is unknown, has no value or is unsupported; the error includes a hint.
pub fn translate(arguments: &[OsString], folder: &Path) -> Result<Translated, Hinted> {
    let Some((tool, link, rest)) = called(arguments) else {
        return Ok(Translated { arguments: arguments.to_vec(), ..Translated::default() });
    };
    let mut line = Line::new(tool);
    let mut spelling = Spelling::default();
    let mut said = Said::default();
    let mut is_guides = link.is_some();
    let mut rest = rest.iter();
    while let Some(argument) = rest.next() {
        let Some(text) = argument.to_str() else {
            line.word(argument.clone());
            continue;
        };
        let Some((spelled, word, value)) = find(tool, text)? else {
            match plain(&line, text) {
                None => line.word(argument.clone()),
                Some((option, has_value)) => {
                    let mut words = vec![argument.clone()];
                    if has_value {
                        words.extend(rest.next().cloned());
                    }
                    spelling.typed(&option, &format!("--{option}"));
                    said.plain(&option, words, &mut line);
                }
            }
            continue;
        };
        is_guides |= !spelled.starts_with("--");
        // A lone -h asks for help, as -? does; with a value it is the guide's host option.
        let is_host = word.name == "h";
        if is_host && rest.as_slice().first().is_none_or(|next| next.to_string_lossy().starts_with('-')) {
            line.word("--help".into());
            continue;
        }
        let value = match value {
            Some(value) => value.to_owned(),
            // Java's tools accept true and false for 1 and 0, and an option without a value as true.
            None if word.is_switch() => match rest.as_slice().first().and_then(|next| next.to_str()) {
                Some(said @ ("true" | "false")) => {
                    rest.next();
                    if said == "true" { "1" } else { "0" }.to_owned()
                }
                Some(next) if word.has_value() && !next.starts_with('-') => {
                    rest.next();
                    next.to_owned()
                }
                _ => "1".to_owned(),
            },
            None if word.has_value() => {
                let missing = || Hinted::new(format!("{spelled} has no value"), "a value comes behind it");
                let hint = || format!("write --{} for it", kebab(word.name));
                let no_text = || Hinted::new(format!("the value of {spelled} is no UTF-8"), hint());
                rest.next().ok_or_else(missing)?.to_str().ok_or_else(no_text)?.to_owned()
            }
            None => String::new(),
        };
        for (option, as_guide) in word.names() {
            spelling.typed(&option, &as_guide);
        }
        said.guides(tool, spelled, word, value, &mut line)?;
    }
    if is_guides {
        spelling.is_guides(tool);
    }
    let notes = said.together(tool, link, folder, &mut line)?;
    let mut arguments: Vec<OsString> = ["tapeline", "omm", tool.command()].map(OsString::from).to_vec();
    arguments.extend(line.words());
    Ok(Translated { arguments, spelling, notes })
}

/// The option in Tapeline's spelling that an argument names, and whether its value is the next argument.
fn plain(line: &Line, text: &str) -> Option<(String, bool)> {
    let long = text.strip_prefix("--")?;
    let (name, has_own) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
    let (option, has_value) = line.option(name)?;
    Some((option.to_owned(), has_value && !has_own))
}

/// The tool that is called, the link's name if called through one, and its arguments.
fn called(arguments: &[OsString]) -> Option<(Tool, Option<&str>, &[OsString])> {
    let (program, rest) = arguments.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    let name = name.strip_suffix(".exe").unwrap_or(name);
    if let Some(tool) = Tool::ALL.into_iter().find(|tool| tool.links().contains(&name)) {
        return Some((tool, Some(name), rest));
    }
    match rest {
        [omm, command, rest @ ..] if omm == "omm" => {
            let tool = Tool::ALL.into_iter().find(|tool| command == tool.command())?;
            Some((tool, None, rest))
        }
        _ => None,
    }
}

/// An argument's spelling, its word, and its value if the same argument contains it.
type Found<'a> = (&'a str, Word, Option<&'a str>);

/// Finds the word of an argument; `None` for values, and for options in Tapeline's spelling.
fn find(tool: Tool, text: &str) -> Result<Option<Found<'_>>, Hinted> {
    let words = || tool.words();
    if let Some(long) = text.strip_prefix("--") {
        // Options that Tapeline does not have are refused in its spelling too.
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let found = words().find(|word| {
            matches!(word.means, Means::Refused(..) | Means::Always | Means::Dispatch)
                && kebab(word.name) == name
        });
        let spelled = text.get(..name.len() + 2).unwrap_or(text);
        return Ok(found.map(|word| (spelled, word, value)));
    }
    let Some(short) = text.strip_prefix('-') else { return Ok(None) };
    if short == "?" {
        return Ok(Some((text, HELP, None)));
    }
    if !short.starts_with(|letter: char| letter.is_ascii_alphabetic())
        || short == "V"
        || short == "h" && !words().any(|word| word.name == "h")
    {
        return Ok(None);
    }
    match words().find(|word| word.name == short) {
        Some(word) => Ok(Some((text, word, None))),
        None => {
            let known: Vec<&str> = words().map(|word| word.name).collect();
            let hint = match near::nearest(short, &known) {
                Some(near) => format!("there is -{near}"),
                None => "-? shows the options".to_owned(),
            };
            Err(Hinted::new(format!("{text} is no option of {}", tool.command()), hint))
        }
    }
}

const HELP: Word = Word { name: "?", means: Means::Flag("help") };

fn has_host(tool: Tool) -> bool {
    tool.words().any(|word| matches!(word.means, Means::Host))
}

/// Whether a tool is called under EMA's name, which selects EMA's defaults and files.
fn is_ema(tool: Tool, link: Option<&str>) -> bool {
    tool != Tool::Transport && link.is_some_and(|link| tool.links().first() == Some(&link))
}

impl Word {
    const fn has_value(&self) -> bool {
        let is_alone = matches!(self.means, Means::Flag(_) | Means::Always);
        !is_alone && !matches!(self.means, Means::Refused(false, ..) | Means::Idle(false, _))
    }

    /// Whether the option is a yes/no switch.
    const fn is_switch(&self) -> bool {
        matches!(self.means, Means::OneOrZero(_) | Means::Dispatch) || !self.has_value()
    }
}

/// Names of WebSocket sub-protocols: the guide's, and Tapeline's.
const SUB_PROTOCOLS: [&str; 3] = ["rssl.rwf", "tr_json2", "rssl.json.v2"];
const OUR_SUB_PROTOCOLS: [&str; 3] = ["rwf", "json", "json-v2"];

/// Converts a list with commas or blanks to one with commas.
fn sub_protocols(option: &str, list: &str) -> Result<String, Hinted> {
    let names: Vec<&str> = list.split([',', ' ', '\t']).filter(|name| !name.is_empty()).collect();
    let is_known = |name: &str| SUB_PROTOCOLS.contains(&name) || OUR_SUB_PROTOCOLS.contains(&name);
    match names.iter().find(|name| !is_known(name)) {
        None => Ok(names.join(",")),
        Some(unknown) => {
            let [rwf, json, json_v2] = SUB_PROTOCOLS;
            let what = format!("{option} has '{unknown}'; expected {rwf}, {json} or {json_v2}");
            let near = near::nearest(unknown, &SUB_PROTOCOLS).map(|near| format!("there is {near}"));
            Err(Hinted::new(what, near.unwrap_or_default()))
        }
    }
}

/// `itemCount` as `item-count`.
fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}

impl Said {
    /// Adds an option in Tapeline's spelling; it overrides an earlier one in the guide's spelling.
    fn plain(&mut self, option: &str, words: Vec<OsString>, line: &mut Line) {
        match option {
            "server" => (self.host, self.port) = (None, None),
            "websocket" => self.protocols = None,
            "api-dispatch" | "api-threads" | "busy-read" => {
                self.has_dispatch = true;
                self.has_user_dispatch = false;
                self.api_threads = self.api_threads.take().filter(|_| option != "api-threads");
            }
            "high-water-mark" => self.is_direct = false,
            "key" | "ca" => self.key_file = None,
            _ => {}
        }
        line.plain(option, words);
        if option == "config-name" && self.config_name.is_some() {
            self.config_name = line.value(option).map(|name| ("--config-name".to_owned(), name.to_owned()));
        }
    }

    /// Adds an option in the guide's spelling.
    fn guides(
        &mut self,
        tool: Tool,
        spelled: &str,
        word: Word,
        value: String,
        line: &mut Line,
    ) -> Result<(), Hinted> {
        let one_or_zero = || Hinted::new(format!("{spelled} is '{value}'; expected 1 or 0"), "");
        self.has_dispatch |= matches!(word.means, Means::Dispatch | Means::ApiThreads);
        match word.means {
            Means::Same => line.guides(&format!("{}={value}", kebab(word.name))),
            Means::Value(option) => line.guides(&format!("{option}={value}")),
            Means::Flag(option) if value == "0" => {
                self.is_direct &= word.name != "directWrite";
                line.withdraw(option.split_once('=').map_or(option, |(option, _)| option));
            }
            Means::Flag(option) => {
                self.is_direct |= word.name == "directWrite";
                line.guides(option);
            }
            Means::OneOrZero(option) => match value.as_str() {
                "1" => line.guides(option),
                "0" => line.withdraw(option),
                _ => return Err(one_or_zero()),
            },
            Means::Always => {}
            Means::Idle(_, why) => self.notes.push(format!("{spelled} changes nothing: {why}")),
            Means::KeyFile => self.key_file = Some(value),
            Means::KeyPassword => self.has_key_password = true,
            Means::Dispatch => match value.as_str() {
                "1" => {
                    self.has_user_dispatch = true;
                    line.withdraw("api-dispatch");
                }
                "0" => {
                    self.has_user_dispatch = false;
                    line.guides("api-dispatch");
                }
                _ => return Err(one_or_zero()),
            },
            Means::ApiThreads => {
                line.guides(&format!("api-threads={value}"));
                self.api_threads = Some(value);
            }
            Means::Host => self.host = Some(value),
            Means::Port if has_host(tool) => self.port = Some(value),
            Means::Port => line.guides(&format!("port={value}")),
            Means::ConnectionType => self.connection = Some((spelled.to_owned(), value)),
            Means::EncryptedType => self.encrypted = Some((spelled.to_owned(), value)),
            Means::Protocols => {
                line.withdraw("websocket");
                self.protocols = Some((spelled.to_owned(), value));
            }
            Means::ConfigName => {
                line.withdraw("config-name");
                self.config_name = Some((spelled.to_owned(), value));
            }
            Means::Refused(_, why, hint) => {
                return Err(Hinted::new(format!("{spelled} cannot be: {why}"), hint));
            }
        }
        Ok(())
    }

    /// Adds the options that follow from several others.
    fn together(
        mut self,
        tool: Tool,
        link: Option<&str>,
        folder: &Path,
        line: &mut Line,
    ) -> Result<Vec<String>, Hinted> {
        for option in self.config(tool, link, folder, line.has("config"))? {
            line.guides(&option);
        }
        if let Some(list) = &self.api_threads {
            if self.has_user_dispatch {
                let what = format!("-apiThreads {list} is of API dispatch, and -useUserDispatch is 1");
                return Err(Hinted::new(what, "say -useUserDispatch 0, or leave -apiThreads out"));
            }
            // The same number of threads, none of them pinned.
            if !line.has("threads") {
                line.guides(&format!("threads={}", vec!["-1"; list.split(',').count()].join(",")));
            }
        }
        if is_ema(tool, link) && !self.has_dispatch {
            line.guides("api-dispatch");
        }
        // Direct writes ignore the high-water mark, whichever option came last.
        if self.is_direct {
            line.withdraw("high-water-mark");
            if tool != Tool::Transport {
                line.guides("high-water-mark=0");
            }
        }
        let is_client = has_host(tool);
        self.server(tool, line)?;
        self.key_file(tool, folder, line)?;
        let is_websocket = self.connection(is_client, line)?;
        let protocols = self.protocols.as_ref();
        let protocols =
            protocols.map(|(spelled, list)| Ok((spelled.as_str(), sub_protocols(spelled, list)?)));
        match protocols.transpose()? {
            // EMA's option selects a WebSocket; ETA's only selects the sub-protocols of one.
            Some(("-pl", list)) if is_client && !is_websocket => {
                let (spelled, kind) =
                    self.connection.unwrap_or_else(|| ("-connType".to_owned(), "socket".to_owned()));
                let what = format!("-pl {list} is of WebSockets, and {spelled} is {kind}");
                return Err(Hinted::new(what, format!("say {spelled} websocket, or leave -pl out")));
            }
            Some((_, list)) => line.guides(&format!("websocket={list}")),
            None if is_client && is_websocket && !line.has("websocket") => {
                line.guides("websocket=rssl.rwf");
            }
            None => {}
        }
        Ok(self.notes)
    }

    /// Handles the file that holds keys and certificates under a password in Java's tools.
    fn key_file(&mut self, tool: Tool, folder: &Path, line: &mut Line) -> Result<(), Hinted> {
        let Some(file) = self.key_file.take() else {
            if self.has_key_password {
                self.notes.push("-keypasswd changes nothing: there is no -keyfile".to_owned());
            }
            return Ok(());
        };
        // An unreadable file is reported later, by the code that opens it.
        let bytes = std::fs::read(folder.join(&file)).unwrap_or_default();
        // JKS and JCEKS files begin with magic numbers, PKCS #12 files as all DER does.
        let magic: [&[u8]; 3] = [b"\xFE\xED\xFE\xED", b"\xCE\xCE\xCE\xCE", b"\x30\x82"];
        if magic.iter().any(|magic| bytes.starts_with(magic)) {
            let what = format!("-keyfile {file} is a key store of Java's; PEM is expected");
            let hint = "keytool -importkeystore -srckeystore FILE -destkeystore F.p12 -deststoretype PKCS12, then \
                        openssl pkcs12 -in F.p12 -nodes -out F.pem";
            return Err(Hinted::new(what, hint));
        }
        let text = String::from_utf8_lossy(&bytes);
        if text.contains("ENCRYPTED") {
            let what = format!("-keyfile {file} has a key under a password, which is not opened here");
            return Err(Hinted::new(what, "openssl pkey -in FILE -out key.pem writes it without"));
        }
        if self.has_key_password {
            self.notes.push(format!("-keypasswd changes nothing: {file} is not under a password"));
        }
        let is_transport_client = || line.value("app-type") == Some("client") || line.has_word("client");
        let is_encrypted = self.connection.as_ref().is_some_and(|(_, kind)| kind == "encrypted")
            || line.value("conn-type") == Some("encrypted");
        let is_client = has_host(tool) || tool == Tool::Transport && is_transport_client();
        if !is_client {
            if !line.has("cert") && text.contains("BEGIN CERTIFICATE") {
                line.guides(&format!("cert={file}"));
            }
            line.guides(&format!("key={file}"));
        } else if line.has("tls") || is_encrypted {
            line.guides(&format!("ca={file}"));
        } else {
            self.notes.push("-keyfile changes nothing: the connection is not encrypted".to_owned());
        }
        Ok(())
    }

    /// Sets a client's server: a missing host or port is that of `--server`, or else the default.
    fn server(&mut self, tool: Tool, line: &mut Line) -> Result<(), Hinted> {
        if self.host.is_none() && self.port.is_none() {
            return Ok(());
        }
        if let Some(port) = &self.port
            && !port.parse::<u16>().is_ok_and(|port| port > 0)
        {
            return Err(Hinted::new(format!("-p is '{port}', which is no port; expected 1 to 65535"), ""));
        }
        let before = line.value("server").and_then(|server| server.rsplit_once(':'));
        let (host, port) = before.unwrap_or(("localhost", tool.usual_port()));
        let host = self.host.as_deref().unwrap_or(host);
        let is_bare = host.contains(':') && !host.starts_with('[');
        let host = if is_bare { format!("[{host}]") } else { host.to_owned() };
        let server = format!("server={host}:{}", self.port.as_deref().unwrap_or(port));
        line.guides(&server);
        Ok(())
    }

    /// Interprets the connection type; returns whether it is a WebSocket.
    fn connection(&self, is_client: bool, line: &mut Line) -> Result<bool, Hinted> {
        let usual = ("-connType".to_owned(), "socket".to_owned());
        let (outer, kind) = self.connection.as_ref().unwrap_or(&usual);
        let (option, inner) = match (kind.as_str(), &self.encrypted) {
            ("encrypted", Some((option, inner))) => (option, inner.as_str()),
            ("encrypted", None) => (outer, "socket"),
            (kind, _) => (outer, kind),
        };
        let known = "expected socket, websocket or encrypted";
        match inner {
            "socket" | "websocket" => {}
            "http" => {
                let why = "RSSL is not tunnelled through HTTP";
                return Err(Hinted::new(format!("{option} http cannot be: {why}"), "take websocket"));
            }
            "reliableMCast" => {
                let what = format!("{option} reliableMCast cannot be: there is no multicast to hubs");
                return Err(Hinted::new(what, "take socket"));
            }
            _ => return Err(Hinted::new(format!("{option} is '{inner}'; {known}"), "")),
        }
        if kind == "encrypted" && is_client {
            line.guides("tls");
        } else if kind == "encrypted" && !line.has("cert") {
            let hint = "name them with -cert and -keyfile";
            return Err(Hinted::new(format!("{outer} encrypted needs a certificate and a key"), hint));
        }
        Ok(inner == "websocket")
    }

    /// The settings of `EmaConfig.xml` to use: the named ones, or through an EMA link the defaults of EMA's tools.
    fn config(
        &self,
        tool: Tool,
        link: Option<&str>,
        folder: &Path,
        has_config: bool,
    ) -> Result<Vec<String>, Hinted> {
        let usual = match (tool, &self.protocols) {
            (Tool::Consumer, Some((_, list))) if list.contains("json") => "Perf_Consumer_WSJSON",
            (Tool::Consumer, Some(_)) => "Perf_Consumer_WSRWF",
            (Tool::Consumer, None) => "Perf_Consumer",
            (Tool::NiProvider, _) => "Perf_NIProvider",
            _ => "Perf_Provider",
        };
        let name = match &self.config_name {
            Some((_, name)) => name.as_str(),
            None if is_ema(tool, link) => usual,
            None => return Ok(Vec::new()),
        };
        if has_config {
            return Ok(vec![format!("config-name={name}")]);
        }
        let Ok(text) = std::fs::read_to_string(folder.join(EMA_CONFIG)) else {
            return match &self.config_name {
                None => Ok(Vec::new()),
                Some((option, _)) => {
                    let what = format!("{option} {name} is of {EMA_CONFIG}, which is not in this folder");
                    Err(Hinted::new(what, "--config names another file"))
                }
            };
        };
        // The first thread's settings; the reader finds those of further threads by their numbers.
        let is_there = |name: &str| text.contains(&format!("\"{name}\""));
        let numbered = format!("{name}_1");
        let name = if !is_there(name) && is_there(&numbered) { &numbered } else { name };
        let config = format!("config={EMA_CONFIG}");
        // Default names may be missing: then the file's own default applies.
        if self.config_name.is_none() && !is_there(name) {
            return Ok(vec![config]);
        }
        Ok(vec![config, format!("config-name={name}")])
    }
}

#[cfg(test)]
mod tests;
