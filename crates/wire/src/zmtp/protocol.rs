//! One subscriber's protocol, without its socket: greeting, handshake, subscriptions.

use super::frame;
use super::topics::LONGEST;

/// A greeting of ZMTP 3: signature, version, mechanism, filler (RFC 37, section 3.1).
pub(super) const GREETING: usize = 64;
/// Maximum body of a received frame in bytes: enough for a subscription as a command, and for a handshake
/// with a peer's properties.
pub(super) const MOST: usize = 2 * LONGEST;
/// The greeting that is sent: version 3.1, NULL, not a server.
pub(super) const OUR_GREETING: [u8; GREETING] = {
    let mut greeting = [0; GREETING];
    (greeting[0], greeting[8], greeting[9]) = (0xFF, 1, 0x7F);
    (greeting[10], greeting[11]) = (3, 1);
    (greeting[12], greeting[13], greeting[14], greeting[15]) = (b'N', b'U', b'L', b'L');
    greeting
};

/// Why a subscriber is disconnected: its fault, as far as known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubscriberFault {
    /// The peer does not speak ZeroMQ.
    #[error("this is not ZMTP: its first byte is {0:#04x}, and 0xff is expected")]
    NotZmtp(u8),
    /// An older version.
    #[error("it speaks ZMTP {0}; 3.0 and newer are supported (libzmq 4)")]
    Version(u8),
    /// A mechanism other than NULL.
    #[error("it asks for the mechanism {0}; only NULL is supported, without encryption or passwords")]
    Mechanism(String),
    /// A socket that is not a subscriber.
    #[error("its socket is a {0}; SUB and XSUB are expected")]
    SocketType(String),
    /// An invalid handshake.
    #[error("its handshake is not a READY command that can be read")]
    Handshake,
    /// A frame longer than a subscriber needs.
    #[error("a frame of {0} bytes; at most {MOST} are allowed")]
    TooLong(u64),
    /// A frame with invalid flags.
    #[error("a frame with the invalid flags {0:#04x}")]
    Flags(u8),
    /// More subscriptions than one subscriber, or all together, may have.
    #[error("too many subscriptions")]
    TooManySubscriptions,
}

/// A request of a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked<'a> {
    /// Subscribe to messages whose topic begins with this prefix, at most 512 bytes.
    Subscribe(&'a [u8]),
    /// Cancel the subscription to this prefix.
    Cancel(&'a [u8]),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Greeting,
    Handshake,
    Open,
}

/// The publisher's state of one connection, without its socket. It stores no bytes: pass unconsumed bytes again.
#[derive(Debug, Default)]
pub struct Protocol {
    phase: Phase,
    /// Inside a message of several parts; requests never have several.
    in_message: bool,
}

impl Protocol {
    /// Returns `true` if messages can be sent to the subscriber.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Processes received bytes as far as possible and returns the number of bytes to consume. Answers are appended to
    /// `out`, whose size the caller limits.
    ///
    /// # Errors
    /// The peer's fault, or the error that `each` returned: disconnect the peer.
    pub fn take(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        mut each: impl FnMut(Asked<'_>) -> Result<(), SubscriberFault>,
    ) -> Result<usize, SubscriberFault> {
        let mut taken = 0;
        if self.phase == Phase::Greeting {
            if !greeted(bytes)? {
                return Ok(0);
            }
            taken = GREETING;
            self.phase = Phase::Handshake;
            frame::put_command(out, "READY", b"\x0bSocket-Type\0\0\0\x03PUB");
        }
        loop {
            let rest = bytes.get(taken..).unwrap_or_default();
            let Some((frame, len)) = frame::find(rest, MOST)? else { return Ok(taken) };
            taken += len;
            if self.phase == Phase::Handshake {
                if let Err(fault) = shaken(frame) {
                    if let SubscriberFault::SocketType(_) = fault {
                        // So that the peer's log shows the reason: its length, then the text.
                        frame::put_command(out, "ERROR", b"\x18SUB or XSUB are expected");
                    }
                    return Err(fault);
                }
                self.phase = Phase::Open;
                continue;
            }
            if frame.is_command {
                match frame::command(frame.body) {
                    Some((b"SUBSCRIBE", topic)) => each(Asked::Subscribe(within(topic)?))?,
                    Some((b"CANCEL", topic)) => each(Asked::Cancel(within(topic)?))?,
                    // The time to live is for peers that disappear silently; the answer repeats the context,
                    // at most 16 bytes.
                    Some((b"PING", ping)) => {
                        let context = ping.get(2..).unwrap_or_default();
                        frame::put_command(out, "PONG", context.get(..16).unwrap_or(context));
                    }
                    // PONG, ERROR, and commands of later versions.
                    _ => {}
                }
                continue;
            }
            let is_part = self.in_message || frame.has_more;
            self.in_message = frame.has_more;
            // An XSUB may also send its application's messages: they are ignored here.
            match frame.body.split_first() {
                Some((1, topic)) if !is_part => each(Asked::Subscribe(within(topic)?))?,
                Some((0, topic)) if !is_part => each(Asked::Cancel(within(topic)?))?,
                _ => {}
            }
        }
    }
}

fn within(topic: &[u8]) -> Result<&[u8], SubscriberFault> {
    if topic.len() > LONGEST { Err(SubscriberFault::TooLong(topic.len() as u64)) } else { Ok(topic) }
}

/// Returns `true` if the greeting is complete. Fails as soon as it is known to be invalid.
fn greeted(bytes: &[u8]) -> Result<bool, SubscriberFault> {
    match bytes.first() {
        Some(0xFF) | None => {}
        Some(other) => return Err(SubscriberFault::NotZmtp(*other)),
    }
    // The signature's last byte has its last bit set, whatever the length field before it.
    if let Some(end) = bytes.get(9)
        && end & 1 == 0
    {
        return Err(SubscriberFault::NotZmtp(*end));
    }
    if let Some(version) = bytes.get(10)
        && *version < 3
    {
        return Err(SubscriberFault::Version(*version));
    }
    let Some(mechanism) = bytes.get(12..32) else { return Ok(false) };
    let name = mechanism.split(|byte| *byte == 0).next().unwrap_or_default();
    if name != b"NULL" {
        return Err(SubscriberFault::Mechanism(String::from_utf8_lossy(name).escape_debug().to_string()));
    }
    Ok(bytes.len() >= GREETING)
}

/// Checks that a frame is a subscriber's handshake.
fn shaken(frame: frame::Frame<'_>) -> Result<(), SubscriberFault> {
    let named = if frame.is_command { frame::command(frame.body) } else { None };
    let Some((b"READY", mut properties)) = named else { return Err(SubscriberFault::Handshake) };
    while let Some((len, rest)) = properties.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*len)).ok_or(SubscriberFault::Handshake)?;
        let (len, rest) = rest.split_first_chunk::<4>().ok_or(SubscriberFault::Handshake)?;
        let len = usize::try_from(u32::from_be_bytes(*len)).map_err(|_| SubscriberFault::Handshake)?;
        let (value, rest) = rest.split_at_checked(len).ok_or(SubscriberFault::Handshake)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return match value {
                b"SUB" | b"XSUB" => Ok(()),
                other => Err(SubscriberFault::SocketType(
                    String::from_utf8_lossy(other).escape_debug().to_string(),
                )),
            };
        }
        properties = rest;
    }
    Err(SubscriberFault::Handshake)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &[u8] = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB";

    /// Returns the answers to a subscriber, its requests, and the result.
    fn run(bytes: &[u8]) -> (Vec<u8>, Vec<String>, Result<usize, SubscriberFault>) {
        let (mut out, mut asked) = (Vec::new(), Vec::new());
        let taken = Protocol::default().take(bytes, &mut out, |what| {
            asked.push(format!("{what:?}"));
            Ok(())
        });
        (out, asked, taken)
    }

    fn greeted_by(more: &[&[u8]]) -> Vec<u8> {
        [&OUR_GREETING[..], &more.concat()].concat()
    }

    #[test]
    fn a_subscriber_is_let_in_and_says_what_it_wants_in_either_way() {
        let said = greeted_by(&[
            READY,
            b"\x04\x0c\x09SUBSCRIBEA/",
            b"\0\x03\x01B/",
            b"\x04\x08\x06CANCELC",
            b"\0\x02\0D",
            b"\x04\x0a\x04PING\0\x05ctx",
            // A message of the application, of two parts, and half of another frame.
            b"\x01\x02\x01E\0\x02\x01F",
            b"\0\x09",
        ]);
        let (out, asked, taken) = run(&said);
        assert_eq!(taken, Ok(said.len() - 2));
        assert_eq!(asked.len(), 4, "{asked:?}");
        assert_eq!(out, [&READY[..READY.len() - 3], b"PUB", b"\x04\x08\x04PONGctx"].concat());
    }

    #[test]
    fn whoever_is_no_subscriber_is_told_apart() {
        let changed = |at: usize, to: u8| {
            let mut greeting = OUR_GREETING;
            greeting[at] = to;
            greeting.to_vec()
        };
        for (said, fault) in [
            (b"GET / HTTP/1.1".to_vec(), SubscriberFault::NotZmtp(b'G')),
            (changed(9, 0x7E), SubscriberFault::NotZmtp(0x7E)),
            (changed(10, 2), SubscriberFault::Version(2)),
            (changed(12, b'P'), SubscriberFault::Mechanism("PULL".to_owned())),
            (greeted_by(&[b"\0\x02\x01A"]), SubscriberFault::Handshake),
            (greeted_by(&[b"\x04\x0c\x05READY\x0bSocket"]), SubscriberFault::Handshake),
            (
                greeted_by(&[b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH"]),
                SubscriberFault::SocketType("PUSH".to_owned()),
            ),
            (greeted_by(&[b"\x02\x10\0\0\0\0\0\0\0"]), SubscriberFault::TooLong(1 << 60)),
            (greeted_by(&[READY, b"\x10\0"]), SubscriberFault::Flags(0x10)),
        ] {
            assert_eq!(run(&said).2, Err(fault));
        }
    }
}
