//! What a client asks, answered.

use std::collections::VecDeque;

use tapeline_measure::Nanos;
use tapeline_omm::domain::View;
use tapeline_omm::domain::post::Nak;
use tapeline_omm::role::provider::{Application, Event, ItemRequest, Provider, StreamHandle};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{DataState, Domain, NakCode, StateCode, StatusHeader, StreamState};
use tapeline_omm::{Fid, Refused, State};
use tapeline_plant::ItemId;

use crate::interest::{Open, Standing};
use crate::market::{Market, SERVED};
use crate::note::Note;
use crate::session::{Account, Owed, Refusal};
use crate::views::ViewId;
use crate::{SessionId, Unknown};

/// A client, while something of its is looked at.
pub(crate) struct Desk<'a> {
    pub(crate) id: SessionId,
    pub(crate) now: Nanos,
    pub(crate) market: &'a mut Market,
    pub(crate) account: &'a mut Account,
    pub(crate) notes: &'a mut VecDeque<Note>,
}

impl Application for Desk<'_> {
    fn event(&mut self, provider: &mut Provider, out: &mut dyn Outbox, event: Event<'_>) {
        match event {
            Event::Login { request, is_reissue } => self.login(provider, out, &request, is_reissue),
            Event::Directory { stream, .. } => {
                // The hub's own service always has room in a message.
                let _ = provider.directory(out, stream, &self.market.services);
            }
            Event::Dictionary { stream, .. } => {
                let _ = provider.dictionary(out, stream, &self.market.settings.dictionary);
            }
            Event::Open { stream, request } => self.open(provider, stream, &request),
            Event::Reissue { stream, request } => self.reissue(provider, stream, &request),
            Event::Closed { stream } => self.market.close(self.id, stream),
            Event::Post { receipt, .. } => {
                self.account.counters.declined += 1;
                if let Some(receipt) = receipt {
                    let nak = Nak { code: NakCode::DENIED_BY_SRC, text: b"Posts are not taken here" };
                    let _ = provider.ack(out, receipt, Some(nak));
                }
            }
            Event::Generic { .. } => self.account.counters.declined += 1,
            _ => {}
        }
    }
}

impl Desk<'_> {
    fn open(&mut self, provider: &Provider, stream: StreamHandle, request: &ItemRequest<'_>) {
        self.account.counters.requests += 1;
        match self.admit(stream, request) {
            Ok(owed) => self.account.owe(provider, stream, owed),
            Err(refusal) => {
                self.account.counters.refused += 1;
                self.account.owe(provider, stream, Owed::Closed(refusal));
            }
        }
    }

    /// Enters a request among those who have its item open: what its stream is owed then.
    fn admit(&mut self, stream: StreamHandle, request: &ItemRequest<'_>) -> Result<Owed, Refusal> {
        let market = &mut *self.market;
        let name = request.key.name.unwrap_or_default();
        let refuse = |code, text| Err(Refusal { code, text, may_recover: false });
        if request.key.service_id != Some(market.settings.service_id) {
            return refuse(StateCode::SOURCE_UNKNOWN, "There is no such service");
        }
        if !market.is_up {
            return Err(Refusal { code: StateCode::NONE, text: "The service is down", may_recover: true });
        }
        if !SERVED.contains(&request.domain) {
            return refuse(StateCode::NOT_FOUND, "There is no such domain here");
        }
        if name.is_empty() {
            return refuse(StateCode::USAGE_ERROR, "This request names no item");
        }
        if let Some(refusal) = self.refuses(request.domain, name) {
            return Err(refusal);
        }
        let market = &mut *self.market;
        let known = market.interest.find(request.domain, name);
        let is_published =
            known.and_then(|place| market.interest.get(place)).is_some_and(|item| item.number != ItemId(0));
        let can_wait = market.settings.unknown == Unknown::Wait && request.is_streaming();
        if !is_published && !can_wait {
            return refuse(StateCode::NOT_FOUND, "There is no such item");
        }
        let Ok(place) = market.interest.take(request.domain, name) else {
            return refuse(StateCode::TOO_MANY_ITEMS, "There are too many items");
        };
        let has_image = market.interest.get(place).is_some_and(|item| item.has_image);
        let view = wanted(request).map_or(ViewId::ALL, |fids| market.views.take(fids));
        let standing = if has_image { Standing::Owed } else { Standing::Waits };
        market.interest.open(place, Open { session: self.id, stream, view, standing, missed: false });
        Ok(if has_image { Owed::Image } else { Owed::Pending })
    }

    fn reissue(&mut self, provider: &Provider, stream: StreamHandle, request: &ItemRequest<'_>) {
        let market = &mut *self.market;
        let view = wanted(request).map_or(ViewId::ALL, |fids| market.views.take(fids));
        let Some(open) = market.interest.stream_mut(self.id, stream) else {
            market.views.release(view);
            return;
        };
        let before = std::mem::replace(&mut open.view, view);
        market.views.release(before);
        let goes_on = !request.is_pause();
        self.owe_image(provider, stream, |open| request.wants_refresh() || goes_on && open.missed);
    }

    /// A stream whose client has an image is owed another one, `if` so.
    pub(crate) fn owe_image(
        &mut self,
        provider: &Provider,
        stream: StreamHandle,
        is_wanted: impl Fn(&Open) -> bool,
    ) {
        if let Some(open) = self.market.interest.stream_mut(self.id, stream)
            && open.standing == Standing::Current
            && is_wanted(open)
        {
            open.standing = Standing::Owed;
            self.account.owe(provider, stream, Owed::Image);
        }
    }

    /// Sends what streams are owed, as long as there is room. Nothing else may wait for room then.
    pub(crate) fn go_on(&mut self, provider: &mut Provider, out: &mut dyn Outbox) {
        while let Some((stream, owed)) = self.account.first_owed() {
            let refusal = if matches!(owed, Owed::Image) { self.denied_by_code(stream) } else { None };
            if let Some(refusal) = refusal {
                self.take_away(provider, stream, refusal);
                self.account.settled();
                continue;
            }
            let sent = match owed {
                Owed::Image => match self.say_gap(provider, out, stream) {
                    Sent::Full => Sent::Full,
                    _ => self.market.send_image(self.id, stream, provider, out, &mut self.account.counters),
                },
                Owed::Closed(refusal) => self.say(provider, out, stream, refusal.state()),
                Owed::Pending => self.say(provider, out, stream, PENDING),
            };
            if sent == Sent::Full {
                self.account.found_no_room(self.now);
                return;
            }
            self.account.settled();
        }
    }

    /// Tells a stream that it missed something, if it has.
    fn say_gap(&mut self, provider: &mut Provider, out: &mut dyn Outbox, stream: StreamHandle) -> Sent {
        let open = self.market.interest.stream_mut(self.id, stream);
        if open.as_ref().is_none_or(|open| open.standing != Standing::Gap) {
            return Sent::NotOpen;
        }
        let sent = self.say(provider, out, stream, GAP);
        if sent == Sent::Queued
            && let Some(open) = self.market.interest.stream_mut(self.id, stream)
        {
            open.standing = Standing::Owed;
            self.account.counters.gaps += 1;
        }
        sent
    }

    fn say(
        &self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        state: State<'_>,
    ) -> Sent {
        // The domain is the stream's.
        let status = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
        provider.status(self.now, out, stream, &status).unwrap_or(Sent::TooLong)
    }
}

/// Of an item that the plant has not published yet.
const PENDING: State<'static> = State {
    stream: StreamState::OPEN,
    data: DataState::SUSPECT,
    code: StateCode::NONE,
    text: b"There is no image of this item yet",
};

/// Of an item of which a client missed updates; an image follows.
const GAP: State<'static> = State {
    stream: StreamState::OPEN,
    data: DataState::SUSPECT,
    code: StateCode::GAP_DETECTED,
    text: b"Updates were dropped: they were not taken in time",
};

/// The fields of a request's view; `None` for all of them.
fn wanted(request: &ItemRequest<'_>) -> Option<Vec<Fid>> {
    match &request.view {
        Some(View::Fids(fids)) => Some(fids.iter().flatten().map(Fid).collect()),
        _ => None,
    }
}

/// Bytes copied to where a payload is written.
pub(crate) fn copy(payload: &[u8], room: &mut [u8]) -> Result<usize, Refused> {
    room.get_mut(..payload.len()).ok_or(Refused::Full)?.copy_from_slice(payload);
    Ok(payload.len())
}
