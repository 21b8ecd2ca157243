//! Two plants above that stand in for each other, with three witnesses, and a plant below with a client: the one that leads is killed, or stands
//! still for longer than its lease.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tapeline_feed::moldudp64::heartbeat;
use tapeline_plant::Seq;
use tapeline_plant::bridge::BridgeSession;

use super::{Kept, Scene, free_port, number, wait_for};
use crate::stage::{Running, tapeline};

/// What both plants, the plant below and the exchange share.
struct Pair {
    scene: Scene,
    witnesses: Vec<SocketAddrV4>,
    feed: SocketAddrV4,
    line: SocketAddrV4,
    /// The ports of the two bridges.
    ports: [u16; 2],
}

impl Pair {
    fn new(name: &str, number: u8) -> Self {
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let group = |kind| SocketAddrV4::new(Ipv4Addr::new(239, kind + number, high, low), free_port());
        let witnesses = (0..3).map(|_| SocketAddrV4::new(Ipv4Addr::LOCALHOST, free_port())).collect();
        Self {
            scene: Scene::new(name),
            witnesses,
            feed: group(230),
            line: group(240),
            ports: [free_port(), free_port()],
        }
    }

    fn witness(&self, at: usize) -> Running {
        let (bind, file) = (self.witnesses[at].to_string(), self.scene.path(&format!("witness-{at}")));
        let fixed = ["bridge", "witness", "--bind", &bind, "--format", "json", "--file"];
        let mut witness = Running::start(&[&fixed[..], &[file.to_str().unwrap()]].concat());
        assert_eq!(witness.says(), json!({ "ready": bind }));
        witness
    }

    fn exchange(&self) -> Running {
        let to = self.feed.to_string();
        let fixed =
            ["feed", "simulate", "--symbols", "20", "--rate", "2k", "--duration", "120s", "--to", &to];
        Running::start(
            &[&fixed[..], &["--interface", "127.0.0.1", "--session", "LEASE00001", "--format", "json"]]
                .concat(),
        )
    }

    fn config(&self, at: usize) -> String {
        let (name, other) = (["a", "b"][at], self.ports[1 - at]);
        let witnesses: Vec<_> = self.witnesses.iter().map(|witness| format!("\"{witness}\"")).collect();
        format!(
            "[plant]\nring = \"{}-{name}\"\n[[feed]]\nname = \"live\"\nprotocol = \"itch50-moldudp64\"\ndate = \"2020-01-02\"\nstale_after = \"0s\"\n\
             [[feed.line]]\naddress = \"{}\"\ninterface = \"127.0.0.1\"\n[journal]\nfolder = \"{name}\"\n\
             [lease]\nname = \"{name}\"\nwitnesses = [{}]\n\
             [bridge]\nplant = \"UP\"\nport = {}\n[[bridge.line]]\naddress = \"{line}\"\n\
             [[upstream]]\nplant = \"UP\"\nserver = \"127.0.0.1:{other}\"\nstart = \"epoch\"\nstale_after = \"0s\"\n[[upstream.line]]\naddress = \"{line}\"\n",
            self.scene.name,
            self.feed,
            witnesses.join(", "),
            self.ports[at],
            line = self.line
        )
    }

    /// Starts one of the two plants. Returns what it says when it is ready: it leads if it has a bridge.
    fn plant(&self, at: usize) -> (Running, Value) {
        self.scene.plant(["a", "b"][at], &self.config(at), &[])
    }

    fn below(&self, hub: u16) -> Running {
        let [one, other] = self.ports;
        let text = format!(
            "[plant]\nring = \"{}-below\"\n[journal]\nfolder = \"below\"\n[hub]\nport = {hub}\n\
             [[upstream]]\nplant = \"UP\"\nserver = [\"127.0.0.1:{one}\", \"127.0.0.1:{other}\"]\nstart = \"epoch\"\nstale_after = \"0s\"\n\
             [[upstream.line]]\naddress = \"{}\"\n",
            self.scene.name, self.line
        );
        self.scene.plant("below", &text, &[]).0
    }

    /// Waits until a plant's ring has a later tick than this one.
    fn wait_behind(&self, name: &str, last: u64) {
        let mut ring = self.scene.reader(name);
        wait_for(&mut ring, |tick| tick.header.seq > Seq(last));
    }

    /// Waits until all journals end with the same tick.
    fn wait_alike(&self, names: &[&str]) {
        let ring = format!("{}-{}", self.scene.name, names[0]);
        let mut counters = Running::start(&["stat", &ring, "--every", "50ms", "--format", "json"]);
        while names.windows(2).any(|two| self.scene.journal(two[0]).last != self.scene.journal(two[1]).last) {
            counters.says();
        }
    }
}

/// The sessions of a journal, with the first tick of each.
fn epochs(folder: &Path) -> Vec<(BridgeSession, u64)> {
    let text = std::fs::read_to_string(folder.join("bridge-epochs")).unwrap();
    let line = |line: &str| {
        let (session, first) = line.split_once(' ').unwrap();
        (session.parse().unwrap(), first.parse().unwrap())
    };
    text.lines().map(line).collect()
}

fn send_signal(process: &Running, signal: Signal) {
    kill_process(Pid::from_child(&process.child), signal).unwrap();
}

/// A client of the plant below: waits for an image of an item and updates behind it.
fn image_and_update(client: &mut Running) {
    for event in ["refresh", "update"] {
        while client.says()["event"] != event {}
    }
}

fn watch(hub: u16) -> Running {
    let server = format!("127.0.0.1:{hub}");
    Running::start(&[
        "omm",
        "watch",
        "--server",
        &server,
        "--service",
        "TAPELINE",
        "--format",
        "json",
        "TAPE",
    ])
}

#[test]
fn when_the_leader_is_killed_the_other_plant_goes_on_with_the_sequence() {
    let pair = Pair::new("lease-killed", 1);
    let _witnesses = [0, 1, 2].map(|at| pair.witness(at));
    let exchange = pair.exchange();
    let (mut first, ready) = pair.plant(0);
    assert!(ready["bridge"]["session"].is_string(), "it leads at once: {ready}");
    let (mut second, ready) = pair.plant(1);
    assert_eq!(ready["bridge"], json!(null), "it stands by: {ready}");
    let hub = free_port();
    let mut below = pair.below(hub);
    let mut client = watch(hub);
    image_and_update(&mut client);
    pair.wait_behind("b", 200);
    pair.wait_behind("below", 200);
    // No tick is on its way: what only some have would be set aside.
    send_signal(&exchange, Signal::STOP);
    pair.wait_alike(&["a", "b", "below"]);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    send_signal(&exchange, Signal::CONT);
    let before = pair.scene.journal("a").last;

    let ended = second.says();
    assert!(ended["refused"].as_str().unwrap().contains("it has got the lease"), "{ended}");
    let leads = second.says();
    let session = leads["bridge"]["session"].as_str().unwrap().to_owned();
    // The plant below follows by itself, and so does its client.
    let ended = below.says();
    assert!(ended["refused"].is_string(), "{ended}");
    below.says();
    image_and_update(&mut client);
    pair.wait_behind("below", before + 200);

    let (mut first, ready) = pair.plant(0);
    assert_eq!(ready["bridge"], json!(null), "the killed one stands by: {ready}");
    let ring = format!("{}-a", pair.scene.name);
    wait_for_counters(&ring, |said| number(&said["journal"]["kept"]) > before + 200);
    let shown = tapeline(&["stat", &format!("{}-a", pair.scene.name), "--format", "json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&shown["lease"]["leader"], &shown["lease"]["held"]), (&json!("b"), &json!(false)), "{shown}");
    assert_eq!(shown["lease"]["session"], json!(session), "{shown}");

    drop(exchange);
    pair.wait_alike(&["a", "b", "below"]);
    assert_eq!(pair.scene.journal("below"), pair.scene.journal("b"), "no hole, no double");
    let (of_b, of_below) = (epochs(&pair.scene.path("b")), epochs(&pair.scene.path("below")));
    assert_eq!(of_b, of_below);
    assert_eq!(of_b.last().unwrap().0.to_string(), session);

    // A leader that ends as it should gives the lease back.
    second.ask_to_end();
    assert_eq!(second.says()["refused"], json!(null));
    let has_taken =
        |said: &Value| said["refused"].as_str().is_some_and(|why| why.contains("it has got the lease"));
    while !has_taken(&first.says()) {}
    let ready = first.says();
    assert!(ready["bridge"]["session"].as_str().unwrap() > session.as_str());
    // Nothing is numbered in that epoch, and in the next: nobody has ticks that others lack.
    let ring = format!("{}-below", pair.scene.name);
    wait_for_counters(&ring, |said| said["upstream"]["session"] == ready["bridge"]["session"]);
    let (mut second, _) = pair.plant(1);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    second.says();
    let ready = second.says();
    wait_for_counters(&ring, |said| said["upstream"]["session"] == ready["bridge"]["session"]);
    let (_first, ready) = pair.plant(0);
    assert_eq!(ready["bridge"], json!(null));
    wait_for_counters(&format!("{}-a", pair.scene.name), |said| said["feeds"][0]["state"] == "live");
    let folders = std::fs::read_dir(pair.scene.folder.path()).unwrap();
    let aside =
        folders.filter(|folder| folder.as_ref().unwrap().file_name().to_string_lossy().contains("-1UP_"));
    assert_eq!(aside.count(), 0);
    assert_eq!(pair.scene.journal("below"), pair.scene.journal("b"));
}

/// The leader's own thread waits for a reader of its ring, and no limit ends that; all its other threads work.
#[test]
fn a_leader_whose_thread_hangs_is_relieved() {
    let pair = Pair::new("lease-hangs", 3);
    let _witnesses = [0, 1, 2].map(|at| pair.witness(at));
    let text = pair.config(0);
    let waits = text.replacen("\n[[feed]]", "\nring_size = \"256KiB\"\nstall_limit = \"0s\"\n[[feed]]", 1);
    assert_ne!(text, waits);
    let (mut first, ready) = pair.scene.plant("a", &waits, &[]);
    assert!(ready["bridge"]["session"].is_string(), "{ready}");
    let (mut second, _) = pair.plant(1);
    let _exchange = pair.exchange();
    let ring = format!("{}-a", pair.scene.name);
    let mut reader = Running::start(&["plant", "watch", "--ring", &ring, "--format", "json"]);
    reader.says();
    send_signal(&reader, Signal::STOP);
    assert!(second.says()["refused"].as_str().unwrap().contains("it has got the lease"));
    assert!(second.says()["bridge"]["session"].is_string());
    // It goes on, and finds that another plant leads.
    reader.child.kill().unwrap();
    let ended = first.says();
    assert!(ended["refused"].as_str().unwrap().contains("lease"), "{ended}");
    assert_eq!(first.says()["bridge"], json!(null));
}

#[test]
fn a_leader_that_stands_still_for_longer_than_its_lease_steps_down() {
    let pair = Pair::new("lease-stopped", 5);
    let mut witnesses = [0, 1, 2].map(|at| pair.witness(at));
    let exchange = pair.exchange();
    let (mut first, ready) = pair.plant(0);
    let old = ready["bridge"]["session"].as_str().unwrap().to_owned();
    let (mut second, _) = pair.plant(1);
    let mut below = pair.below(free_port());
    pair.wait_behind("below", 200);
    pair.wait_behind("b", 200);
    // A witness that is killed and starts again changes nothing.
    witnesses[2].child.kill().unwrap();
    witnesses[2].child.wait().unwrap();
    witnesses[2] = pair.witness(2);

    // No tick is on its way: the second plant would wait for what only the first has.
    send_signal(&exchange, Signal::STOP);
    pair.wait_alike(&["a", "b", "below"]);
    send_signal(&first, Signal::STOP);
    send_signal(&exchange, Signal::CONT);
    let before = pair.scene.journal("a").last;
    assert!(second.says()["refused"].is_string());
    let leads = second.says();
    let new = leads["bridge"]["session"].as_str().unwrap().to_owned();
    assert!(new > old, "{new} is later than {old}");
    below.says();
    below.says();
    pair.wait_behind("below", before + 200);
    send_signal(&first, Signal::CONT);
    let ended = first.says();
    assert!(ended["refused"].as_str().unwrap().contains("its lease is over"), "{ended}");
    let ready = first.says();
    assert_eq!(ready["bridge"], json!(null), "it stands by: {ready}");
    let ring = format!("{}-a", pair.scene.name);
    wait_for_counters(&ring, |said| number(&said["journal"]["kept"]) > before + 200);

    // A datagram of the old leader that comes late.
    let late = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let session: BridgeSession = old.parse().unwrap();
    late.send_to(&heartbeat(session.to_mold(), before + 10_000), pair.line).unwrap();
    let counters = ["stat", &format!("{}-below", pair.scene.name), "--every", "50ms", "--format", "json"];
    let mut counters = Running::start(&counters);
    while number(&counters.says()["upstream"]["strangers"]) == 0 {}

    drop(exchange);
    pair.wait_alike(&["a", "b", "below"]);
    below.ask_to_end();
    let report = below.says();
    assert!(number(&report["upstream"]["strangers"]["older-epoch"]) > 0, "{report}");
    drop((first, second, below));
    let Kept { first: one, last, .. } = pair.scene.journal("below");
    assert!(one == 1 && last > before, "{one} to {last}");
    assert_eq!(pair.scene.journal("below"), pair.scene.journal("b"), "no hole, no double");
    assert_eq!(epochs(&pair.scene.path("below")), epochs(&pair.scene.path("b")));
}

/// What the counters of a plant say, once `is_it`.
fn wait_for_counters(ring: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    loop {
        let mut counters = Running::start(&["stat", ring, "--every", "50ms", "--format", "json"]);
        // They end with the ring.
        while let Some(said) = counters.may_say() {
            if is_it(&said) {
                return said;
            }
        }
    }
}

/// The same of its lease.
fn wait_for_lease(ring: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    wait_for_counters(ring, |said| is_it(&said["lease"]))["lease"].take()
}

#[test]
fn of_two_plants_that_start_at_once_one_leads_and_none_without_a_majority() {
    let pair = Pair::new("lease-majority", 9);
    let mut witnesses = [0, 1, 2].map(|at| pair.witness(at));
    let _exchange = pair.exchange();
    let mut both = std::thread::scope(|scope| {
        let pair = &pair;
        [0, 1].map(|at| scope.spawn(move || pair.plant(at))).map(|plant| plant.join().unwrap())
    });
    let leads = both.iter().position(|(_, ready)| ready["bridge"].is_object());
    let follows = both.iter().position(|(_, ready)| ready["bridge"].is_null());
    let (Some(leads), Some(follows)) = (leads, follows) else { panic!("{} {}", both[0].1, both[1].1) };
    let session = both[leads].1["bridge"]["session"].as_str().unwrap().to_owned();
    pair.wait_behind(["a", "b"][follows], 100);

    for witness in &mut witnesses[..2] {
        witness.child.kill().unwrap();
        witness.child.wait().unwrap();
    }
    let ended = both[leads].0.says();
    assert!(ended["refused"].as_str().unwrap().contains("its lease is over"), "{ended}");
    let ready = both[leads].0.says();
    assert_eq!(ready["bridge"], json!(null), "{ready}");
    let ring = format!("{}-{}", pair.scene.name, ["a", "b"][follows]);
    let says = |lease: &Value, what: &str| lease["problem"].as_str().is_some_and(|it| it.starts_with(what));
    let lease = wait_for_lease(&ring, |lease| says(lease, "2 of 3 witnesses do not answer: "));
    assert!(lease["problem"].as_str().unwrap().contains(&pair.witnesses[0].to_string()), "{lease}");
    assert_eq!((&lease["leader"], &lease["silent"]), (&json!(""), &json!(2)), "{lease}");

    // One more than a majority needs is named too.
    let _first = pair.witness(0);
    let lease = wait_for_lease(&ring, |lease| lease["leader"] != "");
    assert!(lease["session"].as_str().unwrap() > session.as_str(), "{lease}");
    let lease = wait_for_lease(&ring, |lease| says(lease, "1 of 3 witnesses does not answer: "));
    assert!(lease["problem"].as_str().unwrap().contains(&pair.witnesses[1].to_string()), "{lease}");
    let _second = pair.witness(1);
    wait_for_lease(&ring, |lease| lease["problem"] == "" && lease["silent"] == 0);
}

#[test]
fn a_plant_that_lacks_what_the_last_leader_had_waits_for_it_or_for_an_operator() {
    let pair = Pair::new("lease-behind", 10);
    let _witnesses = [0, 1, 2].map(|at| pair.witness(at));
    let _exchange = pair.exchange();
    let (mut first, _) = pair.plant(0);
    pair.wait_behind("a", 2_000);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let (second, ready) = pair.plant(1);
    assert_eq!(ready["bridge"], json!(null), "{ready}");
    wait_for_lease(&format!("{}-b", pair.scene.name), |lease| {
        let problem = lease["problem"].as_str().unwrap_or_default();
        problem.contains("ends with tick 0") && problem.contains("it waits for a; --take-lease")
    });
    drop(second);
    let (mut second, mut ready) = pair.scene.plant("b", &pair.config(1), &["--take-lease"]);
    // On a busy machine it may follow until the witnesses have answered.
    if ready["bridge"].is_null() {
        let of_second = format!("{}-b", pair.scene.name);
        let is_refused =
            |lease: &Value| lease["problem"].as_str().is_some_and(|it| it.contains("it waits for a"));
        let lease = wait_for_lease(&of_second, |lease| lease["held"] == true || is_refused(lease));
        assert_eq!(lease["held"], json!(true), "{lease}");
        assert!(second.says()["refused"].as_str().unwrap().contains("it has got the lease"));
        ready = second.says();
    }
    assert!(ready["bridge"]["session"].is_string(), "{ready}");
    pair.wait_behind("b", 100);
}
