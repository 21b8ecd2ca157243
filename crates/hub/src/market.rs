//! What all sessions share: the service, its items and their images.

use tapeline_omm::Qos;
use tapeline_omm::domain::directory::Info;
use tapeline_omm::domain::{Directory, ServiceEntry};
use tapeline_omm::role::provider::{Provider, StreamHandle};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{Domain, RefreshHeader, flags};

use crate::access::Gate;
use crate::desk::copy;
use crate::feeds::{self, Feeds};
use crate::images::Images;
use crate::interest::{Interest, Standing};
use crate::note::SessionCounters;
use crate::views::Views;
use crate::{SessionId, Settings};

/// The domains that are served. Orders are not: the cache does not fold maps, so that there would be no image of them.
pub(crate) const SERVED: &[Domain] = &[Domain::MARKET_PRICE];

/// The part of the hub that no session owns.
#[derive(Debug)]
pub(crate) struct Market {
    pub(crate) settings: Settings,
    pub(crate) services: Directory,
    pub(crate) interest: Interest,
    pub(crate) images: Images,
    pub(crate) views: Views,
    pub(crate) feeds: Feeds,
    pub(crate) gate: Gate,
    /// The plant has said something, and has not ended.
    pub(crate) is_up: bool,
}

impl Market {
    /// With a service that is down.
    pub(crate) fn new(settings: Settings) -> Self {
        let dictionaries = || vec!["RWFFld".to_owned(), "RWFEnum".to_owned()];
        let info = Info {
            name: Some(settings.service.clone()),
            vendor: Some("Tapeline".to_owned()),
            is_source: Some(0),
            capabilities: Some([&[Domain::DICTIONARY], SERVED].concat()),
            dictionaries_provided: Some(dictionaries()),
            dictionaries_used: Some(dictionaries()),
            qos: Some(vec![Qos::REALTIME_TICK]),
            ..Info::default()
        };
        let mut services = Directory::new();
        let down = feeds::service_state(false, NOTHING_YET);
        services.apply(&ServiceEntry::new(settings.service_id, info, down));
        Self {
            services,
            interest: Interest::new(settings.max_items),
            images: Images::new(&settings),
            views: Views::new(settings.max_views),
            feeds: Feeds::default(),
            gate: Gate::new(settings.access.clone(), settings.max_checks),
            is_up: false,
            settings,
        }
    }

    /// Sends a stream the image of its item, as of the last tick. A snapshot's stream is done with that.
    pub(crate) fn send_image(
        &mut self,
        session: SessionId,
        stream: StreamHandle,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        counters: &mut SessionCounters,
    ) -> Sent {
        let Some((item, open)) = self.interest.of_stream(session, stream) else { return Sent::NotOpen };
        let fids = self.views.fids(open.view);
        let image = if item.has_image { self.images.give(item, fids) } else { None };
        let Some(image) = image else {
            // Its parts are coming, or it is not there yet.
            return self.stand(session, stream, Standing::Waits, Sent::NotOpen);
        };
        let group = feeds::group(item.channel);
        let state = image.state(self.feeds.state(item.channel));
        let header = RefreshHeader {
            flags: flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE,
            group_id: &group,
            qos: Some(Qos::REALTIME_TICK),
            ..RefreshHeader::new(item.domain, 0, state, image.container)
        };
        // It can be refused only for being too long, which is no reason to end anything.
        let sent = provider.refresh(out, stream, &header, &mut |room| copy(image.payload, room));
        match sent.unwrap_or(Sent::TooLong) {
            Sent::Queued => {
                counters.refreshes += 1;
                if provider.stream_id(stream).is_none() {
                    self.close(session, stream);
                    return Sent::Queued;
                }
                self.stand(session, stream, Standing::Current, Sent::Queued)
            }
            sent => sent,
        }
    }

    fn stand(&mut self, session: SessionId, stream: StreamHandle, standing: Standing, sent: Sent) -> Sent {
        if let Some(open) = self.interest.stream_mut(session, stream) {
            (open.standing, open.missed) = (standing, false);
        }
        sent
    }

    /// A stream is open no longer.
    pub(crate) fn close(&mut self, session: SessionId, stream: StreamHandle) {
        if let Some(closed) = self.interest.close(session, stream) {
            self.views.release(closed.view);
        }
    }
}

/// Why the service is down before the first tick.
const NOTHING_YET: &str = "The plant has not published anything yet";
