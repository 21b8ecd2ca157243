//! Private streams.

use std::collections::HashMap;

use tapeline_omm::State;
use tapeline_omm::role::consumer::Handle;
use tapeline_omm::rwf::{AckHeader, Domain, StateCode, StreamState};

use super::passing::{Passed, closed, is_final};
use super::{Desk, LinkId};
use crate::demand::{Answer, Ticket};

/// The bit that distinguishes a private stream's number from an item's.
const PRIVATE: u64 = 1 << 63;

/// The open private streams, by ticket.
#[derive(Debug, Default)]
pub(super) struct Private {
    open: HashMap<u64, Opened>,
    /// Tickets of streams to end, because their answers exceeded the limit.
    overrun: Vec<u64>,
}

/// An open private stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opened {
    pub(super) service: u16,
    pub(super) domain: Domain,
    pub(super) link: LinkId,
    pub(super) handle: Handle,
}

impl Private {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns the number of the stream in a provider's role.
    pub(super) const fn number(ticket: Ticket) -> u64 {
        ticket.0 | PRIVATE
    }

    pub(super) fn insert(&mut self, ticket: Ticket, opened: Opened) {
        self.open.insert(Self::number(ticket), opened);
    }

    pub(super) fn find(&self, ticket: Ticket) -> Option<Opened> {
        self.open.get(&Self::number(ticket)).copied()
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Opened> {
        self.open.remove(&Self::number(ticket))
    }

    /// Returns the number of the stream with this handle in a source's role, if there is one.
    pub(super) fn number_at(&self, link: LinkId, handle: Handle) -> Option<u64> {
        let mut open = self.open.iter();
        open.find(|(_, opened)| (opened.link, opened.handle) == (link, handle)).map(|(number, _)| *number)
    }

    /// Returns the domain of the stream of this number, if there is one.
    pub(super) fn domain(&self, number: u64) -> Option<Domain> {
        self.open.get(&number).map(|opened| opened.domain)
    }
}

impl Desk {
    /// Passes a message of a private stream to its client. Returns `false` for the number of an item.
    pub(super) fn pass_private(&mut self, number: u64, passed: &Passed<'_>, is_over: bool) -> bool {
        if number & PRIVATE == 0 {
            return false;
        }
        let Some(opened) = self.private.open.get(&number).copied() else { return true };
        let is_over = is_over || is_final(&passed.header);
        let mut passed = *passed;
        if is_over {
            self.private.open.remove(&number);
            passed = self.last_word(&passed);
        } else if !self.has_room_to_answer() {
            self.counters.answers_dropped += 1;
            self.private.overrun.push(number);
            return true;
        }
        let (ticket, message) = (Ticket(number & !PRIVATE), passed.of_service(opened.service).bytes());
        self.answer(Answer::Private { ticket, message });
        true
    }

    /// Passes the receipt of a post on a private stream to its client.
    pub(super) fn pass_receipt(&mut self, number: u64, ack: &AckHeader<'_>) {
        let receipt = AckHeader {
            nak_code: ack.nak_code,
            text: ack.text,
            sequence: ack.sequence,
            ..AckHeader::new(ack.domain, 0, ack.ack_id)
        };
        let header_len = 64 + receipt.text.map_or(0, <[u8]>::len);
        self.pass_private(number, &Passed { header: receipt.into(), payload: &[], header_len }, false);
    }

    /// Ends the streams whose answers exceeded the limit: the lost messages cannot be replaced.
    pub(super) fn end_private(&mut self) {
        for number in std::mem::take(&mut self.private.overrun) {
            let Some(opened) = self.private.open.remove(&number) else { continue };
            self.to_close.push((opened.link, opened.handle, None));
            let text = "More came on this stream than could be passed on";
            let state = closed(StreamState::CLOSED_RECOVER, StateCode::NO_RESOURCES, text);
            self.refuse_private(Ticket(number & !PRIVATE), opened.domain, state);
        }
    }

    /// Ends all streams, because there are no clients any more.
    pub(super) fn end_all_private(&mut self) {
        let mut open: Vec<_> = std::mem::take(&mut self.private.open).into_iter().collect();
        open.sort_unstable_by_key(|(number, _)| *number);
        self.to_close.extend(open.into_iter().map(|(_, opened)| (opened.link, opened.handle, None)));
    }

    /// Sends a client the status that there is no stream.
    pub(super) fn refuse_private(&mut self, ticket: Ticket, domain: Domain, state: State<'_>) {
        let message = Passed::status(domain, state).bytes();
        self.answer(Answer::Private { ticket, message });
    }
}
