//! The interactive provider against consumers' captures.

use std::collections::HashMap;
use std::sync::Arc;

use tapeline_nanos::Nanos;
use tapeline_omm::dictionary::Download;
use tapeline_omm::domain::post::Nak;
use tapeline_omm::domain::{DictionaryKind, Directory, LoginRefresh, RoundTrip, directory};
use tapeline_omm::role::provider::{Provider, ProviderEvent, ProviderSettings, Receipt, StreamHandle};
use tapeline_omm::role::{Outbox, Queue, Sent};
use tapeline_omm::rwf::{
    Domain, Flags, Header, MessageClass, MessageView, RefreshHeader, Series, StreamState, flags,
};
use tapeline_omm::{Dictionary, Refused};

use super::capture::{Recorded, captures};
use super::compare::same;
use super::shared_data::shared_text;

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    fed: usize,
    compared: usize,
    /// Messages of dictionaries, which are compared entry by entry.
    dictionary_entries: usize,
    round_trips: usize,
    /// What no provider would send: on streams that nobody opened, a class that there is not, a close.
    not_ours: usize,
    /// Of which the file has the beginning only, which is compared.
    cut: usize,
    /// Sent by the recorded server when the consumer had logged out already.
    late: usize,
}

/// One connection.
struct Play<'d> {
    provider: Provider,
    out: Queue,
    now: Nanos,
    streams: HashMap<i32, StreamHandle>,
    receipts: Vec<(i32, Option<Receipt>)>,
    trips: usize,
    /// Entries that dictionary refreshes brought: ours, and the recorded ones.
    entries: HashMap<i32, [Vec<String>; 2]>,
    is_over: bool,
    dictionary: &'d Arc<Dictionary>,
}

impl<'d> Play<'d> {
    fn new(dictionary: &'d Arc<Dictionary>) -> Self {
        let settings = ProviderSettings {
            refusal_pause_ms: 0,
            round_trip_interval_ms: 0,
            dictionary_part_bytes: 2048,
            ..ProviderSettings::default()
        };
        Self {
            provider: Provider::new(settings, Nanos(0)),
            out: Queue::new(1 << 24),
            now: Nanos(0),
            streams: HashMap::new(),
            receipts: Vec::new(),
            trips: 0,
            entries: HashMap::new(),
            is_over: false,
            dictionary,
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        let (streams, receipts, trips) = (&mut self.streams, &mut self.receipts, &mut self.trips);
        let mut application =
            |provider: &mut Provider, _: &mut dyn Outbox, event: ProviderEvent<'_>| match event {
                ProviderEvent::Directory { stream, .. }
                | ProviderEvent::Dictionary { stream, .. }
                | ProviderEvent::Open { stream, .. } => {
                    streams.insert(provider.stream_id(stream).unwrap(), stream);
                }
                ProviderEvent::Post { header, receipt, .. } => receipts.push((header.stream_id, receipt)),
                ProviderEvent::RoundTrip { ns } => {
                    assert_eq!(ns, 5_000);
                    *trips += 1;
                }
                ProviderEvent::Malformed(fault) => panic!("{fault}"),
                _ => {}
            };
        self.now = Nanos(self.now.0 + 5_000);
        self.is_over |= self.provider.message(self.now, bytes, &mut self.out, &mut application).is_err();
    }

    /// Does what the recorded message did. `false`: no provider does that.
    fn play(&mut self, place: &str, message: &MessageView<'_>) -> bool {
        let id = message.stream_id();
        let (provider, out) = (&mut self.provider, &mut self.out);
        let stream = self.streams.get(&id).copied();
        let sent = match message.header().unwrap() {
            Header::Refresh(refresh) if refresh.domain == Domain::LOGIN => {
                provider.refresh_login(self.now, out, &LoginRefresh::read(&refresh).unwrap()).unwrap()
            }
            Header::Status(status) if status.domain == Domain::LOGIN => {
                provider.login_status(out, status.state.unwrap())
            }
            Header::Refresh(_) if message.domain() == Domain::SOURCE => {
                let mut services = Directory::new();
                for service in directory::services(message.payload()).unwrap() {
                    services.apply(&service.unwrap());
                }
                provider.directory(out, stream.unwrap(), &services).unwrap()
            }
            Header::Update(_) if message.domain() == Domain::SOURCE => {
                let changes: Result<Vec<_>, _> = directory::services(message.payload()).unwrap().collect();
                provider.directory_changed(out, &changes.unwrap()).unwrap()
            }
            Header::Refresh(refresh) => {
                let refresh = of_application(&refresh, message);
                let mut write = copy(message.payload());
                let Some(stream) = stream else { return false };
                provider.refresh(out, stream, &refresh, &mut write).unwrap()
            }
            Header::Update(update) => {
                let Some(stream) = stream else { return false };
                // As if encoded for whomever.
                let mut bytes = vec![0; 1 << 20];
                let update = tapeline_omm::rwf::UpdateHeader { stream_id: 0, ..update };
                let len = update.encode_with(&mut bytes, copy(message.payload())).unwrap();
                provider.update(out, stream, &bytes[..len])
            }
            Header::Status(status) => {
                let status = tapeline_omm::rwf::StatusHeader { stream_id: 0, ..status };
                let Some(stream) = stream else { return false };
                provider.status(self.now, out, stream, &status).unwrap()
            }
            Header::Ack(ack) => {
                let at = self.receipts.iter().position(|(stream, _)| *stream == id).unwrap();
                let (_, receipt) = self.receipts.remove(at);
                let nak = ack.nak_code.map(|code| Nak { code, text: ack.text.unwrap_or_default() });
                provider.ack(out, receipt.unwrap(), nak)
            }
            Header::Generic(generic) => match RoundTrip::read(message).unwrap() {
                Some(trip) => {
                    self.now = Nanos(trip.ticks.unwrap());
                    provider.round_trip(self.now, out)
                }
                None => {
                    let mut write = copy(message.payload());
                    provider.generic(out, stream, &generic, &mut write).unwrap()
                }
            },
            _ => return false,
        };
        assert_eq!(sent, Sent::Queued, "{place}");
        true
    }

    /// The recorded part of a dictionary, which ours is not cut like.
    fn dictionary_part(&mut self, message: &MessageView<'_>) {
        let id = message.stream_id();
        let first = !self.entries.contains_key(&id);
        let entries = self.entries.entry(id).or_default();
        collect(&mut entries[1], message, self.dictionary);
        if !first {
            return;
        }
        assert_eq!(self.provider.dictionary(&mut self.out, self.streams[&id], self.dictionary), Sent::Queued);
        let mut parts = Vec::new();
        while let Some(part) = self.out.pop() {
            let part = MessageView::parse(&part).unwrap();
            let Header::Refresh(header) = part.header().unwrap() else { panic!("not a refresh") };
            parts.push((header.flags.has(flags::refresh::CLEAR_CACHE), part.is_refresh_complete()));
            assert_eq!((header.stream_id, header.state.stream), (id, StreamState::OPEN));
            collect(&mut entries[0], &part, self.dictionary);
        }
        let count = parts.len();
        let expected: Vec<_> = (0..count).map(|at| (at == 0, at + 1 == count)).collect();
        assert_eq!(parts, expected);
    }
}

fn collect(entries: &mut Vec<String>, message: &MessageView<'_>, dictionary: &Dictionary) {
    let series = Series::parse(message.payload()).unwrap();
    let sets = series.sets().unwrap();
    for entry in series {
        entries.push(series.open(entry.unwrap(), &sets).unwrap().outline(dictionary).to_string());
    }
}

/// What an application says of a refresh: nothing of what the role knows.
fn of_application<'a>(refresh: &RefreshHeader<'a>, message: &MessageView<'_>) -> RefreshHeader<'a> {
    use flags::refresh as flag;
    let own = flag::SOLICITED.0 | flag::PRIVATE_STREAM.0;
    let mut state = refresh.state;
    if state.stream == StreamState::NON_STREAMING && message.is_refresh_complete() {
        state.stream = StreamState::OPEN;
    }
    let flags = Flags(refresh.flags.0 & !own);
    RefreshHeader { domain: Domain(0), stream_id: 0, flags, state, key: None, ..*refresh }
}

fn copy(payload: &[u8]) -> impl FnMut(&mut [u8]) -> Result<usize, Refused> + use<'_> {
    |room| {
        room.get_mut(..payload.len()).ok_or(Refused::Full)?.copy_from_slice(payload);
        Ok(payload.len())
    }
}

/// The dictionary that the recorded server sent, if it did.
fn downloaded(recorded: &[Recorded]) -> Option<Arc<Dictionary>> {
    let (mut download, mut parts) = (Download::new(), 0);
    for kind in [DictionaryKind::Fields, DictionaryKind::Enumerations] {
        for record in recorded {
            let Ok(message) = MessageView::parse(&record.bytes) else { continue };
            let name = message.key().ok().flatten().and_then(|key| key.name);
            if message.class() != MessageClass::REFRESH || name.and_then(DictionaryKind::named) != Some(kind)
            {
                continue;
            }
            parts += 1;
            match kind {
                DictionaryKind::Fields => download.fields(message.payload()).unwrap(),
                DictionaryKind::Enumerations => download.enumerations(message.payload()).unwrap(),
            }
        }
    }
    (parts > 0).then(|| Arc::new(download.finish()))
}

fn replay(recorded: &[Recorded], dictionary: &Arc<Dictionary>, tally: &mut Tally) {
    let dictionary = &downloaded(recorded).unwrap_or_else(|| Arc::clone(dictionary));
    let mut connections: HashMap<u64, Play<'_>> = HashMap::new();
    for record in recorded {
        let play = connections.entry(record.connection).or_insert_with(|| Play::new(dictionary));
        let bytes = &record.bytes;
        tally.cut += usize::from(record.is_cut);
        if record.is_from_client {
            tally.fed += 1;
            play.feed(bytes);
            continue;
        }
        if play.is_over {
            tally.late += 1;
            continue;
        }
        let Ok(message) = MessageView::parse(bytes) else {
            tally.not_ours += 1;
            continue;
        };
        if message.domain() == Domain::DICTIONARY && message.class() == MessageClass::REFRESH {
            play.dictionary_part(&message);
            continue;
        }
        // The role's own answers are there already.
        if play.out.is_empty() && !play.play(&record.place, &message) {
            tally.not_ours += 1;
            continue;
        }
        let ours = play.out.pop().unwrap_or_else(|| panic!("{}: nothing was sent", record.place));
        same(&record.place, &ours, bytes, dictionary);
        tally.compared += 1;
    }
    for play in connections.into_values() {
        assert!(play.out.is_empty());
        tally.round_trips += play.trips;
        for [mut ours, mut theirs] in play.entries.into_values() {
            tally.dictionary_entries += ours.len();
            ours.sort();
            theirs.sort();
            assert_eq!(ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs), None);
            assert_eq!(ours.len(), theirs.len());
        }
    }
}

fn replay_all(prefix: &str, expected: &Tally) {
    let Some(captures) = captures(prefix) else { return };
    let fields = shared_text("protocol/dictionary/RDMFieldDictionary").unwrap();
    let enumerations = shared_text("protocol/dictionary/enumtype.def").unwrap();
    let dictionary = Arc::new(Dictionary::parse(&fields).unwrap().with_enumerations(&enumerations).unwrap());
    let mut tally = Tally::default();
    for (_, recorded) in &captures {
        replay(recorded, &dictionary, &mut tally);
    }
    assert_eq!(tally, *expected);
}

#[test]
fn between_real_ends() {
    let expected = Tally {
        fed: 145,
        compared: 389,
        dictionary_entries: 448,
        round_trips: 4,
        cut: 5,
        late: 2,
        ..Tally::default()
    };
    replay_all("rssl-", &expected);
}

#[test]
fn made_by_hand_for_a_real_consumer() {
    replay_all("server-", &Tally { fed: 59, compared: 324, not_ours: 3, ..Tally::default() });
}

#[test]
fn a_provider_at_the_wrong_door() {
    replay_all("ni-05", &Tally { fed: 15, compared: 14, ..Tally::default() });
}
