//! Both ends of asking for messages again: a client that is told anything, a server that is asked anything, and the two
//! of them together until nothing is open.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use tapeline_feed::history::{History, Limits};
use tapeline_feed::moldudp64::recover::{Ask, ClientSettings, MAX_PIECES, RetransmissionClient};
use tapeline_feed::moldudp64::retransmit::{self, LONGEST_ANSWER, RetransmissionServer};
use tapeline_feed::moldudp64::{
    HEADER_BYTES, MoldPacket, MoldSession, PacketBuilder, Request, heartbeat, parse,
};
use tapeline_nanos::Nanos;

/// Messages that a server has of each session, but for a hole in the middle.
const MESSAGES: u64 = 400;
const HOLE: RangeInclusive<u64> = 200..=203;
/// What one address may have in a second, and all together; both save up a quarter of that, or one answer.
const SHARE: u64 = 300_000;
const ALL: u64 = 500_000;
const REQUESTERS: usize = 4;
/// Calls of [`RetransmissionClient::poll`] before what is missing must have come, or have been given up: a piece of 16 messages or fewer
/// takes three tries at most, and there are some 1,000.
const ENOUGH: usize = 20_000;

fn session() -> MoldSession {
    MoldSession::new("FUZZ")
}

fn history(session: MoldSession) -> History {
    let mut history = History::new(Limits { messages: 1_024, bytes: 1 << 14 });
    history.begin(session);
    fill(&mut history);
    history
}

fn fill(history: &mut History) {
    for sequence in (1..=MESSAGES).filter(|sequence| !HOLE.contains(sequence)) {
        assert!(history.push(sequence, &sequence.to_be_bytes()));
    }
}

/// The first byte chooses the settings; then each piece is something that happens, behind a byte that says what and one for
/// the time that passes before.
pub(crate) fn client(bytes: &[u8]) {
    let Some((policy, rest)) = bytes.split_first() else { return };
    let settings = ClientSettings {
        servers: 1 + usize::from(policy & 3),
        delay_ns: u64::from(policy >> 2 & 1) * 5_000_000,
        overtaking_ns: 1_000_000,
        timeout_ns: 20_000_000,
        max_tries: 3,
        max_hole: if policy & 8 == 0 { 300 } else { u64::MAX },
        // Seldom, since a request costs a look at every piece.
        max_outstanding: if policy & 0x70 == 0x70 { 2 * MAX_PIECES } else { 4 },
        requests_per_second: if policy & 32 == 0 { 2_000 } else { u64::MAX },
        burst: if policy & 32 == 0 { 4 } else { u64::MAX },
    };
    let mut asking = Asking::new(settings);
    for piece in super::pieces(rest) {
        let [what, pause, told @ ..] = piece else { continue };
        asking.now = asking.now + (u64::from(*pause) << (what >> 4));
        match what & 15 {
            // Another session, from the beginning or just before the last sequence.
            0 => asking.begin(1),
            1 => asking.begin(u64::MAX - 3_000),
            2..=4 => asking.misses(told),
            5 => asking.client.hurry(),
            6 => asking.take(usize::from(*pause), told),
            7 => asking.take(0, &heartbeat(asking.session, 9)),
            8 => asking.client.passed(told.first().map_or(u64::MAX, |byte| u64::from(*byte)), asking.now),
            9 => {
                for sequence in told {
                    asking.comes(u64::from(*sequence)..=u64::from(*sequence));
                }
            }
            // What was asked for comes.
            _ => asking.answered(),
        }
        asking.look();
    }
    // From now on the server answers, and time passes: there is an end to it.
    asking.missing.truncate(40);
    asking.missing.retain(|hole| hole.end() - hole.start() < 1_000);
    for _ in 0..ENOUGH {
        asking.look();
        let Some(due) = asking.client.next_due(asking.now) else { break };
        asking.answered();
        asking.now = Nanos(due.0.max(asking.now.0 + 1_000_000));
    }
    asking.look();
    assert!(!asking.client.is_busy(), "it goes on asking for {:?}", asking.missing);
    assert_eq!(asking.missing, [], "neither here nor given up");
}

/// A client, and what holds of it.
struct Asking {
    client: RetransmissionClient,
    server: RetransmissionServer,
    history: History,
    settings: ClientSettings,
    now: Nanos,
    session: MoldSession,
    /// What is missing: what the client is told, and what is taken from that as it comes or is given up.
    missing: Vec<RangeInclusive<u64>>,
    /// Where the next hole can begin.
    next: Option<u64>,
    /// What it asked for since something was last answered.
    asked: Vec<Ask>,
}

impl Asking {
    fn new(settings: ClientSettings) -> Self {
        Self {
            client: RetransmissionClient::new(settings),
            server: RetransmissionServer::new(retransmit::ServerSettings {
                max_requesters: 1,
                ..retransmit::ServerSettings::default()
            }),
            history: history(session()),
            settings,
            now: Nanos(1_700_000_000_000_000_000),
            session: session(),
            missing: Vec::new(),
            next: Some(1),
            asked: Vec::new(),
        }
    }

    /// Another session than the last one begins.
    fn begin(&mut self, next: u64) {
        self.session = if self.session == session() { MoldSession::new("ROLL") } else { session() };
        self.history.begin(self.session);
        fill(&mut self.history);
        self.missing.clear();
        self.next = Some(next);
        self.asked.clear();
    }

    /// New holes: how far behind the one before, and how long. Two never touch.
    fn misses(&mut self, told: &[u8]) {
        for hole in told.chunks_exact(2) {
            // A few, or by the hundred.
            let length = u64::from(hole[1]) * if hole[1] & 1 == 0 { 1 } else { 100 };
            let first = self.next.and_then(|next| next.checked_add(u64::from(hole[0])));
            let Some(hole) = first.and_then(|first| Some(first..=first.checked_add(length)?)) else { break };
            self.next = hole.end().checked_add(2);
            self.missing.push(hole);
        }
    }

    /// Says what is missing, and takes down what is asked for and given up.
    fn look(&mut self) {
        loop {
            self.client.update(self.session, self.missing.iter().cloned(), self.now);
            let mut polls = 0;
            while let Some(ask) = self.client.poll(self.now) {
                let Ask { server, request } = ask;
                assert!(server < self.settings.servers && request.is_answerable());
                assert_eq!(request.session, self.session);
                // It begins and ends with something that is missing.
                for end in [request.sequence, request.sequence + (u64::from(request.count) - 1)] {
                    assert!(self.missing.iter().any(|hole| hole.contains(&end)), "{end} is not missing");
                }
                polls += 1;
                assert!(polls <= self.settings.max_outstanding.min(MAX_PIECES));
                self.asked.push(ask);
            }
            let next = self.client.next_due(self.now);
            assert_eq!(next.is_some(), self.client.is_busy());
            assert!(next.is_none_or(|next| next > self.now), "there is nothing to do now");
            let (mut given_up, mut behind) = (Vec::new(), 0);
            while let Some(range) = self.client.given_up() {
                assert!(*range.start() > behind && range.start() <= range.end());
                behind = *range.end();
                given_up.push(range);
            }
            if given_up.is_empty() {
                break;
            }
            for range in given_up {
                self.comes(range);
            }
        }
    }

    /// A datagram that a server sent; or somebody.
    fn take(&mut self, server: usize, datagram: &[u8]) {
        let of = |client: &RetransmissionClient, now| {
            (*client.statistics(), client.next_due(now), client.is_busy())
        };
        let before = of(&self.client, self.now);
        match self.client.answer(server, datagram) {
            Ok(data) => {
                let (first, last) = (data.sequence(), data.end() - 1);
                assert_eq!(data.session, self.session);
                let wanted = |ask: &Ask| {
                    let to = ask.request.sequence + (u64::from(ask.request.count) - 1);
                    ask.request.sequence <= first && last <= to
                };
                assert!(self.asked.iter().any(wanted), "{first} to {last} were never asked for");
                self.comes(first..=last);
            }
            Err(rejected) => {
                let (mut statistics, due, busy) = of(&self.client, self.now);
                statistics.rejected[rejected.index()] -= 1;
                assert_eq!(before, (statistics, due, busy), "not taken, and still a change");
            }
        }
    }

    /// A server answers what was asked for.
    fn answered(&mut self) {
        let mut buffer = [0; LONGEST_ANSWER];
        for at in 0..self.asked.len() {
            let Ask { server, request } = self.asked[at];
            let request = request.encode();
            let answer =
                self.server.answer(Ipv4Addr::LOCALHOST, &request, &self.history, self.now, &mut buffer);
            if let Ok(answer) = answer {
                self.take(server, answer);
            }
        }
        self.asked.clear();
        self.look();
    }

    /// These messages are not missing any more.
    fn comes(&mut self, messages: RangeInclusive<u64>) {
        let (first, last) = messages.into_inner();
        let mut left = Vec::new();
        for hole in self.missing.drain(..) {
            let (from, to) = hole.into_inner();
            if from < first {
                left.push(from..=to.min(first - 1));
            }
            if to > last {
                left.push(from.max(last + 1)..=to);
            }
        }
        self.missing = left;
    }
}

/// Each piece is a datagram, behind a byte for who sends it and one for the time that passes before.
pub(crate) fn server(bytes: &[u8]) {
    let history = history(session());
    let settings = retransmit::ServerSettings {
        packet_bytes: 100,
        requester_bytes_per_second: SHARE,
        bytes_per_second: ALL,
        max_requesters: REQUESTERS,
    };
    let mut server = RetransmissionServer::new(settings);
    let began = Nanos(1_700_000_000_000_000_000);
    let (mut now, mut buffer) = (began, [0; LONGEST_ANSWER]);
    let mut at_once = BTreeSet::new();
    for piece in super::pieces(bytes) {
        let [who, pause, datagram @ ..] = piece else { continue };
        if *pause > 0 {
            at_once.clear();
        }
        now = now + (u64::from(*pause) << (who >> 4 << 1));
        let before = *server.statistics();
        let requester = Ipv4Addr::from(u32::from(who & 15));
        match server.answer(requester, datagram, &history, now, &mut buffer) {
            Ok(answer) => {
                answers(&Request::decode(datagram).unwrap(), answer, &history);
                at_once.insert(requester);
                assert!(at_once.len() <= REQUESTERS);
                let after = server.statistics();
                assert_eq!(
                    (after.answers, after.bytes),
                    (before.answers + 1, before.bytes + answer.len() as u64)
                );
                // What was saved up, and the rate since then.
                let since = (now.0 - began.0) as u128;
                let most = u128::from(ALL / 4) + u128::from(ALL) * since / 1_000_000_000;
                assert!(u128::from(after.bytes) <= most);
            }
            Err(unanswered) => {
                let mut after = *server.statistics();
                after.unanswered[unanswered.index()] -= 1;
                after.requests -= 1;
                assert_eq!(before, after, "not answered, and still a change");
            }
        }
    }
}

/// An answer holds what was asked for, from the front, as it was sent; and it is no longer than it may be.
fn answers(request: &Request, answer: &[u8], history: &History) {
    let Ok(MoldPacket::Data(data)) = parse(answer) else { panic!("no messages") };
    assert_eq!((data.session, data.sequence()), (request.session, request.sequence));
    assert!(data.count() <= request.count && data.trailing == 0);
    assert!(data.messages().all(|(sequence, message)| history.message(sequence) == Some(message)));
    assert!(answer.len() <= 100);
}

fn program(pieces: &[(u8, u8, &[u8])]) -> Vec<u8> {
    pieces
        .iter()
        .flat_map(|(what, pause, told)| [&[2 + told.len() as u8, *what, *pause][..], told].concat())
        .collect()
}

/// Inputs to begin with, for [`client`].
pub(crate) fn client_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut buffer = [0; 64];
    let mut packet = PacketBuilder::new(&mut buffer, session(), 5).unwrap();
    packet.push(b"five").unwrap();
    let length = packet.finish();
    let asks: [(u8, u8, &[u8]); 8] = [
        (2, 0, &[4, 2, 90, 101, 70, 8]),
        (6, 0, &buffer[..length]),
        (10, 1, &[]),
        (0xF8, 255, &[100, 102, 104]),
        (7, 1, &[]),
        (3, 1, &[60, 2]),
        (0xFA, 255, &[]),
        (5, 255, &[]),
    ];
    let far: [(u8, u8, &[u8]); 5] =
        [(1, 0, &[]), (2, 0, &[0, 255, 3, 4, 9, 255]), (10, 9, &[]), (0, 0, &[]), (0xF2, 255, &[1, 1])];
    // More pieces than are kept.
    let many = [[1, 255]; 60].concat();
    let many: [(u8, u8, &[u8]); 3] = [(2, 0, &many), (10, 0, &[]), (2, 0, &[30, 2])];
    vec![
        ("asks", [vec![0x01], program(&asks)].concat()),
        ("delay", [vec![0x07], program(&asks)].concat()),
        ("far", [vec![0x08], program(&far)].concat()),
        ("many", [vec![0x70], program(&many)].concat()),
    ]
}

/// Inputs to begin with, for [`server`].
pub(crate) fn server_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let request =
        |name, sequence, count| Request { session: MoldSession::new(name), sequence, count }.encode();
    let requests = [
        request("FUZZ", 1, 10),
        request("FUZZ", 199, 3),
        request("FUZZ", 202, 1),
        request("FUZZ", 400, 60_000),
        request("FUZZ", 401, 1),
        request("FUZZ", 0, 1),
        request("OTHER", 1, 1),
        request("FUZZ", u64::MAX, u16::MAX),
    ];
    let one: Vec<(u8, u8, &[u8])> =
        requests.iter().zip(0..).map(|(request, who)| (who, 0, &request[..])).collect();
    let flood: Vec<(u8, u8, &[u8])> = vec![(0xF1, 1, &requests[0]); 200];
    let short: [(u8, u8, &[u8]); 1] = [(1, 1, &requests[0][..HEADER_BYTES - 1])];
    vec![("requests", program(&one)), ("flood", program(&flood)), ("short", program(&short))]
}
