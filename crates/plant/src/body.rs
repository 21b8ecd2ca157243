//! The RWF message in a tick. The stream id is always 0: a sender to a client patches it.

pub(crate) mod levels;
pub(crate) mod orders;

use std::fmt::Arguments;
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
    fields(out, header, |fields| draft.encode(detail, fields))
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
    let header = image(out, (Domain::MARKET_PRICE, DataType::FIELD_LIST), image_state(suspect), false)?;
    fields(out, header, |fields| draft.encode(detail, fields))
}

/// Writes the header of an image that consists of one message, and `clears` caches or not.
#[inline]
pub(crate) fn image(
    out: &mut [u8],
    (domain, container): (Domain, DataType),
    state: State<'_>,
    clears: bool,
) -> Option<usize> {
    let mut header = RefreshHeader::new(domain, 0, state, container);
    header.flags = flags::refresh::REFRESH_COMPLETE;
    if clears {
        header.flags |= flags::refresh::CLEAR_CACHE;
    }
    header.encode(out).ok()
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
        image(out, (Domain::MARKET_PRICE, DataType::FIELD_LIST), State::OPEN_OK, false)?
    } else {
        let quote = UpdateType::QUOTE;
        rwf::update_header(out, Domain::MARKET_PRICE, 0, quote, DataType::FIELD_LIST).ok()?
    };
    fields(out, header, write)
}

/// Writes the image of an item whose data is void: it clears caches.
pub(crate) fn blank(out: &mut [u8]) -> Option<usize> {
    let header = image(out, (Domain::MARKET_PRICE, DataType::FIELD_LIST), State::OPEN_OK, true)?;
    fields(out, header, |fields| Draft::BLANK.encode(None, fields))
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
    let (data, code) = match (now, damaged_from) {
        (Live, None) => (DataState::OK, StateCode::NONE),
        (Live, Some(_)) | (Recovering, _) => (DataState::SUSPECT, StateCode::GAP_DETECTED),
        (Stale | Initial, _) => (DataState::SUSPECT, StateCode::NONE),
    };
    let mut say = |text: Arguments<'_>| status(out, data, code, format_args!("{now}: {text}"));
    match (now, before, damaged_from) {
        (Live, _, Some(lost)) => {
            say(format_args!("but what was built without message {lost} may be wrong until the next session"))
        }
        (Live, Recovering, None) => say(format_args!("every message that was missing has come")),
        (Live, ..) => say(format_args!("the feed is heard of")),
        (Recovering, ..) => say(format_args!("messages from {first} on are missing and asked for")),
        (Stale, ..) => say(format_args!("no line is heard of")),
        (Initial, ..) => say(format_args!("nothing has come")),
    }
}

/// Writes that one line has become silent while others continue, or has resumed. The data is not affected.
pub(crate) fn line(out: &mut [u8], line: line::Line, silent: bool) -> Option<usize> {
    let (letter, is) = (line.letter(), if silent { "silent, others go on" } else { "heard of again" });
    status(out, DataState::NO_CHANGE, StateCode::NONE, format_args!("line {letter} is {is}"))
}

/// Writes that data is suspect: messages are missing on every line.
pub(crate) fn gap(out: &mut [u8], first: u64, last: u64) -> Option<usize> {
    let mut say = |text: Arguments<'_>| status(out, DataState::SUSPECT, StateCode::GAP_DETECTED, text);
    if first == last {
        say(format_args!("message {first} is missing on every line"))
    } else {
        say(format_args!("messages {first} to {last} are missing on every line"))
    }
}

/// Writes that data is suspect: reception begins in the middle of the session.
pub(crate) fn begins_late(out: &mut [u8], first: u64) -> Option<usize> {
    let text = format_args!(
        "heard from message {first} on: books without those before it may be wrong until the next session"
    );
    status(out, DataState::SUSPECT, StateCode::GAP_DETECTED, text)
}

/// Writes that the feed has announced the end of its session.
pub(crate) fn end_of_session(out: &mut [u8], last: u64) -> Option<usize> {
    let text = format_args!("the feed's session ended with message {last}");
    status(out, DataState::NO_CHANGE, StateCode::NONE, text)
}

/// Writes that the feed continues after its announced end.
pub(crate) fn end_taken_back(out: &mut [u8], last: u64) -> Option<usize> {
    let text =
        format_args!("the feed's session goes on after message {last}: its end was announced in error");
    status(out, DataState::NO_CHANGE, StateCode::NONE, text)
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
    let (before, after) = SESSION_BEGINS;
    status(out, DataState::OK, StateCode::NONE, format_args!("{before}{session}{after}"))
}

/// Writes what a plant below says of a channel of the plant above.
pub(crate) fn of_bridge(out: &mut [u8], data: DataState, text: Arguments<'_>) -> Option<usize> {
    status(out, data, StateCode::NONE, text)
}

/// Writes a status. Text beyond 96 bytes is cut.
fn status(out: &mut [u8], data: DataState, code: StateCode, text: Arguments<'_>) -> Option<usize> {
    let mut line = [0; 96];
    let mut rest = &mut line[..];
    // Fails at the end of the line, when everything before it is written.
    let _ = rest.write_fmt(text);
    let left = rest.len();
    let text = &line[..line.len() - left];
    let mut header = StatusHeader::new(Domain::MARKET_PRICE, 0);
    header.state = Some(State { stream: StreamState::OPEN, data, code, text });
    header.encode(out).ok()
}

/// Writes a field list behind a header of `header` bytes.
#[inline]
fn fields(
    out: &mut [u8],
    header: usize,
    write: impl FnOnce(&mut FieldListEncoder<'_>) -> Result<(), Full>,
) -> Option<usize> {
    let mut fields = FieldListEncoder::new(&mut out[header..]).ok()?;
    write(&mut fields).ok()?;
    Some(header + fields.finish())
}
