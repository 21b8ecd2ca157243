//! Frames messages, and buffers the bytes to send.

use std::io::IoSlice;

use super::compression::{self, Deflater};
use super::frame::{HEADER, PING, extended, flag};
use super::handshake::Version;
use super::outgoing::Outgoing;
use super::session::Negotiated;
use super::settings::{Compression, ConnectionSettings, LARGEST_FRAGMENT, SMALLEST_FRAGMENT};
use super::unsent::{Content, Shape, unpack};
use super::websocket::{self, Deflated, Envelope, LONGEST_HEADER, MessageKind, Part};
use crate::impls::shown;

/// The result of sending a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// The message is queued.
    Queued,
    /// Back pressure: the buffer is full, and the message was not queued. Try again after a flush that sent something.
    Full,
    /// The message is longer than `max_message_bytes`, or empty: it can never be sent.
    Unfit,
    /// The connection is not open (yet, or any more).
    NotOpen,
}

/// The sending side of a connection: frames messages in memory that was reserved once. Messages go out in order.
///
/// A message longer than a frame goes out in fragments as the buffer has space. Until its last fragment is in the
/// buffer, no other message is accepted.
pub struct Output {
    waiting: Outgoing,
    /// State of the first waiting frame, if it is partly sent.
    torn: Torn,
    /// Length of a fragment's id in bytes, also valid after no more messages are accepted.
    id_bytes: usize,
    framing: Option<Framing>,
    /// The WebSocket framing.
    envelope: Option<Envelope>,
    /// This is a client's WebSocket: frames are masked.
    is_masked: bool,
    deflater: Option<Deflater>,
    /// Compression of JSON messages.
    deflated: Option<Deflated>,
    /// Messages, each after its length, that become one frame; for JSON, an array without its closing
    /// bracket.
    pack: Vec<u8>,
    /// A message whose fragments do not all fit into the buffer.
    long: Vec<u8>,
    /// Bytes of `long` that are in the buffer.
    long_at: usize,
    id: u16,
    max_message: usize,
    high_water: usize,
    /// Bytes that can be committed.
    claimed: usize,
    /// A message did not fit, and free space was not reported since.
    was_full: bool,
    /// The socket was full at the last attempt, in this turn of the reactor.
    is_stuck: bool,
    frames: u64,
    /// Bytes that the socket has accepted.
    taken: u64,
}

#[derive(Clone, Copy, Debug)]
struct Framing {
    /// The largest payload.
    max: usize,
    /// The largest payload of packed messages.
    max_pack: usize,
    id_bytes: usize,
    threshold: usize,
    /// Messages are JSON, in WebSocket messages of their own.
    json: bool,
}

/// The rest of a partly sent frame: bytes left, and the messages in the whole frame.
#[derive(Clone, Copy, Debug, Default)]
struct Torn {
    left: usize,
    messages: usize,
    /// The frame is a fragment of a message.
    is_piece: bool,
}

/// The longest plaintext of a TLS record (RFC 8446, 5.1).
const RECORD: usize = 16 << 10;

/// The longest unfragmented message is two bytes shorter than a frame's largest payload, so that it can be
/// packed.
const PACKED_LENGTH: usize = 2;
/// The longest extension of a header: that of a first fragment.
const LONGEST_EXTENSION: usize = 7;

/// Buffer size before a connection is open: enough for the handshake. Most attackers of a port get no
/// further, and to clear a whole block (1.2 MB on a server) takes 200 µs.
const OPENING_BYTES: usize = 32 << 10;

impl Output {
    pub(super) fn new(settings: &ConnectionSettings) -> Self {
        Self {
            waiting: Outgoing::new(settings.output_bytes().min(OPENING_BYTES)),
            torn: Torn::default(),
            id_bytes: 2,
            framing: None,
            envelope: None,
            is_masked: false,
            deflater: None,
            deflated: None,
            pack: Vec::new(),
            long: Vec::new(),
            long_at: 0,
            id: 0,
            max_message: settings.max_message_bytes as usize,
            high_water: settings.high_water_mark as usize,
            claimed: 0,
            was_full: false,
            is_stuck: false,
            frames: 0,
            taken: 0,
        }
    }

    /// Accepts messages from now on. `level`: the effort of zlib.
    pub(super) fn open(&mut self, agreed: &Negotiated, settings: &ConnectionSettings, level: u8) {
        let max = agreed
            .max_fragment_size
            .min(settings.max_fragment_size)
            .clamp(SMALLEST_FRAGMENT, LARGEST_FRAGMENT);
        let max = usize::from(max);
        let threshold = settings.threshold(agreed.compression);
        let json = agreed.is_json();
        self.waiting.grow(settings.output_bytes());
        self.id_bytes = agreed.version.map_or(2, Version::id_bytes);
        self.framing = Some(Framing {
            max,
            max_pack: settings.pack_bytes.map_or(max, |bytes| max.min(bytes.into())),
            id_bytes: self.id_bytes,
            threshold,
            json,
        });
        if json {
            self.deflated = (agreed.compression == Compression::Zlib).then(|| Deflated::new(level));
        } else {
            self.deflater = Deflater::new(agreed.compression, level, max);
        }
    }

    /// From now on, puts each frame into a WebSocket message of its own.
    pub(super) fn wrap(&mut self, envelope: Envelope) {
        self.is_masked = envelope.is_masked();
        self.envelope = Some(envelope);
    }

    /// Queues bytes without WebSocket framing.
    pub(super) fn head(&mut self, head: &[u8]) {
        self.claimed = 0;
        put_whole(&mut self.waiting, head);
    }

    pub(super) fn pong(&mut self, payload: &[u8]) {
        self.claimed = 0;
        if let Some(envelope) = &mut self.envelope {
            envelope.pong(&mut self.waiting, payload);
        }
    }

    /// Queues a close message, on a WebSocket only: RSSL has none.
    pub(super) fn goodbye(&mut self, code: u16) {
        self.claimed = 0;
        if let Some(mut envelope) = self.envelope.take() {
            envelope.close(&mut self.waiting, code);
        }
    }

    /// Queues a message.
    #[inline]
    pub fn send(&mut self, message: &[u8]) -> Sent {
        let sent = self.try_send(message);
        self.was_full |= sent == Sent::Full;
        sent
    }

    /// Returns space for a message of up to `len` bytes in the output buffer: a message written there and
    /// [committed](Self::commit) is not copied again. The initial content is undefined.
    ///
    /// `None` if the message cannot be sent from that place (longer than one frame, compressed, on a WebSocket, or
    /// JSON), or if the buffer is full. [`send`](Self::send) queues such a message, or says why not.
    #[inline]
    pub fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        self.claimed = 0;
        let framing = self.framing?;
        let is_plain = self.envelope.is_none() && self.deflater.is_none();
        let goes_first = !self.pack.is_empty() || !self.long.is_empty();
        if !is_plain || len > framing.max - PACKED_LENGTH || goes_first && !self.advance() {
            return None;
        }
        let room = self.waiting.reserve(HEADER + len)?.get_mut(HEADER..)?;
        self.claimed = len;
        Some(room)
    }

    /// Queues the first `len` bytes of the last claimed space, unless something was sent or flushed since. At most the
    /// claimed length is sent, and an empty message is not sent.
    #[inline]
    pub fn commit(&mut self, len: usize) {
        let claimed = std::mem::take(&mut self.claimed);
        let length = HEADER + len.min(claimed);
        if length == HEADER {
            return;
        }
        // The same space as claimed: nothing was sent or flushed since.
        if let Some(room) = self.waiting.reserve(length)
            && let Some(header) = room.first_chunk_mut()
        {
            let [high, low] = (length as u16).to_be_bytes();
            *header = [high, low, flag::DATA];
            self.waiting.commit(length);
            self.frames += 1;
        }
    }

    #[inline]
    fn try_send(&mut self, message: &[u8]) -> Sent {
        self.claimed = 0;
        let Some(framing) = self.framing else { return Sent::NotOpen };
        if message.is_empty() || message.len() > self.max_message {
            return Sent::Unfit;
        }
        let goes_first = !self.pack.is_empty() || !self.long.is_empty();
        if goes_first && !self.advance() {
            return Sent::Full;
        }
        if framing.json {
            return self.send_json(message, framing);
        }
        if message.len() > framing.max - PACKED_LENGTH {
            return self.send_long(message);
        }
        if self.frame(flag::DATA, &[], message) { Sent::Queued } else { Sent::Full }
    }

    /// Queues a message in a frame that it shares with the packed messages before and after it. The frame ends when the
    /// next message does not fit ([`ConnectionSettings::pack_bytes`]), with the next [`send`](Self::send), with
    /// [`seal`](Self::seal), or with a flush. JSON messages share an array.
    pub fn pack(&mut self, message: &[u8]) -> Sent {
        self.claimed = 0;
        let Some(framing) = self.framing else { return Sent::NotOpen };
        // JSON's brackets, or a bracket and a comma, take the same two bytes as a length.
        let packed = if framing.json { elements(message) } else { message };
        if packed.is_empty() || packed.len() + PACKED_LENGTH > framing.max_pack {
            return self.send(message);
        }
        let room = framing.max_pack - self.pack.len();
        let goes_first = !self.long.is_empty() || packed.len() + PACKED_LENGTH > room;
        if goes_first && !self.advance() {
            self.was_full = true;
            return Sent::Full;
        }
        if self.pack.capacity() == 0 {
            self.pack.reserve_exact(framing.max_pack);
        }
        if framing.json {
            self.pack.push(if self.pack.is_empty() { b'[' } else { b',' });
        } else {
            self.pack.extend((packed.len() as u16).to_be_bytes());
        }
        self.pack.extend_from_slice(packed);
        Sent::Queued
    }

    /// Ends the frame of packed messages: later ones begin another frame. While the buffer is full, more messages can
    /// still join the frame.
    #[inline]
    pub fn seal(&mut self) {
        if !self.pack.is_empty() {
            self.advance();
        }
    }

    /// Returns the number of bytes waiting to be sent, framed or not.
    pub fn unsent(&self) -> usize {
        self.waiting.len() + self.pack.len() + self.long.len() - self.long_at
    }

    /// Calls `each` with every message that is not completely sent, in order. `None` stands for a message whose bytes
    /// are not accessible: partly sent, compressed, in fragments, JSON or masked; messages that share such a frame, or
    /// a JSON text, count as one. Bytes that TLS or the system has taken count as sent.
    pub fn unsent_messages(&self, mut each: impl FnMut(Option<&[u8]>)) {
        let Torn { left, messages, is_piece } = self.torn;
        (0..messages).for_each(|_| each(None));
        // Whether the fragmented message was already counted.
        let mut is_begun = is_piece;
        let [first, second] = self.waiting.pieces();
        for mut rest in [first.get(left..).unwrap_or_default(), second] {
            while !rest.is_empty() {
                let (length, content) = self.shape().first(rest);
                match content {
                    Content::Message(message) => each(Some(message)),
                    Content::Packed(messages) => unpack(messages).for_each(|message| each(Some(message))),
                    Content::Hidden | Content::First => each(None),
                    Content::Next if !is_begun => each(None),
                    Content::Next | Content::Nothing => {}
                }
                if content != Content::Nothing {
                    is_begun = content.is_piece();
                }
                rest = rest.get(length..).unwrap_or_default();
            }
        }
        if !self.long.is_empty() && !is_begun {
            each(None);
        }
        match self.framing {
            Some(Framing { json: true, .. }) if !self.pack.is_empty() => each(None),
            _ => unpack(&self.pack).for_each(|message| each(Some(message))),
        }
    }

    /// Returns `true` if more bytes wait than the high-water mark: flush now.
    #[inline]
    pub fn is_high(&self) -> bool {
        self.waiting.len() > self.high_water
    }

    /// Returns the number of frames made so far, including pings.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns `true` if messages are accepted.
    pub fn is_open(&self) -> bool {
        self.framing.is_some()
    }

    /// Accepts no more messages; waiting bytes can still be sent.
    pub(super) fn close(&mut self) {
        self.framing = None;
    }

    /// Returns `true` from the time that a message found no space until enough space is free again.
    pub(super) const fn is_full(&self) -> bool {
        self.was_full
    }

    /// Returns the number of bytes that the socket has accepted so far.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns `true`, once each time, when space is free again after a message did not fit: half of the
    /// buffer, and contiguous space for any frame. The caller's next attempt therefore succeeds at least
    /// partly; otherwise the event would repeat endlessly.
    pub(super) fn has_room_again(&mut self) -> bool {
        let again = self.was_full
            && self.long.is_empty()
            && self.waiting.len() <= self.waiting.capacity() / 2
            && self.waiting.fits(self.longest_frame());
        self.was_full &= !again;
        again
    }

    /// Returns the maximum bytes of a frame, or of the two that compression makes of it.
    fn longest_frame(&self) -> usize {
        let max = self.framing.map_or(0, |framing| framing.max);
        let payload = if self.deflater.is_some() { compression::most(max) } else { max };
        payload + 2 * (LONGEST_HEADER + HEADER + LONGEST_EXTENSION)
    }

    /// Returns `true` if the socket was full at the last attempt: until the reactor's next turn it usually
    /// still is, and each attempt costs a system call.
    #[inline]
    pub(super) const fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    pub(super) const fn set_stuck(&mut self, is_stuck: bool) {
        self.is_stuck = is_stuck;
    }

    /// Queues a ping. Without space for it, the waiting bytes serve as a sign of life; so does the rest of a
    /// fragmented JSON message, because a WebSocket permits no other message between its fragments.
    pub(super) fn ping(&mut self) {
        self.claimed = 0;
        let json = self.framing.is_some_and(|framing| framing.json);
        if json && !self.long.is_empty() {
            return;
        }
        let done = match &mut self.envelope {
            Some(envelope) if json => {
                envelope.put(&mut self.waiting, Part::whole(MessageKind::Text), [websocket::PING, &[], &[]])
            }
            _ => self.whole(&PING),
        };
        self.frames += u64::from(done);
    }

    /// Queues a handshake message; there is always space for it.
    pub(super) fn handshake(&mut self, message: &[u8]) {
        self.claimed = 0;
        self.whole(message);
    }

    /// Queues bytes that are a message by themselves, if there is space.
    fn whole(&mut self, message: &[u8]) -> bool {
        match &mut self.envelope {
            Some(envelope) => {
                envelope.put(&mut self.waiting, Part::whole(MessageKind::Binary), [message, &[], &[]])
            }
            None => put_whole(&mut self.waiting, message),
        }
    }

    /// Frames the pack and the rest of a long message. Returns `true` if all of it fit.
    pub(super) fn advance(&mut self) -> bool {
        self.claimed = 0;
        if !self.pack.is_empty() {
            let mut pack = std::mem::take(&mut self.pack);
            let begun = pack.len();
            let done = match self.framing {
                Some(framing) if framing.json => {
                    pack.push(b']');
                    self.send_json(&pack, framing) == Sent::Queued
                }
                _ => self.frame(flag::DATA | flag::PACKED, &[], &pack),
            };
            pack.truncate(if done { 0 } else { begun });
            self.pack = pack;
            if !done {
                return false;
            }
        }
        if self.long.is_empty() {
            return true;
        }
        let long = std::mem::take(&mut self.long);
        let rest = &long[self.long_at..];
        self.long_at += match self.framing {
            Some(Framing { json: true, max, .. }) => self.pieces_of_json(rest, max, None),
            _ => self.fragments(rest, self.id, None),
        };
        if self.long_at < long.len() {
            self.long = long;
            return false;
        }
        self.long_at = 0;
        true
    }

    pub(super) fn pieces(&self) -> [IoSlice<'_>; 2] {
        self.waiting.pieces().map(IoSlice::new)
    }

    /// Returns the bytes for one TLS record: for a WebSocket client whole frames only. ETA's server (Java,
    /// 3.9.1) misreads masked frames that do not end with a record, and EMA's client never sends any.
    pub(super) fn record(&self) -> [IoSlice<'_>; 2] {
        let [first, second] = self.waiting.pieces();
        if !self.is_masked {
            return [first, second].map(IoSlice::new);
        }
        let whole = first.get(..websocket::whole_frames(first, RECORD)).unwrap_or(first);
        [whole, &[]].map(IoSlice::new)
    }

    /// Removes the first `count` bytes, which were sent.
    pub(super) fn consume(&mut self, count: usize) {
        self.claimed = 0;
        self.taken += count as u64;
        if count < self.waiting.len() {
            self.tear(count);
        } else {
            self.torn = Torn::default();
        }
        self.waiting.consume(count);
    }

    /// Finds the frame that is partly sent after `count` bytes. Reads the length of each sent frame; needed
    /// only when the socket accepts less than is waiting.
    fn tear(&mut self, count: usize) {
        let shape = self.shape();
        let [first, second] = self.waiting.pieces();
        let (mut end, mut last) = (self.torn.left, None);
        while end < count {
            let (piece, at) = if end < first.len() { (first, end) } else { (second, end - first.len()) };
            let (length, content) = shape.first(piece.get(at..).unwrap_or_default());
            (end, last) = (end + length.max(1), Some(content));
        }
        self.torn = match last {
            _ if end == count => Torn::default(),
            None => Torn { left: end - count, ..self.torn },
            Some(content) => {
                Torn { left: end - count, messages: content.count(), is_piece: content.is_piece() }
            }
        };
    }

    fn shape(&self) -> Shape {
        Shape { id_bytes: self.id_bytes, is_wrapped: self.envelope.is_some(), is_masked: self.is_masked }
    }

    /// Returns the number of framed bytes that wait.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn send_long(&mut self, message: &[u8]) -> Sent {
        let Some(framing) = self.framing else { return Sent::NotOpen };
        // Ids have one byte or two; 0 is skipped, as ETA does.
        let last = if framing.id_bytes == 1 { u16::from(u8::MAX) } else { u16::MAX };
        let id = if self.id >= last { 1 } else { self.id + 1 };
        let at = self.fragments(message, id, Some(message.len() as u32));
        if at == 0 {
            return Sent::Full;
        }
        self.id = id;
        // The rest waits in separate memory, which is freed with the last fragment.
        self.long.extend_from_slice(&message[at..]);
        Sent::Queued
    }

    fn send_json(&mut self, message: &[u8], framing: Framing) -> Sent {
        let mut deflated = if message.len() >= framing.threshold { self.deflated.take() } else { None };
        let compressed = deflated.as_mut().and_then(|deflated| deflated.deflate(message));
        // ETA C would treat the fragments of a compressed message as messages compressed one by one.
        let compressed = compressed.filter(|compressed| compressed.len() <= framing.max + HEADER);
        let text = compressed.unwrap_or(message);
        let at = self.pieces_of_json(text, framing.max, Some(compressed.is_some()));
        if at > 0 {
            self.long.extend_from_slice(&text[at..]);
        }
        if deflated.is_some() {
            self.deflated = deflated;
        }
        if at == 0 { Sent::Full } else { Sent::Queued }
    }

    /// Puts as much of `rest` into frames as fits and returns the number of bytes. `begins`: `rest` is the
    /// whole message; the value states whether it is compressed. EMA's frames are as long as those of RSSL, 3
    /// bytes more than a payload.
    fn pieces_of_json(&mut self, rest: &[u8], max: usize, begins: Option<bool>) -> usize {
        let Some(envelope) = &mut self.envelope else { return 0 };
        let mut at = 0;
        while at < rest.len() {
            let end = rest.len().min(at + max + HEADER);
            let kind = if at == 0 && begins.is_some() { MessageKind::Text } else { MessageKind::Continued };
            let compressed = kind == MessageKind::Text && begins == Some(true);
            let part = Part { kind, is_final: end == rest.len(), compressed };
            if !envelope.put(&mut self.waiting, part, [&rest[at..end], &[], &[]]) {
                break;
            }
            self.frames += 1;
            at = end;
        }
        at
    }

    /// Makes as many fragments of `rest` as fit and returns the number of bytes. `total`: the length of the
    /// whole message, if `rest` is all of it.
    fn fragments(&mut self, rest: &[u8], id: u16, mut total: Option<u32>) -> usize {
        let Some(framing) = self.framing else { return 0 };
        let mut at = 0;
        while at < rest.len() {
            let mut extension = [extended::NEXT, 0, 0, 0, 0, 0, 0];
            let mut size = 1;
            if let Some(total) = total {
                extension[0] = extended::FIRST;
                extension[1..5].copy_from_slice(&total.to_be_bytes());
                size = 5;
            }
            if framing.id_bytes == 2 {
                extension[size..size + 2].copy_from_slice(&id.to_be_bytes());
            } else {
                extension[size] = id as u8;
            }
            size += framing.id_bytes;
            let end = rest.len().min(at + framing.max - size);
            if !self.frame(flag::EXTENDED | flag::DATA, &extension[..size], &rest[at..end]) {
                break;
            }
            (at, total) = (end, None);
        }
        at
    }

    /// Puts one frame, or two if compression makes it too long. Returns `false` if there is no space; then
    /// nothing was done.
    #[inline]
    fn frame(&mut self, flags: u8, extension: &[u8], payload: &[u8]) -> bool {
        if self.deflater.is_some() && self.framing.is_some_and(|framing| payload.len() >= framing.threshold) {
            return self.compressed_frame(flags, extension, payload);
        }
        let done = put(&mut self.waiting, &mut self.envelope, flags, extension, payload);
        self.frames += u64::from(done);
        done
    }

    fn compressed_frame(&mut self, flags: u8, extension: &[u8], payload: &[u8]) -> bool {
        let (Some(deflater), Some(framing)) = (&mut self.deflater, self.framing) else { return false };
        // Checked before compression, which cannot be undone.
        let most = compression::most(payload.len()) + 2 * (LONGEST_HEADER + HEADER + extension.len());
        if self.waiting.reserve(most).is_none() {
            return false;
        }
        let Some(compressed) = deflater.deflate(payload) else {
            self.frames += 1;
            return put(&mut self.waiting, &mut self.envelope, flags, extension, payload);
        };
        let flags = flags & !flag::DATA | flag::COMPRESSED;
        let room = framing.max - extension.len();
        if compressed.len() <= room {
            self.frames += 1;
            return put(&mut self.waiting, &mut self.envelope, flags, extension, compressed);
        }
        let (first, second) = compressed.split_at(room);
        self.frames += 2;
        put(&mut self.waiting, &mut self.envelope, flags | flag::CUT, extension, first)
            && put(&mut self.waiting, &mut self.envelope, flag::COMPRESSED, &[], second)
    }
}

/// Returns a JSON text as an element of an array: without its own brackets, if it is an array.
fn elements(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii();
    match text.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) {
        Some(elements) => elements.trim_ascii(),
        None => text,
    }
}

/// Appends a frame to the waiting bytes, or nothing if there is no space.
#[inline]
fn put(
    waiting: &mut Outgoing,
    envelope: &mut Option<Envelope>,
    flags: u8,
    extension: &[u8],
    payload: &[u8],
) -> bool {
    let start = HEADER + extension.len();
    let length = start + payload.len();
    let [high, low] = (length as u16).to_be_bytes();
    let header = [high, low, flags];
    if let Some(envelope) = envelope {
        return envelope.put(waiting, Part::whole(MessageKind::Binary), [&header, extension, payload]);
    }
    let Some(room) = waiting.reserve(length) else { return false };
    room[..HEADER].copy_from_slice(&header);
    room[HEADER..start].copy_from_slice(extension);
    room[start..].copy_from_slice(payload);
    waiting.commit(length);
    true
}

/// Appends bytes that are a message by themselves.
fn put_whole(waiting: &mut Outgoing, message: &[u8]) -> bool {
    let Some(room) = waiting.reserve(message.len()) else { return false };
    room.copy_from_slice(message);
    waiting.commit(message.len());
    true
}

shown!(Output, it => unsent: it.unsent(), frames: it.frames);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::Arc;

    use tapeline_nanos::Nanos;

    use super::super::session::Session;
    use super::super::settings::ConnectionType;
    use super::*;

    const NOW: Nanos = Nanos(0);
    const SECOND: u64 = 1_000_000_000;

    /// Returns an open client's end, and its server's.
    fn open(settings: ConnectionSettings) -> [Session; 2] {
        let settings = Arc::new(settings);
        let mut ends = [Session::client(settings.clone(), Version::V14, NOW), Session::server(settings, NOW)];
        while !ends.iter().all(Session::is_open) {
            let [client, server] = &mut ends;
            carry(client, server);
            carry(server, client);
        }
        ends
    }

    /// Carries all waiting bytes and returns the bytes of the messages received.
    fn carry(from: &mut Session, to: &mut Session) -> usize {
        let (mut bytes, mut messages) = (from.drain(), 0);
        loop {
            let (consumed, event) = to.take(&mut bytes, NOW).unwrap();
            let is_last = event.is_none();
            if let Some(crate::rssl::Event::Message(message)) = event {
                messages += message.len();
            }
            bytes.drain(..consumed);
            if is_last {
                return messages;
            }
        }
    }

    #[test]
    fn who_hears_of_room_has_room() {
        for compression_type in [Compression::None, Compression::Zlib, Compression::Lz4] {
            for (drained, len) in (1..200).flat_map(|drained| [200, 254, 600].map(|len| (drained * 3, len))) {
                let narrow = ConnectionSettings {
                    compression_type,
                    max_fragment_size: 256,
                    guaranteed_output_buffers: 2,
                    ..ConnectionSettings::default()
                };
                let [mut client, _] = open(narrow);
                let mut state = 1_u32;
                let message: Vec<u8> = std::iter::repeat_with(|| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .take(len)
                .collect();
                while client.output().send(&message) == Sent::Queued {}
                client.drain_at_most(drained);
                let what = format!("{compression_type:?}, {len} bytes, {drained} out");
                if client.output().has_room_again() {
                    assert_eq!(client.output().send(&message), Sent::Queued, "{what}");
                }
                // No peer waits forever, either.
                while client.output().send(&message) == Sent::Queued {}
                client.drain();
                assert!(client.output().has_room_again(), "{what}");
            }
        }
    }

    #[test]
    fn no_ping_is_put_between_the_pieces_of_a_message() {
        let narrow = ConnectionSettings {
            connection_type: ConnectionType::WebSocket,
            ws_protocols: vec![crate::rssl::SubProtocol::TrJson2],
            max_fragment_size: 256,
            guaranteed_output_buffers: 10,
            ..ConnectionSettings::default()
        };
        let [mut client, mut server] = open(narrow);
        let long = format!("{{\"ID\":1,\"Text\":\"{}\"}}", "x".repeat(5000));
        assert_eq!(client.output().send(long.as_bytes()), Sent::Queued);
        // No further fragment fits, but a ping would.
        assert!(!client.output().long.is_empty());
        client.turn(NOW).unwrap();
        client.turn(NOW + 10 * SECOND).unwrap();
        assert_eq!(carry(&mut client, &mut server), long.len());
        client.turn(NOW + 15 * SECOND).unwrap();
        client.turn(NOW + 25 * SECOND).unwrap();
        assert!(client.output().unsent() > 0, "pings go on");
    }

    #[test]
    fn what_is_claimed_before_a_ping_is_not_sent_behind_it() {
        let [mut client, _] = open(ConnectionSettings::default());
        client.output().claim(5).unwrap().copy_from_slice(b"claim");
        client.turn(NOW + 10 * SECOND).unwrap();
        client.output().commit(5);
        assert_eq!(client.drain(), PING);
    }
}
