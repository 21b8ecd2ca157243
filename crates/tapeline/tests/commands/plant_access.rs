//! Authentication and entitlements: a real plant, its hub, and clients of the WebSocket API.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Stdio};

use serde_json::{Value, json};
use stage::{Place, Running, tapeline};
use tungstenite::client::IntoClientRequest;
use tungstenite::http::HeaderValue;
use tungstenite::{Message, WebSocket};

use crate::pages;
use crate::stage;

/// A plant with a hub that has access rules.
struct Market {
    place: Place,
    plant: Running,
    talk: BufReader<ChildStderr>,
    hub: String,
    config: PathBuf,
    /// The configuration without its access part.
    text: String,
}

impl Market {
    fn open(place: Place, access: &str) -> Self {
        let config = PathBuf::from(place.config(""));
        let text =
            std::fs::read_to_string(&config).unwrap() + "[hub]\nport = 0\nunknown = \"wait\"\n[hub.access]\n";
        std::fs::write(&config, format!("{text}{access}")).unwrap();
        let arguments = ["plant", "--config", config.to_str().unwrap(), "--format", "json"];
        let (mut plant, talk) = Running::start_talking(&arguments);
        let hub = plant.says()["hub"].as_str().unwrap().to_owned();
        Self { place, plant, talk: BufReader::new(talk), hub, config, text }
    }

    fn publish(&self, messages: &str) {
        let file = self.place.folder.path().join("day.itch");
        let write = ["feed", "simulate", "--symbols", "3", "--messages", messages, "--write"];
        let output = tapeline(&[&write[..], &[file.to_str().unwrap()]].concat()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.place.replay(&file, 0);
    }

    /// Sends a heartbeat: the service is up, without a message yet.
    fn wake(&self) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let heartbeat = [b"TAPELINE  ".as_slice(), &1u64.to_be_bytes(), &[0, 0]].concat();
        socket.send_to(&heartbeat, self.place.lines[0]).unwrap();
    }

    /// Writes another access part, and has the plant reload it.
    fn set(&self, access: &str) {
        std::fs::write(&self.config, format!("{}{access}", self.text)).unwrap();
        let pid = rustix::process::Pid::from_child(&self.plant.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }

    /// The lines on standard error, up to a line with this text.
    fn talks_until(&mut self, says: &str) -> String {
        let mut said = String::new();
        while !said.contains(says) {
            assert!(self.talk.read_line(&mut said).unwrap() > 0, "it ended: {said}");
        }
        said
    }

    fn end(&mut self) {
        self.plant.ask_to_end();
        while self.plant.may_say().is_some() {}
    }
}

/// A client of the WebSocket API.
struct Client {
    socket: WebSocket<TcpStream>,
    messages: VecDeque<Value>,
}

impl Client {
    fn connect(market: &Market) -> Self {
        Self::connect_with(market, None)
    }

    /// `cookies`: those of the opening request.
    fn connect_with(market: &Market, cookies: Option<&str>) -> Self {
        let mut request = format!("ws://{}/WebSocket", market.hub).into_client_request().unwrap();
        request.headers_mut().insert("Sec-WebSocket-Protocol", HeaderValue::from_static("tr_json2"));
        if let Some(cookies) = cookies {
            request.headers_mut().insert("Cookie", HeaderValue::from_str(cookies).unwrap());
        }
        let (socket, _) = tungstenite::client(request, TcpStream::connect(&market.hub).unwrap()).unwrap();
        Self { socket, messages: VecDeque::new() }
    }

    fn send(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).unwrap();
    }

    /// The next message; `None` at the end of the connection.
    fn next(&mut self) -> Option<Value> {
        while self.messages.is_empty() {
            let text = match self.socket.read() {
                Ok(Message::Text(text)) => text,
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => continue,
            };
            match serde_json::from_str(&text).unwrap() {
                Value::Array(messages) => self.messages.extend(messages),
                message => self.messages.push_back(message),
            }
        }
        let message = self.messages.pop_front()?;
        if message["Type"] == "Ping" {
            self.send(&json!({ "Type": "Pong" }));
            return self.next();
        }
        Some(message)
    }

    /// The next state on a stream: stream state, code, text.
    fn state(&mut self, id: u64) -> (String, String, String) {
        loop {
            let message = self.next().expect("a state before the end");
            if message["ID"] == id && message["State"].is_object() {
                let text = |member: &str| message["State"][member].as_str().unwrap_or_default().to_owned();
                return (text("Stream"), text("Code"), text("Text"));
            }
        }
    }

    /// Logs in; returns the resulting state.
    fn log_in(&mut self, key: &Value) -> (String, String, String) {
        self.send(&json!({ "ID": 1, "Domain": "Login", "Key": key }));
        self.state(1)
    }

    /// Requests an item until the hub's feed is up; returns the stream.
    fn open(&mut self, first: u64, name: &str) -> u64 {
        (first..).find(|id| self.ask(*id, name).0 == OPEN).unwrap()
    }

    fn ask(&mut self, id: u64, name: &str) -> (String, String, String) {
        self.send(&json!({ "ID": id, "Key": { "Name": name } }));
        self.state(id)
    }
}

fn by_password(user: &str, password: &str) -> Value {
    json!({ "Name": user, "Elements": { "ApplicationId": "256", "Position": "127.0.0.1/net", "Password": password } })
}

fn by_token(token: &str) -> Value {
    json!({ "NameType": "AuthnToken", "Elements": { "AuthenticationToken": token } })
}

/// Gives a user a password.
fn passwd(users: &Path, user: &str, password: &str) {
    let mut command = tapeline(&["plant", "passwd", user, "--users", users.to_str().unwrap()]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{password}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Gives a user a token.
fn token(users: &Path, user: &str) -> String {
    let output = tapeline(&["plant", "token", user, "--users", users.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

const OPEN: &str = "Open";
const RULES: &str = "login = \"password\"\nusers = \"users.txt\"\naudit = \"audit.jsonl\"\n\
                     [[hub.access.rule]]\nusers = [\"bob\"]\n\
                     [[hub.access.rule]]\nusers = [\"al*\"]\nitems = [\"TA?E\", \"SENA\"]\n";

#[test]
fn passwords_rules_their_change_and_the_audit() {
    let place = Place::new(1);
    let folder = place.folder.path().to_owned();
    let users = folder.join("users.txt");
    passwd(&users, "alice", "battery staple");
    passwd(&users, "bob", "correct horse");
    let mut market = Market::open(place, RULES);
    market.publish("3k");
    let mut bob = Client::connect(&market);
    assert_eq!(bob.log_in(&by_password("bob", "correct horse")).0, OPEN);
    bob.open(100, "TAPE");
    assert_eq!(bob.ask(6, "RIMU").0, OPEN);
    let mut eve = Client::connect(&market);
    let (stream, code, text) = eve.log_in(&by_password("alice", "correct horse"));
    assert_eq!((&*stream, &*code, &*text), ("Closed", "NotEntitled", "The name or the password is wrong"));
    assert_eq!(eve.next(), None, "the connection ends");
    let mut alice = Client::connect(&market);
    assert_eq!(alice.log_in(&by_password("alice", "battery staple")).0, OPEN);
    assert_eq!(alice.ask(5, "TAPE").0, OPEN);
    let (stream, code, _) = alice.ask(6, "RIMU");
    assert_eq!((&*stream, &*code), ("Closed", "NotEntitled"));
    // A removed rule closes her item, and no other user's.
    market.set(&RULES.replace("\"TA?E\", ", ""));
    let (stream, code, _) = alice.state(5);
    assert_eq!((&*stream, &*code), ("Closed", "NotEntitled"));
    assert_eq!((bob.ask(7, "TAPE").0, alice.ask(7, "SENA").0), (OPEN.to_owned(), OPEN.to_owned()));
    // An invalid file is reported and changes nothing.
    std::fs::rename(folder.join("audit.jsonl"), folder.join("audit.1")).unwrap();
    market.set(&RULES.replace("items =", "itmes ="));
    let said = market.talks_until("users and rules stay as they were");
    assert!(said.contains("plant.toml:") && said.contains("unknown key `itmes`"), "{said}");
    assert!(said.contains("hint: did you mean `items`?"), "{said}");
    assert_eq!((bob.ask(8, "RIMU").0, alice.ask(8, "SENA").0), (OPEN.to_owned(), OPEN.to_owned()));
    drop(alice);
    market.end();
    let read = |file| std::fs::read_to_string(folder.join(file)).unwrap();
    let text = format!("{}{}", read("audit.1"), read("audit.jsonl"));
    assert!(!text.contains("horse") && !text.contains("staple"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| (line["event"].as_str().unwrap(), line["user"].as_str().unwrap_or_default()))
        .collect();
    for event in [
        ("login", "bob"),
        ("login", "alice"),
        ("login refused", "alice"),
        ("gone", "alice"),
        ("gone", "bob"),
        ("rules read", ""),
        ("rules kept", ""),
    ] {
        assert!(events.contains(&event), "{event:?}: {text}");
    }
    let denied: Vec<&Value> = lines.iter().filter(|line| line["event"] == "denied").collect();
    assert_eq!(
        denied.iter().map(|line| line["item"].as_str().unwrap()).collect::<Vec<_>>(),
        ["RIMU", "TAPE"]
    );
    assert_eq!(denied[0]["domain"], "MarketPrice");
    assert_eq!((&lines[0]["position"], &lines[0]["encrypted"]), (&json!("127.0.0.1/net"), &json!(false)));
    assert!(lines[0]["address"].as_str().unwrap().starts_with("127.0.0.1:"));
    assert!(read("audit.jsonl").contains("\"gone\"") && !read("audit.1").contains("\"gone\",\"session\":2"));
}

#[test]
fn a_token_lets_in_until_it_is_taken_back() {
    let place = Place::new(1);
    let users = place.folder.path().join("users.txt");
    let (first, second) = (token(&users, "report"), token(&users, "report"));
    let access = "login = \"token\"\nusers = \"users.txt\"\nmax_connections = 2\n";
    let mut market = Market::open(place, access);
    let mut clients = [&first, &second].map(|token| {
        let mut client = Client::connect(&market);
        assert_eq!(client.log_in(&by_token(token)).0, OPEN);
        client
    });
    let mut third = Client::connect(&market);
    assert_eq!(third.log_in(&by_token(&second)).1, "MaxLoginsReached");
    let mut stranger = Client::connect(&market);
    assert_eq!(stranger.log_in(&by_token("guessed")).1, "NotEntitled");
    // Remove the first line, which is the first token.
    let text = std::fs::read_to_string(&users).unwrap();
    std::fs::write(&users, text.lines().nth(1).unwrap()).unwrap();
    market.set(access);
    market.talks_until("read again: 1 users, 0 rules");
    assert_eq!(clients[0].state(1).2, "This user may not be logged in any more");
    assert_eq!(clients[0].next(), None);
    market.wake();
    clients[1].open(5, "TAPE");
    market.end();
}

/// Login as in the samples with authentication: a cookie with a token in the opening, without a login message.
#[test]
fn a_cookie_of_the_opening_is_a_login_through_the_same_gate() {
    let place = Place::new(1);
    let users = place.folder.path().join("users.txt");
    let token = token(&users, "report");
    let access = "login = \"token\"\nusers = \"users.txt\"\naudit = \"audit.jsonl\"\n";
    let mut market = Market::open(place, access);
    let cookies =
        |token: &str| format!("theme=dark; AuthToken={token};AuthPosition=192.0.2.7/net;applicationId=555;");
    let mut client = Client::connect_with(&market, Some(&cookies(&token)));
    let login = client.next().expect("a login refresh, unasked");
    assert_eq!(
        (&login["Type"], &login["Domain"], &login["ID"]),
        (&json!("Refresh"), &json!("Login"), &json!(-1))
    );
    assert_eq!(login["State"]["Stream"], OPEN, "{login}");
    assert_eq!(login["Key"]["Elements"]["Position"], "192.0.2.7/net", "{login}");
    market.wake();
    client.open(2, "TAPE");
    let mut stranger = Client::connect_with(&market, Some(&cookies("guessed")));
    let refusal = stranger.next().expect("a refusal, unasked");
    assert_eq!(
        (&refusal["Domain"], &refusal["State"]["Code"]),
        (&json!("Login"), &json!("NotEntitled")),
        "{refusal}"
    );
    assert_eq!(stranger.next(), None);
    // Without a token, cookies have no effect.
    let mut other = Client::connect_with(&market, Some("theme=dark; AuthPosition=192.0.2.7/net"));
    assert_eq!(other.log_in(&by_token(&token)).0, OPEN);
    market.end();
    let audit = std::fs::read_to_string(market.place.folder.path().join("audit.jsonl")).unwrap();
    assert!(audit.contains("report") && !audit.contains(&token), "{audit}");
}

#[test]
fn a_storm_of_wrong_passwords_costs_a_witness_nothing() {
    let place = Place::new(1);
    let users = place.folder.path().join("users.txt");
    passwd(&users, "bob", "correct horse");
    let mut market = Market::open(place, "login = \"password\"\nusers = \"users.txt\"\n");
    let mut bob = Client::connect(&market);
    assert_eq!(bob.log_in(&by_password("bob", "correct horse")).0, OPEN);
    market.wake();
    let stream = bob.open(100, "TAPE");
    // Each client has a thread that answers pings, since fifty password checks take time.
    let storm: Vec<_> = (0..50)
        .map(|number| {
            let mut client = Client::connect(&market);
            let key = by_password(&format!("guess {number}"), "wrong");
            std::thread::spawn(move || client.log_in(&key))
        })
        .collect();
    market.publish("1k");
    let mut images = 0;
    let mut updates = 0_u64;
    // A later snapshot on the same connection has the sum of all updates.
    bob.send(&json!({ "ID": 6, "Key": { "Name": "TAPE" }, "Streaming": false }));
    let mut now = serde_json::Map::new();
    let last = loop {
        let Some(message) = bob.next() else {
            market.plant.ask_to_end();
            let mut said = String::new();
            market.talk.read_to_string(&mut said).unwrap();
            panic!("bob is gone: {said}");
        };
        let fields = || message["Fields"].as_object().cloned().unwrap_or_default();
        match (message["ID"].as_u64(), message["Type"].as_str()) {
            (Some(6), Some("Refresh")) => break fields(),
            (Some(id), Some("Refresh")) if id == stream => {
                images += 1;
                now = fields();
            }
            (Some(id), Some("Update")) if id == stream => {
                updates += 1;
                now.extend(fields());
            }
            _ => {}
        }
    };
    assert!(images > 0 && updates > 0);
    assert_eq!(now, last);
    for guess in storm {
        let (stream, ..) = guess.join().unwrap();
        assert!(stream == "Closed" || stream == "ClosedRecover", "{stream}");
    }
    market.plant.ask_to_end();
    let report = market.plant.says();
    // No update was replaced by a new image.
    assert_eq!((&report["hub"]["cut"], &report["hub"]["conflated"]), (&json!(0), &json!(0)));
}

/// Runs `plant check` on a file: success, standard output, standard error.
fn check(config: &Path, options: &[&str]) -> (bool, String, String) {
    let fixed = ["plant", "check", config.to_str().unwrap()];
    let output = tapeline(&[&fixed[..], options].concat()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_check_says_all_that_is_wrong_and_what_would_run() {
    let place = Place::new(2);
    let config = PathBuf::from(place.config(""));
    let good = std::fs::read_to_string(&config).unwrap();
    let with = |more: &str| std::fs::write(&config, format!("{good}{more}")).unwrap();
    with("[hub]\nbind = \"0.0.0.0\"\n[hub.access]\n[[hub.access.rule]]\nusers = [\"al*\"]\n");
    let (ok, printed, said) = check(&config, &[]);
    assert!(ok, "{said}");
    for part in ["service", "ring", "feed", "0.0.0.0:14002", "1 rules", "total"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(said.contains("warning: anyone who can reach 0.0.0.0:14002 can connect"), "{said}");
    let (ok, printed, _) = check(&config, &["--format", "json"]);
    let checked: Value = serde_json::from_str(&printed).unwrap();
    assert!(ok && checked["ok"] == true && checked["faults"] == json!([]));
    assert!(checked["memory"][0]["bytes"].as_u64().unwrap() > 0);
    // The faults of each table, and all faults of the users' file.
    let users = place.folder.path().join("users.txt");
    std::fs::write(&users, "alice secret\nbob\n").unwrap();
    let feed = "[[feed]]\nname = \"other\"\nprotocol = \"pitch\"\n[[feed.line]]\naddress = \"239.1.1.1:1\"\n";
    let hub = "[hub]\nslow = \"never\"\n[hub.access]\nlogin = \"password\"\nusers = \"users.txt\"\n\
               [[hub.access.rule]]\nitems = []\n";
    // An unknown key hides no other fault.
    with(&format!("{feed}{hub}[hub.web]\nprot = 1\n"));
    let (ok, printed, said) = check(&config, &[]);
    assert!(!ok && printed.is_empty(), "{printed}");
    for fault in [
        ":12: protocol \"pitch\" is not known",
        "slow is \"never\"",
        "users.txt:1:7: this is not a hash in PHC format",
        "users.txt:2:4: bob has no hash",
        "an empty list",
        "unknown key `prot`",
    ] {
        assert!(said.contains(fault), "{fault}: {said}");
    }
    assert_eq!(said.matches("error: ").count(), 6, "{said}");
    assert!(said.contains("hint: `tapeline plant passwd NAME --users FILE`"), "{said}");
    assert!(!said.contains("secret"), "{said}");
    let (ok, printed, _) = check(&config, &["--format", "json"]);
    let checked: Value = serde_json::from_str(&printed).unwrap();
    assert!(!ok && checked["faults"].as_array().unwrap().len() == 6, "{checked}");
    assert!(!check(&place.folder.path().join("none.toml"), &[]).0);
}

#[test]
fn a_check_says_how_ticks_would_be_kept_and_what_is_in_the_way() {
    let place = Place::new(1);
    let folder = place.folder.path();
    let config = PathBuf::from(place.config(""));
    let good = std::fs::read_to_string(&config).unwrap();
    let with = |journal: &str, more: &str| {
        std::fs::write(&config, format!("{good}[journal]\nfolder = \"{journal}\"\n{more}")).unwrap();
    };
    let all = "durability = \"synced\"\non_failure = \"continue\"\nsegment_size = \"64KiB\"\nkeep_for = \"168h\"\n\
               keep_size = \"100GiB\"\n";
    for (more, is) in [
        ("", "written, on failure stop; files of 256 MiB, kept for ever"),
        (all, "synced, on failure continue; files of 64 KiB, kept for 168 h and up to 100 GiB"),
    ] {
        with("journal", more);
        let (ok, printed, said) = check(&config, &["--format", "json"]);
        assert!(ok, "{said}");
        let checked: Value = serde_json::from_str(&printed).unwrap();
        let mut parts = checked["runs"].as_array().unwrap().iter();
        let journal = parts.find(|part| part["part"] == "journal").expect("it is a part").clone();
        assert_eq!(journal["name"], folder.join("journal").to_str().unwrap());
        assert_eq!(journal["is"], is);
    }
    assert!(!folder.join("journal").exists(), "a check makes nothing");
    std::fs::write(folder.join("file"), "").unwrap();
    for (journal, says) in [
        ("file", "file is a file"),
        ("file/journal", "file/journal: "),
        ("none/journal", "none/journal cannot be created: "),
    ] {
        with(journal, "");
        let (ok, _, said) = check(&config, &[]);
        assert!(!ok && said.contains("the journal's folder "), "{journal}: {said}");
        assert!(said.contains(says) && said.contains("hint: folder in [journal]"), "{journal}: {said}");
    }
    let table = "name = \"t\"\ncolumns = [\"time timespan\", \"sym symbol\", \"level float TRDPRC_1\"]\n";
    with("journal", &format!("[hub]\nport = 5010\n[kdb]\n[[kdb.table]]\n{table}"));
    let (ok, _, said) = check(&config, &[]);
    assert!(!ok && said.contains("port 5010 is that of [kdb] and of [hub]"), "{said}");
}

#[test]
fn the_commands_of_the_page_do_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    for block in pages::commands("access.md") {
        pages::run(&block, folder.path());
    }
}
