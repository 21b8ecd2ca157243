//! One connection: a session on a socket.

use std::fmt;
use std::sync::Arc;

use tapeline_nanos::Nanos;

use super::fault::{Fault, Reason};
use super::output::{Output, Sent};
use super::session::{Event, Found, Negotiated, Session};
use super::settings::Settings;
use super::transport::Transport;
use crate::tcp::Received;

/// How often a connection may read before it is another one's turn.
const READS: u32 = 4;
/// Events that it may have before that: a few compressed bytes can hold many messages.
const EVENTS: u32 = 4096;

/// Bytes that may come of inflating before that, and of one payload more: a few bytes can hold a thousand times as many.
const INFLATED: u64 = 1 << 20;

/// A session with its socket, and what was received and not taken.
#[derive(Debug)]
pub(super) struct Connection {
    transport: Transport,
    session: Session,
    input: Input,
    /// Bytes of the input that the last event lay in.
    looked_at: usize,
    /// The last message, and whether it is to be an event once more.
    message: Option<Found>,
    again: Again,
    /// While the peer takes nothing, nothing is taken from it.
    pauses: bool,
    /// What the peer had taken when that was last looked at.
    taken: u64,
    /// Reads that are left of its turn.
    reads: u32,
    /// Events that are left of its turn.
    events: u32,
    /// Its turn ends when so many bytes have been inflated.
    inflated: u64,
    /// Why nothing can be sent any more. What the peer sent before that is still there: it is over once that is read.
    broken: Option<Reason>,
    /// Why it is over.
    reason: Option<Reason>,
}

/// Whether the last message is to be an event once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    No,
    /// When others have had their turn.
    Later,
    Now,
}

/// How far a connection got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Event(Found),
    /// Nothing to do until the socket says so.
    Idle,
    /// There may be more, but others should have their turn.
    Yield,
    Over,
}

impl Connection {
    pub(super) fn new(
        transport: Transport,
        session: Session,
        settings: &Arc<Settings>,
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

    /// Goes on to the next event.
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

    /// The peer does not take its output, and nothing is taken from it until it does.
    #[inline]
    fn is_paused(&mut self) -> bool {
        self.pauses && self.broken.is_none() && self.session.output().is_full()
    }

    /// The last message is an event once more, after others had their turn.
    pub(super) fn repeat(&mut self) {
        self.again = Again::Later;
    }

    /// Sends what waits, and says where there is room.
    fn look_at_output(&mut self) -> Progress {
        // Room to write may be what it was woken for; and a handshake has its answer waiting.
        if self.unsent() > 0 || self.transport.wants_flush() {
            self.flush();
            if self.is_ending() {
                return if self.reason.is_some() { Progress::Over } else { Progress::Yield };
            }
        }
        if self.session.output().has_room_again() { Progress::Event(Found::Room) } else { Progress::Idle }
    }

    /// Before others have their turn, this one hears of room: a peer that never pauses leaves no better moment.
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

    /// Sends as much as there is room for; whether all is out. What goes wrong ends the connection.
    pub(super) fn flush(&mut self) -> bool {
        if self.reason.is_some() {
            return true;
        }
        self.session.output().set_stuck(false);
        let is_out = flush(self.session.output(), &mut self.transport, &mut self.broken);
        // A peer that was never spoken with has sent nothing; and TLS that is broken brings nothing more.
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
            // What it says is not read; that it takes something says as much.
            self.session.heard(now);
        }
        match self.session.turn(now) {
            Ok(()) => {}
            // What a session waits for cannot come yet.
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

    /// Ends it from this side, or for this reason: what waits is sent, as much as there is room for.
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

    /// Whether it is over, or will be as soon as what came is read.
    pub(super) fn is_ending(&self) -> bool {
        self.reason.is_some() || self.broken.is_some()
    }

    /// Bytes of memory that are held for messages of which a part has arrived.
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

    /// The last event, and the way to answer it.
    #[inline]
    pub(super) fn event(&mut self, found: Option<Found>) -> (Event<'_>, Sender<'_>) {
        let Self { transport, session, input, broken, reason, .. } = self;
        let (event, output) = match (found, &*reason) {
            (Some(found), _) => {
                let (event, output) = session.event_and_output(found, input.bytes());
                return (event, Sender { output, transport, ending: Ending::Open(broken) });
            }
            (None, Some(reason)) => (Event::Closed(reason), session.output()),
            (None, None) => (Event::Closed(&Reason::Local), session.output()),
        };
        (event, Sender { output, transport, ending: Ending::Closed })
    }

    pub(super) fn sender(&mut self) -> Sender<'_> {
        let Self { transport, session, broken, .. } = self;
        Sender { output: session.output(), transport, ending: Ending::Open(broken) }
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
    ending: Ending<'a>,
}

/// Where to say that nothing can be sent any more.
#[derive(Debug)]
enum Ending<'a> {
    Open(&'a mut Option<Reason>),
    Closed,
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
        match &mut self.ending {
            Ending::Open(broken) => flush(self.output, self.transport, broken),
            Ending::Closed => true,
        }
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
            // The socket may have room where the buffers have none.
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

/// Sends as much as there is room for; whether all is out.
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

/// What was received and not taken, in a block of fixed size.
struct Input {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Input {
    fn new(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes].into(), start: 0, end: 0 }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    #[inline]
    fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
    }

    /// Where to receive to: all that is free. What is left over, a frame's beginning as a rule, moves to the front.
    fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    fn add(&mut self, count: usize) {
        self.end = self.bytes.len().min(self.end + count);
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the bytes: there may be a password among them.
        f.debug_struct("Input").field("waiting", &self.bytes().len()).finish_non_exhaustive()
    }
}
