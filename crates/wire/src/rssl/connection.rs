//! One connection: a session on a socket.

use std::sync::Arc;

use tapeline_nanos::Nanos;

use super::fault::{Fault, Reason};
use super::output::{Output, Sent};
use super::receiver::Following;
use super::session::{Event, Found, Negotiated, Session};
use super::settings::ConnectionSettings;
use super::transport::Transport;
use crate::tcp::{Input, Received};

/// Reads of a connection per turn.
const READS: u32 = 4;
/// Events of a connection per turn: a few compressed bytes can contain many messages.
const EVENTS: u32 = 4096;

/// Inflated bytes of a connection per turn, plus one payload: a few bytes can inflate to a thousand times as
/// many.
const INFLATED: u64 = 1 << 20;

/// A session with its socket, and the received bytes that are not yet consumed.
pub(super) struct Connection {
    transport: Transport,
    session: Session,
    input: Input,
    /// Bytes of input to consume after the last event.
    looked_at: usize,
    /// The last message. `again`: deliver it as an event once more.
    message: Option<Found>,
    again: Again,
    /// Read nothing from the peer while the peer does not take its output.
    pauses: bool,
    /// Bytes that the peer had taken at the last check.
    taken: u64,
    /// Reads left in this turn.
    reads: u32,
    /// Events left in this turn.
    events: u32,
    /// The turn ends when this many bytes have been inflated in total.
    inflated: u64,
    /// Why nothing can be sent any more. Bytes that the peer sent before can still be read; then the
    /// connection is over.
    broken: Option<Reason>,
    /// Why the connection is over.
    reason: Option<Reason>,
}

/// Whether to deliver the last message as an event once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    No,
    /// After the turns of the other connections.
    Later,
    Now,
}

/// The result of advancing a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Event(Found),
    /// Nothing to do until the socket is ready.
    Idle,
    /// There may be more events, but other connections get their turn first.
    Yield,
    Over,
}

impl Connection {
    pub(super) fn new(
        transport: Transport,
        session: Session,
        settings: &Arc<ConnectionSettings>,
    ) -> Result<Self, crate::Error> {
        transport.set_options(settings)?;
        let input = Input::new(settings.input_bytes());
        Ok(Self {
            transport,
            session,
            input,
            looked_at: 0,
            message: None,
            again: Again::No,
            pauses: settings.pause_when_full,
            taken: 0,
            reads: READS,
            events: EVENTS,
            inflated: INFLATED,
            broken: None,
            reason: None,
        })
    }

    /// Advances to the message behind the last one if that has arrived, whole and uncompressed. `None` for anything else: call
    /// [`advance`](Self::advance) then. Inlined up to the handler of the event, because each layer would write the result, and the next one
    /// would read it again.
    #[inline(always)]
    pub(super) fn next_whole(&mut self) -> Option<Found> {
        if self.looked_at == 0
            || self.events == 0
            || self.session.inflated() >= self.inflated
            || self.again != Again::No
            || self.reason.is_some()
            || self.is_paused()
        {
            return None;
        }
        self.input.consume(std::mem::take(&mut self.looked_at));
        let span = self.session.take_whole(self.input.bytes())?;
        let found = Found::Message(span);
        (self.looked_at, self.message) = (span.end, Some(found));
        self.events -= 1;
        Some(found)
    }

    /// Advances to the next event.
    #[inline]
    pub(super) fn advance(&mut self, now: Nanos) -> Progress {
        if self.reason.is_some() {
            return Progress::Over;
        }
        if self.is_paused() {
            return self.look_at_output();
        }
        match self.again {
            Again::No => self.input.consume(std::mem::take(&mut self.looked_at)),
            Again::Later => {
                self.again = Again::Now;
                return self.give_way();
            }
            Again::Now => {
                self.again = Again::No;
                return self.message.map_or(Progress::Yield, Progress::Event);
            }
        }
        loop {
            if self.events == 0 || self.session.inflated() >= self.inflated {
                return self.give_way();
            }
            match self.session.find(self.input.bytes_mut()) {
                Ok((consumed, Some(Found::Nothing))) => {
                    self.input.consume(consumed);
                    continue;
                }
                Ok((consumed, Some(found))) => {
                    self.looked_at = consumed;
                    self.message = Some(found);
                    self.events -= 1;
                    return Progress::Event(found);
                }
                Ok((consumed, None)) => self.input.consume(consumed),
                Err(reason) => return self.end(reason),
            }
            if self.reads == 0 {
                return self.give_way();
            }
            self.reads -= 1;
            match self.transport.receive(self.input.room()) {
                Ok(Received::Bytes(count)) => {
                    self.input.add(count);
                    self.session.heard(now);
                }
                Ok(Received::Nothing) => match self.broken.take() {
                    None => break,
                    Some(cause) => return self.end(cause),
                },
                Ok(Received::Full) => {
                    return self.end(Fault::new("frame that never ends", "at most 65,535 bytes").into());
                }
                Ok(Received::Closed) if self.session.is_unanswered() && self.transport.is_established() => {
                    return self.end(Reason::NoAnswer);
                }
                Ok(Received::Closed) => return self.end(Reason::Peer),
                Err(reason) => {
                    let cause = self.broken.take().unwrap_or(reason);
                    return self.end(cause);
                }
            }
        }
        self.begin_turn();
        self.session.let_go();
        self.look_at_output()
    }

    /// Returns `true` while nothing is read from the peer, because the peer does not take its output.
    #[inline]
    fn is_paused(&mut self) -> bool {
        self.pauses && self.broken.is_none() && self.session.output().is_full()
    }

    /// Delivers the last message as an event once more, after the turns of the other connections.
    pub(super) fn repeat(&mut self) {
        self.again = Again::Later;
    }

    /// Sends waiting output, and reports an event if the output buffer has space again.
    fn look_at_output(&mut self) -> Progress {
        // The wakeup may be for space to write; and a handshake may have an answer to send.
        if self.unsent() > 0 || self.transport.wants_flush() {
            self.flush();
            if self.is_ending() {
                return if self.reason.is_some() { Progress::Over } else { Progress::Yield };
            }
        }
        if self.session.output().has_room_again() { Progress::Event(Found::Room) } else { Progress::Idle }
    }

    /// Ends the turn. First reports space in the output buffer: for a peer that never pauses there is no
    /// better moment.
    #[cold]
    fn give_way(&mut self) -> Progress {
        if self.session.output().has_room_again() {
            return Progress::Event(Found::Room);
        }
        self.begin_turn();
        Progress::Yield
    }

    fn begin_turn(&mut self) {
        (self.reads, self.events) = (READS, EVENTS);
        self.inflated = self.session.inflated() + INFLATED;
    }

    /// Sends as much as the socket accepts and returns `true` if nothing remains. An error ends the
    /// connection.
    pub(super) fn flush(&mut self) -> bool {
        if self.reason.is_some() {
            return true;
        }
        self.session.output().set_stuck(false);
        let is_out = flush(self.session.output(), &mut self.transport, &mut self.broken);
        // Before the connection is established the peer has sent nothing; after a TLS failure nothing more
        // can be read.
        if !matches!(self.broken, Some(Reason::Socket(_))) || !self.transport.is_established() {
            self.reason = self.broken.take();
        }
        is_out
    }

    /// Pings and time-outs.
    pub(super) fn turn(&mut self, now: Nanos) {
        if self.reason.is_some() {
            return;
        }
        let taken = self.session.output().taken();
        if std::mem::replace(&mut self.taken, taken) != taken && self.is_paused() {
            // Its input is not read, so output that it takes counts as a sign of life.
            self.session.heard(now);
        }
        match self.session.turn(now) {
            Ok(()) => {}
            // The session's own step cannot complete before TCP and TLS: name the step that is pending.
            Err(Reason::Timeout { milliseconds, during }) => {
                let during = match (self.transport.is_connecting(), self.transport.is_established()) {
                    (true, _) => "connecting",
                    (_, false) => "agreeing on TLS",
                    _ => during,
                };
                self.end(Reason::Timeout { milliseconds, during });
            }
            Err(reason) => {
                self.end(reason);
            }
        }
    }

    /// Ends the connection, from this side or for this reason, after sending as much of the waiting output as
    /// the socket accepts.
    pub(super) fn end(&mut self, reason: Reason) -> Progress {
        if self.reason.is_none() {
            self.flush();
            self.session.goodbye(&reason);
            self.flush();
            self.session.output().close();
            self.transport.finish();
            self.reason = Some(reason);
        }
        Progress::Over
    }

    /// Returns `true` if the connection is over, or will be once the received bytes are read.
    pub(super) fn is_ending(&self) -> bool {
        self.reason.is_some() || self.broken.is_some()
    }

    /// Returns the bytes of memory used for incomplete messages.
    pub(super) fn held(&self) -> usize {
        self.session.held()
    }

    pub(super) fn reason(&self) -> Option<&Reason> {
        self.reason.as_ref()
    }

    pub(super) fn transport(&self) -> &Transport {
        &self.transport
    }

    pub(super) fn unsent(&mut self) -> usize {
        self.session.output().unsent()
    }

    /// Returns the last event, the messages behind it, and the sender to answer it.
    #[inline(always)]
    pub(super) fn event(&mut self, found: Option<Found>) -> (Event<'_>, Following<'_>, Sender<'_>) {
        let Self { transport, session, input, broken, reason, looked_at, .. } = self;
        let (event, output) = match (found, &*reason) {
            (Some(found), _) => {
                let input = input.bytes();
                let following = session.following(input.get(*looked_at..).unwrap_or_default());
                let (event, output) = session.event_and_output(found, input);
                return (event, following, Sender { output, transport, broken: Some(broken) });
            }
            (None, Some(reason)) => (Event::Closed(reason), session.output()),
            (None, None) => (Event::Closed(&Reason::Local), session.output()),
        };
        (event, Following::default(), Sender { output, transport, broken: None })
    }

    pub(super) fn sender(&mut self) -> Sender<'_> {
        let Self { transport, session, broken, .. } = self;
        Sender { output: session.output(), transport, broken: Some(broken) }
    }

    pub(super) fn negotiated(&self) -> Option<&Negotiated> {
        self.session.negotiated()
    }
}

/// Sends on a connection, also while one of its events is being handled.
#[derive(Debug)]
pub struct Sender<'a> {
    output: &'a mut Output,
    transport: &'a mut Transport,
    /// Where to record that nothing can be sent any more; none once the connection is closed.
    broken: Option<&'a mut Option<Reason>>,
}

impl Sender<'_> {
    /// Queues a message. It goes out with the next flush: by [`flush`](Self::flush), by the reactor before it waits, or
    /// at once if more than the high-water mark waits.
    #[inline]
    pub fn send(&mut self, message: &[u8]) -> Sent {
        let sent = self.output.send(message);
        self.sent(sent, |output| output.send(message))
    }

    /// Queues a message in a frame that it shares with other packed messages; see [`Output::pack`].
    #[inline]
    pub fn pack(&mut self, message: &[u8]) -> Sent {
        let sent = self.output.pack(message);
        self.sent(sent, |output| output.pack(message))
    }

    /// Ends the frame of packed messages; see [`Output::seal`].
    #[inline]
    pub fn seal(&mut self) {
        self.output.seal();
        self.flush_if_high();
    }

    /// Returns space for a message in the output buffer, where possible; see [`Output::claim`].
    #[inline]
    pub fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        self.output.claim(len)
    }

    /// Queues the message written into the last claimed space; see [`Output::commit`].
    #[inline]
    pub fn commit(&mut self, len: usize) {
        self.output.commit(len);
        self.flush_if_high();
    }

    /// Sends as much as the socket accepts; returns `true` if nothing remains. The rest goes out as soon as possible.
    pub fn flush(&mut self) -> bool {
        self.broken.as_mut().is_none_or(|broken| flush(self.output, self.transport, broken))
    }

    /// Returns the number of bytes waiting to be sent.
    pub fn unsent(&self) -> usize {
        self.output.unsent()
    }

    /// Calls `each` with every message that is not completely sent; see [`Output::unsent_messages`].
    pub fn unsent_messages(&self, each: impl FnMut(Option<&[u8]>)) {
        self.output.unsent_messages(each);
    }

    /// Returns `true` if messages are accepted.
    pub fn is_open(&self) -> bool {
        self.output.is_open()
    }

    #[inline]
    fn sent(&mut self, sent: Sent, again: impl FnOnce(&mut Output) -> Sent) -> Sent {
        if sent == Sent::Full {
            // The socket may accept bytes while the buffers are full.
            self.flush();
            return again(self.output);
        }
        self.flush_if_high();
        sent
    }

    #[inline]
    fn flush_if_high(&mut self) {
        if self.output.is_high() && !self.output.is_stuck() {
            self.flush();
        }
    }
}

/// Sends as much as the socket accepts and returns `true` if nothing remains.
fn flush(output: &mut Output, transport: &mut Transport, broken: &mut Option<Reason>) -> bool {
    if broken.is_some() {
        return true;
    }
    loop {
        let framed = output.advance();
        while output.waiting() > 0 {
            let pieces = if transport.is_encrypted() { output.record() } else { output.pieces() };
            match transport.send(&pieces) {
                Ok(0) => {
                    output.set_stuck(true);
                    return false;
                }
                Ok(count) => output.consume(count),
                Err(cause) => {
                    output.close();
                    *broken = Some(cause);
                    return true;
                }
            }
        }
        if framed {
            return transport.flush().unwrap_or_else(|cause| {
                output.close();
                *broken = Some(cause);
                true
            });
        }
    }
}
