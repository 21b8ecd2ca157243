//! One consumer's connection, and the messages sent on it in each slice.

use tapeline_client::connection::{RoleConnection, RoleOutbox, Side};
use tapeline_measure::Nanos;
use tapeline_omm::Refused;
use tapeline_omm::role::Sent;
use tapeline_omm::role::provider::{Provider, StreamHandle};
use tapeline_omm::rwf::{DataState, Domain, GenericHeader, State, StatusHeader, StreamState, flags};
use tapeline_wire::rssl::{Negotiated, Sender};

use super::super::bursts::{Bursts, Progress, Served, Standing};
use super::super::publishing::{after, update_type};
use super::super::slices::Slices;
use super::super::stamp;
use super::answers::Reflections;
use super::items::{Answer, Items};
use super::working::{Desk, note_unwritten};

/// A consumer's connection.
pub(super) struct ProviderClient {
    pub(super) provider: Provider,
    pub(super) room: RoleConnection,
    pub(super) user: String,
    pub(super) items: Items,
    pub(super) reflections: Reflections,
    updates: Bursts,
    generics: Bursts,
    pub(super) standing: Standing,
    /// Consecutive items that accepted no update, because all may be paused.
    pub(super) passed: usize,
    /// Number of slices that had begun at the last counted back pressure.
    held_in: u64,
}

/// Maximum messages of one connection before other connections and received messages are processed.
const TURN: u32 = 16_384;
/// The same while updates are late and images are due: ten images of 73 fields then take a quarter of the time.
const TURN_BESIDE_IMAGES: u32 = 256;

impl ProviderClient {
    /// Creates the client of a connection that has just been opened.
    pub(super) fn new(agreed: &Negotiated, desk: &mut Desk, now: Nanos) -> Self {
        let plan = &desk.plan;
        let mut room = RoleConnection::new(Side::Server, agreed, &plan.dictionary, plan.json);
        room.set_services(&plan.services);
        room.set_pack(plan.publishing.args.max_pack_count);
        if plan.publishing.args.pre_enc {
            room.share_texts(&desk.texts);
        }
        desk.clients += 1;
        let seed = now.0 ^ desk.clients.rotate_right(16);
        let (traffic, tick_rate) = (&plan.publishing.args, plan.publishing.tick_rate);
        let bursts = |rate, stamps, seed| Bursts::new(rate, stamps, tick_rate, desk.begun, seed);
        Self {
            provider: Provider::new(plan.settings.clone(), now),
            room,
            user: String::new(),
            items: Items::default(),
            reflections: Reflections::default(),
            updates: bursts(traffic.update_rate, traffic.stamped_updates(), seed),
            generics: bursts(plan.args.generic_msg_rate, plan.args.generic_msg_latency_rate, !seed),
            standing: Standing::default(),
            passed: 0,
            held_in: 0,
        }
    }

    /// Number of its malformed messages.
    pub(super) fn malformed(&self) -> u64 {
        self.provider.counters().malformed + self.room.unreadable()
    }

    /// Due and sent messages in the first `begun` slices, without the most recent ones; none before a second's were due.
    fn served(&self, desk: &Desk, begun: u64) -> Served {
        let tick_rate = desk.plan.publishing.tick_rate;
        // Messages of the last tenth of a second may be in flight.
        let begun = begun.saturating_sub(tick_rate.div_ceil(10));
        let served = self.updates.served(begun).and(self.generics.served(begun));
        let of_a_second = desk.plan.publishing.args.update_rate + desk.plan.args.generic_msg_rate;
        if served.due < of_a_second { Served::default() } else { served }
    }

    /// Whether there are messages to send in each slice.
    pub(super) fn is_active(&self) -> bool {
        self.items.open() > 0 && (self.updates.is_any || self.generics.is_any)
    }

    /// Sends due messages: updates, generic messages and reflected posts. `is_behind`: some of them were late before.
    pub(super) fn send(
        &mut self,
        sender: &mut Sender<'_>,
        desk: &mut Desk,
        slices: &Slices,
        is_behind: bool,
    ) -> Progress {
        let mut standing = self.standing;
        standing.turn(desk.begun, |begun| self.served(desk, begun));
        self.standing = standing;
        let most = if is_behind && self.items.owes() { TURN_BESIDE_IMAGES } else { TURN };
        let progress = self.try_send(sender, desk, slices, most);
        if progress == Progress::Held && self.held_in != desk.begun {
            self.held_in = desk.begun;
            desk.link.tally.counts.held_back += 1;
        }
        progress
    }

    fn try_send(&mut self, sender: &mut Sender<'_>, desk: &mut Desk, slices: &Slices, most: u32) -> Progress {
        let begun = desk.begun;
        if self.items.open() == 0 {
            self.updates.skip(begun);
            self.generics.skip(begun);
        }
        if !self.updates.is_behind(begun) && !self.generics.is_behind(begun) && self.reflections.is_empty() {
            return Progress::Done;
        }
        let Self { provider, room, items, reflections, updates, generics, passed, .. } = self;
        let mut turn = Turn { provider, out: room.outbox(sender), items, desk, slices, passed, left: most };
        let progress = turn.updates(updates);
        if progress != Progress::Done {
            return progress;
        }
        let progress = turn.generics(generics);
        if progress != Progress::Done {
            return progress;
        }
        let Turn { provider, mut out, desk, .. } = turn;
        match reflections.send(provider, &mut out, &mut desk.link.tally.counts, &mut desk.reflected) {
            true => Progress::Done,
            false => Progress::Held,
        }
    }

    /// Sends up to `most` of the outstanding answers to requests.
    pub(super) fn answer(
        &mut self,
        sender: &mut Sender<'_>,
        desk: &mut Desk,
        most: u64,
        now: Nanos,
    ) -> Progress {
        let Self { provider, room, items, passed, .. } = self;
        let mut out = room.outbox(sender);
        for _ in 0..most {
            let Some((stream, answer)) = items.first_answer() else { return Progress::Done };
            let sent = match answer {
                Answer::Image => {
                    // The item may accept updates again.
                    *passed = 0;
                    image(provider, &mut out, items, desk, stream)
                }
                Answer::Closed(code, text) => {
                    let (state, data) = (StreamState::CLOSED, DataState::SUSPECT);
                    let state = State { stream: state, data, code, text };
                    // The stream determines the domain.
                    let status =
                        StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
                    let sent = provider.status(now, &mut out, stream, &status);
                    desk.link.tally.counts.statuses += u64::from(sent == Ok(Sent::Queued));
                    sent
                }
            };
            match sent {
                Ok(Sent::Full) => return Progress::Held,
                Ok(_) => {}
                Err(refused) => desk.cannot_write(&refused),
            }
            items.answered();
        }
        if items.owes() { Progress::More } else { Progress::Done }
    }
}

fn image(
    provider: &mut Provider,
    out: &mut RoleOutbox<'_, '_>,
    items: &mut Items,
    desk: &mut Desk,
    stream: StreamHandle,
) -> Result<Sent, Refused> {
    let Desk { plan, link, .. } = desk;
    let publishing = &plan.publishing;
    // A stream that was closed meanwhile needs no image.
    let Some(domain) = provider.domain(stream) else { return Ok(Sent::NotOpen) };
    let Some(is_book) = publishing.is_book(domain) else { return Ok(Sent::NotOpen) };
    let payload = &publishing.contents(is_book).messages.refresh;
    let header = publishing.image_header(domain, payload);
    let sent = provider.refresh(out, stream, &header, &mut |room| payload.encode(room, None))?;
    if sent.is_queued() {
        // Images without data are not counted: the provider is a standby.
        link.tally.counts.images += u64::from(!provider.stands_by(stream));
        match provider.stream_id(stream) {
            Some(_) => items.has_image(stream, is_book),
            // A snapshot is complete.
            None => items.close(stream),
        }
    }
    Ok(sent)
}

/// A client's turn to send the messages due in slices.
struct Turn<'a, 'r, 's> {
    provider: &'a mut Provider,
    out: RoleOutbox<'r, 's>,
    items: &'a mut Items,
    desk: &'a mut Desk,
    slices: &'a Slices,
    passed: &'a mut usize,
    /// Messages and skipped items left in this turn.
    left: u32,
}

impl Turn<'_, '_, '_> {
    /// Updates of the open items in turn. This is the provider's most frequent work: 0.2 µs each.
    fn updates(&mut self, bursts: &mut Bursts) -> Progress {
        let Desk { plan, link, begun, unwritten, .. } = &mut *self.desk;
        let (publishing, tally) = (&plan.publishing, &mut *link.tally);
        while let Some(due) = bursts.next(self.slices, *begun) {
            if self.left == 0 {
                return Progress::More;
            }
            self.left -= 1;
            // If all items are paused, the due updates have no recipient.
            let count = self.items.open();
            let Some(item) = self.items.next_update().filter(|_| *self.passed < count) else {
                bursts.skip(*begun);
                return Progress::Done;
            };
            let contents = publishing.contents(item.is_book);
            let Some((payload, encoded)) = contents.update(item.update) else { return Progress::Done };
            let stamp = publishing.stamp(stamp::UPDATE, due);
            let sent = match (encoded, stamp) {
                (Some(encoded), None) => Ok(self.provider.update(&mut self.out, item.stream, encoded)),
                _ => {
                    let what = (update_type(payload), payload.container());
                    self.provider.write_update(&mut self.out, item.stream, what, &mut |room| {
                        publishing.encode(payload, stamp, room, tally)
                    })
                }
            };
            match sent {
                Ok(Sent::Full) => return Progress::Held,
                Ok(Sent::Queued) => {
                    item.update = after(item.update, contents.messages.updates.len());
                    bursts.sent();
                    *self.passed = 0;
                    tally.counts.updates += 1;
                    tally.counts.stamped_updates += u64::from(stamp.is_some());
                }
                // Paused for now: the next item follows.
                Ok(_) => *self.passed += 1,
                Err(refused) => {
                    note_unwritten(unwritten, &refused);
                    *self.passed += 1;
                }
            }
            self.items.next_update += 1;
        }
        Progress::Done
    }

    /// The same with generic messages.
    fn generics(&mut self, bursts: &mut Bursts) -> Progress {
        let Desk { plan, link, begun, .. } = &mut *self.desk;
        let (publishing, tally) = (&plan.publishing, &mut *link.tally);
        while let Some(due) = bursts.next(self.slices, *begun) {
            if self.left == 0 {
                return Progress::More;
            }
            self.left -= 1;
            // The role queues a message that it cannot send: at most one.
            if !self.provider.settle(&mut self.out) {
                return Progress::Held;
            }
            let Some(item) = self.items.next_generic() else { return Progress::Done };
            let generics = &publishing.contents(item.is_book).messages.generics;
            let Some(payload) = generics.get(item.generic as usize) else { return Progress::Done };
            let stamp = publishing.stamp(stamp::GENERIC, due);
            let header = GenericHeader {
                flags: flags::generic::MESSAGE_COMPLETE,
                ..GenericHeader::new(Domain::MARKET_PRICE, 0, payload.container())
            };
            let sent = self.provider.generic(&mut self.out, Some(item.stream), &header, &mut |room| {
                publishing.encode(payload, stamp, room, tally)
            });
            if sent.is_ok_and(Sent::is_queued) {
                tally.counts.generics_sent += 1;
                tally.counts.stamped_generics += u64::from(stamp.is_some());
            }
            item.generic = after(item.generic, generics.len());
            bursts.sent();
            self.items.next_generic += 1;
        }
        Progress::Done
    }
}
