//! The RWF message in a tick. The stream id is always 0: a sender to a client patches it.

pub(crate) mod levels;
pub(crate) mod orders;

use std::io::Write;

use tapeline_feed::draft::{Detail, Draft};
use tapeline_feed::line::{self, Session};
use tapeline_omm::rwf::{
    self, DataState, DataType, Domain, RefreshHeader, State, StateCode, StatusHeader, StreamState,
    UpdateType, flags,
};
use tapeline_omm::{FieldListEncoder, Full};

use crate::state;
use crate::tick::Kind;

/// Writes the message of a feed's tick: an image, an update, or an update without fields if there is no draft.
#[inline]
pub(crate) fn of_change(
    out: &mut [u8],
    kind: Kind,
    draft: Option<&Draft>,
    detail: Option<&Detail>,
    suspect: bool,
) -> Option<usize> {
    match draft {
        Some(draft) if kind == Kind::Refresh => refresh(out, draft, detail, suspect),
        Some(draft) => update(out, draft, detail),
        None => empty_update(out),
    }
}

/// Writes the changed fields of a draft, and those of its detail; returns the length. `None` if they do not fit in `out`, here and below.
pub(crate) fn update(out: &mut [u8], draft: &Draft, detail: Option<&Detail>) -> Option<usize> {
    let header = rwf::update_header(out, Domain::MARKET_PRICE, 0, draft.update, DataType::FIELD_LIST).ok()?;
    fields(out, header, draft, detail)
}

/// Writes an update without fields: for a message that only has its place in the sequence.
pub(crate) fn empty_update(out: &mut [u8]) -> Option<usize> {
    rwf::update_header(out, Domain::MARKET_PRICE, 0, UpdateType::UNSPECIFIED, DataType::NO_DATA).ok()
}

/// Writes the image of an item; `suspect` if it may be wrong. An image in place of an update with a detail contains the detail too.
pub(crate) fn refresh(
    out: &mut [u8],
    draft: &Draft,
    detail: Option<&Detail>,
    suspect: bool,
) -> Option<usize> {
    let mut header = RefreshHeader::new(Domain::MARKET_PRICE, 0, image_state(suspect), DataType::FIELD_LIST);
    header.flags = flags::refresh::REFRESH_COMPLETE;
    let header = header.encode(out).ok()?;
    fields(out, header, draft, detail)
}

/// Returns the state of an image, suspect or not.
fn image_state(suspect: bool) -> State<'static> {
    let data = if suspect { DataState::SUSPECT } else { DataState::OK };
    State { data, ..State::OPEN_OK }
}

/// Writes the image or an update of a best bid and offer.
pub(crate) fn best(
    out: &mut [u8],
    kind: Kind,
    write: impl FnOnce(&mut FieldListEncoder<'_>) -> Result<(), Full>,
) -> Option<usize> {
    let header = if kind == Kind::Refresh {
        let mut header = RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST);
        header.flags = flags::refresh::REFRESH_COMPLETE;
        header.encode(out).ok()?
    } else {
        let quote = UpdateType::QUOTE;
        rwf::update_header(out, Domain::MARKET_PRICE, 0, quote, DataType::FIELD_LIST).ok()?
    };
    let mut fields = FieldListEncoder::new(&mut out[header..]).ok()?;
    write(&mut fields).ok()?;
    Some(header + fields.finish())
}

/// Writes the image of an item whose data is void: it clears caches.
pub(crate) fn blank(out: &mut [u8]) -> Option<usize> {
    let mut header = RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST);
    header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
    let header = header.encode(out).ok()?;
    fields(out, header, &Draft::BLANK, None)
}

/// Writes a change of the channel's state. `first` is the first missing message, if the channel is recovering.
pub(crate) fn state(
    out: &mut [u8],
    before: state::State,
    now: state::State,
    first: u64,
    damaged_from: Option<u64>,
) -> Option<usize> {
    use state::State::{Initial, Live, Recovering, Stale};
    let mut text = Line::default();
    let _ = write!(text, "{now}: ");
    let _ = match (now, before, damaged_from) {
        (Live, _, Some(lost)) => {
            write!(text, "but what was built without message {lost} may be wrong until the next session")
        }
        (Live, Recovering, None) => write!(text, "every message that was missing has come"),
        (Live, ..) => write!(text, "the feed is heard of"),
        (Recovering, ..) => write!(text, "messages from {first} on are missing and asked for"),
        (Stale, ..) => write!(text, "no line is heard of"),
        (Initial, ..) => write!(text, "nothing has come"),
    };
    let (data, code) = match (now, damaged_from) {
        (Live, None) => (DataState::OK, StateCode::NONE),
        (Live, Some(_)) | (Recovering, _) => (DataState::SUSPECT, StateCode::GAP_DETECTED),
        (Stale | Initial, _) => (DataState::SUSPECT, StateCode::NONE),
    };
    status(out, data, code, &text)
}

/// Writes that one line has become silent while others continue, or has resumed. The data is not affected.
pub(crate) fn line(out: &mut [u8], line: line::Line, silent: bool) -> Option<usize> {
    let mut text = Line::default();
    let letter = line.letter();
    let _ = if silent {
        write!(text, "line {letter} is silent, others go on")
    } else {
        write!(text, "line {letter} is heard of again")
    };
    status(out, DataState::NO_CHANGE, StateCode::NONE, &text)
}

/// Writes that data is suspect: messages are missing on every line.
pub(crate) fn gap(out: &mut [u8], first: u64, last: u64) -> Option<usize> {
    let mut text = Line::default();
    let _ = if first == last {
        write!(text, "message {first} is missing on every line")
    } else {
        write!(text, "messages {first} to {last} are missing on every line")
    };
    status(out, DataState::SUSPECT, StateCode::GAP_DETECTED, &text)
}

/// Writes that data is suspect: reception begins in the middle of the session.
pub(crate) fn begins_late(out: &mut [u8], first: u64) -> Option<usize> {
    let mut text = Line::default();
    let _ = write!(
        text,
        "heard from message {first} on: books without those before it may be wrong until the next session"
    );
    status(out, DataState::SUSPECT, StateCode::GAP_DETECTED, &text)
}

/// Writes that the feed has announced the end of its session.
pub(crate) fn end_of_session(out: &mut [u8], last: u64) -> Option<usize> {
    let mut text = Line::default();
    let _ = write!(text, "the feed's session ended with message {last}");
    status(out, DataState::NO_CHANGE, StateCode::NONE, &text)
}

/// Writes that the feed continues after its announced end.
pub(crate) fn end_taken_back(out: &mut [u8], last: u64) -> Option<usize> {
    let mut text = Line::default();
    let _ = write!(text, "the feed's session goes on after message {last}: its end was announced in error");
    status(out, DataState::NO_CHANGE, StateCode::NONE, &text)
}

/// Returns the name of the session whose start a status text reports. For readers of a ring that need the name: ticks of a feed contain its
/// sequences, not its sessions.
#[must_use]
pub fn session_begun(text: &str) -> Option<&str> {
    text.strip_prefix(SESSION_BEGINS.0)?.strip_suffix(SESSION_BEGINS.1)
}

/// The text before and after a session's name.
const SESSION_BEGINS: (&str, &str) = ("the feed's session ", " begins");

/// Writes the start of a session: the previous books are void.
pub(crate) fn reset(out: &mut [u8], session: Session) -> Option<usize> {
    let mut text = Line::default();
    let _ = write!(text, "{}{session}{}", SESSION_BEGINS.0, SESSION_BEGINS.1);
    status(out, DataState::OK, StateCode::NONE, &text)
}

fn status(out: &mut [u8], data: DataState, code: StateCode, text: &Line) -> Option<usize> {
    let mut header = StatusHeader::new(Domain::MARKET_PRICE, 0);
    header.state = Some(State { stream: StreamState::OPEN, data, code, text: text.written() });
    header.encode(out).ok()
}

fn fields(out: &mut [u8], header: usize, draft: &Draft, detail: Option<&Detail>) -> Option<usize> {
    let mut fields = FieldListEncoder::new(&mut out[header..]).ok()?;
    draft.encode(detail, &mut fields).ok()?;
    Some(header + fields.finish())
}

/// A line of text on the stack; text beyond its capacity is cut.
struct Line {
    bytes: [u8; 96],
    len: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self { bytes: [0; 96], len: 0 }
    }
}

impl Line {
    fn written(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Write for Line {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let room = &mut self.bytes[self.len..];
        let len = text.len().min(room.len());
        room[..len].copy_from_slice(&text[..len]);
        self.len += len;
        Ok(len)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
