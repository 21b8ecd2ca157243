//! `tapeline omm`: Tapeline's consumer and provider against each other, through the real binary.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::{Output, Stdio};

use serde_json::Value;
use stage::{Running, tapeline};

use crate::shared_data;
use crate::stage;

/// A provider on its own port.
struct Provider {
    running: Running,
    server: String,
}

impl Provider {
    fn start(options: &[&str]) -> Self {
        let fixed = ["omm", "serve", "--port", "0"];
        let rate = if options.contains(&"--update-rate") { &[][..] } else { &["--update-rate", "2000"] };
        let mut running = Running::start(&[&fixed, rate, options].concat());
        let listening = running.says();
        assert_eq!(listening["event"], "listening", "{listening}");
        Self { running, server: format!("localhost:{}", listening["port"]) }
    }

    /// Runs a consumer of the provider to its end.
    fn consume(&self, options: &[&str]) -> Consumed {
        let fixed = ["omm", "watch", "--server", &self.server, "--user", "tester"];
        Consumed::of(tapeline(&[&fixed, options].concat()).output().unwrap())
    }
}

struct Consumed {
    events: Vec<Value>,
    code: i32,
    talk: String,
}

impl Consumed {
    fn of(output: Output) -> Self {
        let text = String::from_utf8(output.stdout).unwrap();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let talk = String::from_utf8(output.stderr).unwrap();
        Self { events, code: output.status.code().unwrap(), talk }
    }

    fn all(&self, event: &str) -> Vec<&Value> {
        self.events.iter().filter(|value| value["event"] == event).collect()
    }

    fn one(&self, event: &str) -> &Value {
        let all = self.all(event);
        assert_eq!(all.len(), 1, "{event}: {:?}\n{}", self.events, self.talk);
        all[0]
    }

    fn end(&self) -> &Value {
        self.one("end")
    }
}

#[test]
fn items_are_opened_updated_and_closed() {
    let mut provider = Provider::start(&[]);
    let seen = provider.consume(&["IBM", "AAPL", "--updates", "3"]);
    assert_eq!(seen.code, 0, "{}", seen.talk);
    assert_eq!(seen.one("directory")["services"][0], "DIRECT_FEED");
    let refreshes = seen.all("refresh");
    assert_eq!(refreshes.len(), 2);
    assert_eq!(refreshes[0]["item"], "IBM");
    assert_eq!(refreshes[0]["state"]["stream"], "OPEN");
    assert_eq!(refreshes[0]["fields"]["CURRENCY"], "USD");
    assert!(refreshes[0]["fields"]["BID"].is_number());
    assert!(seen.end()["updates"].as_u64().unwrap() >= 6);

    assert_eq!(provider.running.says()["event"], "login");
    let gone = provider.running.says();
    assert_eq!(
        (&gone["event"], &gone["requests"], &gone["user"]),
        (&"gone".into(), &2.into(), &"tester".into())
    );
    provider.running.ask_to_end();
    assert_eq!(provider.running.says()["event"], "end");
    assert!(provider.running.child.wait().unwrap().success());
}

#[test]
fn snapshots_batches_and_views() {
    let provider = Provider::start(&[]);
    let seen = provider.consume(&["A", "B", "C", "--snapshot", "--batch"]);
    assert_eq!((seen.code, seen.all("refresh").len()), (0, 3), "{}", seen.talk);
    assert!(seen.all("refresh").iter().all(|refresh| refresh["state"]["stream"] == "NON_STREAMING"));
    assert_eq!(seen.end()["updates"], 0);

    let seen = provider.consume(&["A", "--view", "BID,ASK", "--updates", "5"]);
    let wanted = BTreeSet::from(["BID", "ASK"]);
    for event in [seen.all("refresh"), seen.all("update")].concat() {
        let fields: BTreeSet<_> = event["fields"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, wanted, "{event}");
    }
    assert_eq!(seen.code, 0);
}

#[test]
fn posts_are_acknowledged_and_reflected_or_refused() {
    let provider = Provider::start(&["--update-rate", "0"]);
    // Only posts cause updates.
    for more in [&[][..], &["--off-stream"]] {
        let post = ["POSTED", "--post", "BID=1.5,HALT_REASN=", "--updates", "1"];
        let seen = provider.consume(&[&post, more].concat());
        assert_eq!(seen.code, 0, "{}", seen.talk);
        assert_eq!(seen.one("ack")["item"], "POSTED");
        let update = seen.one("update");
        assert_eq!((&update["fields"]["BID"], &update["fields"]["HALT_REASN"]), (&1.5.into(), &Value::Null));
    }
    let seen = provider.consume(&["NAK", "--post", "BID=2", "--updates", "0"]);
    assert_eq!((seen.code, &seen.one("ack")["nak"]), (0, &"DENIED_BY_SRC".into()));
    assert_eq!((&seen.end()["naks"], &seen.end()["updates"]), (&1.into(), &0.into()));
}

#[test]
fn generic_messages_come_back() {
    let provider = Provider::start(&[]);
    let seen = provider.consume(&["A", "--generic", "who is there", "--updates", "0"]);
    assert_eq!(seen.one("generic")["elements"]["Text"], "who is there");
    assert_eq!(seen.code, 0);
}

#[test]
fn books_of_orders_of_any_size() {
    let provider = Provider::start(&[]);
    let book = ["--domain", "MarketByOrder"];
    let seen = provider.consume(&[&book[..], &["A", "--updates", "4"]].concat());
    let refresh = seen.one("refresh");
    assert_eq!(refresh["entries"].as_array().unwrap().len(), 20);
    assert_eq!(refresh["entries"][0]["fields"]["ORDER_SIDE"], "BID");
    let actions: BTreeSet<_> = seen
        .all("update")
        .iter()
        .map(|update| update["entries"][0]["action"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(actions, ["add", "delete", "update"].map(str::to_owned).into());
    // More than a megabyte, in fragments.
    let seen = provider.consume(&[&book[..], &["BIG", "--snapshot"]].concat());
    assert_eq!(seen.one("refresh")["entries"].as_array().unwrap().len(), 20_000);
}

/// A dictionary that lacks fields is served unchanged, with a warning that names the fields.
#[test]
fn a_provider_says_which_of_its_fields_a_dictionary_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fields");
    let builtin = tapeline_omm::Dictionary::BUILTIN_FIELDS;
    let kept = builtin.lines().filter(|line| !line.starts_with("MMID ") && !line.starts_with("QUOTIM_NS "));
    let kept: String = kept.map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, kept).unwrap();
    for (options, expected) in [
        (&[][..], None),
        (
            &["--dictionary", file.to_str().unwrap()],
            Some("2 of the fields that are served: QUOTIM_NS (14265), MMID (3435)\n"),
        ),
    ] {
        let arguments = [&["omm", "serve", "--port", "0"], options].concat();
        let (mut running, mut talk) = Running::start_talking(&arguments);
        assert_eq!(running.says()["event"], "listening");
        running.ask_to_end();
        running.says();
        let mut said = String::new();
        talk.read_to_string(&mut said).unwrap();
        match expected {
            Some(expected) => assert!(said.contains(expected), "{said}"),
            None => assert!(!said.contains("lacks"), "{said}"),
        }
    }
}

#[test]
fn a_dictionary_is_downloaded() {
    let provider = Provider::start(&[]);
    let seen = provider.consume(&["A", "--snapshot", "--download-dictionary"]);
    assert_eq!((seen.code, &seen.one("dictionary")["tables"]), (0, &19.into()), "{}", seen.talk);
    assert_eq!(seen.one("refresh")["fields"]["CURRENCY"], "USD");
}

#[test]
fn what_is_not_there_is_a_failure() {
    let provider = Provider::start(&["--deny", "tester"]);
    let seen = provider.consume(&["A", "--snapshot"]);
    assert_eq!(seen.code, 1);
    assert!(seen.talk.contains("is over: CLOSED/SUSPECT/NOT_ENTITLED"), "{}", seen.talk);

    let provider = Provider::start(&[]);
    let seen = provider.consume(&["UNKNOWN", "A", "--snapshot"]);
    assert_eq!((seen.code, &seen.end()["closed"], &seen.end()["images"]), (1, &1.into(), &1.into()));
    assert_eq!(seen.one("status")["state"]["code"], "NOT_FOUND");
    let seen = provider.consume(&["GONE", "--updates", "5"]);
    assert_eq!((seen.code, &seen.one("status")["state"]["stream"]), (1, &"CLOSED".into()));
}

fn until(running: &mut Running, event: &str) -> Value {
    loop {
        let said = running.says();
        if said["event"] == event {
            return said;
        }
    }
}

#[test]
fn an_item_comes_back_with_its_provider() {
    let mut provider = Provider::start(&[]);
    let fixed = ["omm", "watch", "--server", &provider.server, "--user", "tester", "--updates", "1000000000"];
    let mut consumer = Running::start(&[&fixed[..], &["LASTING"]].concat());
    let mut until = |event: &str| until(&mut consumer, event);
    until("refresh");
    provider.running.child.kill().unwrap();
    provider.running.child.wait().unwrap();
    until("disconnected");
    assert_eq!(until("state")["state"]["data"], "SUSPECT");
    let port = provider.server.strip_prefix("localhost:").unwrap();
    let _again = Running::start(&["omm", "serve", "--port", port]);
    until("refresh");
    consumer.ask_to_end();
    assert_eq!(self::until(&mut consumer, "end")["logins"], 2);
    consumer.child.wait().unwrap();
}

#[test]
fn wrong_command_lines_are_explained() {
    let refused = |arguments: &[&str], expected: &[&str]| {
        let output =
            tapeline(&[&["omm", "watch"], arguments].concat()).stdin(Stdio::null()).output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{talk}");
        for text in expected {
            assert!(talk.contains(text), "{text} in {talk}");
        }
    };
    refused(&[], &["there are no items", "--item-file"]);
    refused(&["A", "--view", "BDI"], &["no field BDI", "there is BID"]);
    refused(&["A", "--post", "BID=high"], &["'high' is not a value of field 22, a REAL"]);
    refused(&["A", "--domain", "MarketOrder"], &["is neither a domain"]);
    refused(&["A", "--password-file", "/nonexistent"], &["cannot read /nonexistent"]);
    refused(&["A", "--dictionary", "/nonexistent"], &["cannot read /nonexistent"]);
    refused(&["A", "--ca", "x"], &["--tls"]);
    let nowhere = ["omm", "watch", "A", "--server", "nowhere.invalid:1", "--attempts", "1"];
    let seen = Consumed::of(tapeline(&nowhere).output().unwrap());
    assert_eq!((seen.code, &seen.one("disconnected")["server"]), (1, &"nowhere.invalid:1".into()));
    assert!(seen.talk.contains("cannot find the server") && seen.talk.contains("is over"), "{}", seen.talk);
}

#[test]
fn settings_of_ema_are_taken_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("EmaConfig.xml");
    let write = |port: &str| {
        let text = format!(
            r#"<EmaConfig>
<ConsumerGroup><DefaultConsumer value="Second"/><ConsumerList>
    <Consumer><Name value="First"/></Consumer>
    <Consumer><Name value="Second"/><ChannelSet value="Nowhere, Here"/><Dictionary value="Wire"/>
        <ReconnectMinDelay value="10"/><ReconnectMaxDelay value="10"/></Consumer>
</ConsumerList></ConsumerGroup>
<IProviderGroup><IProviderList>
    <IProvider><Name value="Provider"/><Server value="Server"/><Directory value="Directory"/></IProvider>
</IProviderList></IProviderGroup>
<ChannelGroup><ChannelList>
    <Channel><Name value="Nowhere"/><Host value="127.0.0.1"/><Port value="1"/></Channel>
    <Channel><Name value="Here"/><Host value="127.0.0.1"/><Port value="{port}"/>
        <CompressionType value="CompressionType::LZ4"/></Channel>
</ChannelList></ChannelGroup>
<ServerGroup><ServerList>
    <Server><Name value="Server"/><Port value="0"/><CompressionType value="CompressionType::ZLib"/>
        <ConnectionPingTimeout value="40000"/></Server>
</ServerList></ServerGroup>
<DirectoryGroup><DirectoryList><Directory><Name value="Directory"/>
    <Service><Name value="ONE"/><InfoFilter><ServiceId value="7"/></InfoFilter></Service>
    <Service><Name value="TWO"/><InfoFilter><ServiceId value="8"/></InfoFilter></Service>
</Directory></DirectoryList></DirectoryGroup>
<DictionaryGroup><DictionaryList>
    <Dictionary><Name value="Wire"/><DictionaryType value="DictionaryType::ChannelDictionary"/></Dictionary>
</DictionaryList></DictionaryGroup>
</EmaConfig>
"#
        );
        std::fs::write(&file, text).unwrap();
    };
    write("2");
    let config = ["--config", file.to_str().unwrap()];
    let mut provider = Running::start(&[&["omm", "serve"], &config[..]].concat());
    write(&provider.says()["port"].to_string());
    let items = ["omm", "watch", "A", "--user", "tester", "--service", "TWO", "--snapshot"];
    let seen = Consumed::of(tapeline(&[&items, &config[..]].concat()).output().unwrap());
    assert_eq!(seen.code, 0, "{}", seen.talk);
    // The second channel, since the first has no server; the dictionary of the configuration; the negotiated settings.
    assert_eq!(seen.all("disconnected").len(), 1);
    let connected = seen.one("connected");
    assert_eq!((&connected["compression"], &connected["ping_timeout"]), (&"lz4".into(), &30.into()));
    assert_eq!(seen.one("directory")["services"], serde_json::json!(["ONE", "TWO"]));
    assert_eq!(seen.all("dictionary").len(), 1);
    assert!(seen.talk.contains("the settings are those of Second"), "{}", seen.talk);

    let refused = |change: (&str, &str), expected: &[&str]| {
        let text = std::fs::read_to_string(&file).unwrap();
        let other = folder.path().join("Other.xml");
        std::fs::write(&other, text.replace(change.0, change.1)).unwrap();
        let output =
            tapeline(&[&items, &["--config", other.to_str().unwrap()][..]].concat()).output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && expected.iter().all(|text| talk.contains(text)), "{talk}");
    };
    refused(
        ("ReconnectMinDelay", "ReconnectMinDelai"),
        &["Other.xml:5: ", "hint: there is ReconnectMinDelay"],
    );
    refused(
        ("ReconnectMinDelay value=\"10\"", "ReconnectMinDelay value=\"20\""),
        &["Other.xml:5: ReconnectMinDelay is 20"],
    );
    refused(
        ("Nowhere, Here", "Nowhere, Hear"),
        &["Other.xml:4: there is no Channel called Hear", "there is Here"],
    );
    refused(("DefaultConsumer value=\"Second\"", "DefaultConsumer value=\"Secnd\""), &["Other.xml:2: "]);
}

/// A hub's settings are those of a provider; an NI provider publishes every service of its directory.
#[test]
fn an_acceptor_and_an_ni_provider_take_theirs_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("EmaConfig.toml");
    std::fs::write(
        &file,
        r#"
[[IProvider]]
Name = "Hub"
Server = "Server"

[[Server]]
Name = "Server"
Port = 0
InterfaceName = "127.0.0.1"
CompressionType = "LZ4"
DirectWrite = 1

[[NiProvider]]
Name = "Publisher"
Channel = "Channel"
Directory = "Directory"

[[Channel]]
Name = "Channel"
CompressionType = "LZ4"

[[Directory]]
Name = "Directory"
Service = [
    { Name = "ONE", InfoFilter = { ServiceId = 7 } },
    { Name = "TWO", InfoFilter = { ServiceId = 8 } },
]
"#,
    )
    .unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let mut acceptor = Running::start(&[&["omm", "accept"], &config[..]].concat());
    let listening = acceptor.says();
    assert_eq!(listening["address"].as_str().unwrap().split(':').next(), Some("127.0.0.1"));
    let server = format!("localhost:{}", listening["port"]);
    let publish = |more: &[&str]| {
        let fixed = ["omm", "publish", "A", "--user", "tester", "--server", &server, "--updates", "0"];
        let output = tapeline(&[&fixed, &config[..], more].concat()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    for (more, services) in [
        (&[][..], vec!["ONE", "TWO"]),
        (&["--service", "TWO"], vec!["ONE", "TWO"]),
        (&["--service", "X"], vec!["X"]),
    ] {
        publish(more);
        let mut named = Vec::new();
        loop {
            let said = acceptor.says();
            match said["event"].as_str().unwrap() {
                "directory" => named.push(said["name"].as_str().unwrap().to_owned()),
                "gone" => {
                    assert_eq!(said["refreshes"], 1, "{said}");
                    break;
                }
                _ => {}
            }
        }
        assert_eq!(named, services);
    }
}

/// Settings that only EMA uses are reported once.
#[test]
fn settings_without_an_effect_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("EmaConfig.toml");
    let text = "[[Consumer]]\nName = \"A\"\nItemCountHint = 5\nXmlTraceToStdout = 0\n";
    std::fs::write(&file, text).unwrap();
    let fixed = ["omm", "watch", "A", "--user", "tester", "--attempts", "1", "--server", "127.0.0.1:1"];
    let output = tapeline(&[&fixed, &["--config", file.to_str().unwrap()][..]].concat()).output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    // `ItemCountHint`, the line before, has an effect.
    let expected = "EmaConfig.toml: settings without an effect here: XmlTraceToStdout (line 4)";
    assert_eq!(talk.matches(expected).count(), 1, "{talk}");
}

/// Every example configuration of LSEG's is accepted.
#[test]
fn the_examples_of_ema_are_taken() {
    let Some(folder) = shared_data::shared("refinitiv") else { return };
    let names = [
        "EmaConfig-cpp.xml",
        "EmaConfig-java.xml",
        "perftools/EmaConfig-cpp-perftools.xml",
        "perftools/EmaConfig-java-perftools.xml",
    ];
    for name in names {
        let file = folder.join(name);
        let items = ["omm", "watch", "A", "--user", "tester", "--attempts", "1", "--server", "127.0.0.1:1"];
        let config = ["--config", file.to_str().unwrap()];
        // Some examples are in another folder than the dictionary's files.
        let dictionary = folder.join("RDMFieldDictionary");
        let dictionary = ["--dictionary", dictionary.to_str().unwrap()];
        let output = tapeline(&[&items, &config[..], &dictionary].concat()).output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(talk.contains("the settings are those of"), "{name}: {talk}");
        assert!(talk.contains("no connection to 127.0.0.1:1"), "{name}: {talk}");
    }
}

/// The files of LSEG's performance tools.
#[test]
fn lists_of_items_and_messages_are_read_from_files() {
    let Some(folder) = shared_data::shared("refinitiv") else { return };
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let dictionary = ["--dictionary", &file("RDMFieldDictionary"), "--enums", &file("enumtype.def")];
    let provider =
        Provider::start(&["--message-file", &file("perftools/MsgData.xml"), "--update-rate", "20000"]);
    let asked = ["--item-file", &file("perftools/1k.xml"), "--batch", "--updates", "2"];
    let seen = provider.consume(&[&asked[..], &dictionary].concat());
    assert_eq!((seen.code, &seen.end()["images"]), (0, &1_000.into()), "{}", seen.talk);
    let refresh = seen.all("refresh")[0];
    // 70 fields from the file, and four for the times.
    assert_eq!(refresh["fields"].as_object().unwrap().len(), 74);
    assert_eq!((&refresh["item"], &refresh["fields"]["TRDPRC_1"]), (&"RDT1".into(), &398.15.into()));
    assert_eq!(seen.all("update")[0]["fields"].as_object().unwrap().len(), 13);
}
