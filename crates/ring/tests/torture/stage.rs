//! The side that starts, kills, stops and queries the players.

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

/// Longer than any wait, unless the event never comes.
const NEVER: Duration = Duration::from_secs(120);

/// A process of the play.
pub(crate) struct Player {
    child: Child,
    /// Closed when this side ends, which ends the player.
    orders: ChildStdin,
    role: &'static str,
    /// The last output of the player, by its first word.
    said: BTreeMap<String, String>,
    /// Number of evictions that the player reported.
    evicted: u64,
}

impl Player {
    /// Kills it, and waits until it is dead.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        // A player that failed just before has printed its error.
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
    /// Number of evictions that all players reported.
    pub(crate) evicted: u64,
}

impl Stage {
    pub(crate) fn new(shape: usize, seed: u64) -> Self {
        let (tells, events) = mpsc::channel();
        let name = OwnName::new("torture");
        Self { name, shape, seed, players: BTreeMap::new(), next: 0, events, tells, evicted: 0 }
    }

    /// Starts a player; returns its number.
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

    /// Processes the players' output until `deadline`; `false`: there was none.
    fn hear(&mut self, deadline: Instant) -> bool {
        match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Event::Said(id, what)) => {
                // A player that is no longer in the table was killed, and may have printed before.
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

    /// Lets the players play. Waits for no event, so that the next step comes at any moment of theirs.
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

    /// Whether the ring has evicted this player; `None` if the player has no slot there.
    pub(crate) fn is_evicted(&self, id: u64) -> Option<bool> {
        let pid = self.players[&id].child.id();
        let ring = inspect(&self.name.0).unwrap();
        ring.subscribers.iter().find(|one| one.pid == pid && one.alive).map(|one| one.evicted)
    }

    /// Number of evictions that the player reported.
    pub(crate) fn evictions(&self, id: u64) -> u64 {
        self.players[&id].evicted
    }

    /// Returns the player's output after `word`, as soon as there is some.
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

    /// Orders a player to come to the end.
    pub(crate) fn tell(&mut self, id: u64) {
        let player = self.players.get_mut(&id).unwrap();
        player.orders.write_all(b"come to the end\n").unwrap();
    }

    pub(crate) fn kill(&mut self, id: u64) {
        self.condemn(id).kill();
    }

    /// Removes a player that is about to be killed from the table.
    pub(crate) fn condemn(&mut self, id: u64) -> Player {
        self.players.remove(&id).unwrap()
    }

    /// Stops a player, or lets it continue.
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
