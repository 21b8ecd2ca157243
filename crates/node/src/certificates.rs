//! Warns of a server's certificate that ends soon: from then on clients refuse to connect.

use tapeline_measure::Nanos;
use tapeline_wire::tls::Tls;

use crate::config::Config;
use crate::events::{Event, Events, Severity, Utc};
use crate::hub::HubConfig;
use crate::stat::snapshot::CertificateSnapshot;

const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;
/// A certificate that ends within a week ends soon.
const SOON_NS: i64 = 7 * DAY_NS;

/// A server's certificate, and what was said of it.
#[derive(Debug)]
pub(crate) struct CertificateWatch {
    /// The table of the configuration that names it.
    table: &'static str,
    tls: Tls,
    /// The end that was warned of last, whether it had passed, and when the warning was given.
    told: Option<(Nanos, bool, Nanos)>,
}

impl CertificateWatch {
    /// The certificates of a plant.
    pub(crate) fn all(config: &Config) -> [Option<Self>; 3] {
        let of_clients = config.hub.as_ref().and_then(Self::of_hub);
        [of_clients, Self::of_publishers(config), Self::of_bridge(config)]
    }

    /// The certificate for a hub's clients.
    pub(crate) fn of_hub(config: &HubConfig) -> Option<Self> {
        Some(Self { table: "hub", tls: config.transport.tls.clone()?, told: None })
    }

    /// The certificate for publishers.
    pub(crate) fn of_publishers(config: &Config) -> Option<Self> {
        let door = config.sources.as_ref()?.door.as_ref()?;
        Some(Self { table: "publishers", tls: door.transport.tls.clone()?, told: None })
    }

    /// The certificate for plants below.
    pub(crate) fn of_bridge(config: &Config) -> Option<Self> {
        Some(Self { table: "bridge", tls: config.bridge.as_ref()?.tls.clone()?, told: None })
    }

    /// When the certificate ends; `None` if that cannot be read.
    pub(crate) fn snapshot(&self) -> Option<CertificateSnapshot> {
        Some(CertificateSnapshot { of: self.table.to_owned(), ends_ns: self.tls.ends()?.0 })
    }

    /// Warns of a certificate that ends within a week, or has ended: at once, then once a day, and when it has ended.
    pub(crate) fn look(&mut self, now: Nanos, events: &Events) {
        let Some(ends) = self.tls.ends() else { return };
        let left = ends.since(now);
        if left > SOON_NS {
            self.told = None;
            return;
        }
        let is_over = left < 0;
        let is_told = |(of, was_over, at): (Nanos, bool, Nanos)| {
            of == ends && was_over == is_over && (0..DAY_NS).contains(&now.since(at))
        };
        if self.told.is_some_and(is_told) {
            return;
        }
        self.told = Some((ends, is_over, now));
        let text = self.warning(ends, now);
        let hint =
            "put the renewed files where cert and key say, and reload the plant: SIGHUP, or systemctl reload";
        let event = Event { hint: Some(hint.to_owned()), ..Event::new(Severity::Warning, text) };
        events.report(&event.with("certificate", self.table).with("expires", Utc(ends).to_string()));
    }

    fn warning(&self, ends: Nanos, now: Nanos) -> String {
        let (table, at, left) = (self.table, Utc(ends), ends.since(now));
        match left {
            left if left < 0 => {
                format!("the certificate of [{table}] expired at {at}: clients that check it cannot connect")
            }
            left if left < 2 * DAY_NS => {
                format!("the certificate of [{table}] expires in {} hours, at {at}", left / HOUR_NS)
            }
            left => format!("the certificate of [{table}] expires in {} days, at {at}", left / DAY_NS),
        }
    }
}

/// What there is to say of the certificates of a configuration that end within a week, or have ended.
#[must_use]
pub fn warnings(config: &Config, now: Nanos) -> Vec<String> {
    let of_hub = config.hub.as_ref().and_then(CertificateWatch::of_hub);
    let others = [CertificateWatch::of_publishers(config), CertificateWatch::of_bridge(config)];
    let all = of_hub.into_iter().chain(others.into_iter().flatten());
    let ending = all.filter_map(|watch| {
        let ends = watch.tls.ends()?;
        (ends.since(now) <= SOON_NS).then(|| watch.warning(ends, now))
    });
    ending.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tapeline_wire::tls::TlsVersions;

    use super::*;

    #[test]
    fn a_week_before_its_end_a_certificate_is_warned_of_once_a_day_and_no_more_when_renewed() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2031, 5, 4);
        let pem = params.self_signed(&key).unwrap().pem();
        let tls = Tls::server(pem.as_bytes(), key.serialize_pem().as_bytes(), TlsVersions::Both).unwrap();
        let ends = tls.ends().unwrap();
        assert_eq!(Utc(ends).to_string(), "2031-05-04T00:00:00.000000Z");
        let mut watch = CertificateWatch { table: "hub", tls, told: None };
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let to = Arc::clone(&lines);
        let events = Events::new(move |event| to.lock().unwrap().push(event.text.clone()));
        let mut look = |before_end_hours: i64| {
            watch.look(Nanos(ends.0.saturating_add_signed(-before_end_hours * HOUR_NS)), &events);
            std::mem::take(&mut *lines.lock().unwrap()).pop().unwrap_or_default()
        };
        assert_eq!(look(24 * 7 + 1), "");
        assert!(look(24 * 7 - 1).contains("the certificate of [hub] expires in 6 days, at "));
        assert_eq!(look(24 * 6), "");
        assert!(look(24 * 6 - 1).contains("expires in 5 days"));
        assert!(look(24).contains("expires in 24 hours"));
        assert!(look(-1).contains("the certificate of [hub] expired at "));
        assert_eq!(look(-2), "");
        assert!(look(-26).contains("expired at "));
    }
}
