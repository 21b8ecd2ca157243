//! Interactive provider: the end of a connection that answers a consumer's requests.
//!
//! The application receives requests as [`ProviderEvent`]s and answers them by handle, at once or later:
//! [`Provider::accept_login`], [`Provider::directory`], [`Provider::dictionary`], [`Provider::refresh`] and so on. The
//! role fills in the members of the stream (ids, domain, key, private stream, solicited), ends snapshots, splits
//! batches, and answers invalid messages by itself. A request before the login is accepted is refused with
//! CLOSED_RECOVER, USAGE_ERROR, so that the consumer repeats it. The vendor's own providers do the same by default (EMA
//! Java, `MarketItemHandler`).
//!
//! ```
//! use tapeline_nanos::Nanos;
//! use tapeline_omm::domain::{LoginFeatures, LoginRequest};
//! use tapeline_omm::role::provider::{Provider, ProviderEvent, ProviderSettings};
//! use tapeline_omm::role::{Outbox, Queue};
//! use tapeline_omm::rwf::{MessageClass, MessageView};
//!
//! let (now, mut out) = (Nanos(0), Queue::new(65_536));
//! let mut provider = Provider::new(ProviderSettings::default(), now);
//! let mut application = |provider: &mut Provider, out: &mut dyn Outbox, event: ProviderEvent<'_>| match event {
//!     ProviderEvent::Login { request, .. } => {
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
use super::{Outbox, Over, application};
use crate::domain::standby::ConnectionStatus;
use crate::domain::{DictionaryRequest, LoginRequest, RoundTrip, View};
use crate::rwf::{
    Domain, Flags, GenericHeader, Header, Key, MessageClass, MessageView, NakCode, PostHeader, Priority,
    StateCode, StreamState, flags,
};
use crate::{Malformed, Qos};

pub use super::peer::ConnectionCounters;
pub use answers::Receipt;
use standing_by::Standing;
use streams::{ProviderStream, StreamKind, Streams};
pub use streams::{StreamHandle, stream_bytes};

/// Options of a provider's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// Time limit for the peer's login, milliseconds.
    pub login_timeout_ms: u64,
    /// Maximum number of open streams; further requests are refused as too many.
    pub most_streams: u32,
    /// Maximum bytes of pending output for a peer that does not read; above it, the peer is disconnected.
    pub owed_bytes: usize,
    /// Maximum length of a message with a part of a dictionary, bytes.
    pub dictionary_part_bytes: usize,
    /// Pause between CLOSED_RECOVER refusals, milliseconds. A stream is closed at once only if no other was closed
    /// within this time; else it is closed after this time. A consumer of the vendor's library requests again without a
    /// pause, thousands of times a second; it accepts silence for 15 s.
    pub refusal_pause_ms: u64,
    /// Time between two round trips, for consumers that want them, milliseconds; 0 for only those that the application
    /// starts. No round trip starts while another one is in progress, so that long ones are measured too; a consumer
    /// that has not answered for 30 s receives another one.
    pub round_trip_interval_ms: u64,
}

impl Default for ProviderSettings {
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

/// Request for an item.
#[derive(Debug, Clone, Copy)]
pub struct RequestedItem<'a> {
    /// Domain of the item.
    pub domain: Domain,
    /// Key of the item.
    pub key: Key<'a>,
    /// [`flags::request`].
    pub flags: Flags,
    /// Requested quality of service.
    pub qos: Option<Qos>,
    /// Worst acceptable quality of service.
    pub worst_qos: Option<Qos>,
    /// Priority.
    pub priority: Option<Priority>,
    /// Requested fields; more may be sent.
    pub view: Option<View<'a>>,
    /// For a symbol list: [`symbol_list`](crate::domain::symbol_list).
    pub data_streams: Option<u64>,
    /// Opaque bytes.
    pub extended_header: Option<&'a [u8]>,
    /// The whole message; for a batch, the message with the names of all its items.
    pub message: MessageView<'a>,
}

impl RequestedItem<'_> {
    /// Returns `true` if updates are wanted; `false` for a snapshot.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.flags.has(flags::request::STREAMING)
    }

    /// Returns `true` if the stream is to be private to this consumer.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.flags.has(flags::request::PRIVATE_STREAM)
    }

    /// Returns `true` if updates are to be paused from now on.
    #[must_use]
    pub fn is_pause(&self) -> bool {
        self.flags.has(flags::request::PAUSE)
    }

    /// Returns `true` if an image is wanted.
    #[must_use]
    pub fn wants_refresh(&self) -> bool {
        !self.flags.has(flags::request::NO_REFRESH)
    }
}

/// Action of a consumer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ProviderEvent<'a> {
    /// The consumer logs in, or renews its login. Answer: [`Provider::accept_login`] or [`Provider::login_status`]; a
    /// renewed login with NO_REFRESH needs none if it is accepted. A login with the flag PAUSE pauses the updates of
    /// all items until it is renewed without the flag; send the images of the items again then.
    Login {
        /// Login request.
        request: LoginRequest<'a>,
        /// `true` if the consumer is logged in already.
        is_reissue: bool,
    },
    /// The consumer requests the directory. Answer: [`Provider::directory`].
    Directory {
        /// Stream of the answer.
        stream: StreamHandle,
        /// Service id, if only one service is requested.
        service_id: Option<u16>,
        /// Bits of the requested filters.
        filter: u32,
    },
    /// The consumer requests a dictionary. Answer: [`Provider::dictionary`], or a closed [`Provider::status`].
    Dictionary {
        /// Stream of the answer.
        stream: StreamHandle,
        /// Dictionary and detail level.
        request: DictionaryRequest<'a>,
    },
    /// The consumer requests an item. Answer: [`Provider::refresh`] or [`Provider::status`].
    Open {
        /// Stream of the answer.
        stream: StreamHandle,
        /// The request.
        request: RequestedItem<'a>,
    },
    /// The consumer changes the request of an open item: priority, view, pause and resume, or only a new image. Answer,
    /// if an image is wanted: [`Provider::refresh`].
    Reissue {
        /// Stream of the answer.
        stream: StreamHandle,
        /// The new request.
        request: RequestedItem<'a>,
    },
    /// The consumer has closed a stream; the handle is no longer valid. At the end of the connection there is no such
    /// event for streams that are still open.
    Closed {
        /// The closed stream.
        stream: StreamHandle,
    },
    /// The consumer posts. Answer, if there is a receipt: [`Provider::ack`].
    Post {
        /// Stream of an item; `None` for the login stream.
        stream: Option<StreamHandle>,
        /// Header of the message.
        header: PostHeader<'a>,
        /// The whole message.
        message: MessageView<'a>,
        /// Data for the acknowledgement, if one is wanted.
        receipt: Option<Receipt>,
    },
    /// The consumer sends a generic message.
    Generic {
        /// Stream of the message; `None` for the login stream.
        stream: Option<StreamHandle>,
        /// Header of the message.
        header: GenericHeader<'a>,
        /// The whole message.
        message: MessageView<'a>,
    },
    /// The consumer has several servers and has changed the role of this one: active again, or on standby, for all
    /// items or for some services. Sent only if the login offered it
    /// ([`LoginFeatures::support_standby`](crate::domain::LoginFeatures)). Items on standby accept no updates
    /// ([`Sent::NotOpen`](super::Sent)), and their images are sent without data.
    Standing {
        /// `true` if some items are active again. Send new images for the streams that [have none](Provider::has_image)
        /// and are not [on standby](Provider::stands_by). Until then there are no updates.
        takes_over: bool,
    },
    /// A round trip is complete.
    RoundTrip {
        /// Time from sending to arrival, nanoseconds.
        ns: u64,
    },
    /// The consumer sent a malformed message. It was counted and otherwise ignored.
    Malformed(Malformed),
}

application! {
    /// Handles an event on the connection of `provider`. Answers can be sent at once.
    ProviderApplication: Provider, ProviderEvent
}

/// Provider of one connection. See the [module](self).
#[derive(Debug)]
pub struct Provider {
    settings: ProviderSettings,
    streams: Streams,
    peer: Peer,
    /// The login is paused, and with it all items.
    is_paused: bool,
    takes_posts: bool,
    standing: Standing,
    downloads: Downloads,
    /// Streams with a delayed refusal, and its time; in order of time.
    refusals: VecDeque<(Nanos, StreamHandle)>,
    last_refusal: Option<Nanos>,
    round_trips: RoundTrips,
}

#[derive(Debug, Default)]
struct RoundTrips {
    /// `true` if the peer returns round trips.
    are_wanted: bool,
    next: Option<Nanos>,
    sent: Option<Nanos>,
}

/// Maximum wait for the answer to a round trip.
const LONGEST_ROUND_TRIP_NS: u64 = 30_000_000_000;

impl RoundTrips {
    fn is_under_way(&self, now: Nanos) -> bool {
        self.sent.is_some_and(|sent| now.0.saturating_sub(sent.0) < LONGEST_ROUND_TRIP_NS)
    }
}

impl Provider {
    /// Creates the provider of a new connection.
    #[must_use]
    pub fn new(settings: ProviderSettings, now: Nanos) -> Self {
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

    /// Returns `true` if the consumer is logged in.
    #[must_use]
    pub fn is_logged_in(&self) -> bool {
        matches!(self.peer.login, Login::Open(_))
    }

    /// Returns the number of open streams, without the login.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns the number of places for streams: those of open streams, and those of closed streams with an open one
    /// behind them.
    #[must_use]
    pub fn held_streams(&self) -> usize {
        self.streams.places()
    }

    /// Prefetches the state of a stream on which the caller will send soon. Prefetches in sequence overlap in time.
    #[inline]
    pub fn expect(&self, stream: StreamHandle) {
        std::hint::black_box(self.stream_id(stream));
    }

    /// Returns the id of a stream on the wire.
    #[must_use]
    pub fn stream_id(&self, stream: StreamHandle) -> Option<i32> {
        self.streams.get(stream).map(|open| open.id)
    }

    /// Returns the domain of a stream.
    #[must_use]
    pub fn domain(&self, stream: StreamHandle) -> Option<Domain> {
        self.streams.get(stream).map(|open| open.domain)
    }

    /// Returns `true` if the consumer has paused this single stream.
    #[must_use]
    pub fn is_paused(&self, stream: StreamHandle) -> bool {
        self.streams.get(stream).is_some_and(|open| open.is_paused)
    }

    /// Returns the key of a stream: service, name and filter.
    #[must_use]
    pub fn key(&self, stream: StreamHandle) -> Option<Key<'_>> {
        self.streams.get(stream).map(ProviderStream::key)
    }

    /// Returns the counters of the connection.
    #[must_use]
    pub fn counters(&self) -> ConnectionCounters {
        self.peer.counters
    }

    /// Sends pending output of the role and nothing else, even if the connection is over. Returns `true` if all was
    /// sent.
    pub fn settle(&mut self, out: &mut dyn Outbox) -> bool {
        self.peer.settle(out)
    }

    /// Processes one message. Fails if the connection is over: close it after the queued output is sent.
    pub fn message(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        out: &mut dyn Outbox,
        application: &mut dyn ProviderApplication,
    ) -> Result<(), Over> {
        let call = &mut Call { out, application };
        self.peer.verdict()?;
        self.peer.counters.messages += 1;
        self.peer.settle(call.out);
        match MessageView::parse(bytes) {
            // By reference: a header is large.
            Ok(message) => match &message.header() {
                Ok(header) => self.dispatch(now, &message, header, call),
                Err(fault) => {
                    self.refuse_malformed(&message, call.out);
                    self.malformed(*fault, call);
                }
            },
            Err(fault) => self.malformed(fault, call),
        }
        self.peer.verdict()
    }

    /// Does the work that is due, and sends queued output. Returns the time of the next call, if there is one. Fails if
    /// the connection is over: close it.
    pub fn tick(
        &mut self,
        now: Nanos,
        out: &mut dyn Outbox,
        _application: &mut dyn ProviderApplication,
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

    fn malformed(&mut self, fault: Malformed, call: &mut Call<'_>) {
        self.peer.counters.malformed += 1;
        call.event(self, ProviderEvent::Malformed(fault));
    }

    fn dispatch(&mut self, now: Nanos, message: &MessageView<'_>, header: &Header<'_>, call: &mut Call<'_>) {
        match header {
            Header::Request(request) => self.request(message, request, call),
            Header::Close(close) => self.close(message, close, call),
            Header::Post(post) => self.post(message, post, call),
            Header::Generic(generic) => self.generic_message(now, message, generic, call),
            // Only a provider sends these: a non-interactive one has connected to the wrong port.
            Header::Refresh(_) | Header::Update(_) | Header::Status(_) => {
                let text = match message.class() {
                    MessageClass::REFRESH => "A REFRESH is not for an interactive provider",
                    MessageClass::UPDATE => "An UPDATE is not for an interactive provider",
                    _ => "A STATUS is not for an interactive provider",
                };
                let at = (message.domain(), message.stream_id());
                self.peer.refuse(call.out, at, StreamState::CLOSED_RECOVER, StateCode::USAGE_ERROR, text);
            }
            Header::Ack(_) => self.peer.counters.ignored += 1,
        }
    }

    fn post(&mut self, message: &MessageView<'_>, post: &PostHeader<'_>, call: &mut Call<'_>) {
        let receipt = Receipt::of(post);
        let Some(stream) = self.stream_of(post.stream_id) else {
            return self.refuse_post(receipt, NakCode::NOT_OPEN, "This stream is not open", call.out);
        };
        if !self.takes_posts {
            return self.refuse_post(receipt, NakCode::DENIED_BY_SRC, "Posts are not taken here", call.out);
        }
        call.event(self, ProviderEvent::Post { stream, header: *post, message: *message, receipt });
    }

    fn generic_message(
        &mut self,
        now: Nanos,
        message: &MessageView<'_>,
        header: &GenericHeader<'_>,
        call: &mut Call<'_>,
    ) {
        let Some(stream) = self.stream_of(header.stream_id) else {
            self.peer.counters.ignored += 1;
            return;
        };
        if stream.is_none()
            && let Ok(Some(back)) = RoundTrip::read(message)
        {
            // Only the value that was sent last counts, and only once: a peer cannot invent one.
            match self.round_trips.sent.take() {
                Some(sent) if back.ticks == Some(sent.0) => {
                    let ns = now.0.saturating_sub(sent.0);
                    call.event(self, ProviderEvent::RoundTrip { ns });
                }
                _ => self.peer.counters.ignored += 1,
            }
            return;
        }
        match ConnectionStatus::read(message) {
            Ok(Some(status)) if self.is_offered(&status) => {
                return self.set_standing(&status, call);
            }
            Err(fault) if self.standing.offered != 0 => return self.malformed(fault, call),
            _ => {}
        }
        call.event(self, ProviderEvent::Generic { stream, header: *header, message: *message });
    }

    /// Returns the stream of an id: `Some(None)` is the login stream.
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
