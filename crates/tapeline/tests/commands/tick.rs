//! `tapeline tick serve` with kdb+ clients: over TCP and a Unix-domain socket, with a log, users and an end of day.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;

use kdb_client::{Client, logged, zone};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value as Json;
use stage::{Running, tapeline};
use tapeline_kdb::{Atom, MessageKind, Value};
use tempfile::TempDir;

use crate::kdb_client;
use crate::stage;

const TRADE: &str = "port = 0\nlog_folder = \"logs\"\n[[table]]\nname = \"trade\"\n\
    columns = [\"time timespan\", \"sym symbol\", \"price float\"]\n";

/// A tickerplant with this configuration, and its first line.
fn start(folder: &TempDir, config: &str) -> (Running, Json) {
    let file = folder.path().join("tick.toml");
    std::fs::write(&file, format!("timezone = \"{}\"\n{config}", zone())).unwrap();
    let mut running =
        Running::start(&["tick", "serve", "--config", file.to_str().unwrap(), "--format", "json"]);
    let said = running.says();
    (running, said)
}

/// The listening address.
fn address(said: &Json) -> &str {
    said["address"].as_str().unwrap()
}

/// Stops it; returns its report.
fn end(mut running: Running) -> Json {
    running.ask_to_end();
    let report = running.says();
    assert!(running.child.wait().unwrap().success());
    report
}

/// Publishes one row of `trade`.
fn publish(client: &mut Client, symbol: &str, price: f64) {
    client.say(MessageKind::Async, |out| {
        out.list(3)?;
        out.symbol(b".u.upd")?;
        out.symbol(b"trade")?;
        out.list(2)?;
        out.symbol(symbol.as_bytes())?;
        out.atom(&Atom::<&[u8]>::Float(price))
    });
}

/// The price of an `upd` of one row.
fn price(update: &Value) -> f64 {
    let Value::List(parts) = update else { panic!("{update:?}") };
    let [function, _, Value::Table { columns, .. }] = &parts[..] else { panic!("{update:?}") };
    assert_eq!(*function, Value::symbol("upd"));
    let Value::Vector { items, .. } = &columns[2] else { panic!("{update:?}") };
    let [Atom::Float(price)] = items[..] else { panic!("{update:?}") };
    price
}

#[test]
fn rows_pass_from_a_publisher_to_subscribers_and_into_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let unix = folder.path().join("kx.5010");
    let config = format!("unix = {unix:?}\n{TRADE}");
    let (running, said) = start(&folder, &config);
    let log = said["log"].as_str().unwrap().to_owned();
    let mut feed = Client::tcp(address(&said));
    publish(&mut feed, "A", 1.0);
    // The answer comes after everything sent before.
    assert_eq!(feed.ask(".u.i"), Value::Atom(Atom::Long(1)));
    let mut rdb = Client::hello(UnixStream::connect(&unix).unwrap(), b"\x03\0").unwrap();
    let Value::List(answer) = rdb.ask("(.u.sub[`;`];`.u `i`L)") else { panic!() };
    let at = Value::symbol(&format!(":{log}"));
    assert_eq!(answer[1], Value::List(vec![Value::Atom(Atom::Long(1)), at]));
    assert_eq!(logged(&log), 1, "what it is told to replay is in the file");
    let mut other = Client::tcp(address(&said));
    other.ask(".u.sub[`trade;`B]");
    for (symbol, price) in [("A", 2.0), ("B", 3.0)] {
        publish(&mut feed, symbol, price);
    }
    assert_eq!([price(&rdb.next()), price(&rdb.next())], [2.0, 3.0]);
    assert_eq!(price(&other.next()), 3.0);
    assert!(matches!(other.ask("2+2"), Value::Error(_)));
    assert_eq!(logged(&log), 3, "what was published is in the file");
    // A second one would truncate the first one's log, and take its socket.
    let file = folder.path().join("tick.toml");
    let second = tapeline(&["tick", "serve", "--config", file.to_str().unwrap()]).output().unwrap();
    let said_second = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success() && said_second.contains("another process writes"), "{said_second}");
    assert!(unix.exists());
    // A client with an invalid message is disconnected, and no other client.
    let mut hostile = Client::tcp(address(&said));
    hostile.stream.write_all(&[9; 64]).unwrap();
    assert_eq!(hostile.stream.read(&mut [0; 8]).unwrap_or(0), 0);
    publish(&mut feed, "A", 4.0);
    assert_eq!(price(&rdb.next()), 4.0);
    let report = end(running);
    assert_eq!(
        (&report["updates"], &report["sent"], &report["turned_away"]),
        (&Json::from(4), &Json::from(4), &Json::from(1))
    );
    assert!(!unix.exists());
    // The next one continues the day's log.
    let (running, said) = start(&folder, TRADE);
    assert_eq!((said["log"].as_str(), &said["messages"]), (Some(&*log), &Json::from(4)));
    end(running);
}

/// The path is absolute, since a subscriber that replays the log may run in another folder.
#[test]
fn a_log_is_said_with_its_whole_path_wherever_its_configuration_is() {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("timezone = \"{}\"\n{}", zone(), TRADE.replace("log_folder = \"logs\"\n", ""));
    std::fs::write(folder.path().join("tick.toml"), config).unwrap();
    let mut command = tapeline(&["tick", "serve", "--config", "tick.toml", "--format", "json"]);
    let (mut running, _talk) = Running::talking(command.current_dir(folder.path()));
    let said = running.says();
    let log = Path::new(said["log"].as_str().unwrap());
    assert_eq!(log.parent().unwrap(), folder.path().canonicalize().unwrap(), "{said}");
    let mut rdb = Client::tcp(address(&said));
    assert_eq!(rdb.ask(".u.L"), Value::symbol(&format!(":{}", log.display())));
    end(running);
}

/// The Unix-domain address where q listens and connects: in the abstract namespace, with the length of the name. No
/// file is made.
#[test]
fn clients_find_it_under_an_abstract_name() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("kx.5010");
    let at = format!("@{}", name.display());
    let (running, said) = start(&folder, &format!("tcp = false\nunix = {at:?}\n{TRADE}"));
    assert_eq!(said["unix"], Json::from(&*at));
    let connect = || {
        let address = SocketAddr::from_abstract_name(name.as_os_str().as_bytes()).unwrap();
        Client::hello(UnixStream::connect_addr(&address).unwrap(), b"\x03\0").unwrap()
    };
    let (mut feed, mut rdb) = (connect(), connect());
    rdb.ask(".u.sub[`trade;`]");
    publish(&mut feed, "A", 2.5);
    assert_eq!(price(&rdb.next()), 2.5);
    // The name is in use until this one ends.
    let file = folder.path().join("tick.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, config.replace("logs", "other")).unwrap();
    let second = tapeline(&["tick", "serve", "--config", file.to_str().unwrap()]).output().unwrap();
    let said_second = String::from_utf8(second.stderr).unwrap();
    assert!(
        !second.status.success() && said_second.contains("another process listens at @"),
        "{said_second}"
    );
    end(running);
    assert!(!name.exists() && !folder.path().join(&at).exists());
}

/// A limit on the size of files simulates a full disk.
#[test]
fn a_log_that_meets_a_limit_ends_it_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tick.toml");
    std::fs::write(&file, format!("timezone = \"{}\"\n{TRADE}", zone())).unwrap();
    let arguments = ["tick", "serve", "--config", file.to_str().unwrap(), "--format", "json"];
    let (mut running, mut talk) = Running::start_talking(&arguments);
    let said = running.says();
    let mut feed = Client::tcp(address(&said));
    publish(&mut feed, "A", 1.0);
    feed.ask(".u.i");
    let maximum = getrlimit(Resource::Fsize).maximum;
    let pid = Pid::from_child(&running.child);
    prlimit(Some(pid), Resource::Fsize, Rlimit { current: Some(1), maximum }).unwrap();
    publish(&mut feed, "A", 2.0);
    let mut all = String::new();
    talk.read_to_string(&mut all).unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(1), "{all}");
    assert!(all.contains("cannot append to the log") && all.contains("File too large"), "{all}");
    assert_eq!(logged(said["log"].as_str().unwrap()), 1, "what was published is whole");
}

#[test]
fn a_day_ends_when_somebody_says_so_and_timed_rows_come_together() {
    let folder = tempfile::tempdir().unwrap();
    let (running, said) = start(&folder, &format!("publish_every = \"10ms\"\n{TRADE}"));
    let mut rdb = Client::tcp(address(&said));
    rdb.ask(".u.sub[`trade;`]");
    let mut feed = Client::tcp(address(&said));
    for _ in 0..3 {
        publish(&mut feed, "A", 1.0);
    }
    feed.say(MessageKind::Sync, |out| {
        out.list(2)?;
        out.string(b".u.endofday")?;
        out.null()
    });
    assert_eq!(feed.next(), Value::null());
    let mut rows = 0;
    loop {
        let Value::List(parts) = rdb.next() else { panic!() };
        match &parts[..] {
            [_, _, Value::Table { columns, .. }] => {
                let Value::Vector { items, .. } = &columns[2] else { panic!() };
                rows += items.len();
            }
            [function, Value::Atom(Atom::Date(_))] => {
                assert_eq!(*function, Value::symbol(".u.end"));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(rows, 3, "what waits is published before the day ends");
    assert_eq!(logged(said["log"].as_str().unwrap()), 3);
    let Value::List(now) = feed.ask("`.u `i`L") else { panic!() };
    assert_eq!(now[0], Value::Atom(Atom::Long(0)), "the new day's log is empty");
    assert_ne!(now[1], Value::symbol(&format!(":{}", said["log"].as_str().unwrap())));
    end(running);
}

/// Runs `tapeline plant passwd` to write a line of a users' file.
pub(crate) fn passwd(users: &Path, user: &str, password: &str) {
    let mut child = tapeline(&["plant", "passwd", user, "--users", users.to_str().unwrap()])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{password}").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn unknown_users_are_turned_away_and_known_ones_have_their_tables() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users.txt");
    passwd(&users, "feed", "one");
    passwd(&users, "rdb", "two");
    passwd(&users, "idle", "three");
    let config = format!(
        "{TRADE}[access]\nusers = \"users.txt\"\n\
         [[access.rule]]\nusers = [\"feed\"]\npublish = [\"*\"]\n\
         [[access.rule]]\nusers = [\"rdb\"]\nsubscribe = [\"trade\"]\n"
    );
    let (running, said) = start(&folder, &config);
    let connect =
        |hello: &[u8]| Client::hello(TcpStream::connect(said["address"].as_str().unwrap()).unwrap(), hello);
    let mut feed = connect(b"feed:one\x03\0").unwrap();
    let mut rdb = connect(b"rdb:two\x03\0").unwrap();
    for hello in [&b"idle:three\x03\0"[..], b"feed:two\x03\0", b"feed\x03\0", b"\x03\0", b"nobody:one\x03\0"]
    {
        assert!(connect(hello).is_none(), "{}", hello.escape_ascii());
    }
    assert!(matches!(feed.ask(".u.sub[`trade;`]"), Value::Error(_)));
    rdb.ask(".u.sub[`trade;`]");
    // This user may not publish: the client gets no answer, and no subscriber gets the row.
    publish(&mut rdb, "A", 1.0);
    rdb.ask(".u.i");
    publish(&mut feed, "A", 2.0);
    assert_eq!(price(&rdb.next()), 2.0);
    let report = end(running);
    assert_eq!((&report["turned_away"], &report["updates"]), (&Json::from(5), &Json::from(1)));
}

/// After wrong passwords a user has to wait, longer each time; meanwhile every attempt is refused, also the right
/// password.
#[test]
fn who_guesses_passwords_has_to_wait() {
    let folder = tempfile::tempdir().unwrap();
    passwd(&folder.path().join("users.txt"), "feed", "one");
    let file = folder.path().join("tick.toml");
    std::fs::write(&file, format!("{TRADE}[access]\nusers = \"users.txt\"\n")).unwrap();
    let serve = ["tick", "serve", "--config", file.to_str().unwrap(), "--format", "json"];
    let (mut running, talk) = Running::start_talking(&serve);
    let address = running.says()["address"].as_str().unwrap().to_owned();
    let guess = |hello: &[u8]| Client::hello(TcpStream::connect(&address).unwrap(), hello).is_some();
    let mut lines = BufReader::new(talk).lines().map(Result::unwrap);
    let mut is_to_wait = || lines.any(|line| line.contains("has failed too often, and has to wait"));
    let mut guesses = 0;
    loop {
        assert!(!guess(b"feed:two\x03\0"));
        guesses += 1;
        if !guess(b"feed:one\x03\0") {
            break;
        }
    }
    assert!(guesses > 3, "fingers slip: {guesses}");
    assert!(is_to_wait());
    running.ask_to_end();
    assert!(running.child.wait().unwrap().success());
}

/// Unmodified clients: qpython3 and pykx. `make interop` installs them and sets `INTEROP`; without it, the test is
/// skipped.
#[test]
fn clients_in_python() {
    let Some(place) = std::env::var_os("INTEROP") else {
        println!("skipped: INTEROP names no folder with qpython3 and pykx; `make interop` makes one");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    passwd(&folder.path().join("users.txt"), "me", "secret");
    let kinds = "b boolean, g guid, x byte, h short, i int, j long, e real, f float, c char, s symbol, p timestamp, m month, d date, \
        z datetime, n timespan, u minute, v second, t time";
    let kinds: Vec<_> = kinds.split(',').map(|column| format!("{:?}", column.trim())).collect();
    let others: Vec<_> = kinds.iter().filter(|kind| !kind.contains("datetime")).cloned().collect();
    let config = format!(
        "port = 0\n[[table]]\nname = \"trade\"\n\
         columns = [\"time timespan\", \"sym symbol\", \"price float\", \"size long\", \"note list\"]\n\
         [[table]]\nname = \"types\"\ncolumns = [\"time timestamp\", \"sym symbol\", {}]\n\
         [[table]]\nname = \"others\"\ncolumns = [\"time timestamp\", \"sym symbol\", {}]\n\
         [access]\nusers = \"users.txt\"\n",
        kinds.join(", "),
        others.join(", ")
    );
    let (running, said) = start(&folder, &config);
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/python/tickerplant.py");
    let status = std::process::Command::new(Path::new(&place).join("python/bin/python"))
        .args(["-W", "ignore"])
        .arg(program)
        .args(["--server", said["address"].as_str().unwrap(), "--user", "me", "--password", "secret"])
        .args(["qpython_subscribes", "qpython_types", "qpython_errors", "qpython_turned_away"])
        .args(["pykx_publishes", "pykx_subscribes", "pykx_types"])
        .status()
        .unwrap();
    assert!(status.success(), "a step has not passed: see above");
    end(running);
}
