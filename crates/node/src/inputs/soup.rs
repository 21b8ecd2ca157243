//! A SoupBinTCP client on its socket, shared by the commands and the plant.

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use tapeline_feed::soupbintcp::{ClientEvent, ClientStep, LOGOUT, Login, SoupClient, Violation};
use tapeline_measure::Nanos;
use tapeline_wire::tcp::{Received, Stream};

/// Maximum bytes received and not consumed: four of the longest packets, as much as a socket returns at once.
const INPUT_BYTES: usize = 256 << 10;
/// How often the socket is read per call.
const ROUNDS: usize = 4;

/// A connection to a server, from before it is established until it ends.
#[derive(Debug)]
pub struct Link {
    stream: Stream,
    client: SoupClient,
}

/// Why a connection can no longer be used.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The connection could not be established, or broke.
    #[error(transparent)]
    Wire(#[from] tapeline_wire::Error),
    /// The server broke the protocol.
    #[error("the server broke the protocol: {0}")]
    Violation(#[from] Violation),
    /// The server sent nothing for too long.
    #[error("the server sent nothing for 15 s")]
    Silent,
    /// The server closed the connection without a message.
    #[error("the server closed the connection")]
    Closed,
}

impl Link {
    /// Starts to connect, and logs in once connected.
    pub fn connect(server: SocketAddrV4, login: Login, now: Nanos) -> Result<Self, Broken> {
        let mut stream = Stream::connect(server, INPUT_BYTES)?;
        let client = SoupClient::new(login, now);
        stream.output().extend_from_slice(&client.hello());
        Ok(Self { stream, client })
    }

    /// Takes input and sends what is due, without blocking. `each` gets the server's events and returns
    /// whether to continue; later events remain for the next call. Returns whether the session, or the login,
    /// is over.
    ///
    /// # Errors
    /// [`Broken`]; the link can no longer be used. Earlier events were passed on.
    pub fn step(
        &mut self,
        now: Nanos,
        mut each: impl FnMut(ClientEvent<'_>) -> bool,
    ) -> Result<bool, Broken> {
        self.stream.flush()?;
        for _ in 0..ROUNDS {
            let received = self.stream.receive()?;
            while let ClientStep::Event(event, bytes) = self.client.receive(self.stream.bytes(), now)? {
                let go_on = each(event);
                self.stream.consume(bytes);
                if self.client.is_over() {
                    return Ok(true);
                }
                if !go_on {
                    return Ok(false);
                }
            }
            match received {
                Received::Bytes(_) => {}
                Received::Closed => return Err(Broken::Closed),
                // The longest packet fits, so all available bytes were taken.
                Received::Nothing | Received::Full => break,
            }
        }
        if self.client.is_dead(now) {
            return Err(Broken::Silent);
        }
        if let Some(heartbeat) = self.client.heartbeat(now) {
            self.stream.output().extend_from_slice(heartbeat);
            self.stream.flush()?;
        }
        Ok(false)
    }

    /// Waits until there is something to do, for at most `timeout`.
    pub fn wait(&self, timeout: Duration) {
        self.stream.wait(timeout);
    }

    /// Logs out and closes. If the server misses the logout, it finds the connection closed.
    pub fn log_out(mut self) {
        self.stream.output().extend_from_slice(&LOGOUT);
        let _ = self.stream.flush();
        self.stream.finish();
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
