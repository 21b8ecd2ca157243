//! A non-interactive provider with its own event loop: it publishes items to a hub without requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::domain::ServiceEntry;
use tapeline_omm::domain::directory::ServiceState;
use tapeline_omm::role::ni_provider::{self, NiProvider, NiProviderApplication, NiProviderEvent, Publish};
use tapeline_omm::role::watchlist::Handle;
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{DataType, Domain, UpdateHeader, UpdateType};
use tapeline_omm::{Dictionary, Fid, Value};

use crate::Error;
use crate::connection::JsonSettings;
use crate::dialer::{ConnectionEvent, Dialer, Dialing};
use crate::endpoint::Endpoint;
use crate::login::Login;
use crate::values::{self, LastValues};

/// The longest image that is sent, in bytes of fields.
const LONGEST_IMAGE: usize = 64 << 10;
/// The longest wait between two turns.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// The longest time for which a dropped publisher waits until its values are sent.
const DROP_WAIT: Duration = Duration::from_secs(1);

/// A publisher of the items of one service to a hub. It keeps the last value of each field, so that each connection begins with images.
///
/// [`Self::close`] waits until everything is sent, and says what is not. A publisher that is dropped waits too, for one second at most.
///
/// ```no_run
/// use tapeline_client::{Login, Publisher};
/// use tapeline_omm::{Real, fid};
///
/// let mut publisher = Publisher::connect("localhost:14003", &Login::user("me"), 1, "NI_PUB")?;
/// publisher.publish("IBM.N", &[(fid::BID, Real::decimal(3991, 2).into())])?;
/// publisher.flush()?;
/// # Ok::<(), tapeline_client::Error>(())
/// ```
#[derive(Debug)]
pub struct Publisher {
    dialer: Dialer<NiProvider>,
    service_id: u16,
    board: Board,
}

#[derive(Debug, Default)]
struct Board {
    items: Vec<Item>,
    by_name: HashMap<String, usize>,
    /// Items whose newest values have not been sent.
    changed: Vec<usize>,
    /// The publisher has logged out: nothing more is sent.
    is_closed: bool,
    /// The buffer for the fields of the message that is being sent.
    fields: Vec<u8>,
    ended: Option<String>,
    reason: Option<String>,
}

#[derive(Debug)]
struct Item {
    handle: Handle,
    values: LastValues,
    /// Fields to send as an update; may be empty.
    change: LastValues,
    is_changed: bool,
}

impl Publisher {
    /// Creates a publisher of one service, by number and name, to a hub such as `localhost:14003`. [`Self::publish`] and [`Self::flush`] open
    /// the connection.
    ///
    /// # Errors
    /// The login or the service does not fit in a message, or the system refuses to create the poller for sockets.
    pub fn connect(hub: &str, login: &Login, service_id: u16, service: &str) -> Result<Self, Error> {
        Self::new(vec![Endpoint::plain(hub)], login, service_id, service)
    }

    /// Creates a publisher that connects to the first of several hubs that accepts the connection.
    ///
    /// # Errors
    /// Those of [`Self::connect`].
    pub fn new(
        endpoints: Vec<Endpoint>,
        login: &Login,
        service_id: u16,
        service: &str,
    ) -> Result<Self, Error> {
        let services = [ServiceEntry::new(service_id, values::service(service), ServiceState::UP)];
        let role = NiProvider::new(ni_provider::NiProviderSettings::default(), &login.request(), &services)?;
        let dictionary = Arc::new(Dictionary::builtin().clone());
        let dialer = Dialer::new(role, endpoints, dictionary, JsonSettings::default())?;
        Ok(Self { dialer, service_id, board: Board::default() })
    }

    /// Publishes fields of an item: an image if the hub has none yet, else an update. Without a connection, or while the connection has no
    /// capacity, the newest value of each field is buffered.
    ///
    /// # Errors
    /// The values do not fit in a message; [`Error::Ended`] once the session is over for good.
    pub fn publish(&mut self, item: &str, fields: &[(Fid, Value<'_>)]) -> Result<(), Error> {
        let fields = values::encode(fields)?;
        let place = match self.board.by_name.get(item) {
            Some(place) => *place,
            None => self.add(item)?,
        };
        if let Some(item) = self.board.items.get_mut(place) {
            item.values.merge(&fields)?;
            item.change.merge(&fields)?;
            if !std::mem::replace(&mut item.is_changed, true) {
                self.board.changed.push(place);
            }
        }
        self.turn(Duration::ZERO)
    }

    /// Waits until the hub's connection has taken everything that was published.
    ///
    /// # Errors
    /// [`Error::Ended`] once the session is over for good, or the system refuses to wait for sockets.
    pub fn flush(&mut self) -> Result<(), Error> {
        while !self.flush_for(Duration::MAX)? {}
        Ok(())
    }

    /// Does what is due. Returns `true` if everything that was published has left this process.
    fn is_sent(&mut self) -> Result<bool, Error> {
        self.turn(Duration::ZERO)?;
        Ok(self.dialer.role().is_ready() && self.board.changed.is_empty() && self.dialer.flush())
    }

    /// As [`Self::flush`], but waits for at most `timeout`. Returns `true` if the connection has taken everything.
    ///
    /// # Errors
    /// Those of [`Self::flush`].
    pub fn flush_for(&mut self, timeout: Duration) -> Result<bool, Error> {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let deadline = monotonic_ns().saturating_add(timeout);
        // After a lost connection all items are sent again as images: a publisher with items waits for the login.
        while !self.board.items.is_empty() && !self.is_sent()? {
            let left = deadline.saturating_sub(monotonic_ns());
            if left == 0 {
                return Ok(false);
            }
            self.turn(LONGEST_WAIT.min(Duration::from_nanos(left)))?;
        }
        Ok(true)
    }

    /// Returns `true` if the hub has accepted the login of this publisher.
    pub fn is_ready(&mut self) -> bool {
        self.dialer.role().is_ready()
    }

    /// Returns the reason of the last disconnect, and clears it; `None` if there was none since the last call.
    pub fn disconnected(&mut self) -> Option<String> {
        self.board.reason.take()
    }

    /// Does what is due, then waits for at most `timeout` until the hub sends something.
    ///
    /// # Errors
    /// [`Error::Ended`] once the session is over for good, or the system refuses to wait for sockets.
    pub fn turn(&mut self, timeout: Duration) -> Result<(), Error> {
        let now = Nanos(monotonic_ns());
        let next = self.dialer.turn(now, &mut self.board);
        if let Some(why) = self.board.ended.clone() {
            return Err(Error::Ended(why));
        }
        let due = next.map_or(LONGEST_WAIT, |next| Duration::from_nanos(next.0.saturating_sub(now.0)));
        self.dialer.wait(due.min(timeout))
    }

    /// Sends everything that was published, for at most `timeout`; then logs out and closes the connection. No item is withdrawn.
    ///
    /// # Errors
    /// [`Error::NotSent`] with the items whose newest values the hub's connection did not take in time, or before the session ended.
    pub fn close(mut self, timeout: Duration) -> Result<(), Error> {
        let flushed = self.flush_for(timeout);
        let why = match flushed {
            Ok(true) => None,
            Ok(false) if self.dialer.role().is_ready() => {
                Some(format!("the hub did not take it within {timeout:?}"))
            }
            Ok(false) => Some(match self.board.reason.take() {
                Some(reason) => format!("no login within {timeout:?}: {reason}"),
                None => format!("no login within {timeout:?}"),
            }),
            Err(error) => Some(error.to_string()),
        };
        let items = why.is_some().then(|| self.board.unsent());
        self.log_out();
        match (why, items) {
            (Some(why), Some(items)) => Err(Error::NotSent { items, why }),
            _ => Ok(()),
        }
    }

    fn log_out(&mut self) {
        let Self { dialer, board, .. } = self;
        board.is_closed = true;
        dialer.act(|provider, out| provider.log_out(out, board));
        dialer.flush();
        dialer.close();
    }

    fn add(&mut self, name: &str) -> Result<usize, Error> {
        let place = self.board.items.len();
        let role = self.dialer.role();
        let handle = role.add(self.service_id, Domain::MARKET_PRICE, name.as_bytes(), place as u64)?;
        let (values, change) = (LastValues::default(), LastValues::default());
        self.board.items.push(Item { handle, values, change, is_changed: false });
        self.board.by_name.insert(name.to_owned(), place);
        Ok(place)
    }
}

impl Drop for Publisher {
    /// Sends what was published, for one second at most.
    fn drop(&mut self) {
        let is_over = self.board.is_closed || self.board.ended.is_some();
        if !is_over && (self.dialer.is_connected() || !self.board.changed.is_empty()) {
            let _ = self.flush_for(DROP_WAIT);
            self.log_out();
        }
    }
}

impl Board {
    /// Returns the names of the items whose newest values are not sent.
    fn unsent(&self) -> Vec<String> {
        let is_changed = |place: &usize| self.items.get(*place).is_some_and(|item| item.is_changed);
        let mut names: Vec<String> = self
            .by_name
            .iter()
            .filter(|(_, place)| is_changed(place))
            .map(|(name, _)| name.clone())
            .collect();
        names.sort_unstable();
        names
    }

    /// Sends the image of an item, or its changed fields.
    fn send_item(
        &mut self,
        provider: &mut NiProvider,
        out: &mut dyn Outbox,
        place: usize,
        is_image: bool,
    ) -> Sent {
        let Some(item) = self.items.get_mut(place) else { return Sent::NotOpen };
        self.fields.resize(LONGEST_IMAGE, 0);
        let values = if is_image { &item.values } else { &item.change };
        let Ok(len) = values.encode(&mut self.fields) else { return Sent::TooLong };
        let publish = if is_image {
            Publish::Refresh(values::image(DataType::FIELD_LIST))
        } else {
            let (domain, kind) = (Domain::MARKET_PRICE, UpdateType::UNSPECIFIED);
            Publish::Update(UpdateHeader::new(domain, 0, kind, DataType::FIELD_LIST))
        };
        let sent = provider.publish(out, item.handle, &publish, self.fields.get(..len).unwrap_or_default());
        let sent = sent.unwrap_or(Sent::TooLong);
        if sent != Sent::Full && (is_image || sent != Sent::NotOpen) {
            (item.change, item.is_changed) = (LastValues::default(), false);
        }
        sent
    }
}

impl Dialing<NiProvider> for Board {
    fn connection(&mut self, _provider: &mut NiProvider, event: ConnectionEvent<'_>) {
        if let ConnectionEvent::Disconnected { server, reason } = event {
            self.reason = Some(format!("{server}: {reason}"));
        }
    }

    fn send(&mut self, provider: &mut NiProvider, out: &mut dyn Outbox) {
        let changed = std::mem::take(&mut self.changed);
        for (at, place) in changed.iter().copied().enumerate() {
            let Some(item) = self.items.get(place).filter(|item| item.is_changed) else { continue };
            // An item that is not published gets an image, with this change, when the role asks for it.
            let is_published = provider.is_published(item.handle);
            match if is_published { self.send_item(provider, out, place, false) } else { Sent::NotOpen } {
                Sent::Full => {
                    self.changed.extend_from_slice(changed.get(at..).unwrap_or_default());
                    return;
                }
                Sent::NotOpen => self.changed.push(place),
                _ => {}
            }
        }
    }
}

impl NiProviderApplication for Board {
    fn event(&mut self, provider: &mut NiProvider, out: &mut dyn Outbox, event: NiProviderEvent<'_>) {
        match event {
            NiProviderEvent::ImageWanted { closure, .. } => {
                let _ = self.send_item(provider, out, closure as usize, true);
            }
            NiProviderEvent::Ended { state } => self.ended = Some(state.to_string()),
            _ => {}
        }
    }
}
