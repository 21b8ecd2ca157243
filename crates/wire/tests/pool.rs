//! The pool of datagrams: calls in any order against a plain queue, two threads at once, real sockets; each
//! for every kind of pool and every policy.
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use tapeline_measure::Nanos;
use tapeline_wire::pool::{
    self, Closed, Intake, Outlet, Policy, PoolKind, PoolSettings, QueuePoll, SLOT_BYTES,
};
use tapeline_wire::udp::{ReceiveOptions, SendOptions, UdpReceiver, UdpSender};

const KINDS: [PoolKind; 4] = [PoolKind::Spsc, PoolKind::List, PoolKind::CountedList, PoolKind::Heap];
const POLICIES: [Policy; 3] = [Policy::Block, Policy::DropNewest, Policy::Heap];

fn open(kind: PoolKind, policy: Policy, slots: usize) -> (Intake, Outlet) {
    pool::open(&PoolSettings { kind, slots, policy, batch: 8, ..PoolSettings::default() }).unwrap()
}

/// Returns a datagram that differs from every other.
fn content(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(1 + number as usize % 9)
}

/// Takes all delivered datagrams: the bytes, and whether they were truncated.
fn all(outlet: &mut Outlet) -> Vec<(Vec<u8>, bool)> {
    let mut found = Vec::new();
    while let QueuePoll::Ready(datagrams) = outlet.take() {
        found.extend(datagrams.iter().map(|datagram| (datagram.bytes().to_vec(), datagram.is_truncated())));
    }
    found
}

#[derive(Clone, Debug)]
enum Call {
    Put(usize),
    Deliver,
    Take(usize),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call =
        prop_oneof![(1..12usize).prop_map(Call::Put), Just(Call::Deliver), (1..12usize).prop_map(Call::Take)];
    proptest::collection::vec(call, 0..200)
}

/// A pool and its expected content.
struct Model {
    intake: Intake,
    outlet: Outlet,
    staged: VecDeque<u64>,
    delivered: VecDeque<u64>,
    next: u64,
    dropped: u64,
    most: usize,
    bound: usize,
}

impl Model {
    fn new(kind: PoolKind, policy: Policy, slots: usize) -> Self {
        let (intake, outlet) = open(kind, policy, slots);
        let bound = if policy == Policy::Heap { 2 * slots } else { slots };
        Self {
            intake,
            outlet,
            staged: VecDeque::new(),
            delivered: VecDeque::new(),
            next: 0,
            dropped: 0,
            most: 0,
            bound,
        }
    }

    fn held(&self) -> usize {
        self.staged.len() + self.delivered.len()
    }

    fn put(&mut self, policy: Policy) {
        let received = self.intake.put(&content(self.next), Some(Nanos(self.next + 1)), self.next as u8);
        if self.held() < self.bound {
            assert_eq!(
                (received.count, received.dropped, received.exhausted),
                (1, 0, false),
                "a slot is free"
            );
            self.staged.push_back(self.next);
            self.next += 1;
        } else if policy == Policy::DropNewest {
            assert_eq!((received.count, received.dropped, received.exhausted), (0, 1, false));
            self.next += 1;
            self.dropped += 1;
        } else {
            assert_eq!((received.count, received.dropped, received.exhausted), (0, 0, true));
        }
        self.most = self.most.max(self.held());
    }

    /// Takes `most` datagrams, or all if there are fewer.
    fn take(&mut self, most: usize) {
        let left = self.delivered.len().saturating_sub(most);
        while self.delivered.len() > left {
            self.take_up_to(self.delivered.len() - left);
        }
        if self.delivered.is_empty() {
            assert!(matches!(self.outlet.take(), QueuePoll::Empty), "no more than was delivered");
        }
    }

    fn take_up_to(&mut self, most: usize) {
        match self.outlet.take_up_to(most) {
            QueuePoll::Ready(datagrams) => {
                assert!((1..=most).contains(&datagrams.len()));
                for datagram in datagrams.iter() {
                    let number = self.delivered.pop_front().expect("no more than was delivered");
                    assert_eq!(datagram.bytes(), content(number));
                    assert_eq!(datagram.received(), Some(Nanos(number + 1)));
                    assert_eq!((datagram.line(), datagram.is_truncated()), (number as u8, false));
                }
            }
            _ => panic!("{} datagrams are lost", self.delivered.len()),
        }
    }
}

proptest! {
    #[test]
    fn no_slot_is_lost_or_doubled(
        kind in prop::sample::select(&KINDS[..]),
        policy in prop::sample::select(&POLICIES[..]),
        slots in 1..20usize,
        calls in calls(),
    ) {
        let mut model = Model::new(kind, policy, slots);
        for call in calls {
            match call {
                Call::Put(count) => (0..count).for_each(|_| model.put(policy)),
                Call::Deliver => {
                    prop_assert_eq!(model.intake.deliver(), Ok(model.staged.len()));
                    model.delivered.append(&mut model.staged);
                }
                Call::Take(most) => model.take(most),
            }
            prop_assert_eq!(model.intake.staged(), model.staged.len());
        }
        model.intake.deliver().unwrap();
        model.delivered.append(&mut model.staged);
        model.take(usize::MAX);
        let counters = model.intake.counters();
        prop_assert_eq!(counters.dropped, model.dropped);
        prop_assert_eq!(counters.high_water, model.most as u64);
        prop_assert_eq!(counters.hits + counters.misses, model.next);
        prop_assert!(counters.exhaustions > 0 || model.dropped == 0);
        // All slots can be taken again.
        for _ in 0..model.bound {
            model.put(policy);
        }
        prop_assert_eq!(model.staged.len(), model.bound);
    }
}

#[test]
fn the_policy_decides_when_all_slots_are_taken() {
    for policy in POLICIES {
        let mut model = Model::new(PoolKind::Spsc, policy, 4);
        for _ in 0..12 {
            model.put(policy);
        }
        let counters = model.intake.counters();
        let (hits, misses, dropped) = match policy {
            Policy::Block => (4, 0, 0),
            Policy::DropNewest => (4, 8, 8),
            Policy::Heap => (4, 4, 0),
        };
        assert_eq!((counters.hits, counters.misses, counters.dropped), (hits, misses, dropped), "{policy:?}");
        assert_eq!(counters.exhaustions, 1, "one drought, however long: {policy:?}");
        model.intake.deliver().unwrap();
        model.delivered.append(&mut model.staged);
        model.take(1);
        model.put(policy);
        model.put(policy);
        assert_eq!(model.intake.counters().exhaustions, 2, "another: {policy:?}");
    }
}

#[test]
fn plain_allocation_is_all_misses() {
    let (mut intake, _outlet) = open(PoolKind::Heap, Policy::Block, 4);
    for _ in 0..3 {
        assert_eq!(intake.put(b"tape", None, 0).count, 1);
    }
    assert_eq!((intake.counters().hits, intake.counters().misses), (0, 3));
}

#[test]
fn what_is_put_comes_out_unchanged() {
    let (mut intake, mut outlet) = open(PoolKind::Spsc, Policy::Block, 4);
    let long = vec![7; SLOT_BYTES + 1];
    for bytes in [&b""[..], b"tape", &long[..SLOT_BYTES], &long] {
        assert_eq!(intake.put(bytes, None, 3).count, 1);
    }
    intake.deliver().unwrap();
    let found: Vec<_> = all(&mut outlet).into_iter().map(|(bytes, cut)| (bytes.len(), cut)).collect();
    assert_eq!(found, [(0, false), (4, false), (SLOT_BYTES, false), (SLOT_BYTES, true)]);
}

#[test]
fn each_end_learns_that_the_other_has_gone() {
    for kind in KINDS {
        let (mut intake, mut outlet) = open(kind, Policy::Block, 4);
        assert_eq!(intake.put(b"last words", None, 0).count, 1);
        assert_eq!(intake.deliver(), Ok(1));
        drop(intake);
        assert!(matches!(outlet.take(), QueuePoll::Ready(datagrams) if datagrams.len() == 1));
        assert!(matches!(outlet.take(), QueuePoll::Ended));

        let (mut intake, outlet) = open(kind, Policy::Block, 4);
        drop(outlet);
        assert_eq!(intake.deliver(), Err(Closed));
    }
}

#[test]
fn two_threads_lose_and_double_nothing() {
    const DATAGRAMS: u64 = 60_000;
    for kind in KINDS {
        for policy in [Policy::Block, Policy::Heap] {
            let (mut intake, mut outlet) = open(kind, policy, 32);
            thread::scope(|scope| {
                let putting = scope.spawn(move || {
                    let mut next = 0;
                    while next < DATAGRAMS {
                        for _ in 0..1 + next % 7 {
                            next += intake.put(&content(next), None, 0).count as u64;
                        }
                        if intake.deliver() == Ok(0) {
                            thread::yield_now();
                        }
                    }
                    (next, intake.counters())
                });
                let mut next = 0;
                loop {
                    match outlet.take() {
                        QueuePoll::Ready(datagrams) => {
                            for datagram in datagrams.iter() {
                                assert_eq!(datagram.bytes(), content(next), "{kind:?}, {policy:?}");
                                next += 1;
                            }
                        }
                        QueuePoll::Empty => thread::yield_now(),
                        QueuePoll::Ended => break,
                    }
                }
                let (put, counters) = putting.join().unwrap();
                assert_eq!(next, put, "{kind:?}, {policy:?}");
                let bound = if policy == Policy::Heap { 64 } else { 32 };
                assert!((1..=bound).contains(&counters.high_water), "{counters:?}");
            });
        }
    }
}

fn sockets() -> (UdpReceiver, UdpSender) {
    let receiver =
        UdpReceiver::open(&ReceiveOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))).unwrap();
    let sender = UdpSender::open(&SendOptions::new(receiver.local_address())).unwrap();
    (receiver, sender)
}

/// Receives until `count` datagrams are staged or dropped.
fn receive(intake: &mut Intake, receiver: &mut UdpReceiver, count: usize) -> (usize, usize) {
    let (mut taken, mut dropped) = (0, 0);
    while taken + dropped < count {
        let received = intake.receive(receiver, 5).unwrap();
        assert!(!received.exhausted);
        taken += received.count;
        dropped += received.dropped;
        if received.count + received.dropped == 0 {
            receiver.wait(Duration::from_secs(10));
        }
    }
    (taken, dropped)
}

#[test]
fn datagrams_arrive_in_slots_of_every_kind() {
    for kind in KINDS {
        let (mut receiver, mut sender) = sockets();
        let (mut intake, mut outlet) = open(kind, Policy::Block, 32);
        let mut next = 0;
        // Several rounds over all slots, in batches that use some, all and more than all headers of a call.
        for count in [1, 3, 8, 20, 32, 5, 31, 32, 1] {
            let datagrams: Vec<_> = (next..next + count).map(content).collect();
            assert_eq!(sender.send_many(&datagrams).unwrap().count, datagrams.len());
            assert_eq!(receive(&mut intake, &mut receiver, datagrams.len()), (datagrams.len(), 0));
            assert_eq!(intake.deliver(), Ok(datagrams.len()));
            let end = next + count;
            while next < end {
                let QueuePoll::Ready(datagrams) = outlet.take() else { panic!("{next} is missing") };
                for datagram in datagrams.iter() {
                    assert_eq!(datagram.bytes(), content(next), "{kind:?}");
                    assert!(datagram.received().is_some());
                    assert_eq!((datagram.line(), datagram.is_truncated()), (5, false));
                    next += 1;
                }
            }
            assert!(matches!(outlet.take(), QueuePoll::Empty));
        }
        assert_eq!(receiver.ask_kernel_drops(), 0);
        assert_eq!(intake.counters().high_water, 32);
    }
}

#[test]
fn a_long_datagram_is_cut_and_flagged_and_leaves_its_neighbour_alone() {
    let (mut receiver, mut sender) = sockets();
    let (mut intake, mut outlet) = open(PoolKind::Spsc, Policy::Block, 8);
    let long = vec![9; SLOT_BYTES + 500];
    assert_eq!(sender.send_many([&b"before"[..], &long, b"behind"]).unwrap().count, 3);
    receive(&mut intake, &mut receiver, 3);
    intake.deliver().unwrap();
    let cut = long[..SLOT_BYTES].to_vec();
    assert_eq!(all(&mut outlet), [(b"before".to_vec(), false), (cut, true), (b"behind".to_vec(), false)]);
}

#[test]
fn without_slots_datagrams_wait_in_the_kernel_or_are_counted() {
    let (mut receiver, mut sender) = sockets();
    let (mut intake, mut outlet) = open(PoolKind::Spsc, Policy::Block, 4);
    let datagrams: Vec<_> = (0..10).map(content).collect();
    assert_eq!(sender.send_many(&datagrams).unwrap().count, 10);
    assert_eq!(receive(&mut intake, &mut receiver, 4), (4, 0));
    for _ in 0..3 {
        assert!(intake.receive(&mut receiver, 0).unwrap().exhausted);
    }
    assert_eq!(intake.counters().exhaustions, 1);
    let mut next = 0;
    while next < 10 {
        intake.deliver().unwrap();
        while let QueuePoll::Ready(datagrams) = outlet.take() {
            for datagram in datagrams.iter() {
                assert_eq!(datagram.bytes(), content(next), "they have waited");
                next += 1;
            }
        }
        let received = intake.receive(&mut receiver, 0).unwrap();
        assert!(!received.exhausted && received.dropped == 0);
    }

    let (mut receiver, mut sender) = sockets();
    let (mut intake, _outlet) = open(PoolKind::Spsc, Policy::DropNewest, 4);
    assert_eq!(sender.send_many(&datagrams).unwrap().count, 10);
    assert_eq!(receive(&mut intake, &mut receiver, 10), (4, 6));
    let counters = intake.counters();
    assert_eq!((counters.hits, counters.misses, counters.dropped), (4, 6, 6));
}
