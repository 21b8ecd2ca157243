//! Days of an exchange, made before they are needed: in memory, from where they cost the sender little, and in a file.

use std::fs::File;
use std::io::BufWriter;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapeline_feed::capture::PcapWriter;
use tapeline_feed::itch::encode::{AddOrder, LONGEST, OrderReplace, PrefixFields};
use tapeline_feed::moldudp64::{DEFAULT_PACKET_BYTES, MoldSession, PacketBuilder, end_of_session};
use tapeline_feed::simulate::{CLOSING_MESSAGES, Exchange, SimulatedDay};
use tapeline_measure::{Clock, Lateness, Nanos, Pacer, Trend, monotonic_ns};
use tapeline_wire::udp::{SendOptions, UdpSender};

use crate::{say, since, spent};

/// Stocks of the exchange, and messages of its day: some seconds' worth.
const STOCKS: u16 = 500;
pub(crate) const MESSAGES: u64 = 6_000_000;
/// When trading begins, ns from midnight in New York; from one message to the next.
const OPENING_NS: u64 = 34_200_000_000_000;
const STEP_NS: u64 = 1_000;
/// A moment for the file, and where its datagrams went.
const FILE_TIME: Nanos = Nanos(1_779_975_000_000_000_000);
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 26_477);
/// A day is sent in so many slices a second, and for so long at most.
const SLICES: u64 = 1_000;
const LONGEST_NS: u64 = 3_000_000_000;
/// How often the end of the session is said.
const ENDS: usize = 3;

/// A day.
pub(crate) struct Day {
    bytes: Vec<u8>,
    /// Where each datagram ends, and how many messages there are up to there.
    ends: Vec<(usize, u64)>,
    pub(crate) stocks: Vec<String>,
    folder: tempfile::TempDir,
    pub(crate) file: PathBuf,
}

/// What was sent of a day.
pub(crate) struct SentDay {
    /// With those that say that it is over.
    pub(crate) datagrams: u64,
    pub(crate) messages: u64,
    pub(crate) seconds: f64,
    /// When the last message was sent, ns of the monotonic clock.
    pub(crate) ended_ns: u64,
    /// Processor time of the sender, ns.
    pub(crate) used_ns: u64,
    pub(crate) lateness: Trend,
}

impl SentDay {
    pub(crate) fn per_s(&self) -> f64 {
        self.messages as f64 / self.seconds
    }
}

impl Day {
    /// The simulated exchange's own: orders come and go, and some four in ten messages change what is published.
    pub(crate) fn simulated() -> anyhow::Result<Self> {
        say("the exchange's day is made");
        let mut exchange = exchange();
        let mut made = 0;
        Self::make(names(&exchange), |out| {
            if made == MESSAGES - CLOSING_MESSAGES {
                exchange.end_day();
            }
            made += 1;
            exchange.next(OPENING_NS + made * STEP_NS, out)
        })
    }

    /// Quotes alone: behind the opening, each message replaces a stock's only bid or its only ask by one at another price, so that
    /// each is a tick.
    pub(crate) fn quotes() -> anyhow::Result<Self> {
        say("a day of quotes is made");
        let mut exchange = exchange();
        let opening = exchange.opening_messages();
        let orders = u64::from(STOCKS) * 2;
        let mut made = 0;
        Self::make(names(&exchange), |out| {
            let (number, ts_ns) = (made, OPENING_NS + made * STEP_NS);
            made += 1;
            let Some(number) = number.checked_sub(opening) else { return exchange.next(ts_ns, out) };
            if made > MESSAGES {
                return None;
            }
            let (round, order) = (number / orders, number % orders);
            let prefix = PrefixFields { locate: 1 + (order / 2) as u16, tracking: 0, ts_ns };
            // A cent or two from 100 dollars.
            let away = 100 * (1 + round as u32 % 2);
            let (side, price) =
                if order % 2 == 0 { (b'B', 1_000_000 - away) } else { (b'S', 1_000_000 + away) };
            let (reference, shares) = (number + 1, 100);
            if round == 0 {
                let stock = exchange.symbol(prefix.locate).unwrap_or_default();
                return AddOrder { reference, side, shares, stock, price }.encode(prefix, out);
            }
            OrderReplace { reference: reference - orders, new_reference: reference, shares, price }
                .encode(prefix, out)
        })
    }

    /// Packs what `next` writes, to its end.
    fn make(
        stocks: Vec<String>,
        mut next: impl FnMut(&mut [u8; LONGEST]) -> Option<usize>,
    ) -> anyhow::Result<Self> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let (mut message, mut room) = ([0; LONGEST], [0; DEFAULT_PACKET_BYTES]);
        let mut sequence = 1;
        let mut written = next(&mut message);
        while written.is_some() {
            let mut packet = PacketBuilder::new(&mut room, session(), sequence)?;
            while let Some(length) = written
                && packet.push(&message[..length]).is_ok()
            {
                written = next(&mut message);
            }
            sequence = packet.next_sequence();
            let length = packet.finish();
            bytes.extend_from_slice(&room[..length]);
            ends.push((bytes.len(), sequence - 1));
        }
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("day.pcap");
        let day = Self { bytes, ends, stocks, folder, file };
        day.write()?;
        Ok(day)
    }

    fn write(&self) -> anyhow::Result<()> {
        let mut file = PcapWriter::new(BufWriter::with_capacity(1 << 20, File::create(&self.file)?))?;
        for datagram in self.datagrams(0..self.ends.len()) {
            file.write(FILE_TIME, GROUP, GROUP, datagram)?;
        }
        let end = end_of_session(session(), MESSAGES + 1);
        for _ in 0..ENDS {
            file.write(FILE_TIME, GROUP, GROUP, &end)?;
        }
        file.finish()?;
        Ok(())
    }

    /// Where its file is, and room for others.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn datagrams(&self, which: std::ops::Range<usize>) -> impl Iterator<Item = &[u8]> + Clone {
        let start = |at: usize| at.checked_sub(1).map_or(0, |before| self.ends[before].0);
        which.map(move |at| &self.bytes[start(at)..self.ends[at].0])
    }

    /// Sends so many of its messages a second, and then that the session is over.
    pub(crate) fn send(&self, to: SocketAddrV4, rate: u64) -> anyhow::Result<SentDay> {
        let mut sender =
            UdpSender::open(&SendOptions { interface: "127.0.0.1".to_owned(), ..SendOptions::new(to) })?;
        let clock = Clock::calibrate();
        let before = spent::of_this_thread();
        let begun = clock.now();
        let slices = Pacer::per_second(SLICES, begun);
        let mut lateness = Lateness::new(begun);
        let (mut sent, mut slice) = (0, 0);
        while sent < self.ends.len() && slice * (1_000_000_000 / SLICES) < LONGEST_NS {
            slice += 1;
            let due = slices.due(slice);
            let now = clock.now();
            if now < due {
                // Without the pacer's last 60 µs of spinning: the hub wants this core.
                std::thread::sleep(Duration::from_nanos(due.0 - now.0));
            }
            let now = clock.now();
            lateness.record(now, now.since(due));
            let until = self.ends.partition_point(|(_, messages)| *messages <= slice * rate / SLICES);
            while sent < until {
                let gone = sender.send_many(self.datagrams(sent..until))?;
                sent += gone.count;
                if gone.blocked {
                    sender.wait(Duration::from_millis(100));
                }
            }
        }
        let messages = sent.checked_sub(1).map_or(0, |last| self.ends[last].1);
        let sent_day = SentDay {
            datagrams: (sent + ENDS) as u64,
            messages,
            seconds: clock.now().since(begun) as f64 / 1e9,
            ended_ns: monotonic_ns(),
            used_ns: since(before),
            lateness: lateness.trend(),
        };
        let end = end_of_session(session(), messages + 1);
        for _ in 0..ENDS {
            let _ = sender.send(&end)?;
            // Where the receiver's buffer is full, the next one finds room.
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(sent_day)
    }
}

fn exchange() -> Exchange {
    Exchange::new(SimulatedDay { symbols: STOCKS, ..SimulatedDay::default() })
}

fn names(exchange: &Exchange) -> Vec<String> {
    let names = (1..=STOCKS).filter_map(|locate| exchange.symbol(locate));
    names.map(|name| String::from_utf8_lossy(&name).trim_end().to_owned()).collect()
}

fn session() -> MoldSession {
    MoldSession::new("SIMULATED")
}
