//! kdb+'s compression of messages.
//!
//! A table of 256 entries, indexed by the exclusive or of two adjacent bytes, records the last position of such a pair.
//! A flag per element says whether the element is one literal byte, or two bytes: an index in the table, and the number
//! of bytes after the pair that repeat those at the recorded position. Eight flags precede their eight elements. Both
//! ends build the same table. The header and the size of the plain message, in four bytes, are not compressed. (Kx
//! documents the format only by the functions `z` and `u` of its Java client; the output of a q process agrees.)

use crate::error::{Fault, Malformed};
use crate::message::{HEADER, Header};
use crate::order::{Item, Order};

/// Minimum length of a compressed message, in bytes; shorter messages are not compressed.
pub const LEAST_PACKED: usize = 2_000;

/// The offset of the first element: after the header and the plain message's size.
const BEGIN: usize = HEADER + 4;
/// The longest repetition: the pair itself, and a count in one byte.
const LONGEST: usize = 2 + 255;
/// The longest block of eight elements: the flags, and two bytes per element.
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
    // The last position of each pair; 0 for none, because the header is at 0.
    let mut seen = [0_usize; 256];
    // A pair enters the table after the lookup of the next one.
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
                // With the same exclusive or, an equal first byte implies an equal second byte.
                Some(pair) if was > 0 && message[was] == message[at] => {
                    seen[pair] = at;
                    let repeats = (at + 2..end.min(at + LONGEST)).zip(was + 2..);
                    let more = repeats.take_while(|&(now, then)| message[now] == message[then]).count();
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
    for (at, size) in [(4, len as u32), (HEADER, size)] {
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
/// The header is not that of a compressed message, the plain message would exceed `most`, or the bytes do not expand to
/// its size.
pub fn unpack(packed: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    out.clear();
    let cut =
        |wanted| Malformed::new(packed.len(), Fault::Cut { what: "a compressed message", wanted, left: 0 });
    let Some((head, elements)) = packed.split_at_checked(BEGIN) else {
        return Err(cut(BEGIN - packed.len()));
    };
    let header = head[..HEADER].try_into().unwrap_or_default();
    let Header { order, is_packed, .. } = Header::parse(&header, usize::MAX)?;
    if !is_packed {
        return Err(Malformed::new(2, Fault::Packing(0)));
    }
    let said = i32::from_bytes(&head[HEADER..], order).cast_unsigned();
    let size = usize::try_from(said).unwrap_or(usize::MAX);
    if size > most || size < HEADER + 2 {
        return Err(Malformed::new(HEADER, Fault::Size { least: HEADER + 2, most, found: said.into() }));
    }
    // No element expands to more than the longest repetition.
    let elements_at_most = elements.len().div_ceil(BLOCK).saturating_mul(8);
    if (size - HEADER).div_ceil(LONGEST) > elements_at_most {
        return Err(Malformed::new(HEADER, Fault::Packed { expected: size }));
    }
    out.reserve_exact(size);
    out.extend_from_slice(&header);
    out[2..4].fill(0);
    out[4..HEADER].copy_from_slice(&head[HEADER..]);
    plain(elements, size, out).map_err(|fault| fault.within(BEGIN))
}

/// Expands the elements until `out` has `size` bytes.
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
                // The pair is in the table, so both bytes exist.
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
                // The repetition may overlap its own output.
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
