//! Joining while the publisher publishes: a registered subscriber is not overrun. The protocol and its proof are in
//! `gate.rs`.

use super::explore::{Model, spawn};
use super::scene::{Reader, name, send, take, tiny};
use crate::{Publisher, Start, Subscriber};

/// No other subscriber blocks the publisher: it laps the ring while one joins.
fn join(start: Start) {
    let mut publisher = Publisher::open(&name(), &tiny()).unwrap();
    for _ in 0..3 {
        assert!(send(&mut publisher));
    }
    let joining = spawn(move || {
        let mut subscriber = Subscriber::join_as(&name(), start, "").unwrap();
        let first = take(&mut subscriber);
        (subscriber, first)
    });
    for _ in 0..4 {
        send(&mut publisher);
    }
    let (mut subscriber, first) = joining.join().unwrap();
    let next = match first.or_else(|| take(&mut subscriber)) {
        Some(first) => first + 1,
        None => publisher.frames(),
    };
    let mut reader = Reader { subscriber, next };
    reader.drain(publisher.frames());
    assert!(send(&mut publisher), "all is released");
    reader.drain(publisher.frames());
}

pub(super) const NEWEST: Model =
    Model { name: "join newest", preemptions: 2, least: 5000, run: || join(Start::Newest) };
pub(super) const OLDEST: Model =
    Model { name: "join oldest", preemptions: 3, least: 2000, run: || join(Start::Oldest) };
