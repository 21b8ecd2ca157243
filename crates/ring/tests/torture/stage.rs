//! The side that starts, kills, stops and questions the players.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tapeline_ring::inspect;

use crate::players::SAYS;
use crate::scene::OwnName;

/// Nothing that is waited for takes so long, unless it never comes.
const NEVER: Duration = Duration::from_secs(120);

/// A process of the play, until it is gone.
pub(crate) struct Player {
    child: Child,
    /// Closed when this side goes, which ends the player.
    orders: ChildStdin,
    role: &'static str,
    /// What it said last, by the first word.
    said: BTreeMap<String, String>,
    /// How often it said that it was evicted.
    evicted: u64,
}

impl Player {
    /// Kills it, and waits until it is dead.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        // One that failed just before has something to say.
        let killed = status.signal() == Some(Signal::KILL.as_raw());
        assert!(killed, "{} ended by itself: {status}", self.role);
    }
}

enum Event {
    Said(u64, String),
    Left(u64),
}

/// All players of one ring.
pub(crate) struct Stage {
    pub(crate) name: OwnName,
    shape: usize,
    seed: u64,
    players: BTreeMap<u64, Player>,
    /// The next player's number.
    next: u64,
    events: Receiver<Event>,
    tells: Sender<Event>,
    /// How often anybody said that it was evicted.
    pub(crate) evicted: u64,
}

impl Stage {
    pub(crate) fn new(shape: usize, seed: u64) -> Self {
        let (tells, events) = mpsc::channel();
        let name = OwnName::new("torture");
        Self { name, shape, seed, players: BTreeMap::new(), next: 0, events, tells, evicted: 0 }
    }

    /// Starts a player; gives its number.
    pub(crate) fn start(&mut self, role: &'static str) -> u64 {
        let id = self.next;
        self.next += 1;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "player", "--ignored", "--nocapture", "--quiet"])
            .env("ROLE", role)
            .env("RING", self.name.0.as_str())
            .env("SHAPE", self.shape.to_string())
            .env("SEED", self.seed.to_string())
            .env("LIFE", id.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let tells = self.tells.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some((_, said)) = line.split_once(SAYS) {
                    let _ = tells.send(Event::Said(id, said.to_owned()));
                }
            }
            let _ = tells.send(Event::Left(id));
        });
        let orders = child.stdin.take().unwrap();
        let said = BTreeMap::new();
        self.players.insert(id, Player { child, orders, role, said, evicted: 0 });
        id
    }

    /// Takes in what the players say until `deadline`; `false`: nothing came.
    fn hear(&mut self, deadline: Instant) -> bool {
        match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Event::Said(id, what)) => {
                // Who is gone from here was killed, and may have spoken before.
                if let Some(player) = self.players.get_mut(&id) {
                    let (word, rest) = what.split_once(' ').unwrap_or((&what, ""));
                    player.evicted += u64::from(word == "evicted");
                    self.evicted += u64::from(word == "evicted");
                    player.said.insert(word.to_owned(), rest.to_owned());
                }
            }
            Ok(Event::Left(id)) => {
                if let Some(player) = self.players.get_mut(&id) {
                    let status = player.child.wait().unwrap();
                    let role = player.role;
                    assert!(status.success(), "{role} {id} failed ({status}); what it said is above");
                }
            }
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => unreachable!("this side holds a sender"),
        }
        true
    }

    /// Lets the players play. Not to wait for anything: so that what comes next comes at any moment of theirs.
    pub(crate) fn let_play(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while self.hear(deadline) {}
    }

    /// Waits until `holds` does.
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + NEVER;
        while !holds(self) {
            assert!(Instant::now() < deadline, "never {what}: {:#?}", inspect(&self.name.0));
            self.let_play(Duration::from_millis(1));
        }
    }

    /// Whether the ring has evicted this player; nothing if the player has no place there.
    pub(crate) fn is_evicted(&self, id: u64) -> Option<bool> {
        let pid = self.players[&id].child.id();
        let ring = inspect(&self.name.0).unwrap();
        ring.subscribers.iter().find(|one| one.pid == pid && one.alive).map(|one| one.evicted)
    }

    /// How often the player said that it was evicted.
    pub(crate) fn evictions(&self, id: u64) -> u64 {
        self.players[&id].evicted
    }

    /// What the player said with `word` in front, as soon as it says it.
    pub(crate) fn said(&mut self, id: u64, word: &str) -> String {
        let deadline = Instant::now() + NEVER;
        loop {
            if let Some(rest) = self.players[&id].said.get(word) {
                return rest.clone();
            }
            if !self.hear(deadline) {
                let ring = inspect(&self.name.0);
                panic!("{} {id} never says `{word}`: {ring:#?}", self.players[&id].role);
            }
        }
    }

    /// Tells a player to come to the end.
    pub(crate) fn tell(&mut self, id: u64) {
        let player = self.players.get_mut(&id).unwrap();
        player.orders.write_all(b"come to the end\n").unwrap();
    }

    pub(crate) fn kill(&mut self, id: u64) {
        self.condemn(id).kill();
    }

    /// Lets go of a player that is about to be killed.
    pub(crate) fn condemn(&mut self, id: u64) -> Player {
        self.players.remove(&id).unwrap()
    }

    /// Stops a player where it is, or lets it go on.
    pub(crate) fn stop(&mut self, id: u64, stop: bool) {
        let player = &self.players[&id];
        let signal = if stop { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(&player.child), signal).unwrap();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for player in self.players.values_mut() {
            let _ = player.child.kill();
            let _ = player.child.wait();
        }
    }
}
