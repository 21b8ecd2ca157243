//! The acceptor against captures of a real non-interactive provider.

use std::collections::BTreeMap;

use tapeline_nanos::Nanos;
use tapeline_omm::Dictionary;
use tapeline_omm::domain::LoginRefresh;
use tapeline_omm::domain::login::ROLE_PROVIDER;
use tapeline_omm::role::acceptor::{Acceptor, AcceptorEvent, AcceptorSettings, PublishedItem};
use tapeline_omm::role::{Outbox, Over, Queue, Sent};
use tapeline_omm::rwf::{Domain, Header, MessageView, StreamState};

use super::capture::{Recorded, captures};
use super::compare::same;

/// What the application heard.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    logins: usize,
    services: Vec<String>,
    /// By service and name: images, updates, bytes of their payloads.
    items: BTreeMap<(String, String), (usize, usize, usize)>,
    withdrawn: usize,
}

fn note(
    heard: &mut Heard,
    acceptor: &Acceptor,
    item: &PublishedItem<'_>,
    message: &MessageView<'_>,
    is_image: bool,
) {
    assert!([Domain::MARKET_PRICE, Domain::MARKET_BY_ORDER].contains(&item.domain));
    let service = acceptor.directory().service(item.service_id.unwrap()).unwrap().name().unwrap().to_owned();
    let counts = heard.items.entry((service, String::from_utf8_lossy(item.name).into_owned())).or_default();
    counts.0 += usize::from(is_image);
    counts.1 += usize::from(!is_image);
    counts.2 += message.payload().len();
}

/// Feeds what the provider sent, answers as the recorded acceptor did; what was heard, and how it ended.
fn replay(recorded: &[Recorded]) -> (Heard, Option<Over>, usize) {
    let (mut acceptor, mut out) = (Acceptor::new(AcceptorSettings::default(), Nanos(0)), Queue::new(1 << 20));
    let (mut heard, mut over, mut compared) = (Heard::default(), None, 0);
    for record in recorded {
        if record.is_from_client {
            let mut application =
                |acceptor: &mut Acceptor, _: &mut dyn Outbox, event: AcceptorEvent<'_>| match event {
                    AcceptorEvent::Login { request, is_reissue } => {
                        assert_eq!((request.attributes.role, is_reissue), (Some(ROLE_PROVIDER), false));
                        heard.logins += 1;
                    }
                    AcceptorEvent::Service(service) => {
                        heard.services.push(service.name().unwrap().to_owned());
                    }
                    AcceptorEvent::Image { item, message, .. } => {
                        note(&mut heard, acceptor, &item, &message, true);
                    }
                    AcceptorEvent::Update { item, message, .. } => {
                        note(&mut heard, acceptor, &item, &message, false);
                    }
                    AcceptorEvent::Status { header, .. } => {
                        assert_eq!(header.state.unwrap().stream, StreamState::CLOSED);
                        heard.withdrawn += 1;
                    }
                    other => panic!("{}: {other:?}", record.place),
                };
            over = acceptor.message(Nanos(0), &record.bytes, &mut out, &mut application).err();
            continue;
        }
        let message = MessageView::parse(&record.bytes).unwrap();
        let sent = match message.header().unwrap() {
            Header::Refresh(refresh) => {
                acceptor.refresh_login(&mut out, &LoginRefresh::read(&refresh).unwrap()).unwrap()
            }
            Header::Status(status) => acceptor.login_status(&mut out, status.state.unwrap()),
            other => panic!("{}: {other:?}", record.place),
        };
        assert_eq!(sent, Sent::Queued, "{}", record.place);
        same(&record.place, &out.pop().unwrap(), &record.bytes, Dictionary::builtin());
        compared += 1;
        over = acceptor
            .tick(Nanos(0), &mut out, &mut |_: &mut _, _: &mut dyn Outbox, _: AcceptorEvent<'_>| ())
            .err();
    }
    assert!(out.is_empty());
    assert_eq!(acceptor.items().len(), heard.items.len() - heard.withdrawn);
    assert_eq!(acceptor.counters().ignored + acceptor.counters().malformed, 0);
    (heard, over, compared)
}

#[test]
fn a_real_provider_publishes() {
    let Some(captures) = captures("ni-0") else { return };
    let mut all = Vec::new();
    for (name, recorded) in captures.iter().filter(|(name, _)| !name.starts_with("ni-05")) {
        let (heard, over, compared) = replay(recorded);
        let counts: Vec<_> = heard
            .items
            .iter()
            .map(|((service, item), counts)| (service.as_str(), item.as_str(), *counts))
            .collect();
        println!("{name}: {counts:?}");
        let images: usize = counts.iter().map(|(_, _, counts)| counts.0).sum();
        let updates: usize = counts.iter().map(|(_, _, counts)| counts.1).sum();
        all.push((compared, heard.services.len(), images, updates, heard.withdrawn, over));
    }
    let out = Some(Over::LoggedOut);
    let published = [(1, 1, 2, 8, 2, out), (1, 1, 1, 3, 0, out), (1, 1, 1, 1, 0, out)];
    assert_eq!(all[..3], published);
    assert_eq!(all[3..], [(1, 0, 0, 0, 0, Some(Over::Refused))]);
}
