//! A SoupBinTCP client on its socket: what the commands and the plant share.

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use tapeline_feed::soupbintcp::{Client, ClientEvent, ClientStep, LOGOUT, Login, Violation};
use tapeline_measure::Nanos;
use tapeline_wire::tcp::{Received, Stream};

/// Bytes that were received and not taken: four of the longest packets, and as much as a socket gives at once.
const INPUT_BYTES: usize = 256 << 10;
/// How often the socket is read before the caller has its turn.
const ROUNDS: usize = 4;

/// A connection to a server, from before it is made until it is over.
#[derive(Debug)]
pub struct Link {
    stream: Stream,
    client: Client,
}

/// Why a connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// It could not be made, or broke.
    #[error(transparent)]
    Wire(#[from] tapeline_wire::Error),
    /// The server broke the protocol.
    #[error("the server broke the protocol: {0}")]
    Violation(#[from] Violation),
    /// Nothing was heard for too long.
    #[error("the server sent nothing for 15 s")]
    Silent,
    /// The server closed without a word.
    #[error("the server closed the connection")]
    Closed,
}

impl Link {
    /// Begins to connect, and to log in as soon as that is done.
    pub fn connect(server: SocketAddrV4, login: Login, now: Nanos) -> Result<Self, Broken> {
        let mut stream = Stream::connect(server, INPUT_BYTES)?;
        let client = Client::new(login, now);
        stream.output().extend_from_slice(&client.hello());
        Ok(Self { stream, client })
    }

    /// Takes what has come and sends what is due, without waiting. `each` gets what the server said and says whether to go
    /// on; what it did not get stays for the next time. Whether the session, or the login, is over.
    ///
    /// # Errors
    /// [`Broken`]; the link is of no more use. What came before that was handed on.
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
                // The longest packet fits, so what is there was taken.
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

    /// Waits until there is something to do, at most so long.
    pub fn wait(&self, timeout: Duration) {
        self.stream.wait(timeout);
    }

    /// Says goodbye and closes. If the server does not hear it, it finds the connection closed.
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
