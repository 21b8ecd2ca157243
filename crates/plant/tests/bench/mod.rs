//! A channel on a made clock and a made ring.

#![allow(dead_code, reason = "each test uses its part")]

use std::cell::Cell;

use tapeline_feed::itch::encode::{AddOrder, OrderDelete, PrefixFields, StockDirectory, text};
use tapeline_feed::line::Line;
use tapeline_feed::moldudp64::{MoldSession, PacketBuilder};
use tapeline_feed::{Protocol, book, line};
use tapeline_measure::Nanos;
use tapeline_omm::rwf::MessageView;
use tapeline_omm::{FieldList, Real};
use tapeline_plant::tick::Tick;
use tapeline_plant::{Channel, ChannelSettings, Items, Publish, PublishPolicy, Refused, Sequencer, Time};

/// A ring that keeps everything, and refuses from the tick on that it is told.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) refuse_from: Option<usize>,
}

impl Publish for Kept {
    fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        if self.refuse_from.is_some_and(|from| self.frames.len() >= from) {
            return Err(Refused::Stopping);
        }
        let mut frame = vec![0xEE; len];
        let used = fill(&mut frame);
        frame.truncate(used);
        self.frames.push(frame);
        Ok(())
    }
}

/// A clock that moves by 10 ns each time it is read.
pub(crate) struct Steps(pub(crate) Cell<u64>);

impl Time for Steps {
    fn now(&self) -> Nanos {
        self.0.set(self.0.get() + 10);
        Nanos(self.0.get())
    }
}

pub(crate) const SESSION: &str = "TESTDAY001";
pub(crate) const MIDNIGHT: Nanos = Nanos(1_580_360_400_000_000_000);

pub(crate) struct Bench {
    pub(crate) channel: Channel,
    pub(crate) sequencer: Sequencer<Kept>,
    pub(crate) clock: Steps,
}

impl Bench {
    pub(crate) fn new(publish: PublishPolicy) -> Self {
        Self::with(Self::settings(publish))
    }

    pub(crate) fn settings(publish: PublishPolicy) -> ChannelSettings {
        ChannelSettings {
            number: 3,
            protocol: Protocol::ItchMoldUdp64,
            lines: 2,
            stale_after_ns: 3_000_000_000,
            midnight_before: None,
            midnight: MIDNIGHT,
            publish,
            arbitration: line::ArbiterSettings { window_age_ns: 1_000, ..line::ArbiterSettings::default() },
            books: book::BookSettings::default(),
        }
    }

    pub(crate) fn with(settings: ChannelSettings) -> Self {
        Self {
            channel: Channel::new(settings),
            sequencer: Sequencer::new(1, Items::new(100), Kept::default()),
            clock: Steps(Cell::new(MIDNIGHT.0 + 34_200_000_000_000)),
        }
    }

    pub(crate) fn datagram(&mut self, line: Line, bytes: &[u8]) -> Result<(), Refused> {
        let wire = Nanos(self.clock.0.get());
        self.channel.datagram(line, bytes, wire, &self.clock, &mut self.sequencer)
    }

    pub(crate) fn frames(&mut self) -> &[Vec<u8>] {
        &self.sequencer.publisher().frames
    }
}

pub(crate) fn packet(first: u64, messages: &[Vec<u8>]) -> Vec<u8> {
    packet_of(SESSION, first, messages)
}

pub(crate) fn packet_of(session: &str, first: u64, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut buffer = vec![0; 1_400];
    let mut builder = PacketBuilder::new(&mut buffer, MoldSession::new(session), first).unwrap();
    for message in messages {
        builder.push(message).unwrap();
    }
    let len = builder.finish();
    buffer.truncate(len);
    buffer
}

pub(crate) fn at(ts_ns: u64) -> PrefixFields {
    PrefixFields { locate: 13, tracking: 0, ts_ns }
}

pub(crate) fn directory() -> Vec<u8> {
    let mut bytes = vec![0; StockDirectory::LENGTH];
    let stock = StockDirectory {
        stock: text("AAPL"),
        market_category: b'Q',
        financial_status: b'N',
        round_lot: 100,
        round_lots_only: b'N',
        issue_classification: b'C',
        issue_sub_type: text("Z"),
        authenticity: b'P',
        short_sale_threshold: b'N',
        ipo_flag: b'N',
        luld_tier: b'1',
        etp_flag: b'N',
        etp_leverage: 0,
        inverse: b'N',
    };
    stock.encode(at(1), &mut bytes).unwrap();
    bytes
}

pub(crate) fn add(reference: u64, side: u8, shares: u32, price: u32) -> Vec<u8> {
    let mut bytes = vec![0; AddOrder::LENGTH];
    AddOrder { reference, side, shares, stock: text("AAPL"), price }
        .encode(at(34_200_000_000_000 + reference), &mut bytes)
        .unwrap();
    bytes
}

pub(crate) fn delete(reference: u64) -> Vec<u8> {
    let mut bytes = vec![0; OrderDelete::LENGTH];
    OrderDelete { reference }.encode(at(34_200_000_000_999), &mut bytes).unwrap();
    bytes
}

pub(crate) fn real(tick: &Tick<'_>, id: tapeline_omm::Fid) -> Option<Real> {
    let message = MessageView::parse(tick.body).unwrap();
    let list = FieldList::parse(message.payload()).unwrap();
    list.find(id).unwrap().and_then(|field| field.real().unwrap())
}
