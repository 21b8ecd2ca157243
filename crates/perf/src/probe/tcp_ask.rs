//! The asking end over TCP: the receiving end of a line. Connects, measures round trips, and takes datagrams as fast as they come and at rates.

use std::iter::once;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::bail;
use tapeline_console::failure::{Hinted, of_socket};
use tapeline_console::output::Progress;
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Nanos};
use tapeline_wire::Error;
use tapeline_wire::tcp::Stream;
use tapeline_wire::tls::Tls;

use super::Probe;
use super::ask::{PING_EVERY, PINGS};
use super::datagram::{COUNTS, Head, LEAST_BYTES, ProbeKind};
use super::report::{RoundTrip, TcpProbed, TcpStep};
use super::tcp::{INPUT_BYTES, LOOK, Peer};

/// The pause between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(100);
/// How long nothing may come within a step, whose data may wait behind a slow path's.
const SILENT: Duration = Duration::from_secs(30);

/// Measures everything. `tls` has the name that the certificate must have.
pub(super) fn ask(
    server: SocketAddr,
    tls: Option<&(Tls, String)>,
    probe: &Probe,
    stop: &Stop,
) -> anyhow::Result<TcpProbed> {
    let (stream, connected) = connect(server, tls, probe.patience, stop)?;
    let mut peer = Peer::new(stream);
    let mut head = Head { measurement: peer.clock.now().0, seq: 0, step: 0, port: 0, kind: ProbeKind::Ping };
    let mut trips = Vec::new();
    for seq in 1..=PINGS {
        if stop.requested() {
            break;
        }
        let asked = peer.clock.now();
        peer.put(Head { seq, ..head }, [0; COUNTS], LEAST_BYTES);
        peer.flush(probe.patience, stop)?;
        match peer.hear(probe.patience, stop)? {
            Some(answer) if answer.head.kind == ProbeKind::Pong && answer.head.seq == seq => {
                trips.push(answer.heard.since(asked).unsigned_abs());
            }
            Some(_) => bail!("{server} answers what was not asked"),
            None => break,
        }
        stop.sleep(PING_EVERY);
    }
    trips.sort_unstable();
    let round_trip = RoundTrip::new(&trips, PINGS);
    let mut steps = Vec::new();
    for rate in once(0).chain(probe.rates.iter().copied()) {
        if stop.requested() {
            break;
        }
        head.step += 1;
        let (size, time) = (probe.size.into(), probe.step.as_nanos() as u64);
        peer.put(Head { kind: ProbeKind::Ask, ..head }, [rate, size, time, 0, 0, 0, 0, 0], LEAST_BYTES);
        peer.flush(probe.patience, stop)?;
        let mut tally = StepLateness::new(time);
        let what = if rate == 0 { "as fast as it goes".to_owned() } else { format!("{rate} datagrams/s") };
        let mut progress = Progress::over(&what, probe.step);
        while let Some(message) = peer.hear(SILENT, stop)? {
            match message.head.kind {
                ProbeKind::Data => {
                    tally.take(message.heard, Nanos(message.numbers[0]), message.bytes);
                    progress.set_elapsed();
                }
                ProbeKind::Counts => {
                    let [sent, unsent, ..] = message.numbers;
                    steps.push(TcpStep::new((rate, probe.size), (sent, unsent), &tally, &round_trip));
                    break;
                }
                _ => bail!("{server} answers what was not asked"),
            }
        }
    }
    peer.put(Head { kind: ProbeKind::Over, ..head }, [0; COUNTS], LEAST_BYTES);
    peer.flush(probe.patience, stop)?;
    Ok(TcpProbed {
        to: server,
        tls: tls.is_some(),
        connect_ns: connected.as_nanos() as u64,
        round_trip,
        steps,
    })
}

/// Connects, and agrees on TLS. Returns the time that it took.
fn connect(
    server: SocketAddr,
    tls: Option<&(Tls, String)>,
    patience: Duration,
    stop: &Stop,
) -> anyhow::Result<(Stream, Duration)> {
    let clock = Clock::calibrate();
    let until = clock.now() + patience.as_nanos() as u64;
    let nobody = |why: String| {
        let what = format!("nobody answers at {server}: {why}");
        let tls = if tls.is_some() { " --cert FILE --key FILE" } else { "" };
        let hint = format!(
            "start `tapeline bridge probe --listen-tcp {server}{tls}` at the other end; a firewall may block the way"
        );
        anyhow::Error::from(Hinted::new(what, hint))
    };
    loop {
        let begun = clock.now();
        let stream = match tls {
            Some((tls, name)) => Stream::connect_tls(server, tls, name, INPUT_BYTES),
            None => Stream::connect(server, INPUT_BYTES),
        };
        let connected = stream.and_then(|mut stream| {
            while !stream.flush()? && clock.now() < until && !stop.requested() {
                stream.wait(LOOK);
            }
            Ok(stream)
        });
        match connected {
            Ok(stream) if stream.is_connected() => {
                return Ok((stream, Duration::from_nanos(clock.now().since(begun).unsigned_abs())));
            }
            Err(error @ Error::Socket { .. }) if clock.now() >= until => {
                return Err(nobody(error.to_string()));
            }
            Err(Error::Socket { .. }) => _ = stop.sleep(AGAIN),
            Err(error) => return Err(of_socket(error)),
            Ok(_) => return Err(nobody(format!("no connection within {patience:?}"))),
        }
        if stop.requested() {
            bail!("ended before a connection was made");
        }
    }
}

/// How late the datagrams of a step are, by the other end's clock: differences of that are times of this one's.
pub(super) struct StepLateness {
    pub(super) received: u64,
    pub(super) bytes: u64,
    first: Nanos,
    last: Nanos,
    /// The least and the greatest of all.
    least: i64,
    most: i64,
    /// The least of the first tenth of the step, and of the tenth that is going on, with its begin.
    at_first: i64,
    at_last: i64,
    tenth: Nanos,
    tenth_ns: i64,
}

impl StepLateness {
    fn new(step_ns: u64) -> Self {
        let (first, least, most) = (Nanos(0), i64::MAX, i64::MIN);
        Self {
            received: 0,
            bytes: 0,
            first,
            last: first,
            least,
            most,
            at_first: least,
            at_last: least,
            tenth: first,
            tenth_ns: (step_ns / 10) as i64,
        }
    }

    fn take(&mut self, at: Nanos, due: Nanos, bytes: usize) {
        if self.received == 0 {
            (self.first, self.tenth) = (at, at);
        } else if at.since(self.tenth) >= self.tenth_ns {
            (self.tenth, self.at_last) = (at, i64::MAX);
        }
        let late = at.since(due);
        self.least = self.least.min(late);
        self.most = self.most.max(late);
        self.at_last = self.at_last.min(late);
        if at.since(self.first) < self.tenth_ns {
            self.at_first = self.at_first.min(late);
        }
        self.received += 1;
        self.bytes += bytes as u64;
        self.last = at;
    }

    /// Returns the time from the first arrival to the last, in ns.
    pub(super) fn ns(&self) -> u64 {
        self.last.since(self.first).unsigned_abs()
    }

    /// Returns how much longer the slowest datagram took than the fastest, in ns.
    pub(super) fn latest_ns(&self) -> u64 {
        self.most.saturating_sub(self.least).max(0).unsigned_abs()
    }

    /// Returns how much longer datagrams took at the end than at the beginning, in ns: what waits on the way.
    pub(super) fn backlog_ns(&self) -> u64 {
        self.at_last.saturating_sub(self.at_first).max(0).unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_on_the_way_shows_at_the_end_of_a_step_whatever_the_clocks_are() {
        for ahead in [0, 5_000_000_000] {
            let (mut steady, mut growing) = (StepLateness::new(1_000), StepLateness::new(1_000));
            for k in 0..100_u64 {
                let due = Nanos(10_000_000_000 + 10 * k);
                let at = Nanos(due.0 + 7 + ahead);
                // One of ten is late.
                steady.take(at + if k % 10 == 5 { 3 } else { 0 }, due, 104);
                growing.take(at + 5 * k, due, 104);
            }
            assert_eq!((steady.backlog_ns(), steady.latest_ns(), steady.received), (0, 3, 100));
            assert!(growing.backlog_ns() > 400, "{}", growing.backlog_ns());
            assert_eq!(growing.latest_ns(), 495);
        }
        assert_eq!((StepLateness::new(1_000).backlog_ns(), StepLateness::new(1_000).latest_ns()), (0, 0));
    }
}
