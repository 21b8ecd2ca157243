//! The interactive provider's end of one connection: it answers what a consumer asks.
//!
//! The application hears of requests as [`Event`]s and answers them by handle, at once or later: [`Provider::accept_login`],
//! [`Provider::directory`], [`Provider::dictionary`], [`Provider::refresh`] and so on. The role fills in what belongs to
//! the stream (ids, domain, key, private stream, solicited), ends snapshots, takes batches apart, and answers by itself
//! what nobody should have sent. What is asked before the login is accepted is refused, to be asked again (CLOSED_RECOVER,
//! USAGE_ERROR), as the vendor's own providers do unless they are told otherwise (EMA Java, `MarketItemHandler`).
//!
//! ```
//! use tapeline_nanos::Nanos;
//! use tapeline_omm::domain::{LoginFeatures, LoginRequest};
//! use tapeline_omm::role::provider::{Event, Provider, Settings};
//! use tapeline_omm::role::{Outbox, Queue};
//! use tapeline_omm::rwf::{MessageClass, MessageView};
//!
//! let (now, mut out) = (Nanos(0), Queue::new(65_536));
//! let mut provider = Provider::new(Settings::default(), now);
//! let mut application = |provider: &mut Provider, out: &mut dyn Outbox, event: Event<'_>| match event {
//!     Event::Login { request, .. } => {
//!         let features = LoginFeatures { single_open: Some(1), ..LoginFeatures::default() };
//!         provider.accept_login(now, out, &request, features).expect("the attributes are short");
//!     }
//!     _ => {}
//! };
//!
//! let mut bytes = [0; 256];
//! let len = LoginRequest::new(b"user").encode(&mut bytes)?;
//! provider.message(now, &bytes[..len], &mut out, &mut application)?;
//! let answer = out.pop().expect("the login was answered");
//! assert_eq!(MessageView::parse(&answer)?.class(), MessageClass::REFRESH);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answers;
mod dictionaries;
mod passing;
mod requests;
mod standing_by;
mod streams;

use std::collections::VecDeque;

use tapeline_nanos::Nanos;

use super::downloads::Downloads;
use super::peer::{Login, Peer, after};
use super::{Outbox, Over};
use crate::domain::standby::ConnectionStatus;
use crate::domain::{DictionaryRequest, LoginRequest, RoundTrip, View};
use crate::rwf::{
    Domain, Flags, GenericHeader, Header, Key, MessageClass, MessageView, PostHeader, Priority, StateCode,
    StreamState, flags,
};
use crate::{Malformed, Qos};

pub use super::peer::Counters;
pub use answers::Receipt;
use standing_by::Standing;
use streams::{Kind, Stream, Streams};
pub use streams::{StreamHandle, stream_bytes};

/// What can be set of a provider's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long a peer has to log in, milliseconds.
    pub login_timeout_ms: u64,
    /// Open streams at most; requests beyond are refused as too many.
    pub most_streams: u32,
    /// Bytes that the role may owe a peer that does not read; above, it is cut.
    pub owed_bytes: usize,
    /// Longest message that brings a part of a dictionary, bytes.
    pub dictionary_part_bytes: usize,
    /// A stream is closed with CLOSED_RECOVER at once only if none was in this time; else after it, milliseconds. A consumer
    /// of the vendor's library asks again without a pause, thousands of times a second; it takes silence for 15 s.
    pub refusal_pause_ms: u64,
    /// Time between two round trips for consumers that want them, milliseconds; 0 for none but those that the application
    /// asks for. None begins while another one is under way, so that the long ones are measured too; a consumer that has not
    /// answered for 30 s is asked again.
    pub round_trip_interval_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            login_timeout_ms: 30_000,
            most_streams: 100_000,
            owed_bytes: 1 << 18,
            dictionary_part_bytes: 60_000,
            refusal_pause_ms: 1000,
            round_trip_interval_ms: 10_000,
        }
    }
}

/// A request for an item.
#[derive(Debug, Clone, Copy)]
pub struct ItemRequest<'a> {
    /// What kind of item.
    pub domain: Domain,
    /// Which one.
    pub key: Key<'a>,
    /// [`flags::request`].
    pub flags: Flags,
    /// Wanted quality of service.
    pub qos: Option<Qos>,
    /// Worst quality of service that will do.
    pub worst_qos: Option<Qos>,
    /// How urgently.
    pub priority: Option<Priority>,
    /// The fields that are wanted; more may be sent.
    pub view: Option<View<'a>>,
    /// Of a symbol list: [`symbol_list`](crate::domain::symbol_list).
    pub data_streams: Option<u64>,
    /// Opaque bytes.
    pub extended_header: Option<&'a [u8]>,
    /// The whole message; of a batch, the one that named all its items.
    pub message: MessageView<'a>,
}

impl ItemRequest<'_> {
    /// Whether updates are wanted; else this is a snapshot.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.flags.has(flags::request::STREAMING)
    }

    /// Whether the stream is to be this consumer's alone.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.flags.has(flags::request::PRIVATE_STREAM)
    }

    /// Whether updates are to be held back from now on.
    #[must_use]
    pub fn is_pause(&self) -> bool {
        self.flags.has(flags::request::PAUSE)
    }

    /// Whether an image is wanted.
    #[must_use]
    pub fn wants_refresh(&self) -> bool {
        !self.flags.has(flags::request::NO_REFRESH)
    }
}

/// What a consumer did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event<'a> {
    /// It logs in, or renews its login. Answer: [`Provider::accept_login`] or [`Provider::login_status`]; a renewed
    /// login with NO_REFRESH needs none if it is accepted. One with PAUSE among its flags holds the updates of all items
    /// back until it is renewed without; then their images should be sent again.
    Login {
        /// Who.
        request: LoginRequest<'a>,
        /// Whether it is logged in already.
        is_reissue: bool,
    },
    /// It wants the directory. Answer: [`Provider::directory`].
    Directory {
        /// To answer.
        stream: StreamHandle,
        /// Of one service alone.
        service_id: Option<u16>,
        /// Bits of the filters that are wanted.
        filter: u32,
    },
    /// It wants a dictionary. Answer: [`Provider::dictionary`], or a closed [`Provider::status`].
    Dictionary {
        /// To answer.
        stream: StreamHandle,
        /// Which, and how much of it.
        request: DictionaryRequest<'a>,
    },
    /// It wants an item. Answer: [`Provider::refresh`] or [`Provider::status`].
    Open {
        /// To answer.
        stream: StreamHandle,
        /// Which.
        request: ItemRequest<'a>,
    },
    /// It changes what it asked of an open item: priority, view, pause and resume, or just a new image. Answer, if an
    /// image is wanted: [`Provider::refresh`].
    Reissue {
        /// To answer.
        stream: StreamHandle,
        /// What it is now.
        request: ItemRequest<'a>,
    },
    /// It has closed a stream; the handle is worth nothing now. At the end of the connection there is no such event for
    /// what is open then.
    Closed {
        /// Which.
        stream: StreamHandle,
    },
    /// It posts. Answer, if there is a receipt: [`Provider::ack`].
    Post {
        /// On an item's stream; `None` on the login's.
        stream: Option<StreamHandle>,
        /// All but the payload.
        header: PostHeader<'a>,
        /// The whole message.
        message: MessageView<'a>,
        /// What the answer needs, if one is wanted.
        receipt: Option<Receipt>,
    },
    /// It sends a generic message.
    Generic {
        /// On this stream; `None` on the login's.
        stream: Option<StreamHandle>,
        /// All but the payload.
        header: GenericHeader<'a>,
        /// The whole message.
        message: MessageView<'a>,
    },
    /// The consumer has several servers, and this one is its active one again, or stands by from now on, for all items or for some
    /// services; only where the login said that it can ([`LoginFeatures::support_standby`](crate::domain::LoginFeatures)). Items
    /// that stand by take no updates ([`Sent::NotOpen`](super::Sent)), and their images go out without data.
    Standing {
        /// Some of it is active again: there the images should be sent once more, of streams that [have none](Provider::has_image)
        /// and do not [stand by](Provider::stands_by). Until then there are no updates.
        takes_over: bool,
    },
    /// A round trip is done.
    RoundTrip {
        /// Nanoseconds from sending to here.
        ns: u64,
    },
    /// It sent a message that cannot be read; nothing else was done than to count it.
    Malformed(Malformed),
}

/// Who decides.
pub trait Application {
    /// Something happened on the connection of `provider`. Answers can go out at once.
    fn event(&mut self, provider: &mut Provider, out: &mut dyn Outbox, event: Event<'_>);
}

impl<F: FnMut(&mut Provider, &mut dyn Outbox, Event<'_>)> Application for F {
    fn event(&mut self, provider: &mut Provider, out: &mut dyn Outbox, event: Event<'_>) {
        self(provider, out, event);
    }
}

/// One connection's provider. See the [module](self).
#[derive(Debug)]
pub struct Provider {
    settings: Settings,
    streams: Streams,
    peer: Peer,
    /// The login is paused, and all items with it.
    is_paused: bool,
    takes_posts: bool,
    standing: Standing,
    downloads: Downloads,
    /// Streams whose refusal is due then, in that order.
    refusals: VecDeque<(Nanos, StreamHandle)>,
    last_refusal: Option<Nanos>,
    round_trips: RoundTrips,
}

#[derive(Debug, Default)]
struct RoundTrips {
    /// The peer sends them back.
    are_wanted: bool,
    next: Option<Nanos>,
    sent: Option<Nanos>,
}

/// How long an answer to a round trip is waited for.
const LONGEST_ROUND_TRIP_NS: u64 = 30_000_000_000;

impl RoundTrips {
    fn is_under_way(&self, now: Nanos) -> bool {
        self.sent.is_some_and(|sent| now.0.saturating_sub(sent.0) < LONGEST_ROUND_TRIP_NS)
    }
}

impl Provider {
    /// For a connection that has just been opened.
    #[must_use]
    pub fn new(settings: Settings, now: Nanos) -> Self {
        let peer = Peer::new(settings.owed_bytes, settings.login_timeout_ms, now);
        Self {
            settings,
            streams: Streams::default(),
            peer,
            is_paused: false,
            takes_posts: false,
            standing: Standing::default(),
            downloads: Downloads::default(),
            refusals: VecDeque::new(),
            last_refusal: None,
            round_trips: RoundTrips::default(),
        }
    }

    /// Whether the consumer is logged in.
    #[must_use]
    pub fn is_logged_in(&self) -> bool {
        matches!(self.peer.login, Login::Open(_))
    }

    /// Open streams, the login aside.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Places that its streams take: those that are open, and those that were and have others behind them that still are.
    #[must_use]
    pub fn held_streams(&self) -> usize {
        self.streams.places()
    }

    /// Has the processor fetch what it knows of a stream, for who will soon send on it: those that are fetched one after the other
    /// come at once.
    #[inline]
    pub fn expect(&self, stream: StreamHandle) {
        std::hint::black_box(self.stream_id(stream));
    }

    /// Id of a stream on the wire.
    #[must_use]
    pub fn stream_id(&self, stream: StreamHandle) -> Option<i32> {
        self.streams.get(stream).map(|open| open.id)
    }

    /// The domain of a stream.
    #[must_use]
    pub fn domain(&self, stream: StreamHandle) -> Option<Domain> {
        self.streams.get(stream).map(|open| open.domain)
    }

    /// Whether the consumer has paused a stream by itself.
    #[must_use]
    pub fn is_paused(&self, stream: StreamHandle) -> bool {
        self.streams.get(stream).is_some_and(|open| open.is_paused)
    }

    /// What a stream is open for: service, name and filter.
    #[must_use]
    pub fn key(&self, stream: StreamHandle) -> Option<Key<'_>> {
        self.streams.get(stream).map(Stream::key)
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.peer.counters
    }

    /// Sends what the role owes and nothing else, also when the connection is over: whether all of it is out.
    pub fn settle(&mut self, out: &mut dyn Outbox) -> bool {
        self.peer.settle(out)
    }

    /// Takes one message.
    ///
    /// # Errors
    ///
    /// The connection is to be closed, once what waits to be sent is out.
    pub fn message(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        out: &mut dyn Outbox,
        application: &mut dyn Application,
    ) -> Result<(), Over> {
        self.peer.verdict()?;
        self.peer.counters.messages += 1;
        self.peer.settle(out);
        match MessageView::parse(bytes) {
            Ok(message) => match message.header() {
                Ok(header) => self.dispatch(now, &message, header, out, application),
                Err(fault) => {
                    self.refuse_malformed(&message, out);
                    self.malformed(fault, out, application);
                }
            },
            Err(fault) => self.malformed(fault, out, application),
        }
        self.peer.verdict()
    }

    /// Does what is due, and sends what there was no room for; when there is something to do next.
    ///
    /// # Errors
    ///
    /// The connection is to be closed.
    pub fn tick(
        &mut self,
        now: Nanos,
        out: &mut dyn Outbox,
        _application: &mut dyn Application,
    ) -> Result<Option<Nanos>, Over> {
        self.peer.verdict()?;
        if self.peer.settle(out) {
            self.go_on_with_downloads(out);
            self.refuse_what_is_due(now, out);
            if self.round_trips.next.is_some_and(|next| now >= next) {
                if self.round_trips.is_under_way(now) {
                    self.round_trips.next = Some(after(now, self.settings.round_trip_interval_ms));
                } else {
                    let _ = self.round_trip(now, out);
                }
            }
        }
        let login_due = self.peer.login_due(now);
        self.peer.verdict()?;
        let refusal_due = self.refusals.front().map(|(due, _)| *due);
        Ok([login_due, self.round_trips.next, refusal_due].into_iter().flatten().min())
    }

    fn malformed(&mut self, fault: Malformed, out: &mut dyn Outbox, application: &mut dyn Application) {
        self.peer.counters.malformed += 1;
        application.event(self, out, Event::Malformed(fault));
    }

    fn dispatch(
        &mut self,
        now: Nanos,
        message: &MessageView<'_>,
        header: Header<'_>,
        out: &mut dyn Outbox,
        application: &mut dyn Application,
    ) {
        match header {
            Header::Request(request) => self.request(message, &request, out, application),
            Header::Close(close) => self.close(message, &close, out, application),
            Header::Post(post) => self.post(message, &post, out, application),
            Header::Generic(generic) => self.generic_message(now, message, &generic, out, application),
            // What only a provider sends: a non-interactive one has come to the wrong door.
            Header::Refresh(_) | Header::Update(_) | Header::Status(_) => {
                let text = match message.class() {
                    MessageClass::REFRESH => "A REFRESH is not for an interactive provider",
                    MessageClass::UPDATE => "An UPDATE is not for an interactive provider",
                    _ => "A STATUS is not for an interactive provider",
                };
                self.peer.refuse_as_misplaced(out, (message.domain(), message.stream_id()), text);
            }
            Header::Ack(_) => self.peer.counters.ignored += 1,
        }
    }

    fn post(
        &mut self,
        message: &MessageView<'_>,
        post: &PostHeader<'_>,
        out: &mut dyn Outbox,
        application: &mut dyn Application,
    ) {
        let receipt = Receipt::of(post);
        let Some(stream) = self.stream_of(post.stream_id) else {
            return self.refuse_post(receipt, crate::rwf::NakCode::NOT_OPEN, "This stream is not open", out);
        };
        if !self.takes_posts {
            return self.refuse_post(
                receipt,
                crate::rwf::NakCode::DENIED_BY_SRC,
                "Posts are not taken here",
                out,
            );
        }
        application.event(self, out, Event::Post { stream, header: *post, message: *message, receipt });
    }

    fn generic_message(
        &mut self,
        now: Nanos,
        message: &MessageView<'_>,
        header: &GenericHeader<'_>,
        out: &mut dyn Outbox,
        application: &mut dyn Application,
    ) {
        let Some(stream) = self.stream_of(header.stream_id) else {
            self.peer.counters.ignored += 1;
            return;
        };
        if stream.is_none()
            && let Ok(Some(back)) = RoundTrip::read(message)
        {
            // Only what was sent last counts, and once: a peer does not make up its own.
            match self.round_trips.sent.take() {
                Some(sent) if back.ticks == Some(sent.0) => {
                    let ns = now.0.saturating_sub(sent.0);
                    application.event(self, out, Event::RoundTrip { ns });
                }
                _ => self.peer.counters.ignored += 1,
            }
            return;
        }
        match ConnectionStatus::read(message) {
            Ok(Some(status)) if self.is_offered(&status) => {
                return self.set_standing(&status, out, application);
            }
            Err(fault) if self.standing.offered != 0 => return self.malformed(fault, out, application),
            _ => {}
        }
        application.event(self, out, Event::Generic { stream, header: *header, message: *message });
    }

    /// The stream of an id: `Some(None)` is the login's.
    fn stream_of(&self, id: i32) -> Option<Option<StreamHandle>> {
        match self.peer.login {
            Login::Open(login) if login == id => Some(None),
            Login::Open(_) => {
                let handle = self.streams.find(id)?;
                self.streams.get(handle)?.refusal.is_none().then_some(Some(handle))
            }
            _ => None,
        }
    }

    fn refuse_malformed(&mut self, message: &MessageView<'_>, out: &mut dyn Outbox) {
        if message.class() == MessageClass::REQUEST && self.streams.find(message.stream_id()).is_none() {
            let at = (message.domain(), message.stream_id());
            let text = "This request cannot be read";
            self.peer.refuse(out, at, StreamState::CLOSED, StateCode::USAGE_ERROR, text);
        }
    }
}
