//! Answers of sources other than market data.

use tapeline_nanos::Nanos;
use tapeline_omm::domain::post::Nak;
use tapeline_omm::role::Sent;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_omm::rwf::{Header, MessageClass, MessageView, NakCode, StateCode, StreamState};
use tapeline_plant::Seq;
use tapeline_plant::demand::{Answer, Demand, ItemName, Ticket};

use crate::connections::{Behind, Connections, SessionId};
use crate::hub::Hub;
use crate::interest::StreamPhase;
use crate::session::Session;
use crate::slow_clients::SlowPolicy;
use crate::status_texts::{NO_ROOM_FOR_MESSAGE, RECEIPT_UNREADABLE};
use crate::statuses::{is_final, suspect};

impl Hub {
    /// Returns the next demand for the sources. Call until it returns `None`. Demands stay queued until then, each item once, so that a caller
    /// whose own queue is full may leave the rest here.
    pub fn next_demand(&mut self) -> Option<Demand> {
        let demand = self.shared.next_demand()?;
        self.counters.demands += 1;
        Some(demand)
    }

    /// Returns the number of demands queued for the sources.
    #[must_use]
    pub fn demands(&self) -> usize {
        self.shared.demands.len()
    }

    /// Returns the number of posts whose receipts are outstanding.
    #[must_use]
    pub fn awaited_receipts(&self) -> usize {
        self.shared.receipts.len()
    }

    /// Returns the number of private streams that are passed to sources.
    #[must_use]
    pub fn private_streams(&self) -> usize {
        self.shared.private.len()
    }

    /// Handles an answer of a source.
    pub fn answer(&mut self, now: Nanos, answer: Answer, connections: &mut impl Connections) {
        self.now = now;
        self.counters.answers += 1;
        self.fold_all(connections);
        let is_taken = match answer {
            Answer::Status { item, message } => self.status_answer(&item, &message, connections),
            Answer::Private { ticket, message } => self.private_answer(ticket, &message, connections),
            Answer::Ack { ticket, message } => self.ack(ticket, &message, connections),
            Answer::Generic { item, message } => self.generic_answer(&item, &message, connections),
            _ => false,
        };
        self.counters.stray_answers += u64::from(!is_taken);
    }

    fn status_answer(&mut self, item: &ItemName, message: &[u8], connections: &mut impl Connections) -> bool {
        let Some(place) = self.shared.find(item) else { return false };
        let Some(there) = self.shared.interest.get(place).filter(|item| !item.is_of_feeds()) else {
            return false;
        };
        // Answers do not come through the ring, and were sent when there was no image. If there is one now, the ring was faster and contains the
        // item's state.
        if there.has_image || there.streams.iter().any(|open| open.phase == StreamPhase::Current) {
            return false;
        }
        self.item_status(place, Seq(self.next_seq), message, connections);
        true
    }

    /// Sends a message on a private stream. If the client has no capacity for it, the stream is closed, because the loss cannot be repaired.
    fn private_answer(&mut self, ticket: Ticket, message: &[u8], connections: &mut impl Connections) -> bool {
        let Some((id, stream)) = self.shared.private.stream(ticket) else { return false };
        let Some(session) = self.sessions.get_live(id) else { return false };
        let Session { provider, backlog, session_state } = session;
        let mut sent = Sent::Full;
        if !session_state.is_full {
            let there = connections
                .with(id, |out| provider.pass_on(self.now, &mut Behind::new(backlog, out), stream, message));
            sent = there.unwrap_or(Sent::NotOpen);
        }
        if sent == Sent::Full {
            session_state.found_no_room(self.now);
            if self.shared.overflow.has_room(message.len() + LONGEST_KEY) {
                sent = provider.pass_on(self.now, backlog.for_all(), stream, message);
                self.shared.overflow.count(self.now, session_state, backlog);
            }
            if matches!(session_state.slow, SlowPolicy::Block { .. }) && !session_state.holds {
                session_state.holds = self.shared.hold(id, provider, true);
            }
        }
        match sent {
            Sent::Queued => {
                session_state.counters.answers += 1;
                match MessageView::parse(message).map(|message| message.class()) {
                    Ok(MessageClass::REFRESH) => session_state.counters.refreshes += 1,
                    Ok(MessageClass::UPDATE) => session_state.counters.updates += 1,
                    Ok(MessageClass::STATUS) => session_state.counters.statuses += 1,
                    _ => {}
                }
            }
            Sent::NotOpen => {}
            Sent::Full | Sent::TooLong => {
                self.end_private(id, stream, connections);
                return true;
            }
        }
        let said = MessageView::parse(message).and_then(|message| message.header());
        let is_last = said.is_ok_and(|header| header.state().is_some_and(|state| is_final(&state)));
        if is_last {
            self.shared.private.close(id, stream);
        } else if provider.stream_id(stream).is_none() {
            // A snapshot is complete: the source may not know it.
            self.shared.close_private(id, stream);
        }
        sent.is_queued()
    }

    /// Ends a private stream that cannot continue.
    fn end_private(&mut self, id: SessionId, stream: StreamHandle, connections: &mut impl Connections) {
        self.shared.close_private(id, stream);
        let state = suspect(StreamState::CLOSED_RECOVER, StateCode::NO_RESOURCES, NO_ROOM_FOR_MESSAGE);
        self.say_last(id, stream, state, connections);
    }

    /// Sends the receipt of a post, with the client's own number.
    fn ack(&mut self, ticket: Ticket, message: &[u8], connections: &mut impl Connections) -> bool {
        let Some((id, receipt)) = self.shared.receipts.take(ticket) else { return false };
        let Some(session) = self.sessions.get_live(id) else { return false };
        let header = MessageView::parse(message).and_then(|message| message.header());
        let nak = match &header {
            Ok(Header::Ack(ack)) => ack.nak_code.map(|code| Nak { code, text: ack.text.unwrap_or_default() }),
            // An unreadable message is not a receipt; and the client waits for one.
            _ => Some(Nak { code: NakCode::INVALID_CONTENT, text: RECEIPT_UNREADABLE.as_bytes() }),
        };
        let Session { provider, backlog, session_state } = session;
        session_state.counters.answers += 1;
        connections.with(id, |out| provider.ack(&mut Behind::new(backlog, out), receipt, nak));
        matches!(header, Ok(Header::Ack(_)))
    }

    /// Sends a generic message to all clients with the item open. It is in no image: a client without capacity loses it, and the loss is counted.
    fn generic_answer(
        &mut self,
        item: &ItemName,
        message: &[u8],
        connections: &mut impl Connections,
    ) -> bool {
        let is_generic = MessageView::parse(message).and_then(|message| message.header());
        if !matches!(is_generic, Ok(Header::Generic(_))) {
            return false;
        }
        let place = self.shared.find(item);
        let Some(item) = place.and_then(|place| self.shared.interest.get(place)) else { return false };
        for open in &item.streams {
            let Some(session) = self.sessions.get_live(open.session) else { continue };
            let Session { provider, backlog, session_state } = session;
            let sent = if session_state.is_full {
                Sent::Full
            } else {
                let there = connections.with(open.session, |out| {
                    provider.pass_on(self.now, &mut Behind::new(backlog, out), open.stream, message)
                });
                there.unwrap_or(Sent::NotOpen)
            };
            match sent {
                Sent::Queued => session_state.counters.answers += 1,
                _ => session_state.counters.lost += 1,
            }
        }
        true
    }
}

/// Maximum number of bytes that a message grows by: a key with a name, and the queue overhead.
const LONGEST_KEY: usize = 1024;
