//! A plant in this process, with services that publishers provide and a hub for consumers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tapeline_client::{Consumer, Endpoint, Event, Login, Publisher};
use tapeline_node::access::{AccessConfig, Reload};
use tapeline_node::config::{Door, SourcesConfig};
use tapeline_node::hub::HubConfig;
use tapeline_node::{Config, Events, Plant, Stop};
use tapeline_omm::role::consumer::{Backoff, ConsumerSettings};
use tapeline_omm::{Real, fid};
use tapeline_plant::sources::{Posts, ServiceSettings, Settings, Sharing, Sourcing};
use tapeline_ring::Name;
use tapeline_wire::rssl::ConnectionSettings;

/// The services of each market. Both may have items of the same name.
pub(crate) const SERVICES: [(u16, &str); 2] = [(2, "PRICES"), (3, "OTHERS")];
pub(crate) const PRICES: &str = SERVICES[0].1;

/// Tests that share the process. The one that counts the memory of the process runs alone.
static SHARED: RwLock<()> = RwLock::new(());

/// Waits while a test runs alone. Each test without a market calls this first, and so does [`Market::open`].
pub(crate) fn shared() -> RwLockReadGuard<'static, ()> {
    SHARED.read().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no other test of this process runs.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    SHARED.write().unwrap_or_else(PoisonError::into_inner)
}

/// A plant that runs until it is dropped.
pub(crate) struct Market {
    /// Where consumers connect.
    pub(crate) hub: String,
    /// Where publishers connect.
    pub(crate) door: String,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
    /// Given back once the plant has ended.
    shared: Option<RwLockReadGuard<'static, ()>>,
}

impl Market {
    /// Opens a market whose hub is changed by `change` first.
    pub(crate) fn open(change: impl FnOnce(&mut HubConfig)) -> Self {
        let shared = shared();
        let mut market = Self::open_alone(change);
        market.shared = Some(shared);
        market
    }

    /// Does the same as [`Self::open`] for a caller that is [`alone`].
    pub(crate) fn open_alone(change: impl FnOnce(&mut HubConfig)) -> Self {
        static MARKETS: AtomicU32 = AtomicU32::new(0);
        let number = MARKETS.fetch_add(1, Ordering::Relaxed);
        let ring = Name::new(&format!("pains-{}-{number}", std::process::id())).unwrap();
        let mut config = Config::new("PLANT", ring);
        // More than the hundred thousand that are subscribed at once.
        config.max_items = 120_000;
        let mut hub = HubConfig::new("127.0.0.1:0".parse().unwrap());
        hub.settings.max_items = config.max_items;
        hub.settings.session.most_streams = 120_000;
        change(&mut hub);
        config.sources = Some(sources(&mut hub, config.max_items));
        config.hub = Some(hub);
        let (stop, (said, ready)) = (Stop::default(), channel());
        let asked = stop.clone();
        // The plant runs on the thread that opens it.
        let thread = thread::spawn(move || {
            let plant = Plant::open(config, &asked, &Events::new(|_| {})).unwrap();
            said.send((plant.ready().hub.unwrap(), plant.ready().publishers.unwrap())).unwrap();
            let ended = plant.run(false);
            assert!(ended.refused.is_none() && ended.failed.is_none(), "{ended:?}");
        });
        let (hub, door) = ready.recv().expect("the plant opens");
        let (hub, door) = (hub.to_string(), door.to_string());
        Self { hub, door, stop, thread: Some(thread), shared: None }
    }

    /// A publisher of a service.
    pub(crate) fn publisher(&self, (id, name): (u16, &str)) -> Publisher {
        Publisher::connect(&self.door, &Login::user("publisher"), id, name).unwrap()
    }

    /// A consumer of this market's hub.
    pub(crate) fn consumer(&self, login: &Login) -> Consumer {
        consumer(&self.hub, login)
    }
}

impl Drop for Market {
    fn drop(&mut self) {
        self.stop.request();
        let ended = self.thread.take().map(JoinHandle::join);
        drop(self.shared.take());
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))), "the plant failed");
    }
}

fn sources(hub: &mut HubConfig, max_items: usize) -> SourcesConfig {
    let publishers = Sourcing::Publishers { users: None, sharing: Sharing::Merge };
    let service = |(id, name): (u16, &str), channel| ServiceSettings {
        id,
        name: name.to_owned(),
        channel,
        sources: publishers.clone(),
        posts: Posts::Refuse,
    };
    let services: Vec<ServiceSettings> =
        SERVICES.into_iter().zip(1..).map(|(named, channel)| service(named, channel)).collect();
    let for_client = |service: &ServiceSettings| tapeline_hub::Service {
        on_demand: false,
        ..tapeline_hub::Service::new(&service.name, service.id)
    };
    let for_clients: Vec<_> = services.iter().map(for_client).collect();
    hub.settings.services.clone_from(&for_clients);
    SourcesConfig {
        settings: Settings { services, max_items, ..Settings::default() },
        door: Some(Door {
            address: "127.0.0.1:0".parse().unwrap(),
            transport: Arc::new(ConnectionSettings::default()),
            max_connections: 10,
        }),
        hosts: Vec::new(),
        for_clients,
    }
}

/// A consumer that reconnects at once.
pub(crate) fn consumer(server: &str, login: &Login) -> Consumer {
    let at_once = Backoff { first: Duration::from_millis(1), most: Duration::from_millis(10) };
    let settings = ConsumerSettings { reconnect: at_once, ..ConsumerSettings::default() };
    Consumer::new(vec![Endpoint::plain(server)], login, settings).unwrap()
}

/// Publishes the bid of an item.
pub(crate) fn publish(publisher: &mut Publisher, item: &str, bid: i64) {
    publisher.publish(item, &[(fid::BID, Real::decimal(bid, 0).into())]).unwrap();
}

/// Takes events until there is this bid.
pub(crate) fn wait_for_bid(consumer: &mut Consumer, bid: i64) {
    loop {
        if let Event::Message(message) = consumer.next().unwrap()
            && message.real(fid::BID) == Some(Real::decimal(bid, 0))
        {
            return;
        }
    }
}

/// Users and rules that an operator changes while the hub runs.
#[derive(Debug, Default)]
pub(crate) struct Rules(Mutex<(Option<AccessConfig>, bool)>);

impl Rules {
    pub(crate) fn change(&self, access: tapeline_hub::Access) {
        *self.lock() = (Some(AccessConfig { access: Arc::new(access), ..AccessConfig::default() }), true);
    }

    fn lock(&self) -> MutexGuard<'_, (Option<AccessConfig>, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reload for Rules {
    fn begin(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn is_requested(&self) -> bool {
        std::mem::take(&mut self.lock().1)
    }

    fn read(&self) -> Option<AccessConfig> {
        self.lock().0.clone()
    }
}
