//! Bursts of posts and generic messages: in each slice as many as the rates say, to the items that take them in turn, one of
//! them now and then with a time.

use std::sync::Arc;

use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::Refused;
use tapeline_omm::role::consumer::{Consumer, Handle, Target};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{
    DataType, Domain, GenericHeader, PostHeader, PostUserInfo, UpdateHeader, UpdateType, flags,
};

use super::super::slices::{Lots, Share, Slices};
use super::super::stamp::{self, Stamp};
use super::super::tally::{Counts, Kind, Tally};
use super::plan::{Plan, Rate};

/// Everything that is sent in the steady state.
pub(super) struct Sending {
    slices: Slices,
    /// When the burst that is being sent was due.
    due: Nanos,
    /// There was no room for all of it, which has been counted.
    is_held: bool,
    /// Posts, then generic messages; those that there are.
    flows: Vec<Flow>,
}

/// Messages of one kind.
struct Flow {
    plan: Arc<Plan>,
    kind: Kind,
    poster: PostUserInfo,
    /// The items that take them.
    items: Vec<(Handle, Domain)>,
    /// Whose turn it is.
    item: usize,
    /// Of each domain the payload whose turn it is.
    turns: [usize; 256],
    share: Share,
    lots: Lots,
    /// Of the burst: messages that were sent, all there are, and the one with a time.
    sent: u64,
    burst: u64,
    stamped: Option<u64>,
    message: Vec<u8>,
    has_said_nobody: bool,
}

/// Bytes of a message beside its payload at most: a header, and two times.
const BESIDE: usize = 128;

impl Sending {
    /// To these items, from `start` on.
    pub(super) fn new(
        plan: &Arc<Plan>,
        posts: Vec<(Handle, Domain)>,
        generics: Vec<(Handle, Domain)>,
        poster: PostUserInfo,
        start: Nanos,
    ) -> Self {
        let flow = |kind, items, rate| Flow::new(plan, kind, items, rate, poster);
        let flows = [flow(Kind::Post, posts, plan.posts), flow(Kind::Generic, generics, plan.generics)];
        let flows = flows.into_iter().flatten().collect();
        Self { slices: Slices::new(plan.tick_rate, start), due: start, is_held: false, flows }
    }

    /// When there is something to send next; `None` if nothing ever is.
    pub(super) fn due(&self) -> Option<Nanos> {
        (!self.flows.is_empty()).then(|| self.slices.due())
    }

    /// Sends what is due, as far as there is room. What is left goes first next time: no slice is left out, and each message
    /// is due when its slice was.
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
        loop {
            for flow in &mut self.flows {
                if !flow.send(self.due, consumer, out, &mut tally.counts)? {
                    tally.counts.held_back += u64::from(!std::mem::replace(&mut self.is_held, true));
                    return Ok(());
                }
            }
            let Some((number, due)) = self.slices.begin(now) else { return Ok(()) };
            tally.slice(now.since(due));
            (self.due, self.is_held) = (due, false);
            self.flows.iter_mut().for_each(|flow| flow.begin(number));
        }
    }
}

impl Flow {
    /// `None`: none are to be sent, or nobody takes them.
    fn new(
        plan: &Arc<Plan>,
        kind: Kind,
        items: Vec<(Handle, Domain)>,
        rate: Rate,
        poster: PostUserInfo,
    ) -> Option<Self> {
        if rate.all == 0 || items.is_empty() {
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
            share: Share::new(rate.all, plan.tick_rate),
            lots: Lots::new(rate.stamped, plan.tick_rate, monotonic_ns()),
            sent: 0,
            burst: 0,
            stamped: None,
            message: vec![0; longest + BESIDE],
            has_said_nobody: false,
        })
    }

    /// A slice begins.
    fn begin(&mut self, number: u64) {
        self.burst = self.share.burst(number);
        (self.sent, self.stamped) = (0, self.lots.draw(self.burst));
    }

    /// Sends what is left of the burst: whether that were all.
    fn send(
        &mut self,
        due: Nanos,
        consumer: &mut Consumer,
        out: &mut dyn Outbox,
        counts: &mut Counts,
    ) -> Result<bool, Refused> {
        let mut closed = 0;
        while self.sent < self.burst {
            let is_stamped = self.stamped == Some(self.sent);
            match self.send_one(is_stamped.then_some(due), consumer, out)? {
                Sent::Queued => {
                    closed = 0;
                    self.sent += 1;
                    self.count(is_stamped, counts);
                }
                Sent::Full => return Ok(false),
                // An item that is not open is passed over, and so is one to which nothing can be sent at all.
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

    /// Sends the next message to the next item, with a time if `due` is given.
    fn send_one(
        &mut self,
        due: Option<Nanos>,
        consumer: &mut Consumer,
        out: &mut dyn Outbox,
    ) -> Result<Sent, Refused> {
        let Some(&(item, domain)) = self.items.get(self.item) else { return Ok(Sent::NotOpen) };
        let payloads = self.plan.payloads(self.kind, domain);
        let turn = &mut self.turns[usize::from(domain.0)];
        let Some(payload) = payloads.get(*turn % payloads.len().max(1)) else { return Ok(Sent::NotOpen) };
        let stamp = due.map(|due| {
            let unit = self.plan.unit;
            let field = if self.kind == Kind::Post { stamp::POST } else { stamp::GENERIC };
            let due = self.plan.says_due.then(|| unit.wire_of(due.0));
            Stamp { field, sent: unit.wire_of(monotonic_ns()), due }
        });
        let sent = match self.kind {
            Kind::Post => {
                // As the public tools have it: an update in the post, and both say who posted.
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

    /// Nobody takes them: it is said once.
    #[cold]
    fn nobody(&mut self) {
        if !std::mem::replace(&mut self.has_said_nobody, true) {
            let what = if self.kind == Kind::Post { "posts" } else { "generic messages" };
            anstream::eprintln!("note: no {what} can be sent: the provider takes none, or no item is open");
        }
    }
}
