//! What the administrative domains say, read as values and written again: it means the same.

use tapeline_omm::Dictionary;
use tapeline_omm::domain::{
    DictionaryRequest, LoginRefresh, LoginRequest, RequestPayload, RoundTrip, ServiceEntry, directory,
};
use tapeline_omm::rwf::{AckHeader, Domain, Header, MessageView, flags};

use super::capture::captures;
use super::compare::same;

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    login_requests: usize,
    login_refreshes: usize,
    directories: usize,
    dictionary_requests: usize,
    payloads: usize,
    round_trips: usize,
    acks: usize,
}

/// The message written again from its values, if it is of these domains.
fn again(message: &MessageView<'_>, tally: &mut Tally) -> Option<Vec<u8>> {
    let mut out = vec![0; 1 << 16];
    let len = match message.header().unwrap() {
        Header::Request(request) if request.domain == Domain::LOGIN => {
            tally.login_requests += 1;
            LoginRequest::read(&request).unwrap().encode(&mut out)
        }
        Header::Refresh(refresh) if refresh.domain == Domain::LOGIN => {
            tally.login_refreshes += 1;
            LoginRefresh::read(&refresh).unwrap().encode(&mut out)
        }
        Header::Request(request) if request.domain == Domain::DICTIONARY => {
            tally.dictionary_requests += 1;
            DictionaryRequest::read(&request).encode(&mut out)
        }
        header @ (Header::Refresh(_) | Header::Update(_)) if header.domain() == Domain::SOURCE => {
            tally.directories += 1;
            let services: Result<Vec<ServiceEntry>, _> =
                directory::services(message.payload()).unwrap().collect();
            header.encode_with(&mut out, |room| {
                directory::encode_services(&services.unwrap(), directory::filter::ALL, room)
            })
        }
        Header::Request(mut request) if !message.payload().is_empty() => {
            tally.payloads += 1;
            let payload = RequestPayload::read(message).unwrap();
            let given = request.flags;
            payload.mark(&mut request);
            assert_eq!(request.flags, given);
            assert_eq!(payload.view.is_some(), given.has(flags::request::HAS_VIEW));
            request.encode_with(&mut out, |room| payload.encode(room))
        }
        Header::Ack(ack) => {
            tally.acks += 1;
            AckHeader {
                flags: ack.flags,
                nak_code: ack.nak_code,
                text: ack.text,
                sequence: ack.sequence,
                ..AckHeader::new(ack.domain, ack.stream_id, ack.ack_id)
            }
            .encode(&mut out)
        }
        Header::Generic(_) => {
            let trip = RoundTrip::read(message).unwrap()?;
            tally.round_trips += 1;
            trip.encode(message.stream_id(), &mut out)
        }
        _ => return None,
    };
    out.truncate(len.unwrap());
    Some(out)
}

#[test]
fn administrative_messages_come_back() {
    let mut tally = Tally::default();
    for prefix in ["rssl-", "ni-", "server-", "ws-rwf-"] {
        let Some(captures) = captures(prefix) else { return };
        for record in captures.iter().flat_map(|(_, recorded)| recorded).filter(|record| !record.is_cut) {
            let Ok(message) = MessageView::parse(&record.bytes) else { continue };
            if let Some(bytes) = again(&message, &mut tally) {
                same(&record.place, &bytes, &record.bytes, Dictionary::builtin());
            }
        }
    }
    let expected = Tally {
        login_requests: 50,
        login_refreshes: 50,
        directories: 70,
        dictionary_requests: 6,
        payloads: 1,
        round_trips: 8,
        acks: 6,
    };
    assert_eq!(tally, expected);
}
