//! Frames of ZMTP 3.1: flags, a length of one byte or eight, a body (RFC 37, section 3.2).

use super::SubscriberFault;

const MORE: u8 = 0x01;
const LONG: u8 = 0x02;
const COMMAND: u8 = 0x04;
/// Length of the header of a long body in bytes.
const LONGEST_HEAD: usize = 9;

/// A complete frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) is_command: bool,
    /// Another part of the same message follows.
    pub(super) has_more: bool,
    pub(super) body: &'a [u8],
}

/// Reads a frame with a body of at most `most` bytes, and its length in bytes; none if it is incomplete. The stated
/// length is checked before use.
pub(super) fn find(bytes: &[u8], most: usize) -> Result<Option<(Frame<'_>, usize)>, SubscriberFault> {
    let Some((&flags, rest)) = bytes.split_first() else { return Ok(None) };
    if flags & !(MORE | LONG | COMMAND) != 0 || flags & COMMAND != 0 && flags & MORE != 0 {
        return Err(SubscriberFault::Flags(flags));
    }
    let (length, head) = if flags & LONG == 0 {
        let Some(&length) = rest.first() else { return Ok(None) };
        (u64::from(length), 2)
    } else {
        let Some(length) = rest.first_chunk::<8>() else { return Ok(None) };
        (u64::from_be_bytes(*length), LONGEST_HEAD)
    };
    let Some(len) = usize::try_from(length).ok().filter(|len| *len <= most) else {
        return Err(SubscriberFault::TooLong(length));
    };
    let frame = |body| Frame { is_command: flags & COMMAND != 0, has_more: flags & MORE != 0, body };
    Ok(bytes.get(head..head + len).map(|body| (frame(body), head + len)))
}

/// Appends a message of these parts.
pub(super) fn put_message(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for (number, part) in parts.iter().enumerate() {
        put(out, if number + 1 < parts.len() { MORE } else { 0 }, &[part]);
    }
}

/// Appends a command: the length of its name, its name, and its data.
pub(super) fn put_command(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    // The names are constants of this crate, and short.
    put(out, COMMAND, &[&[name.len() as u8], name.as_bytes(), data]);
}

fn put(out: &mut Vec<u8>, flags: u8, pieces: &[&[u8]]) {
    let len: usize = pieces.iter().map(|piece| piece.len()).sum();
    match u8::try_from(len) {
        Ok(len) => out.extend_from_slice(&[flags, len]),
        Err(_) => {
            out.push(flags | LONG);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    for piece in pieces {
        out.extend_from_slice(piece);
    }
}

/// Splits a command's body into its name and its data.
pub(super) fn command(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = body.split_first()?;
    rest.split_at_checked(usize::from(*len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_found_again_and_cut_it_is_a_part() {
        let long = vec![7; 256];
        let mut bytes = Vec::new();
        put_message(&mut bytes, &[b"topic", &long]);
        assert_eq!(bytes[..7], *b"\x01\x05topic");
        assert_eq!(bytes[7..16], [LONG, 0, 0, 0, 0, 0, 0, 1, 0]);
        let first = Frame { is_command: false, has_more: true, body: b"topic" };
        assert_eq!(find(&bytes, 256), Ok(Some((first, 7))));
        let second = Frame { is_command: false, has_more: false, body: &long };
        assert_eq!(find(&bytes[7..], 256), Ok(Some((second, 265))));
        for cut in 7..bytes.len() {
            assert_eq!(find(&bytes[7..cut], 256), Ok(None), "{cut}");
        }
    }

    #[test]
    fn lengths_are_not_believed() {
        assert_eq!(find(&[0, 200], 199), Err(SubscriberFault::TooLong(200)));
        let hostile = [&[LONG][..], &u64::MAX.to_be_bytes()].concat();
        assert_eq!(find(&hostile, 1024), Err(SubscriberFault::TooLong(u64::MAX)));
        assert_eq!(find(&[0x08, 0], 10), Err(SubscriberFault::Flags(8)));
        assert_eq!(find(&[COMMAND | MORE, 0], 10), Err(SubscriberFault::Flags(5)));
        assert_eq!((command(b"\x04PING!"), command(b"\x05PING")), (Some((&b"PING"[..], &b"!"[..])), None));
    }
}
