//! Ticks for C: the frames of a plant's ring, and the records of its journal.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::slice;

use tapeline_plant::State;
use tapeline_plant::tick::{Flags, Kind, Tick};

use crate::failure::{Failure, is_null};
use crate::sized::write_sized;
use crate::tapeline_code::{self, *};
use crate::{tapeline_bytes, tapeline_text};

/// The kind of a tick.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum tapeline_tick_kind {
    /// The whole image of an item.
    TAPELINE_TICK_IMAGE = 2,
    /// A change of state, of one item or of the whole feed.
    TAPELINE_TICK_STATUS = 3,
    /// The fields that changed.
    TAPELINE_TICK_UPDATE = 4,
}

/// The state of the feed of a tick.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum tapeline_feed_state {
    /// Nothing has been received yet.
    TAPELINE_FEED_INITIAL = 0,
    /// All messages have been received, or have been declared lost.
    TAPELINE_FEED_LIVE = 1,
    /// Messages are missing, and are requested.
    TAPELINE_FEED_RECOVERING = 2,
    /// Nothing is received.
    TAPELINE_FEED_STALE = 3,
}

/// A tick. All that it points to is in the bytes that it was read from. Times are ns since 1970 UTC; 0 if there is none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tapeline_tick {
    /// The plant's sequence, which skips no number. 0 is outside the sequence: an image or a state below a bridge.
    pub sequence: u64,
    /// The feed's sequence of the message behind this tick; 0 if there is none.
    pub feed_sequence: u64,
    /// When the event happened, as the exchange states it.
    pub event_ns: u64,
    /// When the datagram was received.
    pub received_ns: u64,
    /// When the message was decoded.
    pub decoded_ns: u64,
    /// When the tick was published.
    pub published_ns: u64,
    /// The item's name; "" for the feed as a whole.
    pub item: tapeline_text,
    /// The RWF message: open its fields with tapeline_fields_open().
    pub body: tapeline_bytes,
    /// The feed's own message, if the plant publishes every message; else no bytes.
    pub source: tapeline_bytes,
    /// The whole tick, with its header.
    pub frame: tapeline_bytes,
    /// The item's number within its service; 0 for the feed as a whole.
    pub item_number: u32,
    /// A tapeline_tick_kind.
    pub kind: u32,
    /// A tapeline_feed_state.
    pub state: u32,
    /// 1 if values may be wrong, because messages before this tick are lost; else 0.
    pub suspect: u32,
    /// The service's number in the plant.
    pub service: u16,
    /// The feed's number in the plant; 65535 for a client's post.
    pub channel: u16,
    /// The tick's flags, as published.
    pub flags: u8,
    /// The first byte of the feed's message; 0 if there is none.
    pub source_type: u8,
    /// 0.
    pub reserved: u16,
}

impl tapeline_tick {
    /// Reads a tick.
    #[inline]
    pub(crate) fn of(frame: &[u8]) -> Result<Self, Failure> {
        let tick = Tick::parse(frame).map_err(|fault| {
            let text = format!("{fault}; hint: only the rings of plants have ticks");
            Failure::new(TAPELINE_ERROR_MALFORMED, text)
        })?;
        let header = &tick.header;
        Ok(Self {
            sequence: header.seq.0,
            feed_sequence: header.feed_seq,
            event_ns: header.event.0,
            received_ns: header.wire.0,
            decoded_ns: header.decoded.0,
            published_ns: header.sequenced.0,
            item: tapeline_text::lend(tick.name.as_bytes()),
            body: tapeline_bytes::lend(tick.body),
            source: tapeline_bytes::lend(tick.source),
            frame: tapeline_bytes::lend(frame),
            item_number: header.item.0,
            kind: match header.kind {
                Kind::Refresh => tapeline_tick_kind::TAPELINE_TICK_IMAGE as u32,
                Kind::Status => tapeline_tick_kind::TAPELINE_TICK_STATUS as u32,
                _ => tapeline_tick_kind::TAPELINE_TICK_UPDATE as u32,
            },
            state: match header.state {
                State::Initial => tapeline_feed_state::TAPELINE_FEED_INITIAL as u32,
                State::Live => tapeline_feed_state::TAPELINE_FEED_LIVE as u32,
                State::Recovering => tapeline_feed_state::TAPELINE_FEED_RECOVERING as u32,
                State::Stale => tapeline_feed_state::TAPELINE_FEED_STALE as u32,
            },
            suspect: header.flags.contains(Flags::SUSPECT).into(),
            service: header.service,
            channel: header.channel,
            flags: header.flags.0,
            source_type: header.source_type,
            reserved: 0,
        })
    }
}

/// Reads a tick, such as a frame of a plant's ring: TAPELINE_OK, or TAPELINE_ERROR_MALFORMED. `size`: sizeof *tick,
/// because later releases add fields.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_tick_parse(
    bytes: *const c_void,
    len: usize,
    tick: *mut tapeline_tick,
    size: usize,
) -> tapeline_code {
    if bytes.is_null() || tick.is_null() || len > isize::MAX as usize {
        return is_null("the frame, or where the tick goes,");
    }
    // SAFETY: not NULL, so `len` bytes that nobody changes meanwhile.
    match tapeline_tick::of(unsafe { slice::from_raw_parts(bytes.cast::<u8>(), len) }) {
        Ok(found) => {
            // SAFETY: not NULL, so `size` bytes for a tick.
            unsafe { write_sized(found, tick, size) };
            TAPELINE_OK
        }
        Err(failure) => failure.tell(),
    }
}
