//! A tickerplant to connect to, and a connection to it.

use std::io::ErrorKind;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};
use tapeline_console::failure::Hinted;
use tapeline_kdb::{Capability, Encoder, Frames, Hello, MessageKind, Refused};
use tapeline_wire::Error;
use tapeline_wire::streams::Socket;
use tapeline_wire::tcp::Received;

/// Where a tickerplant listens: `HOST:PORT`, the path of a Unix-domain socket, or `@` and an abstract name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place(String);

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_place = is_local(text)
            || text
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        let expected = || format!("'{text}' is not a tickerplant; write HOST:PORT, a socket's path or @NAME");
        if is_place { Ok(Self(text.to_owned())) } else { Err(expected()) }
    }
}

impl Place {
    /// The place as written on a command line.
    pub(super) fn argument(&self) -> String {
        self.0.clone()
    }

    /// Whether it is a Unix-domain socket.
    pub(super) fn is_local(&self) -> bool {
        is_local(&self.0)
    }

    /// Connects to the first address of a name that accepts connections.
    fn connect(&self) -> anyhow::Result<Socket> {
        let what = || format!("cannot connect to the tickerplant at {}", self.0);
        if self.is_local() {
            return Socket::connect_local(Path::new(&self.0)).with_context(what);
        }
        let mut last = anyhow::anyhow!("the name has no address");
        for address in self.0.to_socket_addrs().with_context(what)? {
            match Socket::connect(address).map_err(anyhow::Error::from).and_then(connected) {
                Ok(socket) => return Ok(socket),
                Err(cause) => last = cause,
            }
        }
        Err(last.context(what()))
    }
}

fn is_local(text: &str) -> bool {
    text.contains('/') || text.starts_with('@')
}

/// Waits until a connection is established: nothing can be sent before.
fn connected(mut socket: Socket) -> anyhow::Result<Socket> {
    for _ in 0..PATIENCE.as_nanos() / NAP.as_nanos() {
        if socket.has_connected()? {
            return Ok(socket);
        }
        socket.wait(true, NAP);
    }
    bail!("nobody answers")
}

/// The environment variable with the login, `USER:PASSWORD`: other users can see command lines, but not it.
const LOGIN: &str = "TICK_LOGIN";

/// The longest sleep while waiting, so that a signal is handled soon.
const NAP: Duration = Duration::from_millis(20);
/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The result of one read of a connection.
pub(super) enum Came {
    Something,
    Nothing,
    /// The tickerplant has closed it.
    End,
}

/// A logged-in connection to a tickerplant.
pub(super) struct TickLink {
    socket: Socket,
    pub(super) frames: Frames,
    spins: bool,
}

impl TickLink {
    /// Connects and logs in.
    pub(super) fn open(place: &Place, most_message: usize, spins: bool) -> anyhow::Result<Self> {
        let mut link = Self { socket: place.connect()?, frames: Frames::new(most_message), spins };
        let login = std::env::var(LOGIN).unwrap_or_default();
        let (user, password) = login.split_once(':').unwrap_or((&login, ""));
        let (user, password) = (user.as_bytes(), password.as_bytes());
        let hello = Hello { user, password, capability: Capability::OURS };
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
        let hint = "TICK_LOGIN=USER:PASSWORD in the environment sets the user";
        Err(Hinted::new("the tickerplant refused the login", hint).into())
    }

    /// Sends everything; returns whether it had to wait for capacity.
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

    /// Reads once, after a wait if it does not spin. The data is then in [`frames`](Self#structfield.frames).
    pub(super) fn receive(&mut self) -> anyhow::Result<Came> {
        match self.socket.receive(self.frames.room()) {
            Ok(Received::Bytes(count)) => {
                self.frames.received(count);
                return Ok(Came::Something);
            }
            Ok(Received::Closed) => return Ok(Came::End),
            // The peer gets a reset if a connection is closed with unread data.
            Err(Error::Socket { cause, .. }) if cause.kind() == ErrorKind::ConnectionReset => {
                return Ok(Came::End);
            }
            Ok(Received::Nothing | Received::Full) => {}
            Err(other) => return Err(other.into()),
        }
        if !self.spins {
            self.socket.wait(false, NAP);
        }
        Ok(Came::Nothing)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn places_are_passed_on_as_they_were_written() {
        for (text, is_local) in [
            ("127.0.0.1:5010", false),
            ("localhost:5010", false),
            ("[::1]:5010", false),
            ("/tmp/kx.5010", true),
            ("@/tmp/kx.5010", true),
            ("@tick:5010", true),
        ] {
            let place: Place = text.parse().unwrap();
            assert_eq!((place.argument(), place.is_local()), (text.to_owned(), is_local));
        }
        for text in ["", "5010", ":5010", "localhost:x"] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }
}
