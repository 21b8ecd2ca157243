//! The control messages of a datagram: its stamp, the kernel's drop count, and the length of datagrams that it has joined.

use tapeline_nanos::Nanos;

/// A `cmsghdr`: a length that includes the header, a level, a type. `cmsg(3)`.
const HEADER_BYTES: usize = size_of::<libc::cmsghdr>();

/// Returns the first `N` bytes of the control message of this level and type.
#[inline]
pub(super) fn control_value<const N: usize>(mut control: &[u8], wanted: (i32, i32)) -> Option<[u8; N]> {
    // At most one round per header, since every round removes at least one.
    while let Some(&header) = control.first_chunk::<HEADER_BYTES>() {
        let length = usize::from_ne_bytes(*header.first_chunk()?);
        let level = i32::from_ne_bytes(*header[size_of::<usize>()..].first_chunk()?);
        let kind = i32::from_ne_bytes(*header[size_of::<usize>() + 4..].first_chunk()?);
        if (level, kind) == wanted {
            return control.get(HEADER_BYTES..length)?.first_chunk().copied();
        }
        let step = length.max(HEADER_BYTES).checked_next_multiple_of(align_of::<usize>())?;
        control = control.get(step..)?;
    }
    None
}

/// Converts a kernel `timespec`, two native words, to nanoseconds since 1970.
pub(super) fn nanos(timespec: [u8; 16]) -> Option<Nanos> {
    let seconds = i64::from_ne_bytes(*timespec.first_chunk()?);
    let ns = i64::from_ne_bytes(*timespec.last_chunk()?);
    let seconds = u64::try_from(seconds).ok()?;
    let ns = u64::try_from(ns).ok()?;
    // A machine whose clock was never set reports the epoch itself: not a valid stamp.
    seconds.checked_mul(1_000_000_000)?.checked_add(ns).filter(|&total| total > 0).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize, kind: i32, value: &[u8]) -> Vec<u8> {
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn control_messages_are_found_behind_others() {
        let mut control = message(20, libc::SO_RXQ_OVFL, &7u32.to_ne_bytes());
        let stamp: Vec<u8> = [1u64.to_ne_bytes(), 5u64.to_ne_bytes()].concat();
        control.extend(message(32, libc::SCM_TIMESTAMPNS, &stamp));
        assert_eq!(
            control_value::<4>(&control, (libc::SOL_SOCKET, libc::SO_RXQ_OVFL)),
            Some(7u32.to_ne_bytes())
        );
        assert_eq!(
            control_value::<16>(&control, (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)).and_then(nanos),
            Some(Nanos(1_000_000_005))
        );
        assert_eq!(control_value::<4>(&control, (libc::SOL_SOCKET, libc::SCM_RIGHTS)), None);
    }

    #[test]
    fn odd_lengths_in_control_messages_end_the_search() {
        for length in [0, 1, 15, 16, 19, 4096, usize::MAX, usize::MAX - 8] {
            let control = message(length, libc::SO_RXQ_OVFL, &7u32.to_ne_bytes());
            assert_eq!(control_value::<4>(&control, (libc::SOL_SOCKET, libc::SO_RXQ_OVFL)), None, "{length}");
            assert_eq!(
                control_value::<16>(&control, (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)),
                None,
                "{length}"
            );
        }
        assert_eq!(control_value::<4>(&[0; 11], (libc::SOL_SOCKET, 1)), None);
        assert_eq!(control_value::<4>(&[0; 64], (libc::SOL_SOCKET, 1)), None);
    }

    #[test]
    fn stamps_before_1970_and_unset_ones_are_none() {
        let pair = |seconds: i64, ns: i64| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&seconds.to_ne_bytes());
            bytes[8..].copy_from_slice(&ns.to_ne_bytes());
            nanos(bytes)
        };
        assert_eq!(pair(0, 0), None);
        assert_eq!(pair(-1, 0), None);
        assert_eq!(pair(i64::MAX, 0), None);
        assert_eq!(pair(0, 1), Some(Nanos(1)));
    }
}
