//! Hostile clients, which send arbitrary messages and bytes.

use tapeline_omm::domain::LoginRequest;
use tapeline_omm::role::Outbox;
use tapeline_omm::rwf::{CloseHeader, Domain, Flags, Key, RequestHeader, flags};

use crate::chance::Chance;
use crate::end::{Came, End, Speech};
use crate::json;
use crate::network::{LinkId, Network, Side};
use crate::plan::{SERVICE, domain_of, of_label, speech};

/// A client that sends arbitrary messages, on one connection after another.
#[derive(Debug)]
pub(crate) struct Hostile {
    pub(crate) end: Option<End>,
    chance: Chance,
    reads: bool,
    /// It also sends bytes that are not frames.
    is_wild: bool,
    speech: Speech,
}

impl Hostile {
    pub(crate) fn new(mut chance: Chance) -> Self {
        let (reads, is_wild) = (chance.one_in(2), chance.one_in(2));
        Self { end: None, reads, is_wild, speech: speech(&mut chance), chance }
    }

    pub(crate) fn connected(&mut self, link: LinkId, now: u64) {
        self.end = Some(End::client(link, self.speech, now));
    }

    /// Takes a turn. Returns whether it wants a connection.
    pub(crate) fn turn(&mut self, now: u64, network: &mut Network, names: &[String]) -> bool {
        let Some(end) = &mut self.end else { return self.chance.one_in(20) };
        let most = if self.reads || !end.is_open() { usize::MAX } else { 0 };
        let mut is_over = end.receive(now, network, most).iter().any(|came| matches!(came, Came::Over(_)));
        if end.is_open() {
            for _ in 0..self.chance.below(4) {
                let message = message(&mut self.chance, names);
                if self.speech.is_json() {
                    end.say_text(now, network, text(&message, &mut self.chance));
                    continue;
                }
                let mut out = end.out(now, network);
                if let Some(room) = out.claim(message.len()) {
                    room.copy_from_slice(&message);
                    out.commit(message.len());
                }
            }
        }
        if self.is_wild && self.chance.one_in(40) {
            let junk = (0..self.chance.within(1, 80)).map(|_| self.chance.word() as u8).collect();
            end.say_raw(now, network, junk);
        }
        end.flush(now, network);
        is_over |= end.turn(now).is_some() || self.chance.one_in(400);
        if is_over {
            network.close(end.link, Side::Client);
            self.end = None;
        }
        false
    }
}

/// A valid message, possibly corrupted.
fn message(chance: &mut Chance, names: &[String]) -> Vec<u8> {
    let mut bytes = vec![0; 1_024];
    let id = chance.within(1, 40) as i32 - 2;
    let name = &names[chance.index(names.len())];
    let (domain, name) = (domain_of(name), of_label(name).1.as_bytes());
    let streaming = if chance.one_in(2) { flags::request::STREAMING } else { Flags::NONE };
    let request = |domain, key, bytes: &mut [u8]| {
        RequestHeader { flags: streaming, ..RequestHeader::new(domain, id, key) }.encode(bytes)
    };
    let len = match chance.below(8) {
        0 => LoginRequest::new(b"mallory").encode(&mut bytes),
        1 => request(Domain::SOURCE, Key { filter: Some(0x3F), ..Key::default() }, &mut bytes),
        2 => request(Domain::DICTIONARY, Key::item(SERVICE, b"RWFFld"), &mut bytes),
        3 => CloseHeader::new(Domain::MARKET_PRICE, id).encode(&mut bytes),
        4 => request(Domain(chance.word() as u8), Key::item(SERVICE, name), &mut bytes),
        _ => request(domain, Key::item(SERVICE, name), &mut bytes),
    };
    bytes.truncate(len.expect("a short message has room"));
    if chance.one_in(3) {
        for _ in 0..chance.within(1, 4) {
            let at = chance.index(bytes.len());
            bytes[at] = chance.word() as u8;
        }
    }
    if chance.one_in(12) {
        bytes.truncate(chance.index(bytes.len()) + 1);
    }
    if chance.one_in(30) {
        bytes.resize(chance.index(3_000) + 1, 0x41);
    }
    bytes
}

/// The text of a message, possibly corrupted.
fn text(message: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut text = json::text(message, Side::Client).unwrap_or_else(|_| b"{\"ID\":1,\"Key\":{}}".to_vec());
    match chance.below(8) {
        0 => {
            let at = chance.index(text.len());
            text[at] = chance.word() as u8;
        }
        1 => text.truncate(chance.index(text.len())),
        2 => {
            // Many messages in one text.
            let one = text.clone();
            let all = std::iter::repeat_n(one, chance.within(2, 300) as usize);
            text = [b"[".to_vec(), all.collect::<Vec<_>>().join(&b','), b"]".to_vec()].concat();
        }
        3 => text = [vec![b'['; chance.index(200)], text].concat(),
        _ => {}
    }
    text
}
