//! A tickerplant to connect to, and a connection to it.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};
use tapeline_kdb::{Capability, Encoder, Frames, Hello, MessageKind, Refused};
use tapeline_wire::streams::Socket;
use tapeline_wire::tcp::Received;

use crate::failure::Hinted;

/// Where a tickerplant listens, and who is to be said to connect: `host:port[:user:password]` as kdb+ has it, or the path of a
/// Unix-domain socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    at: At,
    user: String,
    password: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum At {
    Tcp(SocketAddr),
    Local(PathBuf),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return Ok(Self { at: At::Local(text.into()), user: String::new(), password: String::new() });
        }
        let expected = || {
            format!("'{text}' is no tickerplant; write HOST:PORT, HOST:PORT:USER:PASSWORD or a socket's path")
        };
        let mut parts = text.splitn(4, ':');
        let (host, port) = (parts.next().unwrap_or_default(), parts.next().ok_or_else(expected)?);
        let host = if host.is_empty() { "localhost" } else { host };
        let port: u16 = port.parse().map_err(|_| expected())?;
        let mut addresses = (host, port).to_socket_addrs().map_err(|cause| format!("{host}: {cause}"))?;
        let mut rest = || parts.next().unwrap_or_default().to_owned();
        Ok(Self { at: At::Tcp(addresses.next().ok_or_else(expected)?), user: rest(), password: rest() })
    }
}

impl Place {
    /// As it is written on a command line.
    pub(super) fn argument(&self) -> String {
        match &self.at {
            At::Tcp(address) => format!("{address}:{}:{}", self.user, self.password),
            At::Local(path) => path.display().to_string(),
        }
    }
}

/// The longest sleep of one who waits: a signal to end is heeded so soon.
const NAP: Duration = Duration::from_millis(20);
/// For how long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a tickerplant, let in.
pub(super) struct Link {
    socket: Socket,
    frames: Frames,
    spins: bool,
}

impl Link {
    /// Connects and says who it is.
    pub(super) fn open(place: &Place, most_message: usize, spins: bool) -> anyhow::Result<Self> {
        let socket = match &place.at {
            At::Tcp(address) => Socket::connect(*address),
            At::Local(path) => Socket::connect_local(path),
        };
        let socket = socket.context("cannot connect to the tickerplant")?;
        let mut link = Self { socket, frames: Frames::new(most_message), spins };
        let hello = Hello {
            user: place.user.as_bytes(),
            password: place.password.as_bytes(),
            capability: Capability::OURS,
        };
        let mut room = [0; 512];
        let len = hello.write(&mut room)?;
        link.send(&room[..len])?;
        let mut capability = [0];
        for _ in 0..PATIENCE.as_nanos() / NAP.as_nanos() {
            match link.socket.receive(&mut capability)? {
                Received::Bytes(_) => return Ok(link),
                Received::Closed => break,
                _ => _ = link.socket.wait(false, NAP),
            }
        }
        Err(Hinted::new("the tickerplant let nobody in", "HOST:PORT:USER:PASSWORD names a user").into())
    }

    /// Sends all of it; whether it had to wait for room.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> anyhow::Result<bool> {
        let mut has_waited = false;
        loop {
            let count = self.socket.send(bytes)?;
            bytes = &bytes[count..];
            if bytes.is_empty() {
                return Ok(has_waited);
            }
            has_waited = true;
            self.socket.wait(true, NAP);
        }
    }

    /// Sends one message.
    pub(super) fn say(
        &mut self,
        kind: MessageKind,
        write: impl FnOnce(&mut Encoder<'_>) -> Result<(), Refused>,
    ) -> anyhow::Result<()> {
        let mut room = [0; 512];
        let mut message = Encoder::message(&mut room, kind)?;
        write(&mut message)?;
        let len = message.finish()?;
        self.send(&room[..len]).map(|_| ())
    }

    /// Reads once, after a wait if it does not spin: whether something came, which is then in [`frames`](Self::frames).
    pub(super) fn receive(&mut self) -> anyhow::Result<bool> {
        match self.socket.receive(self.frames.room())? {
            Received::Bytes(count) => {
                self.frames.received(count);
                return Ok(true);
            }
            Received::Closed => bail!("the tickerplant has closed the connection"),
            Received::Nothing | Received::Full => {}
        }
        if !self.spins {
            self.socket.wait(false, NAP);
        }
        Ok(false)
    }

    /// What came.
    pub(super) const fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_as_kdb_writes_them() {
        for (text, written) in [
            ("127.0.0.1:5010", "127.0.0.1:5010::"),
            ("127.0.0.1:5010:me:a:b", "127.0.0.1:5010:me:a:b"),
            ("/tmp/kx.5010", "/tmp/kx.5010"),
        ] {
            let place: Place = text.parse().unwrap();
            assert_eq!(place.argument(), written);
            assert_eq!(place.argument().parse::<Place>().unwrap(), place);
        }
        for text in ["", "5010", "localhost:x"] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }
}
