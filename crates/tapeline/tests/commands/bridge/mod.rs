//! Real plants with a bridge between them: what is below is what is above, byte for byte.

mod aeron;
mod clocks;
mod demand;
mod lease;
mod lossy;
mod probe;
mod starting;
mod tcp;

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tapeline_journal::{Directory, Next, Reader};
use tapeline_plant::tick::{Flags, Tick};
use tapeline_plant::{Seq, State};
use tapeline_ring::{Name, Poll, Start, Subscriber, Wait};

use self::lossy::Lossy;
use crate::stage::{Running, tapeline};

/// A plant above and the plants below it, with their files.
struct Scene {
    name: String,
    folder: tempfile::TempDir,
    /// The address of both servers of the bridge.
    server: SocketAddrV4,
}

/// A port that is free for UDP and TCP.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Below the ports that the kernel gives to connections and to sockets without one (ip_local_port_range), and never twice in this process.
    loop {
        let next =
            NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add((std::process::id() as u16).wrapping_mul(97));
        let port = 16_000 + next % 15_000;
        let is_free = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if is_free && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

fn unbound() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, free_port())
}

impl Scene {
    fn new(name: &str) -> Self {
        Self {
            name: format!("test-bridge-{name}-{}", std::process::id()),
            folder: tempfile::tempdir().unwrap(),
            server: unbound(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a day of the simulated exchange.
    fn day(&self, duration: &str) {
        self.day_at("20k", duration);
    }

    /// The same, at another rate.
    fn day_at(&self, rate: &str, duration: &str) {
        let day = self.path("day.itch");
        let write =
            ["feed", "simulate", "--symbols", "20", "--rate", rate, "--duration", duration, "--write"];
        let output = tapeline(&[&write[..], &[day.to_str().unwrap()]].concat()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts the plant above, which sends to these lines.
    fn above(&self, lines: &[SocketAddrV4], more: &str, arguments: &[&str]) -> Running {
        self.above_ready(lines, more, arguments).0
    }

    /// The same, with what it says when it is ready.
    fn above_ready(&self, lines: &[SocketAddrV4], more: &str, arguments: &[&str]) -> (Running, Value) {
        let lines: String =
            lines.iter().map(|line| format!("[[bridge.line]]\naddress = \"{line}\"\n")).collect();
        let text = format!(
            "[plant]\nring = \"{}-above\"\n[[feed]]\nname = \"file\"\nprotocol = \"itch50-moldudp64\"\ndate = \"2020-01-02\"\n\
             file = \"day.itch\"\nstale_after = \"0s\"\n{more}\n[bridge]\nplant = \"UP\"\nport = {}\n{lines}",
            self.name,
            self.server.port()
        );
        self.plant("above", &text, arguments)
    }

    /// Starts a plant below, which receives at these lines.
    fn below(&self, name: &str, lines: &[SocketAddrV4], more: &str, arguments: &[&str]) -> Running {
        self.below_ready(name, lines, more, "", arguments).0
    }

    /// The same, with more tables, and with what it says when it is ready.
    fn below_ready(
        &self,
        name: &str,
        lines: &[SocketAddrV4],
        more: &str,
        tables: &str,
        arguments: &[&str],
    ) -> (Running, Value) {
        let lines: String =
            lines.iter().map(|line| format!("[[upstream.line]]\naddress = \"{line}\"\n")).collect();
        let text = format!(
            "[plant]\nring = \"{}-{name}\"\n[journal]\nfolder = \"{name}\"\n[[upstream]]\nplant = \"UP\"\nserver = \"{}\"\n{more}\n{lines}{tables}",
            self.name, self.server
        );
        self.plant(name, &text, arguments)
    }

    fn plant(&self, name: &str, text: &str, arguments: &[&str]) -> (Running, Value) {
        self.plant_of(tapeline(&[]), name, text, arguments)
    }

    /// The same, with a command that has an environment of its own.
    fn plant_of(&self, mut command: Command, name: &str, text: &str, arguments: &[&str]) -> (Running, Value) {
        let config = self.path(&format!("{name}.toml"));
        std::fs::write(&config, text).unwrap();
        command.args(["plant", "--config", config.to_str().unwrap(), "--format", "json"]).args(arguments);
        let mut plant = Running::of(&mut command);
        let ready = plant.says();
        assert_eq!(ready["ready"], json!(format!("{}-{name}", self.name)), "{ready}");
        (plant, ready)
    }

    fn journal(&self, name: &str) -> Kept {
        Kept::of(&self.path(name))
    }

    /// Waits until a plant below has the whole day. A plant above that ends earlier takes the rest with it: on a busy machine
    /// those below may need it for longer than the day.
    fn wait_for_the_day(&self, below: &str) {
        let mut last = 0;
        wait_for(&mut self.reader("above"), |tick| {
            last = tick.header.seq.0;
            tick.header.flags.contains(Flags::END_OF_SESSION)
        });
        // Not by a tick on its ring: it may have been started again with the whole day in its journal.
        self.counters_until(below, |plant| plant["upstream"]["sequence"].as_u64() >= Some(last));
    }

    /// Reads a plant's counters until they are as wanted, and returns them.
    fn counters_until(&self, name: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let ring = format!("{}-{name}", self.name);
        let mut counters = Running::start(&["stat", &ring, "--every", "50ms", "--format", "json"]);
        loop {
            let said = counters.says();
            if is_it(&said) {
                return said;
            }
        }
    }

    /// A reader of a plant's ring.
    fn reader(&self, name: &str) -> Subscriber {
        let ring = Name::new(&format!("{}-{name}", self.name)).unwrap();
        Subscriber::join(&ring, Start::Oldest).unwrap()
    }
}

const JOURNAL: &str = "[journal]\nfolder = \"above\"\n";
const TO_THE_END: &[&str] = &["--until-end-of-session"];

/// What a journal has.
#[derive(Debug, Default, PartialEq, Eq)]
struct Kept {
    count: u64,
    first: u64,
    last: u64,
    sha256: String,
}

impl Kept {
    fn of(folder: &Path) -> Self {
        let mut reader = Reader::open(Directory::open(folder).unwrap()).unwrap();
        let (mut kept, mut hash) = (Self::default(), Sha256::new());
        loop {
            match reader.next().unwrap() {
                Next::Record(record) => {
                    if kept.count == 0 {
                        kept.first = record.seq;
                    } else {
                        assert_eq!(record.seq, kept.last + 1, "no hole, no double");
                    }
                    kept.count += 1;
                    kept.last = record.seq;
                    hash.update((record.body.len() as u64).to_le_bytes());
                    hash.update(record.body);
                }
                Next::Missing { .. } if kept.count == 0 => {}
                Next::Missing { from, to } => panic!("{from} to {to} are missing"),
                Next::End => break,
            }
        }
        kept.sha256 = format!("{:x}", hash.finalize());
        kept
    }
}

/// Waits for a tick of a plant's ring.
fn wait_for(subscriber: &mut Subscriber, mut is_it: impl FnMut(&Tick<'_>) -> bool) {
    loop {
        match subscriber.next() {
            Poll::Frame(frame) => {
                if is_it(&Tick::parse(&frame).unwrap()) {
                    return;
                }
            }
            Poll::Empty => _ = subscriber.wait(Wait::Park, std::time::Duration::from_secs(1)),
            other => panic!("{other:?}"),
        }
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_plant_that_starts_late_and_loses_datagrams_has_every_tick_of_the_plant_above() {
    let scene = Scene::new("late");
    // Long enough for the start of a plant on a busy machine.
    scene.day("8s");
    let (first, second) = (unbound(), unbound());
    let lossy = [Lossy::new(first, 7), Lossy::new(second, 5)];
    let mut above = scene.above(&lossy.each_ref().map(Lossy::address), JOURNAL, &[]);
    let mut ring = scene.reader("above");
    wait_for(&mut ring, |tick| tick.header.seq > Seq(2_000));
    drop(ring);
    let more = "start = \"epoch\"\nstale_after = \"0s\"\nreorder_time = \"1ms\"";
    let mut below = scene.below("below", &[first, second], more, TO_THE_END);
    scene.wait_for_the_day("below");
    above.ask_to_end();
    let (above, below) = (above.says(), below.says());
    let kept = scene.journal("above");
    assert!(kept.count > 5_000, "{kept:?}");
    assert_eq!(scene.journal("below"), kept, "{below}");
    let upstream = &below["upstream"];
    assert_eq!((&upstream["missing"], &upstream["strangers"]), (&json!(0), &json!({})), "{below}");
    assert!(number(&upstream["caught_up"]) > 0 && number(&upstream["recovered"]) > 0, "{below}");
    assert!(lossy.iter().all(|line| line.lost() > 0));
    assert_eq!(above["bridge"]["ticks"], json!(kept.count), "{above}");
}

#[test]
fn a_killed_plant_above_makes_items_stale_below_and_goes_on_with_its_sequence() {
    let scene = Scene::new("killed");
    // Long enough for the start of a plant on a busy machine.
    scene.day("8s");
    let line = unbound();
    let mut first = scene.above(&[line], JOURNAL, &[]);
    let mut below = scene.below("below", &[line], "start = \"epoch\"\nstale_after = \"500ms\"", &[]);
    let mut ring = scene.reader("below");
    wait_for(&mut ring, |tick| tick.header.seq > Seq(500));
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    wait_for(&mut ring, |tick| {
        let is_outside = tick.header.seq == Seq(0) && tick.header.flags.contains(Flags::SUSPECT);
        is_outside && tick.header.state == State::Stale
    });
    let before = scene.journal("above");
    let mut above = scene.above(&[line], JOURNAL, &[]);
    // The ring ends with the epoch, and another begins.
    assert!(number(&below.says()["upstream"]["next_sequence"]) <= before.last + 1);
    assert_eq!(below.says()["ready"], json!(format!("{}-below", scene.name)));
    scene.wait_for_the_day("below");
    above.ask_to_end();
    let above = above.says();
    assert_eq!(above["refused"], json!(null));
    let kept = scene.journal("above");
    below.ask_to_end();
    let below = below.says();
    assert_eq!(scene.journal("below"), kept, "{below}");
    assert!(kept.last > before.last);
}
