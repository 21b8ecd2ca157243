//! Bursts of posts and generic messages: as many in each slice as the rates require, to the accepting items in turn.

use std::sync::Arc;

use tapeline_console::log;
use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::Refused;
use tapeline_omm::role::consumer::{Consumer, Handle, Target};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{
    DataType, Domain, GenericHeader, PostHeader, PostUserInfo, UpdateHeader, UpdateType, flags,
};

use super::super::bursts::{Bursts, Due};
use super::super::options::StampRate;
use super::super::slices::Slices;
use super::super::stamp::{self, Stamp};
use super::super::tally::{Counts, Kind, Tally};
use super::plan::{ConsumerPlan, rates};

/// All traffic that is sent in the steady state.
pub(super) struct SteadyTraffic {
    slices: Slices,
    /// Back pressure stopped the burst, which has been counted.
    is_held: bool,
    /// Posts, then generic messages, as far as enabled.
    flows: Vec<Flow>,
}

/// Messages of one kind.
struct Flow {
    plan: Arc<ConsumerPlan>,
    kind: Kind,
    poster: PostUserInfo,
    /// The items that accept them.
    items: Vec<(Handle, Domain)>,
    /// Index of the next item.
    item: usize,
    /// Next payload of each domain.
    turns: [usize; 256],
    bursts: Bursts,
    message: Vec<u8>,
    has_said_nobody: bool,
}

/// Maximum bytes of a message in addition to its payload: a header and two times.
const BESIDE: usize = 128;

impl SteadyTraffic {
    /// Sends to these items, from `start` on.
    pub(super) fn new(
        plan: &Arc<ConsumerPlan>,
        posts: Vec<(Handle, Domain)>,
        generics: Vec<(Handle, Domain)>,
        poster: PostUserInfo,
        start: Nanos,
    ) -> Self {
        let flows = [(Kind::Post, posts), (Kind::Generic, generics)];
        let flows =
            flows.into_iter().filter_map(|(kind, items)| Flow::new(plan, kind, items, poster)).collect();
        Self { slices: Slices::new(plan.args.run.pace.tick_rate, start), is_held: false, flows }
    }

    /// When the next slice is due; `None` if nothing is ever sent.
    pub(super) fn due(&self) -> Option<Nanos> {
        (!self.flows.is_empty()).then(|| self.slices.due())
    }

    /// Sends due messages as far as the connection accepts them. The rest comes first next time, with its due times.
    pub(super) fn send(
        &mut self,
        now: Nanos,
        consumer: &mut Consumer,
        out: &mut dyn Outbox,
        tally: &mut Tally,
    ) -> Result<(), Refused> {
        if self.flows.is_empty() {
            return Ok(());
        }
        let Self { slices, is_held, flows } = self;
        loop {
            for flow in &mut *flows {
                if !flow.send(slices, consumer, out, &mut tally.counts)? {
                    tally.counts.held_back += u64::from(!std::mem::replace(is_held, true));
                    return Ok(());
                }
            }
            let Some((number, due)) = slices.begin(now) else { return Ok(()) };
            tally.slice(now.since(due));
            *is_held = false;
            // What no item accepted is not sent later.
            flows.iter_mut().for_each(|flow| flow.bursts.skip(number));
        }
    }
}

impl Flow {
    /// `None` if the rate is 0 or no item accepts them.
    fn new(
        plan: &Arc<ConsumerPlan>,
        kind: Kind,
        items: Vec<(Handle, Domain)>,
        poster: PostUserInfo,
    ) -> Option<Self> {
        let (rate, stamped) = rates(&plan.args, kind);
        if rate == 0 || items.is_empty() {
            return None;
        }
        let payloads = items.iter().flat_map(|(_, domain)| plan.payloads(kind, *domain));
        let longest = payloads.map(|payload| payload.encoded().len()).max().unwrap_or(0);
        Some(Self {
            plan: Arc::clone(plan),
            kind,
            poster,
            items,
            item: 0,
            turns: [0; 256],
            bursts: Bursts::new(
                rate,
                StampRate::PerSecond(stamped),
                plan.args.run.pace.tick_rate,
                0,
                monotonic_ns(),
            ),
            message: vec![0; longest + BESIDE],
            has_said_nobody: false,
        })
    }

    /// Sends the rest of the burst; returns whether it is complete.
    fn send(
        &mut self,
        slices: &Slices,
        consumer: &mut Consumer,
        out: &mut dyn Outbox,
        counts: &mut Counts,
    ) -> Result<bool, Refused> {
        let mut closed = 0;
        while let Some(due) = self.bursts.next(slices, slices.taken()) {
            match self.send_one(due, consumer, out)? {
                Sent::Queued => {
                    closed = 0;
                    self.bursts.sent();
                    self.count(due.is_stamped, counts);
                }
                Sent::Full => return Ok(false),
                // Skips an item that is not open, or to which no message can be sent.
                Sent::NotOpen | Sent::TooLong => {
                    closed += 1;
                    if closed == self.items.len() {
                        self.nobody();
                        return Ok(true);
                    }
                }
            }
            self.item = (self.item + 1) % self.items.len();
        }
        Ok(true)
    }

    /// Sends the next message to the next item.
    fn send_one(&mut self, due: Due, consumer: &mut Consumer, out: &mut dyn Outbox) -> Result<Sent, Refused> {
        let Some(&(item, domain)) = self.items.get(self.item) else { return Ok(Sent::NotOpen) };
        let payloads = self.plan.payloads(self.kind, domain);
        let turn = &mut self.turns[usize::from(domain.0)];
        let Some(payload) = payloads.get(*turn % payloads.len().max(1)) else { return Ok(Sent::NotOpen) };
        let stamp = due.is_stamped.then(|| {
            let unit = self.plan.unit;
            let field = if self.kind == Kind::Post { stamp::POST } else { stamp::GENERIC };
            let due = (!self.plan.args.no_due).then(|| unit.wire_of(due.at.0));
            Stamp { field, sent: unit.wire_of(monotonic_ns()), due }
        });
        let sent = match self.kind {
            Kind::Post => {
                // As in the public tools: an update inside the post, both with the poster's identity.
                let header = UpdateHeader {
                    post_user_info: Some(self.poster),
                    ..UpdateHeader::new(domain, 0, UpdateType::UNSPECIFIED, payload.container())
                };
                let len = header.encode_with(&mut self.message, |room| payload.encode(room, stamp))?;
                let post = PostHeader {
                    flags: flags::post::POST_COMPLETE,
                    ..PostHeader::new(domain, 0, self.poster, DataType::MSG)
                };
                consumer.post(out, Target::Item(item), &post, &self.message[..len])?
            }
            _ => {
                let len = payload.encode(&mut self.message, stamp)?;
                let generic = GenericHeader {
                    flags: flags::generic::MESSAGE_COMPLETE,
                    ..GenericHeader::new(domain, 0, payload.container())
                };
                consumer.generic(out, Target::Item(item), &generic, &self.message[..len])?
            }
        };
        if sent.is_queued() {
            *turn = (*turn + 1) % payloads.len();
        }
        Ok(sent)
    }

    fn count(&self, is_stamped: bool, counts: &mut Counts) {
        let (all, stamped) = match self.kind {
            Kind::Post => (&mut counts.posts, &mut counts.stamped_posts),
            _ => (&mut counts.generics_sent, &mut counts.stamped_generics),
        };
        *all += 1;
        *stamped += u64::from(is_stamped);
    }

    /// Reports once that no item accepts them.
    #[cold]
    fn nobody(&mut self) {
        if !std::mem::replace(&mut self.has_said_nobody, true) {
            let what = if self.kind == Kind::Post { "posts" } else { "generic messages" };
            log::note(format_args!("no {what} can be sent: the provider takes none, or no item is open"));
        }
    }
}
