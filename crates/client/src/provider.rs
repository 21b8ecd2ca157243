//! An interactive provider with its own event loop: it serves items to the consumers that request them.

mod client;
mod event;
mod market;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::domain::LoginRequest;
use tapeline_omm::domain::post::Nak;
use tapeline_omm::role::Sent;
use tapeline_omm::role::provider::Receipt;
use tapeline_omm::rwf::{Domain, GenericHeader, NakCode, flags};
use tapeline_omm::{Fid, State, Value};
use tapeline_wire::rssl::{ConnectionId, ConnectionSettings, Reactor};

use crate::Error;
use crate::payload::Payload;
use crate::server::Connections;
use crate::values;
use client::{PRICES, not_found};
pub use event::{ItemStream, LoginAnswer, ProviderEvent};
use market::{ItemKey, Market, Values};

/// The longest wait between two turns.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A provider that serves the items of one service to every consumer that connects. It keeps the last value of each field of its MarketPrice items,
/// and the last image of items of other domains, for consumers that come later.
///
/// ```no_run
/// use std::time::Duration;
/// use tapeline_client::{Provider, ProviderEvent};
/// use tapeline_omm::{Real, fid};
///
/// let mut provider = Provider::listen("127.0.0.1:14002".parse().unwrap(), "DIRECT_FEED")?;
/// loop {
///     if let Some(ProviderEvent::Opened { item, .. }) = provider.poll(Duration::from_secs(1))? {
///         provider.publish(&item, &[(fid::BID, Real::decimal(3991, 2).into())])?;
///     }
/// }
/// # Ok::<(), tapeline_client::Error>(())
/// ```
#[derive(Debug)]
pub struct Provider {
    reactor: Reactor,
    connections: Connections<Market>,
    market: Market,
    address: SocketAddr,
}

impl Provider {
    /// Listens on an address, and serves prices as items of the named service.
    ///
    /// # Errors
    /// The port is not available.
    pub fn listen(address: SocketAddr, service: &str) -> Result<Self, Error> {
        let settings = ConnectionSettings {
            guaranteed_output_buffers: 200,
            connection_ping_timeout: 60,
            ..ConnectionSettings::default()
        };
        Self::listen_with(address, service, settings)
    }

    /// Does the same as [`Self::listen`], with other connection settings: TLS, compression, buffers.
    ///
    /// # Errors
    /// The port is not available.
    pub fn listen_with(
        address: SocketAddr,
        service: &str,
        settings: ConnectionSettings,
    ) -> Result<Self, Error> {
        let mut reactor = Reactor::new(1_000)?;
        let address = reactor.listen(address, &Arc::new(settings))?;
        Ok(Self { reactor, connections: Connections::default(), market: Market::new(service), address })
    }

    /// Serves another domain too, such as MarketByPrice. Call this before the first [`Self::poll`]: consumers that are connected are not informed.
    pub fn serve(&mut self, domain: Domain) {
        self.market.serve(domain);
    }

    /// Accepts posts from consumers: [`ProviderEvent::Posted`]. Without this call every post is refused. Call this before the first
    /// [`Self::poll`].
    pub fn accept_posts(&mut self) {
        self.market.takes_posts = true;
    }

    /// Sets the check of logins and of renewed logins. Without it every login is accepted.
    pub fn check_logins(&mut self, check: impl FnMut(&LoginRequest<'_>) -> LoginAnswer + Send + 'static) {
        self.market.set_login_check(Box::new(check));
    }

    /// Returns the address on which the provider listens, with the port that the system chose if port 0 was requested.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Publishes fields of a MarketPrice item: an image to consumers that wait for one, an update to consumers that have one.
    ///
    /// # Errors
    /// The values do not fit in a message.
    pub fn publish(&mut self, item: &str, fields: &[(Fid, Value<'_>)]) -> Result<(), Error> {
        let payload = Payload::fields(fields)?;
        let key = (PRICES, item.to_owned());
        let values =
            self.market.items.entry(key.clone()).or_insert_with(|| Values::Fields(Default::default()));
        match values {
            Values::Fields(values) => values.merge(&payload.data)?,
            Values::Payload(_) => *values = Values::Payload(payload.clone()),
        }
        self.send_update(&key, &payload);
        Ok(())
    }

    /// Sets the image of an item of any domain, and sends it to every consumer that has the item open.
    ///
    /// # Errors
    /// A field list of a MarketPrice item is malformed.
    pub fn refresh(&mut self, domain: Domain, item: &str, image: &Payload) -> Result<(), Error> {
        let key = (domain, item.to_owned());
        self.set_image(&key, image)?;
        for (id, client) in &mut self.connections.open {
            if let Some(mut sender) = self.reactor.sender(*id) {
                client.owe(&key);
                client.send_owed(&self.market, &mut sender);
            }
        }
        self.reactor.flush();
        Ok(())
    }

    /// Sends an update of an item of any domain to every consumer that has its image. `image` is the item's image with the update in it: consumers
    /// that wait for an image, and later ones, receive that.
    ///
    /// # Errors
    /// A field list of a MarketPrice item is malformed.
    pub fn update(
        &mut self,
        domain: Domain,
        item: &str,
        update: &Payload,
        image: &Payload,
    ) -> Result<(), Error> {
        let key = (domain, item.to_owned());
        self.set_image(&key, image)?;
        self.send_update(&key, update);
        Ok(())
    }

    fn set_image(&mut self, key: &ItemKey, image: &Payload) -> Result<(), Error> {
        let values = if key.0 == PRICES && image.container == tapeline_omm::rwf::DataType::FIELD_LIST {
            let mut values = values::LastValues::default();
            values.merge(&image.data)?;
            Values::Fields(values)
        } else {
            Values::Payload(image.clone())
        };
        self.market.items.insert(key.clone(), values);
        Ok(())
    }

    fn send_update(&mut self, key: &ItemKey, update: &Payload) {
        for (id, client) in &mut self.connections.open {
            if let Some(mut sender) = self.reactor.sender(*id) {
                client.update(&self.market, &mut sender, key, (update.container, &update.data));
            }
        }
        self.reactor.flush();
    }

    /// Closes an item for all consumers that have it open or wait for it, with `why` as the reason. A consumer whose connection has no capacity
    /// at this moment keeps its stream, which has no more updates.
    pub fn close_item(&mut self, item: &str, why: &str) {
        self.status(PRICES, item, not_found(why.as_bytes()));
    }

    /// Sends a state to all consumers that have an item open or wait for it: suspect, or good again. A final state closes the item. A consumer
    /// whose connection has no capacity at this moment does not get it.
    pub fn status(&mut self, domain: Domain, item: &str, state: State<'_>) {
        use tapeline_omm::rwf::StreamState;
        let key = (domain, item.to_owned());
        if !matches!(state.stream, StreamState::OPEN | StreamState::NON_STREAMING) {
            self.market.items.remove(&key);
        }
        let now = Nanos(monotonic_ns());
        for (id, client) in &mut self.connections.open {
            if let Some(mut sender) = self.reactor.sender(*id) {
                client.status(&mut sender, &key, state, now);
            }
        }
        self.reactor.flush();
    }

    /// Sends a generic message on the stream of an item to one consumer. Returns [`Sent::NotOpen`] if the stream is closed.
    ///
    /// # Errors
    /// The message does not fit.
    pub fn generic(&mut self, stream: ItemStream, payload: &Payload) -> Result<Sent, Error> {
        let client = self.connections.open.get_mut(&stream.connection);
        let (Some(client), Some(mut sender)) = (client, self.reactor.sender(stream.connection)) else {
            return Ok(Sent::NotOpen);
        };
        // The role sets the stream and its domain.
        let header = GenericHeader {
            flags: flags::generic::MESSAGE_COMPLETE,
            ..GenericHeader::new(PRICES, 0, payload.container)
        };
        let mut out = client.messages.outbox(&mut sender);
        let mut write = |room: &mut [u8]| values::copy(&payload.data, room);
        let sent = client.role.generic(&mut out, Some(stream.stream), &header, &mut write)?;
        self.reactor.flush();
        Ok(sent)
    }

    /// Answers a post: accepted, or refused with a text. Returns [`Sent::NotOpen`] if the connection is closed.
    pub fn acknowledge(&mut self, connection: ConnectionId, receipt: Receipt, refusal: Option<&str>) -> Sent {
        let client = self.connections.open.get_mut(&connection);
        let (Some(client), Some(mut sender)) = (client, self.reactor.sender(connection)) else {
            return Sent::NotOpen;
        };
        let nak = refusal.map(|text| Nak { code: NakCode::DENIED_BY_SRC, text: text.as_bytes() });
        let sent = client.role.ack(&mut client.messages.outbox(&mut sender), receipt, nak);
        self.reactor.flush();
        sent
    }

    /// Returns the next event; waits for at most `timeout`. Handles what has arrived in any case.
    ///
    /// # Errors
    /// The system refuses to wait for sockets.
    pub fn poll(&mut self, timeout: Duration) -> Result<Option<ProviderEvent>, Error> {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let deadline = Nanos(monotonic_ns().saturating_add(timeout));
        self.reactor.wait(Duration::ZERO)?;
        loop {
            let now = Nanos(monotonic_ns());
            let Self { reactor, connections, market, .. } = self;
            connections.receive(market, reactor, now);
            connections.tick(market, reactor, now);
            reactor.flush();
            if let Some(event) = market.events.pop_front() {
                return Ok(Some(event));
            }
            if now >= deadline {
                return Ok(None);
            }
            reactor.wait(LONGEST_WAIT.min(Duration::from_nanos(deadline.0 - now.0)))?;
        }
    }
}
