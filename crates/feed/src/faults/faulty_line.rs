//! A line with its faults.

use std::collections::{BTreeMap, VecDeque};

use tapeline_nanos::Nanos;

use super::numbering::Numbering;
use super::{DatagramPart, Did, Entry, FaultKind, Numbers, Outlet, Script};
use crate::line::Line;
use crate::moldudp64::HEADER_BYTES;
use crate::simulate::random::Random;

/// Maximum number of delayed datagrams: beyond it the oldest is sent.
const MOST_DELAYED: usize = 1 << 16;
/// Number of end-of-session packets before another session.
const ENDS: usize = 3;

/// A line that applies the faults of a [`Script`] to its datagrams.
///
/// For senders, not for the hot path of a receiver: a datagram that is held back is copied into its own memory. The
/// number of held datagrams is bounded: see [`Fault`](super::Fault)'s limits, and 65,536 delayed datagrams.
#[derive(Debug)]
pub struct FaultyLine {
    line: Line,
    seed: u64,
    rules: Vec<Rule>,
    delay_ns: u64,
    numbering: Numbering,
    /// Number of datagrams so far, those of [`ENDS`] included.
    datagrams: u64,
    /// Number of datagrams with messages, and number without messages since the last of those: the random faults are drawn from them.
    drawn: (u64, u64),
    bytes: Vec<u8>,
    /// Datagrams to be overtaken, by the datagram number after which each is sent, then in the order of insertion.
    overtaken: BTreeMap<(u64, u64), Box<[u8]>>,
    /// Number of insertions into `overtaken`.
    held_back: u64,
    /// Delayed datagrams with their send times.
    delayed: VecDeque<(Nanos, Box<[u8]>)>,
}

/// A fault, with the number of datagrams that its present burst still loses.
#[derive(Clone, Copy, Debug)]
struct Rule {
    kind: FaultKind,
    burst_left: u32,
}

impl FaultyLine {
    /// Creates a line without traffic.
    #[must_use]
    pub fn new(script: &Script, seed: u64, line: Line) -> Self {
        let here = script.faults().iter().filter(|fault| fault.line.is_none_or(|only| only == line));
        let mut rules: Vec<Rule> = here.map(|fault| Rule { kind: fault.kind, burst_left: 0 }).collect();
        rules.sort_by_key(|rule| rule.kind.rank());
        let delay_ns = |rule: &Rule| if let FaultKind::Delay { by_ns } = rule.kind { by_ns } else { 0 };
        Self {
            line,
            seed,
            delay_ns: rules.iter().map(delay_ns).sum(),
            rules,
            numbering: Numbering::new(script),
            datagrams: 0,
            drawn: (0, 0),
            bytes: Vec::new(),
            overtaken: BTreeMap::new(),
            held_back: 0,
            delayed: VecDeque::new(),
        }
    }

    /// Accepts a datagram that would be sent now.
    pub fn datagram(&mut self, datagram: &[u8], now: Nanos, to: &mut impl Outlet) {
        self.release(now, to);
        let mut bytes = std::mem::take(&mut self.bytes);
        let source = Numbers::of(datagram);
        while let Some(turn) = self.numbering.turn(datagram) {
            for end in turn.end.iter().cycle().take(if turn.end.is_some() { ENDS } else { 0 }) {
                bytes.clear();
                bytes.extend_from_slice(end);
                self.suffer(&mut bytes, None, now, to);
            }
            let from = turn.from;
            let did = if turn.rolls { Did::Rolled { from } } else { Did::Reset { from } };
            bytes.clear();
            bytes.extend_from_slice(datagram);
            self.numbering.apply(&mut bytes);
            // The number of the next datagram.
            let (line, datagram) = (self.line, self.datagrams + 1);
            to.note(&Entry { line, datagram, numbers: Numbers::of(&bytes), did });
        }
        bytes.clear();
        bytes.extend_from_slice(datagram);
        self.numbering.apply(&mut bytes);
        self.suffer(&mut bytes, source, now, to);
        self.bytes = bytes;
    }

    /// Sends datagrams whose delay is over; [`datagram`](Self::datagram) does that too.
    pub fn release(&mut self, now: Nanos, to: &mut impl Outlet) {
        while self.next_release().is_some_and(|at| at <= now)
            && let Some((_, bytes)) = self.delayed.pop_front()
        {
            to.leave(&bytes);
        }
    }

    /// Returns the time at which [`release`](Self::release) has something to do.
    #[must_use]
    pub fn next_release(&self) -> Option<Nanos> {
        self.delayed.front().map(|(at, _)| *at)
    }

    /// Ends the input: datagrams that wait to be overtaken are sent now, and delayed ones at their time.
    pub fn finish(&mut self, now: Nanos, to: &mut impl Outlet) {
        self.release(now, to);
        while let Some((_, bytes)) = self.overtaken.pop_first() {
            self.leave(&bytes, now, to);
        }
    }

    /// Applies the faults to a datagram. `source` is its original session and sequences, before the exchange's resets.
    fn suffer(&mut self, bytes: &mut Vec<u8>, source: Option<Numbers>, now: Nanos, to: &mut impl Outlet) {
        self.datagrams += 1;
        let (line, datagram) = (self.line, self.datagrams);
        let numbers = Numbers::of(bytes);
        let mut note = |did| to.note(&Entry { line, datagram, numbers, did });
        let mut fate = self.draw(numbers);
        let mut overtaken_by = 0;
        let mut lost = false;
        for rule in &mut self.rules {
            // Each fault has its own random stream, so that an additional fault does not affect earlier ones.
            let mut random = Random::seeded(fate.word());
            let word = random.word() as u32;
            match rule.kind {
                FaultKind::Silence { from, to }
                    if source.is_some_and(|source| is_within(source, from, to)) =>
                {
                    note(Did::Silenced);
                    lost = true;
                }
                FaultKind::Loss { chance, burst } => {
                    if rule.burst_left == 0 && chance.hits(word) {
                        rule.burst_left = burst;
                    }
                    if rule.burst_left > 0 {
                        rule.burst_left -= 1;
                        if !lost {
                            note(Did::Lost);
                        }
                        lost = true;
                    }
                }
                // A lost datagram has no other fault.
                _ if lost => {}
                FaultKind::Duplicate { chance, after } if chance.hits(word) => {
                    note(Did::Duplicated { after });
                    self.held_back += 1;
                    let at = (datagram + u64::from(after), self.held_back);
                    self.overtaken.insert(at, bytes.as_slice().into());
                }
                FaultKind::Corrupt { chance, bytes: count, part } if chance.hits(word) => {
                    let changed = corrupt(bytes, count, part, &mut random);
                    if !changed.is_empty() {
                        note(Did::Corrupted { bytes: changed });
                    }
                }
                FaultKind::Truncate { chance } if chance.hits(word) => {
                    // The length of a datagram fits in 32 bits.
                    let length = random.below(bytes.len() as u32) as usize;
                    bytes.truncate(length);
                    note(Did::Truncated { to: length });
                }
                FaultKind::Reorder { chance, by } if chance.hits(word) => {
                    note(Did::Reordered { by });
                    overtaken_by = overtaken_by.max(by);
                }
                _ => {}
            }
        }
        if !lost {
            if overtaken_by == 0 {
                self.leave(bytes, now, to);
            } else {
                self.held_back += 1;
                let at = (datagram + u64::from(overtaken_by), self.held_back);
                self.overtaken.insert(at, bytes.as_slice().into());
            }
        }
        while let Some(entry) = self.overtaken.first_entry().filter(|entry| entry.key().0 <= datagram) {
            let bytes = entry.remove();
            self.leave(&bytes, now, to);
        }
    }

    /// Returns the random stream of a datagram. The number of packets without messages depends on time, so they have a separate count.
    fn draw(&mut self, numbers: Option<Numbers>) -> Random {
        match numbers {
            Some(Numbers { messages: 0, .. }) => self.drawn.1 += 1,
            _ => self.drawn = (self.drawn.0 + 1, 0),
        }
        let mut random = Random::seeded(self.seed);
        for part in [self.line.number() as u64, self.drawn.0, self.drawn.1] {
            random = Random::seeded(random.word() ^ part);
        }
        random
    }

    fn leave(&mut self, bytes: &[u8], now: Nanos, to: &mut impl Outlet) {
        if self.delay_ns == 0 {
            to.leave(bytes);
            return;
        }
        if self.delayed.len() == MOST_DELAYED
            && let Some((_, bytes)) = self.delayed.pop_front()
        {
            to.leave(&bytes);
            let (line, datagram, numbers) = (self.line, self.datagrams, Numbers::of(&bytes));
            to.note(&Entry { line, datagram, numbers, did: Did::Hurried });
        }
        self.delayed.push_back((now + self.delay_ns, bytes.into()));
    }
}

/// Returns `true` if a packet belongs to the messages `from` to before `to`: by its first message, or by the last one before it.
fn is_within(numbers: Numbers, from: u64, to: u64) -> bool {
    (from..to).contains(&numbers.message())
}

/// Changes `count` random bytes of a part, and returns their offsets and masks; fewer if one is drawn twice, none if the part is empty.
fn corrupt(bytes: &mut [u8], count: u32, part: DatagramPart, random: &mut Random) -> Vec<(usize, u8)> {
    let header = HEADER_BYTES.min(bytes.len());
    let range = match part {
        DatagramPart::Any => 0..bytes.len(),
        DatagramPart::Header => 0..header,
        DatagramPart::Payload => header..bytes.len(),
    };
    let mut changed = BTreeMap::new();
    for _ in 0..if range.is_empty() { 0 } else { count } {
        // The length of a datagram fits in 32 bits. The mask is never zero, which would change nothing.
        let at = range.start + random.below(range.len() as u32) as usize;
        changed.entry(at).or_insert(1 + random.below(255) as u8);
    }
    for (at, mask) in &changed {
        bytes[*at] ^= mask;
    }
    changed.into_iter().collect()
}
