//! The demands of several hubs as those of one: the plant's own hub, and those of plants below.
//!
//! A source has one stream for an item, whoever wants it: it is closed when the last hub closes it, and its priority is that of all. The tickets
//! of hubs become tickets of the plant, so that each answer finds the hub that waits for it.

use std::collections::{HashMap, VecDeque};

use tapeline_omm::State;
use tapeline_omm::rwf::{
    AckHeader, DataState, Domain, MessageClass, MessageView, NakCode, Priority, StateCode, StatusHeader,
    StreamState,
};

use super::{Answer, Demand, ItemName, Ticket};

/// A hub with demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DemanderId(pub u32);

impl DemanderId {
    /// The plant's own hub.
    pub const OWN: Self = Self(0);
}

/// What a hub that is reached over a bridge wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FarDemand {
    /// This demand.
    Of(DemanderId, Demand),
    /// Nothing of its own: it is not connected any more. Its items stay open, so that it can come back.
    Lost(DemanderId),
    /// Nothing at all.
    Gone(DemanderId),
}

impl FarDemand {
    /// Returns its size in a queue, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Of(_, demand) => size_of::<DemanderId>() + demand.bytes(),
            Self::Lost(_) | Self::Gone(_) => size_of::<Self>(),
        }
    }
}

/// What a plant lets plants below demand of its sources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FarPolicy {
    /// Nothing.
    #[default]
    Refuse,
    /// Items, and private streams.
    Items,
    /// Those, posts, and generic messages.
    Posts,
}

/// What each hub may have.
#[derive(Debug, Clone, Copy)]
pub struct SharedLimits {
    /// What hubs of plants below may demand.
    pub far: FarPolicy,
    /// Open items of a hub of a plant below.
    pub items: usize,
    /// Posts of one hub that wait for their receipt.
    pub posts: usize,
    /// Private streams of one hub.
    pub private: usize,
}

/// The demands of all hubs. See the [module](self).
#[derive(Debug)]
pub struct SharedDemands {
    items: HashMap<ItemName, Vec<(DemanderId, Priority)>>,
    hubs: HashMap<DemanderId, Hub>,
    /// The hub's own ticket of each ticket of the plant.
    tickets: HashMap<Ticket, (DemanderId, Ticket, Purpose)>,
    next_ticket: u64,
    limits: SharedLimits,
    demands: VecDeque<Demand>,
    answers: VecDeque<(DemanderId, Answer)>,
    refused: u64,
}

#[derive(Debug, Default)]
struct Hub {
    items: usize,
    posts: usize,
    /// The plant's ticket of each private stream.
    private: HashMap<Ticket, Ticket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Post,
    Private,
}

impl SharedDemands {
    /// Creates the demands of no hub.
    #[must_use]
    pub fn new(limits: SharedLimits) -> Self {
        Self {
            items: HashMap::new(),
            hubs: HashMap::new(),
            tickets: HashMap::new(),
            next_ticket: 0,
            limits,
            demands: VecDeque::new(),
            answers: VecDeque::new(),
            refused: 0,
        }
    }

    /// Takes what a hub of a plant below wants.
    pub fn far(&mut self, far: FarDemand) {
        match far {
            FarDemand::Of(hub, demand) => self.demand(hub, demand),
            FarDemand::Lost(hub) => self.lost(hub),
            FarDemand::Gone(hub) => self.gone(hub),
        }
    }

    /// Takes a demand of a hub.
    pub fn demand(&mut self, hub: DemanderId, demand: Demand) {
        let may_post = hub == DemanderId::OWN || self.limits.far == FarPolicy::Posts;
        if !may_post && is_post(&demand) {
            return self.refuse_post(hub, demand);
        }
        let demand = match demand {
            Demand::Open { item, priority } => return self.open(hub, item, priority),
            Demand::Priority { item, priority } => return self.change(hub, item, priority),
            Demand::Close(item) => return self.close(hub, item),
            // Others have the item open, and a client that lags here must not hold it for them.
            Demand::Pause(_) | Demand::Resume(_) => return,
            Demand::Refresh(item) if self.has(hub, &item) => Demand::Refresh(item),
            Demand::Generic { item, message } if self.has(hub, &item) => Demand::Generic { item, message },
            Demand::Refresh(_) | Demand::Generic { .. } => return,
            Demand::Post { ticket, service, item, message, more } => {
                let ticket = match ticket.map(|own| self.ticket(hub, own, Purpose::Post)) {
                    None => None,
                    Some(Some(ticket)) => Some(ticket),
                    Some(None) => return,
                };
                Demand::Post { ticket, service, item, message, more }
            }
            Demand::OpenPrivate { ticket, request } => {
                let Some(ticket) = self.ticket(hub, ticket, Purpose::Private) else { return };
                Demand::OpenPrivate { ticket, request }
            }
            Demand::Private { ticket, message } => {
                let Some(ticket) = self.private(hub, ticket) else { return };
                Demand::Private { ticket, message }
            }
            Demand::ClosePrivate(own) => {
                let Some(ticket) = self.hubs.get_mut(&hub).and_then(|hub| hub.private.remove(&own)) else {
                    return;
                };
                self.tickets.remove(&ticket);
                Demand::ClosePrivate(ticket)
            }
        };
        self.demands.push_back(demand);
    }

    /// Takes an answer of a source.
    pub fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Status { item, message } => {
                for hub in self.hubs_of(&item) {
                    self.answers
                        .push_back((hub, Answer::Status { item: item.clone(), message: message.clone() }));
                }
            }
            Answer::Generic { item, message } => {
                for hub in self.hubs_of(&item) {
                    self.answers
                        .push_back((hub, Answer::Generic { item: item.clone(), message: message.clone() }));
                }
            }
            Answer::Private { ticket, message } => {
                if let Some((hub, ticket, _)) = self.tickets.get(&ticket).copied() {
                    self.answers.push_back((hub, Answer::Private { ticket, message }));
                }
            }
            Answer::Ack { ticket, message } => {
                let Some((hub, ticket, _)) = self.tickets.remove(&ticket) else { return };
                if let Some(hub) = self.hubs.get_mut(&hub) {
                    hub.posts -= 1;
                }
                self.answers.push_back((hub, Answer::Ack { ticket, message }));
            }
        }
    }

    /// A hub is not connected any more: its private streams end, and nobody waits for its receipts.
    fn lost(&mut self, id: DemanderId) {
        let Some(hub) = self.hubs.get_mut(&id) else { return };
        hub.posts = 0;
        let mut private: Vec<Ticket> = std::mem::take(&mut hub.private).into_values().collect();
        private.sort_unstable();
        self.demands.extend(private.into_iter().map(Demand::ClosePrivate));
        self.tickets.retain(|_, (hub, ..)| *hub != id);
    }

    /// A hub does not come back: its items are closed, if no other hub has them open.
    pub fn gone(&mut self, id: DemanderId) {
        self.lost(id);
        let of = |hubs: &Vec<(DemanderId, Priority)>| hubs.iter().any(|(hub, _)| *hub == id);
        let mut items: Vec<ItemName> =
            self.items.iter().filter(|(_, hubs)| of(hubs)).map(|(item, _)| item.clone()).collect();
        items
            .sort_unstable_by(|a, b| (a.service, a.domain.0, &a.name).cmp(&(b.service, b.domain.0, &b.name)));
        items.into_iter().for_each(|item| self.close(id, item));
        self.hubs.remove(&id);
    }

    /// Returns the next demand on the sources. Call until it returns `None`, after every other call.
    pub fn next_demand(&mut self) -> Option<Demand> {
        self.demands.pop_front()
    }

    /// Returns the next answer, and the hub that it is for. Call until it returns `None`, after every other call.
    pub fn next_answer(&mut self) -> Option<(DemanderId, Answer)> {
        self.answers.pop_front()
    }

    /// Returns the number of items that are open for hubs of plants below.
    #[must_use]
    pub fn far_items(&self) -> usize {
        self.hubs.iter().filter(|(id, _)| **id != DemanderId::OWN).map(|(_, hub)| hub.items).sum()
    }

    /// Returns how often a hub wanted more than its limits.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    fn refuse_post(&mut self, hub: DemanderId, demand: Demand) {
        self.refused += 1;
        if let Demand::Post { ticket: Some(ticket), .. } = demand {
            let message = nak(NakCode::DENIED_BY_SRC, "The plant above takes no posts of plants below");
            self.answers.push_back((hub, Answer::Ack { ticket, message }));
        }
    }

    fn has(&self, hub: DemanderId, item: &ItemName) -> bool {
        self.items.get(item).is_some_and(|hubs| hubs.iter().any(|(other, _)| *other == hub))
    }

    fn hubs_of(&self, item: &ItemName) -> Vec<DemanderId> {
        self.items.get(item).into_iter().flatten().map(|(hub, _)| *hub).collect()
    }

    /// Opens an item. The sources are told in any case: they may have closed it, which the other hubs learn later.
    fn open(&mut self, id: DemanderId, item: ItemName, priority: Priority) {
        let is_open = self.has(id, &item);
        let hub = self.hubs.entry(id).or_default();
        if !is_open && id != DemanderId::OWN && hub.items >= self.limits.items {
            self.refused += 1;
            let message =
                status(item.domain, StateCode::TOO_MANY_ITEMS, "The plant below has too many items open");
            self.answers.push_back((id, Answer::Status { item, message }));
            return;
        }
        hub.items += usize::from(!is_open);
        let hubs = self.items.entry(item.clone()).or_default();
        let before = all(hubs);
        hubs.retain(|(other, _)| *other != id);
        hubs.push((id, priority));
        let priority = all(hubs).unwrap_or(priority);
        self.demands.push_back(Demand::Open { item: item.clone(), priority });
        if before.is_some_and(|before| before != priority) {
            self.demands.push_back(Demand::Priority { item, priority });
        }
    }

    fn change(&mut self, id: DemanderId, item: ItemName, priority: Priority) {
        let Some(hubs) = self.items.get_mut(&item) else { return };
        let before = all(hubs);
        hubs.iter_mut().filter(|(hub, _)| *hub == id).for_each(|(_, own)| *own = priority);
        self.tell_priority(item, before);
    }

    fn close(&mut self, id: DemanderId, item: ItemName) {
        let Some(hubs) = self.items.get_mut(&item) else { return };
        let (before, count) = (all(hubs), hubs.len());
        hubs.retain(|(hub, _)| *hub != id);
        if hubs.len() == count {
            return;
        }
        if let Some(hub) = self.hubs.get_mut(&id) {
            hub.items -= 1;
        }
        if count > 1 {
            return self.tell_priority(item, before);
        }
        self.items.remove(&item);
        self.demands.push_back(Demand::Close(item));
    }

    fn tell_priority(&mut self, item: ItemName, before: Option<Priority>) {
        let now = self.items.get(&item).and_then(|hubs| all(hubs));
        if let Some(priority) = now.filter(|_| now != before) {
            self.demands.push_back(Demand::Priority { item, priority });
        }
    }

    /// Returns the plant's ticket of a private stream.
    fn private(&self, hub: DemanderId, own: Ticket) -> Option<Ticket> {
        self.hubs.get(&hub)?.private.get(&own).copied()
    }

    /// Returns a ticket of the plant for one of a hub; `None` if the hub has too many, which it is told.
    fn ticket(&mut self, id: DemanderId, own: Ticket, purpose: Purpose) -> Option<Ticket> {
        let hub = self.hubs.entry(id).or_default();
        let (used, most) = match purpose {
            Purpose::Post => (hub.posts, self.limits.posts),
            Purpose::Private => (hub.private.len(), self.limits.private),
        };
        if used >= most || purpose == Purpose::Private && hub.private.contains_key(&own) {
            self.refused += 1;
            let answer = match purpose {
                Purpose::Post => Answer::Ack {
                    ticket: own,
                    message: nak(NakCode::NO_RESOURCES, "Too many posts wait for their receipt"),
                },
                Purpose::Private => {
                    let text = "Too many streams are open that are one client's alone";
                    let message = status(Domain::MARKET_PRICE, StateCode::NO_RESOURCES, text);
                    Answer::Private { ticket: own, message }
                }
            };
            self.answers.push_back((id, answer));
            return None;
        }
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        match purpose {
            Purpose::Post => hub.posts += 1,
            Purpose::Private => _ = hub.private.insert(own, ticket),
        }
        self.tickets.insert(ticket, (id, own, purpose));
        Some(ticket)
    }
}

/// Whether a demand brings a source a message of the client's own.
fn is_post(demand: &Demand) -> bool {
    match demand {
        Demand::Post { .. } | Demand::Generic { .. } => true,
        // The client also changes its request on such a stream.
        Demand::Private { message, .. } => {
            MessageView::parse(message).map_or(true, |message| message.class() != MessageClass::REQUEST)
        }
        _ => false,
    }
}

/// The priority of several hubs: the highest class, and the sum of the counts in it.
fn all(hubs: &[(DemanderId, Priority)]) -> Option<Priority> {
    let class = hubs.iter().map(|(_, priority)| priority.class).max()?;
    let counts =
        hubs.iter().filter(|(_, priority)| priority.class == class).map(|(_, priority)| priority.count);
    Some(Priority { class, count: counts.fold(0, u16::saturating_add) })
}

/// Returns a status that a stream has ended, and may be tried again.
#[must_use]
pub fn status(domain: Domain, code: StateCode, text: &str) -> Box<[u8]> {
    let (stream, data) = (StreamState::CLOSED_RECOVER, DataState::SUSPECT);
    let state = State { stream, data, code, text: text.as_bytes() };
    let header = StatusHeader { state: Some(state), ..StatusHeader::new(domain, 0) };
    encoded(text, |room| header.encode(room))
}

/// Returns the negative receipt of a post.
#[must_use]
pub fn nak(code: NakCode, text: &str) -> Box<[u8]> {
    let header = AckHeader {
        nak_code: Some(code),
        text: Some(text.as_bytes()),
        ..AckHeader::new(Domain::MARKET_PRICE, 0, 0)
    };
    encoded(text, |room| header.encode(room))
}

fn encoded<E>(text: &str, encode: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Box<[u8]> {
    // A header without a key, and the text.
    let mut room = vec![0; 64 + text.len()];
    let len = encode(&mut room).unwrap_or(0);
    room.truncate(len);
    room.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: DemanderId = DemanderId(1);
    const B: DemanderId = DemanderId(2);
    const ONE: Priority = Priority { class: 1, count: 1 };

    fn item() -> ItemName {
        ItemName { service: 7, domain: Domain::MARKET_PRICE, name: "IBM.N".into() }
    }

    fn shared() -> SharedDemands {
        SharedDemands::new(SharedLimits { far: FarPolicy::Posts, items: 1, posts: 1, private: 1 })
    }

    fn open(shared: &mut SharedDemands, hub: DemanderId, priority: Priority) -> Vec<Demand> {
        shared.demand(hub, Demand::Open { item: item(), priority });
        demands(shared)
    }

    fn demands(shared: &mut SharedDemands) -> Vec<Demand> {
        std::iter::from_fn(|| shared.next_demand()).collect()
    }

    fn answers(shared: &mut SharedDemands) -> Vec<(DemanderId, Answer)> {
        std::iter::from_fn(|| shared.next_answer()).collect()
    }

    #[test]
    fn an_item_is_closed_with_its_last_hub_and_has_the_priority_of_all() {
        let mut shared = shared();
        assert_eq!(open(&mut shared, A, ONE), [Demand::Open { item: item(), priority: ONE }]);
        let two = Priority { class: 1, count: 2 };
        let again =
            [Demand::Open { item: item(), priority: two }, Demand::Priority { item: item(), priority: two }];
        assert_eq!(open(&mut shared, B, ONE), again);
        assert_eq!(shared.far_items(), 2);
        shared.demand(B, Demand::Pause(item()));
        shared.demand(DemanderId::OWN, Demand::Close(item()));
        assert_eq!(demands(&mut shared), []);
        shared.demand(A, Demand::Close(item()));
        assert_eq!(demands(&mut shared), [Demand::Priority { item: item(), priority: ONE }]);
        shared.far(FarDemand::Lost(B));
        assert_eq!(demands(&mut shared), [], "it can come back");
        shared.far(FarDemand::Gone(B));
        assert_eq!(demands(&mut shared), [Demand::Close(item())]);
        assert_eq!(shared.far_items(), 0);
    }

    #[test]
    fn answers_go_to_the_hubs_that_wait_for_them() {
        let mut shared = shared();
        open(&mut shared, A, ONE);
        open(&mut shared, DemanderId::OWN, ONE);
        let message = status(Domain::MARKET_PRICE, StateCode::NOT_FOUND, "no");
        shared.answer(Answer::Status { item: item(), message });
        assert_eq!(
            answers(&mut shared).iter().map(|(hub, _)| *hub).collect::<Vec<_>>(),
            [A, DemanderId::OWN]
        );
        let post = |ticket| Demand::Post {
            ticket: Some(Ticket(ticket)),
            service: 7,
            item: None,
            message: Box::default(),
            more: Vec::new(),
        };
        // Two hubs may use the same ticket.
        shared.demand(A, post(5));
        shared.demand(B, post(5));
        let tickets: Vec<_> = demands(&mut shared)
            .iter()
            .map(|demand| match demand {
                Demand::Post { ticket, .. } => ticket.unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        let ack = |ticket| Answer::Ack { ticket, message: Box::default() };
        shared.answer(ack(tickets[1]));
        shared.answer(ack(tickets[1]));
        assert_eq!(answers(&mut shared), [(B, ack(Ticket(5)))]);
        // A second post of A exceeds the limit.
        shared.demand(A, post(6));
        let [(A, Answer::Ack { ticket: Ticket(6), .. })] = &answers(&mut shared)[..] else { panic!() };
        shared.far(FarDemand::Lost(A));
        shared.answer(ack(tickets[0]));
        assert_eq!((answers(&mut shared), demands(&mut shared)), (vec![], vec![]));
    }

    #[test]
    fn private_streams_end_with_their_hub() {
        let mut shared = shared();
        let request = || Demand::OpenPrivate { ticket: Ticket(3), request: Box::default() };
        shared.demand(A, request());
        shared.demand(B, request());
        shared.demand(A, Demand::OpenPrivate { ticket: Ticket(4), request: Box::default() });
        assert_eq!((demands(&mut shared).len(), shared.refused()), (2, 1));
        assert_eq!(answers(&mut shared).len(), 1);
        let private = |ticket| Answer::Private { ticket, message: Box::default() };
        shared.answer(private(Ticket(2)));
        assert_eq!(answers(&mut shared), [(B, private(Ticket(3)))]);
        shared.far(FarDemand::Lost(A));
        shared.demand(B, Demand::ClosePrivate(Ticket(3)));
        assert_eq!(demands(&mut shared), [Demand::ClosePrivate(Ticket(1)), Demand::ClosePrivate(Ticket(2))]);
    }

    #[test]
    fn a_hub_below_has_a_limited_number_of_items() {
        let mut shared = shared();
        open(&mut shared, A, ONE);
        let other = ItemName { name: "X".into(), ..item() };
        shared.demand(A, Demand::Open { item: other.clone(), priority: ONE });
        assert_eq!((demands(&mut shared), shared.refused()), (vec![], 1));
        let [(A, Answer::Status { item, .. })] = &answers(&mut shared)[..] else { panic!() };
        assert_eq!(*item, other);
    }

    #[test]
    fn a_plant_may_take_items_alone_from_plants_below() {
        let mut shared =
            SharedDemands::new(SharedLimits { far: FarPolicy::Items, items: 1, posts: 1, private: 1 });
        assert_eq!(open(&mut shared, A, ONE).len(), 1);
        let post =
            |ticket| Demand::Post { ticket, service: 7, item: None, message: Box::default(), more: vec![] };
        shared.demand(A, Demand::OpenPrivate { ticket: Ticket(1), request: Box::default() });
        assert_eq!(demands(&mut shared).len(), 1);
        shared.demand(A, post(None));
        shared.demand(A, Demand::Generic { item: item(), message: Box::default() });
        shared.demand(A, Demand::Private { ticket: Ticket(1), message: Box::default() });
        assert_eq!((demands(&mut shared), answers(&mut shared), shared.refused()), (vec![], vec![], 3));
        shared.demand(A, post(Some(Ticket(9))));
        let [(A, Answer::Ack { ticket: Ticket(9), .. })] = &answers(&mut shared)[..] else { panic!() };
        shared.demand(DemanderId::OWN, post(None));
        assert_eq!(demands(&mut shared).len(), 1);
    }
}
