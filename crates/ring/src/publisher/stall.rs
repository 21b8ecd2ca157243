//! Live subscribers that hold a full ring up: first they are asked where they are, and at last they are evicted.
//!
//! Subscribers tell their position once in an eighth of the ring, so a slow one can look like a stalled one. Half the
//! limit after its position was last seen to move, the publisher asks it to tell with every frame. Who has then not moved
//! at the end of the limit is evicted: an order with its ticket is stored, and from then on its position counts for
//! nothing. Before the limit rises for that there is a fence (F1 in `gate.rs`). With every frame, after it has seen the
//! header, a subscriber looks whether there is an order: who reads a byte that was written after the fence sees the order
//! that was stored before it.
//!
//! A publisher can exempt a subscriber, for good or while it has an excuse: that one is asked, and never evicted by it meanwhile.
//!
//! The slot stays the subscriber's, with its lock and its bit, until it leaves: nobody else can get into the place of an
//! evicted one unnoticed, and the ticket tells the next holder from it.

use crate::atomics::Ordering;
use crate::clock::Instant;
use std::fmt;
use std::time::Duration;

use crate::lines::{EVICTED, NO_ORDER, Order, SLOTS, TELL, order_word};
use crate::memory::Memory;
use crate::subscriber::SubscriberId;

/// Parts of the limit. A look counts for at most one of them, however long ago the one before was: a publisher that was
/// itself stopped has not seen its subscribers stall.
const LOOKS: u32 = 4;

/// What becomes of a subscriber in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// It may still move.
    Left,
    /// It is evicted.
    Over,
}

/// Who is in the way, and for how long.
#[derive(Debug)]
pub(super) struct Stalls {
    /// Zero = subscribers may stall for ever.
    limit: Duration,
    /// Slots whose holder, or an earlier one, was evicted.
    evicted_slots: u64,
    /// Slots whose holder was asked for its position.
    asked_slots: u64,
    /// Subscribers evicted from this ring.
    pub(super) evicted: u64,
    slots: Box<[Stall]>,
    /// Those that are waited for without a limit; one for each slot at most.
    exempt: Vec<SubscriberId>,
    excuses: Vec<Excuse>,
}

/// Whether a subscriber may not read yet: see [`Publisher::excuse_while`](crate::PublisherOf::excuse_while).
pub(super) struct Excuse(pub(super) Box<dyn Fn(SubscriberId) -> bool + Send>);

impl fmt::Debug for Excuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Excuse")
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Stall {
    ticket: u64,
    position: u64,
    /// For how long it was seen at that position.
    for_long: Duration,
    looked_at: Option<Instant>,
}

impl Stalls {
    pub(super) fn new(limit_ns: u64) -> Self {
        Self {
            limit: Duration::from_nanos(limit_ns),
            evicted_slots: 0,
            asked_slots: 0,
            evicted: 0,
            slots: vec![Stall::default(); if limit_ns == 0 { 0 } else { SLOTS }].into(),
            exempt: Vec::new(),
            excuses: Vec::new(),
        }
    }

    /// This subscriber is waited for without a limit. Who had its slot before is gone.
    pub(super) fn exempt(&mut self, seat: SubscriberId) {
        self.exempt.retain(|other| other.slot != seat.slot);
        self.exempt.push(seat);
    }

    /// Subscribers are waited for while this says so.
    pub(super) fn excuse(&mut self, excuse: Excuse) {
        self.excuses.push(excuse);
    }

    fn is_waited_for(&self, seat: SubscriberId) -> bool {
        self.exempt.contains(&seat) || self.excuses.iter().any(|Excuse(is_so)| is_so(seat))
    }

    /// What an earlier publisher has ordered stands.
    pub(super) fn continue_from(&mut self, memory: &Memory) {
        let lines = memory.publisher();
        self.evicted = lines.tally.evicted.load(Ordering::Relaxed);
        for (slot, order) in lines.orders.iter().enumerate() {
            match order.word.load(Ordering::Relaxed) & 3 {
                EVICTED => self.evicted_slots |= 1 << slot,
                TELL => self.asked_slots |= 1 << slot,
                _ => {}
            }
        }
    }

    /// Whether the present holder of `slot` was evicted.
    #[inline]
    pub(super) fn is_evicted(&self, memory: &Memory, slot: usize) -> bool {
        // Relaxed: the table's bit was loaded before, and with it came the ticket.
        self.evicted_slots >> slot & 1 == 1
            && memory.publisher().orders[slot].word.load(Ordering::Relaxed)
                == order_word(ticket_of(memory, slot), EVICTED)
    }

    /// A live subscriber at `position` stands in the way.
    pub(super) fn meet(&mut self, memory: &Memory, slot: usize, position: u64, now: Instant) -> Patience {
        let Some(stall) = self.slots.get_mut(slot) else { return Patience::Left };
        let ticket = ticket_of(memory, slot);
        if (stall.ticket, stall.position) != (ticket, position) {
            *stall = Stall { ticket, position, for_long: Duration::ZERO, looked_at: Some(now) };
            return Patience::Left;
        }
        let since = stall.looked_at.replace(now).map_or(Duration::ZERO, |then| now.duration_since(then));
        stall.for_long += since.min((self.limit / LOOKS).max(Duration::from_nanos(1)));
        let for_long = stall.for_long;
        let order = &memory.publisher().orders[slot];
        if for_long >= self.limit && self.is_waited_for(SubscriberId { slot, ticket }) {
            // It is asked all the same, and has half of the limit once its excuse is over.
            self.slots[slot].for_long = self.limit / 2;
        } else if for_long >= self.limit {
            order.position.store(position, Ordering::Relaxed);
            // Release: who sees the order sees the position.
            order.word.store(order_word(ticket, EVICTED), Ordering::Release);
            self.evicted_slots |= 1 << slot;
            self.asked_slots &= !(1 << slot);
            self.evicted = self.evicted.wrapping_add(1);
            return Patience::Over;
        }
        // By its ticket: what the slot's holder before was told is not for this one.
        let tell = order_word(ticket, TELL);
        if for_long >= self.limit / 2 && order.word.load(Ordering::Relaxed) != tell {
            order.word.store(tell, Ordering::Relaxed);
            self.asked_slots |= 1 << slot;
        }
        Patience::Left
    }

    /// There is room again: nobody needs to tell more than usual.
    #[inline]
    pub(super) fn over(&mut self, memory: &Memory) {
        while self.asked_slots != 0 {
            let slot = self.asked_slots.trailing_zeros() as usize % SLOTS;
            self.asked_slots &= self.asked_slots - 1;
            take_back(&memory.publisher().orders[slot]);
        }
    }
}

fn take_back(order: &Order) {
    let asked = order.word.load(Ordering::Relaxed);
    if asked & 3 == TELL {
        order.word.store(order_word(asked >> 2, NO_ORDER), Ordering::Relaxed);
    }
}

fn ticket_of(memory: &Memory, slot: usize) -> u64 {
    memory.subscribers().slots[slot].identity.ticket.load(Ordering::Relaxed)
}
