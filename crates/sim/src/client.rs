//! A client: Tapeline's own consumer, independent of the hub's internals, and an application that opens and
//! closes items, changes its requests, and checks every received message against the record.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tapeline_measure::Nanos;
use tapeline_omm::Fid;
use tapeline_omm::domain::{List, LoginRequest, View};
use tapeline_omm::role::consumer::{
    Backoff, Consumer, ConsumerApplication, ConsumerEvent, ConsumerSettings, Handle, ItemRequest, Reissue,
    ServiceName,
};
use tapeline_omm::role::{Outbox, Queue};
use tapeline_omm::rwf::{DataState, Domain, MessageClass, MessageView, StreamState};

use crate::chance::Chance;
use crate::end::{Came, End, Speech};
use crate::invariants::{Wrong, broken};
use crate::network::{LinkId, Network, Side};
use crate::plan::{MS, Manner, NOVELTIES, SECOND, UNASKED, domain_of, label, of_label, provided_id};
use crate::record::{Record, VIEWS};
use crate::rights::{Rules, is_denied, user};
use crate::source::novelty;
use crate::talk::Talk;
use crate::trace::{Trace, Who, fnv};
use crate::watch::Watch;
use crate::world::Totals;

/// Limit of open items of a client.
pub(crate) const MOST_OPEN: usize = 12;

#[derive(Debug)]
enum Heard {
    Connect,
    Disconnect,
    Ended,
    Malformed(String),
    Message { closure: u64, bytes: Rc<Vec<u8>>, is_final: bool },
    State { closure: u64, stream: StreamState, data: DataState, is_final: bool },
}

/// Stores the consumer's events in order; they are processed as soon as the consumer has finished.
#[derive(Debug, Default)]
struct Ear {
    /// The message being processed.
    message: Rc<Vec<u8>>,
    heard: Vec<Heard>,
}

impl ConsumerApplication for Ear {
    fn event(&mut self, _consumer: &mut Consumer, _out: &mut dyn Outbox, event: ConsumerEvent<'_>) {
        self.heard.push(match event {
            ConsumerEvent::Connect { .. } => Heard::Connect,
            ConsumerEvent::Disconnect => Heard::Disconnect,
            ConsumerEvent::Ended { .. } => Heard::Ended,
            ConsumerEvent::Malformed(fault) => Heard::Malformed(fault.to_string()),
            ConsumerEvent::Message { closure, is_final, .. } => {
                Heard::Message { closure, bytes: Rc::clone(&self.message), is_final }
            }
            ConsumerEvent::State { closure, state, is_final, .. } => {
                Heard::State { closure, stream: state.stream, data: state.data, is_final }
            }
            _ => return,
        });
    }
}

/// A client's requests to the world.
#[derive(Debug, Default)]
pub(crate) struct Wants {
    pub(crate) connection: bool,
    /// It wants to be replaced by another client, because its login was closed.
    pub(crate) rebirth: bool,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) number: usize,
    pub(crate) manner: Manner,
    speech: Speech,
    consumer: Consumer,
    ear: Ear,
    pub(crate) end: Option<End>,
    /// The connection that it gave up last, without an answer, while the hub slept.
    pub(crate) given_up: Option<LinkId>,
    /// The life of the plant that it is, or was last, connected to.
    pub(crate) life: usize,
    /// Recently closed items: time, whether they had a view, and name.
    closed: Vec<(u64, bool, String)>,
    watches: BTreeMap<u64, Watch>,
    /// Number of images and updates of items on this connection.
    pub(crate) got: (u64, u64),
    /// Messages arriving now were sent under the current rules.
    is_clean: bool,
    pub(crate) talk: Talk,
    /// The application's number for the next item.
    next: u64,
    /// Refused items, each with the time to request it again.
    again: Vec<(u64, String)>,
    chance: Chance,
    /// It does nothing before this time.
    pub(crate) asleep_until: u64,
    /// It makes no more changes.
    pub(crate) is_settled: bool,
    /// What it has received and checked.
    pub(crate) totals: Totals,
}

/// The parts of the world that a client can access.
#[derive(Debug)]
pub(crate) struct Sight<'a> {
    pub(crate) now: u64,
    pub(crate) network: &'a mut Network,
    pub(crate) record: &'a mut Record,
    pub(crate) trace: &'a mut Trace,
    pub(crate) names: &'a [String],
    /// Publishers invent items.
    pub(crate) has_novelties: bool,
    /// Images may arrive in place of updates.
    pub(crate) jumps: bool,
    pub(crate) hub_sleeps: bool,
    pub(crate) rules: Rules,
    /// The byte of its connection from which on nothing was sent under the previous rules.
    pub(crate) clean_from: Option<u64>,
}

impl Sight<'_> {
    fn say(&mut self, client: usize, what: &str, number: u64, more: impl FnOnce() -> String) {
        self.trace.say(self.now, Who::Client(client), what, number, more);
    }
}

fn consumer(number: usize, chance: &mut Chance) -> Consumer {
    let ms = Duration::from_millis;
    let settings = ConsumerSettings {
        reconnect: Backoff { first: ms(50), most: ms(400) },
        login_timeout: ms(1_500),
        directory_timeout: ms(1_500),
        dictionary_timeout: ms(1_500),
        request_timeout: ms(1_500),
        login_again: ms(100),
        recover: Backoff { first: ms(20), most: ms(300) },
        most_items: 1_000,
        downloads_dictionary: chance.one_in(4),
        most_in_batch: 5,
        ..ConsumerSettings::default()
    };
    Consumer::new(settings, &LoginRequest::new(user(number).as_bytes())).expect("the login is short")
}

impl Client {
    pub(crate) fn new(number: usize, manner: Manner, speech: Speech, mut chance: Chance) -> Self {
        Self {
            number,
            manner,
            speech,
            consumer: consumer(number, &mut chance),
            ear: Ear::default(),
            end: None,
            given_up: None,
            life: 0,
            closed: Vec::new(),
            watches: BTreeMap::new(),
            got: (0, 0),
            is_clean: false,
            talk: Talk::new(number, speech.is_json()),
            next: 1,
            again: Vec::new(),
            chance,
            asleep_until: 0,
            is_settled: false,
            totals: Totals::default(),
        }
    }

    /// Ends the client; another one without any state takes its place.
    pub(crate) fn restart(&mut self) {
        let heir = Self::new(self.number, self.manner, self.speech, self.chance.clone());
        // The numbers continue, so that messages for the previous client are not taken for its own.
        let mut talk = std::mem::take(&mut self.talk);
        talk.begin_again();
        *self = Self { totals: self.totals, is_settled: self.is_settled, talk, ..heir };
    }

    /// Takes a connection before its handshake.
    pub(crate) fn connected(&mut self, link: LinkId, life: usize, record: &Record, now: u64) {
        self.end = Some(End::client(link, self.speech, now));
        self.got = (0, 0);
        self.life = life;
        self.forget_images(record);
    }

    /// Takes the refusal of a connection: there is no hub.
    pub(crate) fn refused(&mut self, sight: &mut Sight<'_>) -> Result<(), Wrong> {
        self.consumer.disconnected(Nanos(sight.now), &mut self.ear);
        self.hear(sight, &mut Wants::default())
    }

    pub(crate) fn turn(&mut self, sight: &mut Sight<'_>) -> Result<Wants, Wrong> {
        let mut wants = Wants::default();
        let now = sight.now;
        if now < self.asleep_until {
            return Ok(wants);
        }
        self.receive(sight, &mut wants)?;
        match &mut self.end {
            Some(end) if end.is_open() => {
                let mut out = end.out(now, sight.network);
                self.consumer.tick(Nanos(now), &mut out, &mut self.ear);
            }
            _ => _ = self.consumer.tick(Nanos(now), &mut Queue::new(0), &mut self.ear),
        }
        self.hear(sight, &mut wants)?;
        self.act(sight);
        if let Some(end) = &mut self.end {
            end.flush(now, sight.network);
            if let Some(Came::Over(why)) = end.turn(now) {
                self.lose(&why, sight)?;
            }
        }
        self.hear(sight, &mut wants)?;
        Ok(wants)
    }

    fn receive(&mut self, sight: &mut Sight<'_>, wants: &mut Wants) -> Result<(), Wrong> {
        let Some(end) = &mut self.end else { return Ok(()) };
        let most = match self.manner {
            Manner::Deaf if end.is_open() && self.consumer.is_ready() => return Ok(()),
            Manner::Slow { bytes } => bytes,
            _ => usize::MAX,
        };
        self.is_clean = sight.clean_from.is_some_and(|clean| end.received >= clean);
        for came in end.receive(sight.now, sight.network, most) {
            let Some(end) = &mut self.end else { return Ok(()) };
            match came {
                Came::Connected => {
                    sight.say(self.number, "connected", 0, String::new);
                    self.consumer.connected(Nanos(sight.now), &mut end.out(sight.now, sight.network));
                }
                Came::Garbled(why) => broken!(Text, "client {}: {why}", self.number),
                Came::Message(bytes) => {
                    sight.network.note(end.link, Side::Client, fnv(&bytes));
                    count(&bytes, &mut self.got);
                    trace_message(self.number, &bytes, sight);
                    self.talk.receipt(&bytes).map_err(of_client(self.number))?;
                    let bytes = Rc::new(bytes);
                    self.ear.message = Rc::clone(&bytes);
                    let mut out = end.out(sight.now, sight.network);
                    self.consumer.message(Nanos(sight.now), &bytes, &mut out, &mut self.ear);
                    self.hear(sight, wants)?;
                }
                Came::Over(why) => self.lose(&why, sight)?,
            }
        }
        Ok(())
    }

    fn lose(&mut self, why: &str, sight: &mut Sight<'_>) -> Result<(), Wrong> {
        let Some(end) = self.end.take() else { return Ok(()) };
        sight.say(self.number, "loses", 0, || why.to_owned());
        sight.network.close(end.link, Side::Client);
        if sight.hub_sleeps {
            self.given_up = Some(end.link);
        }
        self.forget_images(sight.record);
        self.consumer.disconnected(Nanos(sight.now), &mut self.ear);
        self.hear(sight, &mut Wants::default())
    }

    /// Resets the state of all items: the next messages arrive on another connection.
    fn forget_images(&mut self, record: &Record) {
        for watch in self.watches.values_mut() {
            watch.lost(record.said(&watch.name));
        }
        self.talk.forget();
    }

    fn hear(&mut self, sight: &mut Sight<'_>, wants: &mut Wants) -> Result<(), Wrong> {
        for heard in std::mem::take(&mut self.ear.heard) {
            match heard {
                Heard::Connect => wants.connection = true,
                Heard::Disconnect => {
                    if let Some(end) = self.end.take() {
                        sight.say(self.number, "hangs up", 0, String::new);
                        sight.network.close(end.link, Side::Client);
                        self.forget_images(sight.record);
                    }
                }
                Heard::Ended => wants.rebirth = true,
                Heard::Malformed(fault) => {
                    broken!(Transport, "client {} got what is no message: {fault}", self.number);
                }
                Heard::Message { closure, bytes, is_final } => {
                    if self.talk.own(closure, &bytes, is_final).map_err(of_client(self.number))? {
                        continue;
                    }
                    let Some(watch) = self.watches.get_mut(&closure) else { continue };
                    sight.say(self.number, "checks", closure, || watch.name.clone());
                    if self.is_clean && is_data(&bytes) && is_denied(self.number, &watch.name, sight.rules) {
                        broken!(Access, "client {} was sent something of {}", self.number, watch.name);
                    }
                    let judged = watch.message(&bytes, sight.record, sight.jumps);
                    judged.map_err(of_client(self.number))?;
                    self.totals.checked += 1;
                    self.totals.texts += u64::from(self.speech.is_json());
                    self.totals.orders += u64::from(domain_of(&watch.name) == Domain::MARKET_BY_ORDER);
                    if is_final {
                        self.finish(closure, &bytes, sight.now);
                    }
                }
                Heard::State { closure, stream, data, is_final } => {
                    if self.talk.own_state(closure, is_final) {
                        continue;
                    }
                    let Some(watch) = self.watches.get_mut(&closure) else { continue };
                    watch.state(stream, data);
                    sight.say(self.number, "hears", closure, || format!("{stream} {data}"));
                    if is_final {
                        self.watches.remove(&closure);
                    }
                }
            }
        }
        Ok(())
    }

    /// Closes an item after its final message: a complete snapshot, or the refusal of an item.
    fn finish(&mut self, closure: u64, bytes: &[u8], now: u64) {
        let Some(watch) = self.watches.remove(&closure) else { return };
        let is_refused =
            MessageView::parse(bytes).is_ok_and(|message| message.class() == MessageClass::STATUS);
        if is_refused && watch.is_streaming {
            self.again.push((now + 300 * MS, watch.name));
        }
    }

    /// Occasionally opens, closes or changes something.
    fn act(&mut self, sight: &mut Sight<'_>) {
        let now = sight.now;
        let due: Vec<String> =
            self.again.extract_if(.., |(at, _)| *at <= now).map(|(_, name)| name).collect();
        for name in due {
            if sight.names.contains(&name) || !self.is_settled {
                self.open(&name, true, 0, sight);
            }
        }
        if self.is_settled {
            self.wake_all();
            return;
        }
        if self.chance.one_in(15)
            && let Some(end) = self.end.as_mut().filter(|end| end.is_open())
        {
            let of_prices = |watch: &&Watch| domain_of(&watch.name) == Domain::MARKET_PRICE;
            let watched = self.watches.values().filter(|watch| watch.is_streaming).filter(of_prices);
            let items: Vec<_> = watched.map(|watch| (watch.name.clone(), watch.handle)).collect();
            let mut out = end.out(now, sight.network);
            self.talk.speak(&mut self.consumer, &mut out, &mut self.chance, (&items, sight.names));
        }
        if self.chance.one_in(12) {
            self.change_something(sight);
        }
    }

    /// Opens, closes or changes a stream.
    fn change_something(&mut self, sight: &mut Sight<'_>) {
        let now = sight.now;
        match self.chance.below(10) {
            0..4 => {
                let name = self.some_name(sight);
                let view = self.chance.index(VIEWS.len()) * usize::from(self.chance.one_in(2));
                let is_streaming = !self.chance.one_in(5);
                self.open(&name, is_streaming, view, sight);
            }
            4..6 => self.open_batch(sight),
            6 => {
                if let Some((closure, handle)) = self.some_watch()
                    && let Some(watch) = self.watches.remove(&closure)
                {
                    sight.say(self.number, "closes", closure, || watch.name.clone());
                    self.consumer.close(handle);
                    self.closed.retain(|(at, ..)| now < at + 3 * SECOND);
                    self.closed.push((now, watch.had_view, watch.name));
                }
            }
            7 => {
                let view = self.chance.index(VIEWS.len());
                if let Some((closure, handle)) = self.some_watch() {
                    let view_is = Some((view > 0).then(|| fids(view)));
                    let view_is =
                        view_is.as_ref().map(|fids| fids.as_ref().map(|fids| View::Fids(List::Given(fids))));
                    self.consumer.reissue(handle, &Reissue { view: view_is, ..Reissue::default() });
                    sight.say(self.number, "views", closure, || format!("view {view}"));
                    self.watches.get_mut(&closure).expect("it is there").reissued(view);
                }
            }
            8 => {
                if let Some((closure, handle)) = self.some_watch()
                    && self.consumer.can_pause()
                {
                    let watch = self.watches.get_mut(&closure).expect("it is there");
                    watch.is_paused = !watch.is_paused;
                    watch.reissued(watch.view);
                    let is_paused = Some(watch.is_paused);
                    sight.say(self.number, "pauses", closure, || format!("{is_paused:?}"));
                    self.consumer.reissue(handle, &Reissue { is_paused, ..Reissue::default() });
                }
            }
            _ => {
                if let Some((closure, handle)) = self.some_watch() {
                    let watch = self.watches.get_mut(&closure).expect("it is there");
                    watch.reissued(watch.view);
                    sight.say(self.number, "asks again", closure, String::new);
                    self.consumer.reissue(handle, &Reissue { wants_image: true, ..Reissue::default() });
                }
            }
        }
    }

    fn wake_all(&mut self) {
        for watch in self.watches.values_mut().filter(|watch| watch.is_paused) {
            watch.is_paused = false;
            watch.reissued(watch.view);
            self.consumer.reissue(watch.handle, &Reissue { is_paused: Some(false), ..Reissue::default() });
        }
    }

    fn some_name(&mut self, sight: &Sight<'_>) -> String {
        if self.chance.one_in(15) {
            return "NOSUCH".to_owned();
        }
        if sight.has_novelties && self.chance.one_in(6) {
            return label(provided_id(UNASKED), &novelty(self.chance.below(NOVELTIES)));
        }
        sight.names[self.chance.index(sight.names.len())].clone()
    }

    fn some_watch(&mut self) -> Option<(u64, Handle)> {
        if self.watches.is_empty() {
            return None;
        }
        let at = self.chance.index(self.watches.len());
        self.watches
            .iter()
            .filter(|(_, watch)| watch.is_streaming)
            .nth(at)
            .map(|(closure, watch)| (*closure, watch.handle))
    }

    /// Whether an item may be opened. Items of one name and kind would share a stream and a view, also with an
    /// item whose close has not been sent yet.
    fn may_open(&self, name: &str, is_streaming: bool, view: usize, now: u64) -> bool {
        let is_recent = |(at, had_view, closed): &(u64, bool, String)| {
            (*had_view || view > 0) && now < at + 3 * SECOND && closed == name
        };
        // Only one invented item at a time: the plant does not have enough numbers for all.
        if is_novelty(name) && self.watches.values().any(|watch| is_novelty(&watch.name)) {
            return false;
        }
        self.watches.len() < MOST_OPEN
            && !self.closed.iter().any(is_recent)
            && !self.watches.values().any(|watch| watch.name == name && watch.is_streaming == is_streaming)
    }

    fn open(&mut self, name: &str, is_streaming: bool, view: usize, sight: &mut Sight<'_>) {
        if !self.may_open(name, is_streaming, view, sight.now) {
            return;
        }
        let fids = fids(view);
        let (service, item) = of_label(name);
        let request = ItemRequest {
            domain: domain_of(name),
            is_streaming,
            view: (view > 0).then_some(View::Fids(List::Given(&fids))),
            closure: self.next,
            qos: None,
            ..ItemRequest::new(ServiceName::Name(service), item.as_bytes())
        };
        if let Ok(handle) = self.consumer.open(&request) {
            sight.say(self.number, "opens", self.next, || format!("{name}, view {view}"));
            self.watch(name, handle, is_streaming, view, sight.record);
        }
    }

    fn open_batch(&mut self, sight: &mut Sight<'_>) {
        let mut names: Vec<String> = (0..self.chance.within(2, 8)).map(|_| self.some_name(sight)).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| !is_novelty(name) && self.may_open(name, true, 0, sight.now));
        // All names have one service and domain.
        let first = names.first().cloned().unwrap_or_default();
        let (service, domain) = (of_label(&first).0, domain_of(&first));
        names.retain(|name| (of_label(name).0, domain_of(name)) == (service, domain));
        let bytes: Vec<&[u8]> = names.iter().map(|name| of_label(name).1.as_bytes()).collect();
        let request =
            ItemRequest { closure: self.next, domain, ..ItemRequest::new(ServiceName::Name(service), b"") };
        let Ok(handles) = self.consumer.open_batch(&request, &bytes) else { return };
        for (name, handle) in names.iter().zip(handles) {
            self.watch(name, handle, true, 0, sight.record);
        }
        sight.say(self.number, "opens a batch", names.len() as u64, || names.join(" "));
    }

    fn watch(&mut self, name: &str, handle: Handle, is_streaming: bool, view: usize, record: &Record) {
        let mut watch = Watch::new(name, handle, is_streaming, view, record.said(name));
        watch.is_text = self.speech.is_json();
        self.watches.insert(self.next, watch);
        self.next += 1;
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = &str> {
        self.watches.values().filter(|watch| watch.is_streaming).map(|watch| watch.name.as_str())
    }

    /// Checks that the client is connected and has the plant's current data.
    ///
    /// # Errors
    /// The client lacks something; the text says what.
    pub(crate) fn check_current(&self, record: &mut Record, names: &[String]) -> Result<(), Wrong> {
        if !self.consumer.is_ready() {
            broken!(Liveness, "client {}: it is not connected and logged in", self.number);
        }
        self.talk.check_quiet().map_err(of_client(self.number))?;
        let mut watched = self.watches.values().filter(|watch| names.contains(&watch.name));
        watched.try_for_each(|watch| watch.check_current(record).map_err(of_client(self.number)))
    }
}

/// Names the client in a violation.
fn of_client(number: usize) -> impl Fn(Wrong) -> Wrong {
    move |(invariant, what)| (invariant, format!("client {number}: {what}"))
}

/// Whether a message is an image or an update.
fn is_data(message: &[u8]) -> bool {
    let class = MessageView::parse(message).map(|message| message.class());
    matches!(class, Ok(MessageClass::REFRESH | MessageClass::UPDATE))
}

/// Counts images and updates of items.
fn count(message: &[u8], (images, updates): &mut (u64, u64)) {
    let Ok(message) = MessageView::parse(message) else { return };
    if ![Domain::MARKET_PRICE, Domain::MARKET_BY_ORDER].contains(&message.domain()) {
        return;
    }
    match message.class() {
        MessageClass::REFRESH => *images += 1,
        MessageClass::UPDATE => *updates += 1,
        _ => {}
    }
}

/// Whether an item is one that publishers invent and withdraw.
fn is_novelty(name: &str) -> bool {
    of_label(name).1.starts_with('X')
}

fn trace_message(client: usize, bytes: &[u8], sight: &mut Sight<'_>) {
    sight.say(client, "gets", fnv(bytes), || match MessageView::parse(bytes) {
        Ok(message) => {
            let state =
                message.header().ok().and_then(|header| header.state().map(|state| state.to_string()));
            let state = state.unwrap_or_default();
            format!("{} {} on {} {state}", message.domain(), message.class(), message.stream_id())
        }
        Err(fault) => fault.to_string(),
    });
}

fn fids(view: usize) -> Vec<i16> {
    VIEWS[view].iter().map(|Fid(fid)| *fid).collect()
}
