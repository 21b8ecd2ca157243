//! The arbiter of lines: any datagrams, on any lines, at any times.

use tapeline_feed::Framing;
use tapeline_feed::iex::tp::{self, MessageProtocol, SegmentBuilder};
use tapeline_feed::line::{
    self, Arbiter, ArbiterSettings, Jump, LARGEST_GAP, Line, MAX_LINES, Restart, Sink, Start,
};
use tapeline_feed::moldudp64::{MoldSession, PacketBuilder, end_of_session, heartbeat};
use tapeline_nanos::Nanos;

/// Messages that may be held.
const WINDOW: usize = 64;

/// Checks that messages and gaps follow one another.
#[derive(Default)]
struct Order {
    next: Option<u64>,
    delivered: u64,
    missing: u64,
    absurd_gaps: u64,
    said: u64,
}

impl Sink for Order {
    fn message(&mut self, sequence: u64, _: &[u8], _: Nanos) {
        assert!(self.next.is_none_or(|next| next == sequence));
        self.next = Some(sequence + 1);
        self.delivered += 1;
        self.said += 1;
    }

    fn gap(&mut self, first: u64, last: u64) {
        assert!(first <= last && self.next.is_none_or(|next| next == first));
        self.next = Some(last + 1);
        match last - first + 1 {
            missing @ ..=LARGEST_GAP => self.missing = self.missing.saturating_add(missing),
            _ => self.absurd_gaps += 1,
        }
        self.said += 1;
    }

    fn end_of_session(&mut self, _: u64) {
        self.said += 1;
    }

    fn reset(&mut self, _: line::Session) {
        self.next = None;
        self.said += 1;
    }
}

/// The first byte chooses the policies; then each piece is a datagram behind a byte for its line and one for its time.
pub(crate) fn datagrams(bytes: &[u8]) {
    let Some((policy, rest)) = bytes.split_first() else { return };
    let settings = ArbiterSettings {
        framing: if policy & 64 == 0 { Framing::MoldUdp64 } else { Framing::IexTp },
        window_messages: WINDOW,
        window_bytes: 300,
        window_age_ns: u64::from(*policy) * 1_000,
        recovery_age_ns: u64::from(*policy & 32) * 1_000,
        start: if policy & 1 == 0 { Start::First } else { Start::FromOne },
        restart: [Restart::Ignore, Restart::Changed, Restart::Reset, Restart::Changed]
            [usize::from((policy & 2) + (policy >> 6 & 1))],
        on_jump: [Jump::Confirm, Jump::Believe, Jump::Ignore, Jump::Confirm][usize::from(policy >> 2 & 3)],
        max_jump: 1_000,
        expire_on_packet: policy & 16 == 0,
        ..ArbiterSettings::default()
    };
    let mut arbiter = Arbiter::new(settings);
    let mut order = Order::default();
    let mut now = 1_000_000_000_000;
    for piece in super::pieces(rest) {
        let [line, pause, datagram @ ..] = piece else { continue };
        now += u64::from(*pause) << (line >> 3);
        // Lines are read one after the other, so the time of a datagram may be before that of the one in front of it.
        let received = Nanos(now - u64::from(pause % 4) * 40);
        // One more than there are lines: what was asked for again.
        let line = Line::new(usize::from(*line) % (MAX_LINES + 1)).unwrap_or(Line::RECOVERY);
        let before = (*arbiter.statistics(), arbiter.next_sequence(), arbiter.session(), order.said);
        if arbiter.datagram(line, datagram, received, &mut order).is_err() {
            let after = (*arbiter.statistics(), arbiter.next_sequence(), arbiter.session(), order.said);
            assert_eq!(before, after, "malformed, and still a change");
        }
        assert!(arbiter.held() <= WINDOW);
        if *pause == 0 {
            arbiter.expire(Nanos(now), &mut order);
            assert!(arbiter.next_expiry().is_none_or(|expiry| expiry.0 > now));
        }
    }
    arbiter.flush(&mut order);
    assert!(arbiter.next_expiry().is_none() && arbiter.held() == 0);
    let statistics = arbiter.statistics();
    assert_eq!((statistics.delivered, statistics.missing), (order.delivered, order.missing));
    assert_eq!(statistics.absurd_gaps, order.absurd_gaps);
    let lines = (0..MAX_LINES).filter_map(Line::new).chain([Line::RECOVERY]);
    let first: u64 = lines.map(|line| arbiter.line(line).first).sum();
    assert_eq!(first, order.delivered, "each delivered message came first on one line");
}

/// Inputs to begin with.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let session = MoldSession::new("FUZZ");
    let packet = |first: u64, count: u64| {
        let mut bytes = vec![0; 200];
        let mut packet = PacketBuilder::new(&mut bytes, session, first).unwrap();
        for message in first..first + count {
            packet.push(&message.to_be_bytes()).unwrap();
        }
        let length = packet.finish();
        bytes.truncate(length);
        bytes
    };
    let program = |policy: u8, datagrams: &[(u8, u8, Vec<u8>)]| {
        let pieces = datagrams.iter().flat_map(|(line, pause, datagram)| {
            [vec![2 + datagram.len() as u8, *line, *pause], datagram.clone()].concat()
        });
        [vec![policy], pieces.collect()].concat()
    };
    let two_lines = [
        (0, 1, packet(1, 3)),
        (1, 1, packet(1, 5)),
        (0, 1, packet(8, 2)),
        (1, 9, packet(6, 2)),
        (0, 1, heartbeat(session, 12).to_vec()),
        (1, 200, packet(11, 1)),
        (0, 0, end_of_session(session, 14).to_vec()),
        (8, 1, packet(10, 3)),
        (1, 1, packet(13, 1)),
    ];
    let another = heartbeat(MoldSession::new("NEXT"), 1).to_vec();
    let rolls = [
        (0, 1, packet(1, 3)),
        (0, 1, another.clone()),
        (1, 1, another),
        (0, 1, packet(1, 2)),
        (1, 255, packet(5_000, 1)),
        (0, 255, packet(5_001, 1)),
    ];
    // The next session is believed late, its end first: what else was doubted lies beyond that.
    let of_next = |mut datagram: Vec<u8>| {
        datagram[..10].copy_from_slice(&MoldSession::new("NEXT").0);
        datagram
    };
    let ends = [
        (0, 100, heartbeat(session, 1).to_vec()),
        (5, 1, of_next(packet(33, 1))),
        (1, 3, of_next(end_of_session(session, 1).to_vec())),
        (3, 3, of_next(packet(1, 1))),
        // Four seconds later.
        (198, 252, of_next(heartbeat(session, 1).to_vec())),
    ];
    let (deep, tops) = (MessageProtocol::DEEP_1_0, MessageProtocol::TOPS_1_6);
    let session = |protocol, number| tp::IexSession { protocol, channel: 1, number };
    let segment = |session, first: u64, count: u64| {
        let mut bytes = vec![0; 200];
        let mut segment = SegmentBuilder::new(&mut bytes, session, first, 10 * (first - 1)).unwrap();
        for message in first..first + count {
            segment.push(&message.to_le_bytes()).unwrap();
        }
        let length = segment.finish(first);
        bytes.truncate(length);
        bytes
    };
    let (first, second) = (session(deep, 7), session(deep, 8));
    // A gap, a restart that a second segment agrees with, another day, and segments of another protocol.
    let restarts = [
        (0, 1, segment(first, 1, 3)),
        (1, 1, segment(first, 1, 5)),
        (0, 9, segment(first, 8, 2)),
        (1, 1, tp::heartbeat(first, 12, 110, 1).to_vec()),
        (0, 200, segment(first, 1, 2)),
        (1, 1, segment(first, 1, 2)),
        (0, 1, segment(first, 3, 2)),
        (0, 1, segment(session(tops, 7), 1, 1)),
        (0, 1, segment(second, 1, 1)),
        (1, 0, segment(second, 2, 1)),
    ];
    vec![
        ("two-lines", program(1, &two_lines)),
        ("rolls", program(2, &rolls)),
        ("a-doubt-beyond-an-end", program(1, &ends)),
        ("iex-restarts", program(64 | 2, &restarts)),
        ("iex-lines", program(64 | 1 | 16, &restarts)),
    ]
}
