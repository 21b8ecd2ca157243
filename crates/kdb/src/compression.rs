//! kdb+'s compression of messages.
//!
//! Every pair of neighbouring bytes has a place in a table of 256, by their exclusive or, which remembers where such a pair was
//! last. A flag says of each element whether it is one byte as it is, or two bytes that name a place in the table and how many
//! bytes behind the pair are as they were there. Eight flags stand before their eight elements. Both sides keep the same
//! table. The header and the size of the plain message, in four bytes, are not compressed. (Kx describes it by the functions
//! `z` and `u` of its Java client only; bytes of a q process agree with what is here.)

use crate::error::{Fault, Malformed};
use crate::message::{HEADER, Header};
use crate::order::{Item, Order};

/// Minimum length of a compressed message, in bytes; shorter messages are not compressed.
pub const LEAST_PACKED: usize = 2_000;

/// Where the elements begin: behind the header and the plain message's size.
const BEGIN: usize = HEADER + 4;
/// The pair itself, and what one byte can say.
const LONGEST: usize = 2 + 255;
/// What a block of eight elements takes at most: the flags, and two bytes for each.
const BLOCK: usize = 1 + 8 * 2;

const fn place(one: u8, other: u8) -> usize {
    (one ^ other) as usize
}

/// Compresses a message as kdb+ does, into `out`, and returns its compressed length. `None` if the message must be sent
/// uncompressed: it has at most [`LEAST_PACKED`] bytes, or would not shrink below half its length.
///
/// Connections within a host do not use compression: the caller decides. `out` needs half of the message's length.
#[must_use]
pub fn pack(message: &[u8], out: &mut [u8]) -> Option<usize> {
    let end = message.len();
    if end <= LEAST_PACKED || message[2] != 0 {
        return None;
    }
    let order = if message[0] == 1 { Order::Little } else { Order::Big };
    let size = u32::try_from(end).ok()?;
    let out = out.get_mut(..end / 2)?;
    out[..4].copy_from_slice(&message[..4]);
    out[2] = 1;
    // Where such a pair was last; 0 for nowhere, as the header is there.
    let mut seen = [0_usize; 256];
    // A pair enters the table after the next one was looked for.
    let mut late = None;
    let (mut at, mut len) = (HEADER, BEGIN);
    while at < end {
        if len + BLOCK > out.len() {
            return None;
        }
        let (flags_at, mut flags) = (len, 0);
        len += 1;
        for bit in 0..8 {
            if at >= end {
                break;
            }
            // The last two bytes are never the beginning of a repetition.
            let pair = (at + 3 <= end).then(|| place(message[at], message[at + 1]));
            let was = pair.map_or(0, |pair| seen[pair]);
            if let Some((pair, at)) = late.take() {
                seen[pair] = at;
            }
            match pair {
                // An equal first byte makes an equal second one.
                Some(pair) if was > 0 && message[was] == message[at] => {
                    seen[pair] = at;
                    let limit = end.min(at + LONGEST);
                    let same = (at + 2..limit)
                        .zip(was + 2..)
                        .take_while(|&(now, then)| message[now] == message[then]);
                    let more = same.count();
                    flags |= 1 << bit;
                    out[len] = pair as u8;
                    out[len + 1] = more as u8;
                    len += 2;
                    at += 2 + more;
                }
                _ => {
                    late = pair.map(|pair| (pair, at));
                    out[len] = message[at];
                    len += 1;
                    at += 1;
                }
            }
        }
        out[flags_at] = flags;
    }
    let sizes = [(4, len as u32), (HEADER, size)];
    for (at, size) in sizes {
        let bytes = match order {
            Order::Little => size.to_le_bytes(),
            Order::Big => size.to_be_bytes(),
        };
        out[at..at + 4].copy_from_slice(&bytes);
    }
    Some(len)
}

/// Decompresses a whole message into `out`, header included.
///
/// `most` is the maximum length of the plain message, in bytes. No more memory is taken, and none before it is certain
/// that the compressed bytes can expand to the stated size.
///
/// # Errors
/// The header is none of a compressed message, the plain message would be over `most`, or the bytes do not make it up.
pub fn unpack(packed: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    out.clear();
    let cut =
        |wanted| Malformed::new(packed.len(), Fault::Cut { what: "a compressed message", wanted, left: 0 });
    let Some((head, elements)) = packed.split_at_checked(BEGIN) else {
        return Err(cut(BEGIN - packed.len()));
    };
    let header = head[..HEADER].try_into().unwrap_or_default();
    let order = Header::parse(&header, usize::MAX)?.order;
    if !Header::parse(&header, usize::MAX)?.is_packed {
        return Err(Malformed::new(2, Fault::Packing(0)));
    }
    let said = i32::from_bytes(&head[HEADER..], order);
    let size = usize::try_from(said.cast_unsigned()).unwrap_or(usize::MAX);
    if size > most || size < HEADER + 2 {
        let found = said.cast_unsigned().into();
        return Err(Malformed::new(HEADER, Fault::Size { least: HEADER + 2, most, found }));
    }
    // No element gives more than its longest repetition.
    let elements_at_most = elements.len().div_ceil(BLOCK).saturating_mul(8);
    if (size - HEADER).div_ceil(LONGEST) > elements_at_most {
        return Err(Malformed::new(HEADER, Fault::Packed { expected: size }));
    }
    out.reserve_exact(size);
    out.extend_from_slice(&header);
    out[2] = 0;
    out[3] = 0;
    let plain_len = match order {
        Order::Little => said.to_le_bytes(),
        Order::Big => said.to_be_bytes(),
    };
    out[4..HEADER].copy_from_slice(&plain_len);
    plain(elements, size, out).map_err(|fault| fault.within(BEGIN))
}

/// Appends what the elements say until there are `size` bytes.
fn plain(elements: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let wrong = |at| Malformed::new(at, Fault::Packed { expected: size });
    let mut at = 0;
    let mut next = || {
        let byte = elements.get(at).copied().ok_or(wrong(at));
        at += 1;
        byte.map(|byte| (byte, at - 1))
    };
    let mut seen = [0_usize; 256];
    // The first byte whose pair is not in the table.
    let mut unseen = out.len();
    while out.len() < size {
        let (flags, _) = next()?;
        for bit in 0..8 {
            if out.len() >= size {
                break;
            }
            let (byte, at) = next()?;
            let repeats = flags & 1 << bit != 0;
            let mut was = 0;
            if repeats {
                was = seen[usize::from(byte)];
                if was == 0 {
                    return Err(Malformed::new(at, Fault::Reference));
                }
                // A pair that was seen: both bytes are there.
                out.extend_from_within(was..was + 2);
            } else {
                out.push(byte);
            }
            while unseen + 1 < out.len() {
                seen[place(out[unseen], out[unseen + 1])] = unseen;
                unseen += 1;
            }
            if repeats {
                let (more, at) = next()?;
                let end = out.len() + usize::from(more);
                if end > size {
                    return Err(wrong(at));
                }
                // It may go on into what it makes itself.
                for from in was + 2..was + 2 + usize::from(more) {
                    out.push(out[from]);
                }
                unseen = end;
            }
        }
    }
    match elements.len() - at {
        0 if out.len() == size => Ok(()),
        0 => Err(wrong(at)),
        more => Err(Malformed::new(at, Fault::Trailing(more))),
    }
}
