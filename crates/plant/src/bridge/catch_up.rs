//! The catch-up protocol: one request, one reply, then ticks, over TCP. All numbers are little-endian, as in a tick.
//!
//! ```text
//!  request (32):  magic (8)  plant's id, padded (3)  beginning (1)  zero (4)  epoch (8)  next (8)
//!  reply   (32):  magic (8)  session (10)  outcome (1)  zero (5)  next (8)
//!  then, for an outcome of 0 or 1, again and again:  length (4)  tick      at the end:  0 (4)  next (8)
//! ```
//! For a beginning of 3 the messages of [`demands`](super::demands) follow in place of ticks. Images, and the states of channels, are ticks with sequence 0. They are of one moment, and come behind the last tick before it.

use super::{BridgeSession, Epoch, PlantId};
use crate::Seq;

/// The first bytes of a request and of a reply; another layout has another last digit.
pub const MAGIC: &[u8; 8] = b"tapebrg1";
/// The length of a request, and of a reply, in bytes.
pub const HEAD_BYTES: usize = 32;
/// The longest tick: the largest image that the hub's clients can be sent, with its framing.
pub const LONGEST_TICK: usize = 17 << 20;

/// What a plant below needs besides the ticks that it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Beginning {
    /// Nothing: its readers know everything before.
    #[default]
    Nowhere = 0,
    /// The images of all items: its readers know nothing.
    Images = 1,
    /// All ticks of the epoch, if it has none, in place of images.
    Epoch = 2,
    /// No ticks: the connection is for [demands](super::demands), of the epoch that the plant below follows.
    Demands = 3,
}

/// What a plant below asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchUpRequest {
    /// The plant whose ticks are wanted.
    pub plant: PlantId,
    /// The epoch of the ticks that the plant below has; `None` if it has none.
    pub epoch: Option<Epoch>,
    /// The first sequence that it lacks; 0 if it has nothing.
    pub next: Seq,
    /// What it needs besides.
    pub beginning: Beginning,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Outcome {
    /// Ticks follow; the reply's sequence is that of the first, images apart.
    Ticks = 0,
    /// The epoch that was asked for is over: the rest of its ticks follows, or, if there is none, the ticks of the one after it. The reply's session
    /// is theirs. Then ask again, for the first tick of the next epoch.
    EpochOver = 1,
    /// The ticks are not to be had any more, or the epoch is unknown: the reply's sequence is 0. Or the plant below has ticks of an epoch that ended
    /// before them: it is the first one that is another tick above.
    Gone = 2,
    /// Too many plants are being answered: ask again later.
    Busy = 3,
    /// The plant above has another id; the session of the reply has it.
    OtherPlant = 4,
    /// The plant above takes no demands.
    NoDemands = 5,
}

/// The reply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchUpReply {
    /// The session of the plant above, or of the ticks that follow.
    pub session: BridgeSession,
    /// The outcome.
    pub outcome: Outcome,
    /// The sequence that the outcome is about.
    pub next: Seq,
}

/// The reason why bytes are not of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCatchUp {
    /// The peer is no catch-up server or client, or has another version of the layout.
    #[error("the peer does not speak this version of the catch-up protocol (tapebrg1)")]
    Magic,
    /// The session, the id or the outcome is not valid.
    #[error("the session or the outcome is not one of this version")]
    Head,
    /// A tick is announced that is longer than any.
    #[error("a tick of {0} bytes is announced; at most 17,825,792 are expected")]
    TooLong(usize),
}

/// The head of a request or a reply, with its magic checked.
fn head(bytes: &[u8; HEAD_BYTES]) -> Result<&[u8; HEAD_BYTES], NotCatchUp> {
    if bytes.starts_with(MAGIC) { Ok(bytes) } else { Err(NotCatchUp::Magic) }
}

fn number(bytes: &[u8; HEAD_BYTES], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |number| u64::from_le_bytes(*number))
}

impl CatchUpRequest {
    /// Returns the request's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        let id = BridgeSession { plant: self.plant, epoch: Epoch(0) }.to_mold();
        bytes[8..11].copy_from_slice(&id.0[1..4]);
        bytes[11] = self.beginning as u8;
        // No plant begins in epoch 0, which is 2025-01-01 00:00.
        bytes[16..24].copy_from_slice(&self.epoch.map_or(0, |epoch| epoch.0).to_le_bytes());
        bytes[24..].copy_from_slice(&self.next.0.to_le_bytes());
        bytes
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`NotCatchUp`].
    pub fn decode(bytes: &[u8; HEAD_BYTES]) -> Result<Self, NotCatchUp> {
        let bytes = head(bytes)?;
        let id = std::str::from_utf8(&bytes[8..11]).map_err(|_| NotCatchUp::Head)?;
        let plant = id.trim_end_matches('_').parse().map_err(|_| NotCatchUp::Head)?;
        let epoch = Some(Epoch(number(bytes, 16))).filter(|epoch| epoch.0 > 0);
        let beginning = match bytes[11] {
            0 => Beginning::Nowhere,
            1 => Beginning::Images,
            2 => Beginning::Epoch,
            3 => Beginning::Demands,
            _ => return Err(NotCatchUp::Head),
        };
        Ok(Self { plant, epoch, next: Seq(number(bytes, 24)), beginning })
    }
}

impl CatchUpReply {
    /// Returns the reply's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..18].copy_from_slice(&self.session.to_mold().0);
        bytes[18] = self.outcome as u8;
        bytes[24..].copy_from_slice(&self.next.0.to_le_bytes());
        bytes
    }

    /// Reads a reply.
    ///
    /// # Errors
    /// [`NotCatchUp`].
    pub fn decode(bytes: &[u8; HEAD_BYTES]) -> Result<Self, NotCatchUp> {
        let bytes = head(bytes)?;
        let session = std::str::from_utf8(&bytes[8..18]).map_err(|_| NotCatchUp::Head)?;
        let session = session.parse().map_err(|_| NotCatchUp::Head)?;
        let outcome = match bytes[18] {
            0 => Outcome::Ticks,
            1 => Outcome::EpochOver,
            2 => Outcome::Gone,
            3 => Outcome::Busy,
            4 => Outcome::OtherPlant,
            5 => Outcome::NoDemands,
            _ => return Err(NotCatchUp::Head),
        };
        Ok(Self { session, outcome, next: Seq(number(bytes, 24)) })
    }
}

/// Appends a tick, which must not be longer than [`LONGEST_TICK`], with its length in front.
pub fn put_tick(out: &mut Vec<u8>, tick: &[u8]) {
    // Lossless: far below `u32::MAX`.
    out.extend_from_slice(&(tick.len() as u32).to_le_bytes());
    out.extend_from_slice(tick);
}

/// Appends the end: `next` is the first sequence that does not follow, and that the lines have.
pub fn put_end(out: &mut Vec<u8>, next: Seq) {
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&next.0.to_le_bytes());
}

/// The next part of what follows a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A tick as it stands on a ring.
    Tick(&'a [u8]),
    /// The end: the lines have everything from this sequence on.
    End(Seq),
}

/// Reads the part at the front of `bytes`, and returns the number of its bytes with it; `None` if it has not arrived whole.
///
/// # Errors
/// [`NotCatchUp::TooLong`].
pub fn part(bytes: &[u8]) -> Result<Option<(Part<'_>, usize)>, NotCatchUp> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > LONGEST_TICK {
        return Err(NotCatchUp::TooLong(length));
    }
    if length == 0 {
        let next = rest.first_chunk().map(|next| u64::from_le_bytes(*next));
        return Ok(next.map(|next| (Part::End(Seq(next)), 12)));
    }
    Ok(rest.get(..length).map(|tick| (Part::Tick(tick), 4 + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_they_were_written() {
        let plant = "NY".parse().unwrap();
        for (epoch, beginning) in
            [(None, Beginning::Images), (Some(Epoch(9)), Beginning::Demands), (None, Beginning::Epoch)]
        {
            let request = CatchUpRequest { plant, epoch, next: Seq(77), beginning };
            assert_eq!(CatchUpRequest::decode(&request.encode()), Ok(request));
        }
        let session = BridgeSession { plant, epoch: Epoch(9) };
        for outcome in [Outcome::Ticks, Outcome::EpochOver, Outcome::Gone, Outcome::Busy, Outcome::OtherPlant]
        {
            let reply = CatchUpReply { session, outcome, next: Seq(78) };
            assert_eq!(CatchUpReply::decode(&reply.encode()), Ok(reply));
            assert_eq!(CatchUpRequest::decode(&[0; HEAD_BYTES]), Err(NotCatchUp::Magic));
            let mut damaged = reply.encode();
            damaged[18] = 6;
            assert_eq!(CatchUpReply::decode(&damaged), Err(NotCatchUp::Head));
        }
    }

    #[test]
    fn parts_are_found_when_they_are_whole() {
        let mut bytes = Vec::new();
        put_tick(&mut bytes, b"tick");
        put_end(&mut bytes, Seq(5));
        for short in 0..8 {
            assert_eq!(part(&bytes[..short]), Ok(None));
        }
        assert_eq!(part(&bytes), Ok(Some((Part::Tick(b"tick"), 8))));
        assert_eq!(part(&bytes[8..19]), Ok(None));
        assert_eq!(part(&bytes[8..]), Ok(Some((Part::End(Seq(5)), 12))));
        assert_eq!(part(&[255; 4]), Err(NotCatchUp::TooLong(u32::MAX as usize)));
    }
}
