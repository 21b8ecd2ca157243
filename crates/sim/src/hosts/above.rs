//! The plant above: it numbers, keeps, sends, answers re-requests, and lets plants catch up.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use tapeline_feed::history::Limits;
use tapeline_feed::moldudp64::retransmit::ServerSettings;
use tapeline_measure::Nanos;
use tapeline_node::bridge::{EpochFound, Epochs};
use tapeline_plant::bridge::catch_up::{
    Beginning, CatchUpReply, CatchUpRequest, HEAD_BYTES, Outcome, put_end, put_tick,
};
use tapeline_plant::bridge::{BridgeSession, Epoch, Packer, PackerSettings, PlantId};
use tapeline_plant::tick::{Header, Tick};
use tapeline_plant::{ItemId, Seq, State};

use super::Standing;
use super::plan::HostsPlan;
use crate::chance::Chance;
use crate::trace::{fnv, mix};

/// The id of the plant that numbers.
pub(super) fn plant() -> PlantId {
    "SIM".parse().unwrap_or_default()
}

/// A tick as it stands on a ring, with this body.
pub(super) fn frame(seq: Seq, body: &[u8]) -> Vec<u8> {
    let header = Header { seq, item: ItemId(1), service: 1, state: State::Live, ..Header::default() };
    let mut frame = Vec::new();
    Tick { header, name: "A", body, source: &[] }.write(&mut frame);
    frame
}

pub(super) struct Above {
    settings: PackerSettings,
    has_journal: bool,
    is_alive: bool,
    epochs: Epochs,
    starts: u64,
    packer: Packer,
    /// Ticks that were numbered and are not in the journal yet.
    pending: Vec<Vec<u8>>,
    /// The ticks of the journal, or of this life; the first one has this sequence.
    kept: Vec<Vec<u8>>,
    first: u64,
    /// By epoch and sequence of a tick that was sent: its hash, and that of all ticks up to it.
    truth: HashMap<(u64, u64), (u64, u64)>,
    chain: u64,
}

impl Above {
    pub(super) fn new(plan: &HostsPlan) -> Self {
        let history = Limits { messages: plan.history, bytes: plan.history * 400 };
        let settings =
            PackerSettings { packet_bytes: plan.packet_bytes, history, answers: ServerSettings::default() };
        let (session, epochs) = epochs_with(Epochs::default(), Epoch(1), Seq(1));
        Self {
            settings,
            has_journal: plan.has_journal,
            is_alive: true,
            epochs,
            starts: 1,
            packer: Packer::new(session, Seq(1), settings),
            pending: Vec::new(),
            kept: Vec::new(),
            first: 1,
            truth: HashMap::new(),
            chain: 0,
        }
    }

    fn session(&self) -> BridgeSession {
        self.epochs.present().unwrap_or(BridgeSession { plant: plant(), epoch: Epoch(0) })
    }

    /// The first sequence that was not kept yet.
    fn next(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    pub(super) fn numbered(&self) -> u64 {
        self.truth.len() as u64
    }

    /// The hash of a tick that was sent, and of all up to it.
    pub(super) fn truth(&self, session: BridgeSession, seq: Seq) -> Option<(u64, u64)> {
        self.truth.get(&(session.epoch.0, seq.0)).copied()
    }

    pub(super) fn standing(&self) -> Standing {
        Standing { epoch: self.session().epoch.0, last: Seq(self.next() - 1), chain: self.chain }
    }

    /// Numbers ticks. Returns whether any is to be kept and sent.
    pub(super) fn number(&mut self, count: u64, chance: &mut Chance) -> bool {
        if !self.is_alive {
            return false;
        }
        for _ in 0..count {
            let seq = Seq(self.next() + self.pending.len() as u64);
            let length = if chance.one_in(200) { 3_000 } else { chance.within(8, 120) };
            let body: Vec<u8> = (0..length / 8).flat_map(|_| chance.word().to_le_bytes()).collect();
            self.pending.push(frame(seq, &body));
        }
        true
    }

    /// The journal has the ticks that are pending; returns the datagrams that carry them.
    pub(super) fn keep(&mut self) -> Vec<Vec<u8>> {
        let epoch = self.session().epoch.0;
        for frame in std::mem::take(&mut self.pending) {
            let seq = self.next();
            let hash = fnv(&frame);
            self.chain = mix(self.chain, hash);
            self.truth.insert((epoch, seq), (hash, self.chain));
            self.packer.tick(Seq(seq), &frame);
            self.kept.push(frame);
        }
        self.packer.pack();
        self.packer.datagrams().map(<[u8]>::to_vec).collect()
    }

    pub(super) fn heartbeat(&self) -> Option<Vec<u8>> {
        self.is_alive.then(|| self.packer.heartbeat().to_vec())
    }

    /// Ticks that are not in the journal are lost; nobody has seen them.
    pub(super) fn kill(&mut self) {
        self.is_alive = false;
        self.pending.clear();
    }

    pub(super) fn start(&mut self) {
        self.is_alive = true;
        self.starts += 1;
        let mut epochs = std::mem::take(&mut self.epochs);
        if !self.has_journal {
            (self.kept, self.first, self.chain) = (Vec::new(), 1, 0);
            epochs = Epochs::default();
        }
        let next = Seq(self.next());
        let (session, epochs) = epochs_with(epochs, Epoch(self.starts), next);
        self.epochs = epochs;
        self.packer = Packer::new(session, next, self.settings);
    }

    pub(super) fn answer(&mut self, request: &[u8], now: Nanos) -> Option<Vec<u8>> {
        if !self.is_alive {
            return None;
        }
        self.packer.answer(Ipv4Addr::LOCALHOST, request, now).map(<[u8]>::to_vec)
    }

    /// The bytes that the catch-up server sends for a request; none if nobody listens.
    pub(super) fn catch_up(&self, request: &[u8]) -> Vec<u8> {
        let request = request.first_chunk::<HEAD_BYTES>().map(CatchUpRequest::decode);
        let (true, Some(Ok(request))) = (self.is_alive, request) else { return Vec::new() };
        let (present, next) = (self.session(), Seq(self.next()));
        let reply = |session, outcome, next| CatchUpReply { session, outcome, next }.encode().to_vec();
        // Without a journal there is no epoch to be had, only images.
        let wants_images = match request.beginning {
            Beginning::Images => true,
            Beginning::Epoch => !self.has_journal,
            _ => false,
        };
        let (session, outcome, from, end) = match request.epoch.filter(|_| request.next > Seq(0)) {
            None if wants_images || !self.has_journal => (present, Outcome::Ticks, next, next),
            None => (present, Outcome::Ticks, self.epochs.first(), next),
            Some(epoch) => match self.epochs.find(epoch, request.next) {
                EpochFound::Present if request.next == next || self.has_journal && request.next < next => {
                    (present, Outcome::Ticks, request.next, next)
                }
                EpochFound::Over(session, end) => (session, Outcome::EpochOver, request.next, end),
                EpochFound::Parted(end) => return reply(present, Outcome::Gone, end),
                _ => return reply(present, Outcome::Gone, next),
            },
        };
        let mut out = reply(session, outcome, from);
        for frame in &self.kept[(from.0 - self.first) as usize..(end.0 - self.first) as usize] {
            put_tick(&mut out, frame);
        }
        if wants_images && outcome == Outcome::Ticks {
            put_tick(&mut out, &self.image());
        }
        put_end(&mut out, end);
        out
    }

    /// The image of everything: the last sequence in it, and the hash of all ticks up to there.
    fn image(&self) -> Vec<u8> {
        let body = [(self.next() - 1).to_le_bytes(), self.chain.to_le_bytes()].concat();
        frame(Seq(0), &body)
    }
}

/// Adds an epoch that begins with this sequence.
fn epochs_with(mut epochs: Epochs, epoch: Epoch, first: Seq) -> (BridgeSession, Epochs) {
    let session = BridgeSession { plant: plant(), epoch: epochs.later(epoch) };
    // Nothing is written: these epochs have no file.
    let _ = epochs.begin(session, first);
    (session, epochs)
}
