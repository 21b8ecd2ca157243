//! `tapeline omm publish` and `omm accept` against each other, through the real binary.

use serde_json::Value;
use stage::{Running, tapeline};

use crate::stage;

fn acceptor(options: &[&str]) -> (Running, String) {
    let mut running = Running::start(&[&["omm", "accept", "--port", "0"], options].concat());
    let listening = running.says();
    assert_eq!(listening["event"], "listening", "{listening}");
    let server = format!("localhost:{}", listening["port"]);
    (running, server)
}

fn until(running: &mut Running, event: &str) -> Value {
    loop {
        let said = running.says();
        if said["event"] == event {
            return said;
        }
    }
}

fn publish(server: &str, options: &[&str]) -> (i32, Vec<Value>, String) {
    let fixed = ["omm", "publish", "--server", server, "--user", "tester", "--update-rate", "10000"];
    let output = tapeline(&[&fixed, options].concat()).output().unwrap();
    let events = String::from_utf8(output.stdout).unwrap();
    let events = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status.code().unwrap(), events, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn items_are_published_updated_and_withdrawn() {
    let (mut acceptor, server) = acceptor(&["--quiet"]);
    let (code, events, talk) =
        publish(&server, &["A", "B", "C", "--book", "BOOK", "--book", "BIG", "--updates", "3"]);
    let end = events.last().unwrap();
    assert_eq!((code, &end["event"], &end["refreshes"]), (0, &"end".into(), &5.into()), "{talk}");
    assert_eq!((&end["updates"], &end["statuses"]), (&15.into(), &5.into()));

    assert_eq!(until(&mut acceptor, "login")["user"], "tester");
    assert_eq!(until(&mut acceptor, "directory")["name"], "DIRECT_FEED");
    let gone = until(&mut acceptor, "gone");
    for same in ["refreshes", "updates", "statuses"] {
        assert_eq!(gone[same], end[same], "{same}");
    }
    assert_eq!((&gone["malformed"], &gone["items"], &gone["services"]), (&0.into(), &0.into(), &1.into()));
    assert!(gone["largest"].as_u64() > Some(1 << 20) && gone["orders"].as_u64() > Some(20_000), "{gone}");
    acceptor.ask_to_end();
    assert!(acceptor.child.wait().unwrap().success());
}

#[test]
fn what_is_published_is_shown() {
    let (mut acceptor, server) = acceptor(&[]);
    let (code, ..) = publish(&server, &["A", "--updates", "1"]);
    assert_eq!(code, 0);
    let refresh = until(&mut acceptor, "refresh");
    assert_eq!((&refresh["item"], &refresh["fields"]["CURRENCY"]), (&"A".into(), &"USD".into()));
    assert!(until(&mut acceptor, "update")["fields"]["BID"].is_number());
    assert_eq!(until(&mut acceptor, "status")["state"]["stream"], "CLOSED");
}

#[test]
fn all_is_published_again_to_a_hub_that_comes_back() {
    let (mut first, server) = acceptor(&["--quiet"]);
    let mut provider = Running::start(&["omm", "publish", "--server", &server, "--user", "tester", "A", "B"]);
    until(&mut provider, "published");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    until(&mut provider, "disconnected");
    let port = server.strip_prefix("localhost:").unwrap();
    let mut second = Running::start(&["omm", "accept", "--port", port, "--quiet"]);
    until(&mut provider, "published");
    provider.ask_to_end();
    let end = until(&mut provider, "end");
    assert_eq!((&end["logins"], &end["refreshes"]), (&2.into(), &4.into()));
    assert_eq!(until(&mut second, "gone")["refreshes"], 2);
    assert!(provider.child.wait().unwrap().success());
}

#[test]
fn who_is_no_provider_or_not_wanted_is_kept_out() {
    let (mut acceptor, server) = acceptor(&["--deny", "tester"]);
    let (code, _, talk) = publish(&server, &["A"]);
    assert_eq!(code, 1);
    assert!(talk.contains("This user is not let in"), "{talk}");
    assert_eq!(until(&mut acceptor, "denied")["user"], "tester");
    let consumer = ["omm", "watch", "--server", &server, "--user", "another", "A"];
    let output = tapeline(&consumer).output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && talk.contains("Providers alone are let in here"), "{talk}");
}
