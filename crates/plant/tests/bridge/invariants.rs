//! What holds of the lower end of a bridge, whatever its peers send: sequences go up one by one, no tick comes twice, only ticks of the session
//! come, and nothing panics. A line over TCP gives the datagrams that its bytes say, whatever pieces they come in.

use tapeline_feed::line::Line;
use tapeline_measure::Nanos;
use tapeline_plant::bridge::catch_up::{CatchUpReply, CatchUpRequest, HEAD_BYTES, Part, part};
use tapeline_plant::bridge::clocks::ClockExchange;
use tapeline_plant::bridge::demands::{FromAbove, FromBelow, NotADemand};
use tapeline_plant::bridge::lease::{
    LeaseAnswer, LeaseOutcome, LeaseRequest, LeaseRequestKind, Witness, WitnessSettings,
};
use tapeline_plant::bridge::tcp_line::{FOLLOW_BYTES, LONGEST_PART, datagram, follow, followed, time_asked};
use tapeline_plant::bridge::{
    BridgeSession, Delivery, Epoch, Follower, FollowerSettings, PlantId, TickSource,
};
use tapeline_plant::tick::Tick;
use tapeline_plant::{Refused, Seq};

/// Checks what is delivered.
struct Checked(u64);

impl Delivery for Checked {
    fn tick(&mut self, seq: Seq, frame: &[u8]) -> Result<(), Refused> {
        assert_eq!(seq.0, self.0, "no hole, no double");
        assert_eq!(Tick::parse(frame).map(|tick| tick.header.seq), Ok(seq));
        self.0 += 1;
        Ok(())
    }
}

/// The session that is followed.
pub(crate) fn session() -> BridgeSession {
    let plant: PlantId = "A".parse().unwrap_or_default();
    BridgeSession { plant, epoch: Epoch(7) }
}

/// Takes the bytes as a script: each step is a command byte, a length byte, and the bytes of a datagram. A datagram that begins with `s` gets
/// the session's name, so that not only its checks are reached.
pub(crate) fn any(mut script: &[u8]) {
    let settings = FollowerSettings {
        plant: session().plant,
        window_ticks: 64,
        window_bytes: 4_096,
        ..FollowerSettings::default()
    };
    let mut follower = Follower::new(settings, None);
    let mut to = Checked(1);
    let mut now = Nanos(1);
    assert!(follower.go_live(session(), Seq(1), now, &mut to).is_ok());
    while let Some(([command, length], rest)) = script.split_first_chunk::<2>() {
        let (bytes, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        script = rest;
        now = now + u64::from(*command) * 1_000_000;
        let mut datagram = bytes.to_vec();
        if datagram.first() == Some(&b's') && datagram.len() >= 10 {
            datagram[..10].copy_from_slice(&session().to_mold().0);
        }
        match command % 8 {
            0..=2 => {
                let line = if command & 8 == 0 { Line::A } else { Line::B };
                let strange = follower.datagram(line, &datagram, now, &mut to);
                assert!(strange.is_ok());
            }
            3 => assert!(follower.answer(0, &datagram, now, &mut to).is_ok()),
            4 => {
                follower.look(now);
                while follower.poll(now).is_some() {}
            }
            5 if follower.source() == TickSource::CatchUpServer => {
                let next = follower.next();
                assert!(follower.go_live(session(), next, now, &mut to).is_ok());
            }
            6 => follower.leave(now),
            _ => {
                parts(bytes);
                if let Some(clock) = ClockExchange::decode(bytes) {
                    assert_eq!(ClockExchange::decode(&clock.encode()), Some(clock));
                }
                line(bytes);
                lease(bytes);
                demands(bytes);
            }
        }
        assert_eq!(follower.next(), Seq(to.0));
    }
}

/// Reads bytes as both directions of a lease, and gives them to a witness.
fn lease(bytes: &[u8]) {
    if let Some(answer) = LeaseAnswer::decode(bytes) {
        // Zeros that have no meaning are not looked at.
        assert_eq!(LeaseAnswer::decode(&answer.encode()), Some(answer));
    }
    let Some(request) = LeaseRequest::decode(bytes) else { return };
    assert_eq!(LeaseRequest::decode(&request.encode()), Some(request));
    let mut witness = Witness::new(WitnessSettings::default(), &[], Nanos(1));
    let answer = witness.take(&request, Nanos(1), |records| !records.is_empty());
    assert_eq!(LeaseAnswer::decode(&answer.encode()), Some(answer));
    // No other plant gets what was granted.
    let other = LeaseRequest { incarnation: !request.incarnation, kind: LeaseRequestKind::Take, ..request };
    let second = witness.take(&other, Nanos(2), |_| true);
    let both = (answer.outcome, second.outcome);
    assert_ne!(both, (LeaseOutcome::Granted, LeaseOutcome::Granted));
}

/// Reads bytes as both directions of a line over TCP.
fn line(bytes: &[u8]) {
    if let Some(request) = bytes.first_chunk::<FOLLOW_BYTES>()
        && let Ok((session, next)) = followed(request)
    {
        assert_eq!(followed(&follow(session, next)), Ok((session, next)));
    }
    if let Ok(Some(asked)) = time_asked(bytes) {
        assert_eq!(time_asked(&asked.encode()), Ok(Some(asked)));
    }
    let mut rest = bytes;
    while let Ok(Some(found)) = datagram(rest) {
        assert!(2 + found.len() <= rest.len().min(LONGEST_PART));
        // It is found in no other pieces than whole.
        assert_eq!(datagram(&rest[..1 + found.len()]), Ok(None));
        rest = &rest[2 + found.len()..];
    }
}

/// Reads bytes as both directions of demands: what is read has its bytes again when it is written, apart from what a kind does not need.
fn demands(bytes: &[u8]) {
    pieces(bytes, FromBelow::read, |said, out| said.put(out).is_ok());
    pieces(bytes, FromAbove::read, |said, out| said.put(out).is_ok());
}

/// What is at the front of some bytes, with its length.
type Said<T> = Result<Option<(T, usize)>, NotADemand>;

fn pieces<T: PartialEq + std::fmt::Debug>(
    mut rest: &[u8],
    read: fn(&[u8]) -> Said<T>,
    put: fn(&T, &mut Vec<u8>) -> bool,
) {
    while let Ok(Some((said, length))) = read(rest) {
        assert!(length <= rest.len());
        let mut out = Vec::new();
        assert!(put(&said, &mut out));
        assert_eq!(read(&out), Ok(Some((said, out.len()))));
        rest = &rest[length..];
    }
}

/// Reads bytes as everything that the catch-up protocol has.
fn parts(bytes: &[u8]) {
    if let Some(head) = bytes.first_chunk::<HEAD_BYTES>() {
        if let Ok(request) = CatchUpRequest::decode(head) {
            assert_eq!(CatchUpRequest::decode(&request.encode()), Ok(request));
        }
        if let Ok(reply) = CatchUpReply::decode(head) {
            assert_eq!(CatchUpReply::decode(&reply.encode()), Ok(reply));
        }
    }
    let mut rest = bytes;
    while let Ok(Some((found, length))) = part(rest) {
        assert!(length <= rest.len());
        if let Part::Tick(tick) = found {
            assert_eq!(tick.len() + 4, length);
            let _ = Tick::parse(tick);
        }
        rest = &rest[length..];
    }
}
