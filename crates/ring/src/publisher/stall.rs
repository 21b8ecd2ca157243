//! Live subscribers that block a full ring: the publisher first asks for their positions, and evicts them at last.
//!
//! Subscribers store their position once in an eighth of the ring, so a slow one can look like a stalled one. When
//! half the limit has passed since its position was last seen to move, the publisher asks the subscriber to store
//! it with every frame. If the subscriber has still not moved at the end of the limit, it is evicted: an order with
//! its ticket is stored, and from then on its position is ignored. Before the limit rises for that there is a fence
//! (F1 in `gate.rs`). With every frame, after it has seen the header, a subscriber checks for an order: a
//! subscriber that reads a byte that was written after the fence sees the order that was stored before it.
//!
//! A publisher can exempt a subscriber, permanently or while it has an excuse: that one is asked, but not evicted
//! meanwhile.
//!
//! The slot stays the subscriber's, with its lock and its bit, until it leaves: no other subscriber can take the
//! place of an evicted one unnoticed, and the ticket distinguishes the next holder from it.

use crate::atomics::Ordering;
use crate::clock::Instant;
use std::fmt;
use std::time::Duration;

use crate::lines::{EVICTED, NO_ORDER, Order, SLOTS, TELL, order_word};
use crate::memory::Memory;
use crate::subscriber::SubscriberId;

/// Parts of the limit. A look counts for at most one of them, whatever the time since the previous look: a
/// publisher that was itself stopped has not seen its subscribers stall.
const LOOKS: u32 = 4;

/// What happens to a subscriber that blocks the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// It may still move.
    Left,
    /// It is evicted.
    Over,
}

/// The subscribers that block the ring, and for how long.
#[derive(Debug)]
pub(super) struct Stalls {
    /// Zero = no limit.
    limit: Duration,
    /// Slots whose holder, or an earlier one, was evicted.
    evicted_slots: u64,
    /// Slots whose holder was asked for its position.
    asked_slots: u64,
    /// Subscribers evicted from this ring.
    pub(super) evicted: u64,
    slots: Box<[Stall]>,
    /// Subscribers without a stall limit; at most one for each slot.
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
    /// Time for which the subscriber was seen at that position.
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

    /// Exempts this subscriber from the limit. The previous holder of its slot is gone.
    pub(super) fn exempt(&mut self, seat: SubscriberId) {
        self.exempt.retain(|other| other.slot != seat.slot);
        self.exempt.push(seat);
    }

    /// Exempts subscribers while `excuse` returns `true` for them.
    pub(super) fn excuse(&mut self, excuse: Excuse) {
        self.excuses.push(excuse);
    }

    fn is_waited_for(&self, seat: SubscriberId) -> bool {
        self.exempt.contains(&seat) || self.excuses.iter().any(|Excuse(is_so)| is_so(seat))
    }

    /// The orders of an earlier publisher remain valid.
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

    /// Whether the current holder of `slot` was evicted.
    #[inline]
    pub(super) fn is_evicted(&self, memory: &Memory, slot: usize) -> bool {
        // Relaxed: the table's bit was loaded before, and the ticket came with it.
        self.evicted_slots >> slot & 1 == 1
            && memory.publisher().orders[slot].word.load(Ordering::Relaxed)
                == order_word(ticket_of(memory, slot), EVICTED)
    }

    /// Counts the stall of a live subscriber that blocks the ring at `position`.
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
            // The subscriber is still asked, and has half of the limit once its excuse is over.
            self.slots[slot].for_long = self.limit / 2;
        } else if for_long >= self.limit {
            order.position.store(position, Ordering::Relaxed);
            // Release: a subscriber that sees the order sees the position.
            order.word.store(order_word(ticket, EVICTED), Ordering::Release);
            self.evicted_slots |= 1 << slot;
            self.asked_slots &= !(1 << slot);
            self.evicted = self.evicted.wrapping_add(1);
            return Patience::Over;
        }
        // With its ticket: an order to the slot's previous holder does not apply to this one.
        let tell = order_word(ticket, TELL);
        if for_long >= self.limit / 2 && order.word.load(Ordering::Relaxed) != tell {
            order.word.store(tell, Ordering::Relaxed);
            self.asked_slots |= 1 << slot;
        }
        Patience::Left
    }

    /// There is space again: no subscriber needs to store its position more often than usual.
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
