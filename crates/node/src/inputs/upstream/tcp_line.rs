//! A line into a plant over TCP, with or without TLS. It is connected while the ticks come from the lines: it then begins with the first tick
//! that this plant lacks, also after a loss of the connection, so that nothing needs to be requested again.

use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

use tapeline_measure::Nanos;
use tapeline_plant::Seq;
use tapeline_plant::bridge::BridgeSession;
use tapeline_plant::bridge::clocks::ClockExchange;
use tapeline_plant::bridge::tcp_line::{LONGEST_PART, NotALine, datagram, follow};
use tapeline_wire::tcp::{Interest, Received, Stream};
use tapeline_wire::tls::Tls;

use crate::events::{Events, Kind, Severity};

/// The buffer of the connection: some of the longest datagrams.
const INPUT_BYTES: usize = 4 * LONGEST_PART;
/// How long the plant above may send nothing: it sends a heartbeat ten times a second.
const PATIENCE_NS: i64 = 5_000_000_000;
/// The first pause after a loss, and the longest: each is twice as long as the one before.
const PAUSES_NS: (u64, u64) = (100_000_000, 5_000_000_000);
/// A connection that has lasted this long is sound: the next loss is reported, and has the first pause.
const SOUND_NS: i64 = 1_000_000_000;

/// How the connections to the plant above are encrypted.
#[derive(Clone, Debug)]
pub struct TlsToPlant {
    /// The trusted certificates.
    pub tls: Tls,
    /// The name or address that the certificate of the plant above must have; `None`: the address that is connected to.
    pub server_name: Option<String>,
}

impl TlsToPlant {
    /// Begins to connect, with TLS if there are settings for it.
    pub(super) fn connect(
        this: Option<&Self>,
        server: SocketAddr,
        input_bytes: usize,
    ) -> Result<Stream, tapeline_wire::Error> {
        let Some(Self { tls, server_name }) = this else { return Stream::connect(server, input_bytes) };
        let name = server_name.clone().unwrap_or_else(|| server.ip().to_string());
        Stream::connect_tls(server, tls, &name, input_bytes)
    }
}

/// The receiving end of a line over TCP.
pub(super) struct TcpLineReceiver {
    server: SocketAddr,
    tls: Option<TlsToPlant>,
    connection: Option<Connection>,
    /// No connection is made before this.
    not_before: Nanos,
    pause_ns: u64,
    /// The loss was reported; a sound connection ends it.
    has_complained: bool,
    losses: u64,
}

struct Connection {
    stream: Stream,
    begun: Nanos,
    /// When the plant above last sent something.
    heard: Nanos,
    /// A datagram has come.
    is_line: bool,
    /// When the plant above was last asked for the time, and its answer if that has come.
    asked: Option<Nanos>,
    answer: Option<ClockExchange>,
    /// What has come is not of a line.
    fault: Option<NotALine>,
}

/// Why a connection is lost.
enum Lost {
    Failed(tapeline_wire::Error),
    NotALine(NotALine),
    Closed,
    Silent,
}

impl From<tapeline_wire::Error> for Lost {
    fn from(error: tapeline_wire::Error) -> Self {
        Self::Failed(error)
    }
}

impl TcpLineReceiver {
    pub(super) fn new(server: SocketAddr, tls: Option<TlsToPlant>) -> Self {
        let (connection, not_before, pause_ns) = (None, Nanos(0), PAUSES_NS.0);
        Self { server, tls, connection, not_before, pause_ns, has_complained: false, losses: 0 }
    }

    /// Keeps the connection, and reads from it. `wanted`: the session and the first tick that the lines are to bring; `None` while the ticks
    /// come from elsewhere.
    pub(super) fn turn(
        &mut self,
        wanted: Option<(BridgeSession, Seq)>,
        now: Nanos,
        upstream: &str,
        events: &Events,
    ) {
        let Some((session, next)) = wanted else {
            // What it would bring meanwhile could not be used.
            self.connection = None;
            return;
        };
        if self.connection.is_none() && now < self.not_before {
            return;
        }
        let Err(lost) = self.read(session, next, now) else { return };
        let is_line = self.connection.take().is_none_or(|it| it.is_line || !it.stream.is_connected());
        self.losses += 1;
        self.not_before = now + self.pause_ns;
        self.pause_ns = PAUSES_NS.1.min(2 * self.pause_ns);
        if std::mem::replace(&mut self.has_complained, true) {
            return;
        }
        let (why, hint) = match lost {
            Lost::Failed(error) => (error.to_string(), error.hint()),
            Lost::NotALine(error) => (error.to_string(), None),
            Lost::Closed => {
                ("the plant above has closed the connection; its own messages may say why".to_owned(), None)
            }
            Lost::Silent => ("nothing has come for 5 s".to_owned(), None),
        };
        let hint = hint.or_else(|| (!is_line).then(|| HINT.to_owned()));
        let said = format_args!(
            "upstream {upstream}, line to {}: {why}; it is connected again when that is possible",
            self.server
        );
        match hint {
            // Once for each loss.
            Some(hint) => events.warning_with(said, hint),
            None => events.peer(now, Kind::Bridge, Severity::Warning, said),
        }
    }

    fn read(&mut self, session: BridgeSession, next: Seq, now: Nanos) -> Result<(), Lost> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => {
                let mut stream = TlsToPlant::connect(self.tls.as_ref(), self.server, INPUT_BYTES)?;
                stream.output().extend_from_slice(&follow(session, next));
                self.connection.insert(Connection {
                    stream,
                    begun: now,
                    heard: now,
                    is_line: false,
                    asked: None,
                    answer: None,
                    fault: None,
                })
            }
        };
        if let Some(fault) = connection.fault {
            return Err(Lost::NotALine(fault));
        }
        connection.stream.flush()?;
        if let Ok(Some(_)) = datagram(connection.stream.bytes()) {
            // What came before is taken first.
            return Ok(());
        }
        match connection.stream.receive()? {
            Received::Bytes(_) => {
                connection.heard = now;
                if now.since(connection.begun) >= SOUND_NS {
                    (self.pause_ns, self.has_complained) = (PAUSES_NS.0, false);
                }
            }
            Received::Closed => return Err(Lost::Closed),
            _ if now.since(connection.heard) >= PATIENCE_NS => return Err(Lost::Silent),
            _ => {}
        }
        Ok(())
    }

    /// Passes on up to `limit` datagrams that were read. Returns their number.
    pub(super) fn receive(
        &mut self,
        limit: usize,
        mut each: impl FnMut(&[u8], Option<SocketAddrV4>),
    ) -> usize {
        let Some(connection) = &mut self.connection else { return 0 };
        let Connection { stream, is_line, answer, fault, .. } = connection;
        let source = match self.server {
            SocketAddr::V4(server) => Some(server),
            SocketAddr::V6(_) => None,
        };
        let (mut used, mut count) = (0, 0);
        while count < limit {
            match datagram(&stream.bytes()[used..]) {
                Ok(Some(datagram)) => {
                    used += 2 + datagram.len();
                    count += 1;
                    match ClockExchange::decode(datagram) {
                        Some(time) => *answer = Some(time),
                        None => each(datagram, source),
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    *fault = Some(error);
                    break;
                }
            }
        }
        stream.consume(used);
        *is_line |= count > 0;
        count
    }

    /// Asks the plant above for the time, if this is a line, and the last request was answered. Returns whether it was asked.
    pub(super) fn ask_time(&mut self, request: &ClockExchange) -> bool {
        let Some(connection) = self.connection.as_mut().filter(|it| it.is_line && it.asked.is_none()) else {
            return false;
        };
        connection.asked = Some(request.sent);
        connection.stream.output().extend_from_slice(&request.encode());
        // What is not sent now, or fails, shows in the next turn.
        let _ = connection.stream.flush();
        true
    }

    /// Takes the answer to the last request for the time, if it has come.
    pub(super) fn take_time(&mut self) -> Option<ClockExchange> {
        let Connection { asked, answer, .. } = self.connection.as_mut()?;
        let answer = answer.take().filter(|answer| *asked == Some(answer.sent))?;
        *asked = None;
        Some(answer)
    }

    /// Returns what to wait for, if there is a connection.
    pub(super) fn readiness(&self) -> Option<(BorrowedFd<'_>, Interest)> {
        self.connection.as_ref().map(|connection| (connection.stream.as_fd(), connection.stream.interest()))
    }

    /// Returns how often a connection was lost, or could not be made.
    pub(super) const fn losses(&self) -> u64 {
        self.losses
    }
}

/// Advice for what may be a wrong address.
const HINT: &str = "tcp in [[upstream.line]] is that of a [[bridge.line]] of the plant above; with cert there, tls = true is needed here";
