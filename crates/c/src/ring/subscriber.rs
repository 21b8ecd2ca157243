//! The subscriber for C.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::ptr;
use std::slice;
use std::time::Duration;

use tapeline_ring::{Error, Frame, Name, Poll, Start, Subscriber, Wait, broadcast};

use crate::failure::{self, given, guarded, is_null, no_value, null};
use crate::sized::write_sized;
use crate::tapeline_code::{self, *};

/// A subscriber of a ring. While a subscriber of a gated ring lives, the publisher does not overwrite frames that
/// it has not released.
#[derive(Debug)]
pub struct tapeline_ring_subscriber(Either);

#[derive(Debug)]
enum Either {
    Gated(Subscriber),
    Broadcast {
        subscriber: broadcast::Subscriber,
        /// Frames and bytes of the latest loss.
        lost: (u64, u64),
    },
}

/// Makes the same call for either policy.
macro_rules! each {
    ($handle:expr, $subscriber:ident => $call:expr) => {
        match $handle {
            Either::Gated($subscriber) => $call,
            Either::Broadcast { subscriber: $subscriber, .. } => $call,
        }
    };
}

/// A frame in place in shared memory, or a copy.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tapeline_frame {
    /// The frame's bytes, read-only, valid until the next call with this subscriber.
    pub bytes: *const c_void,
    /// The number of bytes.
    pub len: usize,
    /// The position in the ring's stream: bytes since the first frame, headers and padding included.
    pub position: u64,
    /// The epoch of its publisher: 1 for the ring's first, one more for each that continued it (modulo 2^24).
    pub epoch: u32,
}

/// The result of tapeline_ring_subscriber_look().
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct tapeline_ring_subscriber_state {
    /// The position of the next frame.
    pub position: u64,
    /// Bytes between this subscriber and the publisher's cursor, which lags by up to an eighth of the ring.
    pub lag_bytes: u64,
    /// Bytes of the data area.
    pub capacity: u64,
    /// The longest possible frame in bytes.
    pub max_frame: u64,
    /// The epoch of the current publisher.
    pub epoch: u32,
    /// 1 if there is a live publisher, by the lock that dies with it; else 0.
    pub publisher_alive: u32,
    /// 1 if the ring still has its name. If not, no publisher can continue it.
    pub named: u32,
    /// 0.
    pub reserved: u32,
    /// How long this subscriber may block the full ring, in ns; 0 = no limit.
    pub stall_limit_ns: u64,
}

/// Joins a gated ring. `start`: a tapeline_start. `label`: shown to observers of the ring (its first 48 bytes),
/// or NULL: this process's command. The handle goes to `*subscriber`, which is NULL after an error; free it with
/// tapeline_ring_subscriber_leave().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_subscriber_join(
    name: *const c_char,
    start: u32,
    label: *const c_char,
    subscriber: *mut *mut tapeline_ring_subscriber,
) -> tapeline_code {
    // SAFETY: the caller's promises are those of `join`.
    unsafe {
        join(name, start, label, subscriber, |name, start, label| {
            Ok(Either::Gated(match label {
                Some(label) => Subscriber::join_as(name, start, label)?,
                None => Subscriber::join(name, start)?,
            }))
        })
    }
}

/// Joins a broadcast ring, whose publisher never waits; otherwise as tapeline_ring_subscriber_join(). Each frame is
/// the subscriber's own copy, and TAPELINE_LOST reports lost frames.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_subscriber_join_broadcast(
    name: *const c_char,
    start: u32,
    label: *const c_char,
    subscriber: *mut *mut tapeline_ring_subscriber,
) -> tapeline_code {
    // SAFETY: the caller's promises are those of `join`.
    unsafe {
        join(name, start, label, subscriber, |name, start, label| {
            let subscriber = match label {
                Some(label) => broadcast::Subscriber::join_as(name, start, label)?,
                None => broadcast::Subscriber::join(name, start)?,
            };
            Ok(Either::Broadcast { subscriber, lost: (0, 0) })
        })
    }
}

/// # Safety
/// `name` and `label` are NULL or texts, `subscriber` is NULL or a place for a pointer.
unsafe fn join(
    name: *const c_char,
    start: u32,
    label: *const c_char,
    subscriber: *mut *mut tapeline_ring_subscriber,
    how: impl FnOnce(&Name, Start, Option<&str>) -> Result<Either, Error>,
) -> tapeline_code {
    guarded(|| {
        let handle = given(subscriber, "where the subscriber goes")?;
        // SAFETY: the caller's promises.
        let (name, label) = unsafe {
            handle.write(ptr::null_mut());
            let label = if label.is_null() { None } else { Some(failure::text(label, "the label")?) };
            (failure::name(name)?, label)
        };
        let start = match start {
            0 => Start::Newest,
            1 => Start::Oldest,
            other => return Err(no_value("start", other, "TAPELINE_NEWEST or TAPELINE_OLDEST")),
        };
        let joined = how(&name, start, label)?;
        // SAFETY: as above.
        unsafe { handle.write(Box::into_raw(Box::new(tapeline_ring_subscriber(joined)))) };
        Ok(TAPELINE_OK)
    })
}

/// Lends the next frame in `*frame` and releases the previous one. TAPELINE_FRAME, TAPELINE_EMPTY,
/// TAPELINE_ENDED, TAPELINE_EVICTED and TAPELINE_DAMAGED (at `frame->position`), TAPELINE_LOST.
///
/// The frame is in the ring, or in the subscriber's own copy if the ring is a broadcast ring or has a stall
/// limit. In either case it stays unchanged until the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_subscriber_next(
    subscriber: *mut tapeline_ring_subscriber,
    frame: *mut tapeline_frame,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { subscriber.as_mut() }) else { return is_null("the subscriber") };
    if frame.is_null() {
        return is_null("where the frame goes");
    }
    // SAFETY: not NULL, so a place for a frame.
    unsafe {
        look(handle, frame, |found, frame| {
            frame.write(borrowed(found));
            TAPELINE_FRAME
        })
    }
}

/// Copies the next frame to the `room` bytes at `to`; `*frame` is that copy. TAPELINE_TOO_LONG if it is longer
/// than `room`: nothing is copied, and `*frame` is lent as by tapeline_ring_subscriber_next(), so that it is not lost.
/// Otherwise as tapeline_ring_subscriber_next().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_subscriber_copy(
    subscriber: *mut tapeline_ring_subscriber,
    to: *mut c_void,
    room: usize,
    frame: *mut tapeline_frame,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { subscriber.as_mut() }) else { return is_null("the subscriber") };
    if frame.is_null() || (to.is_null() && room != 0) {
        return is_null("where the frame goes");
    }
    // SAFETY: not NULL, so a place for a frame; a frame that is not longer fits the `room` bytes, which are the
    // caller's alone.
    unsafe {
        look(handle, frame, |found, frame| {
            if found.len() > room {
                frame.write(borrowed(found));
                return TAPELINE_TOO_LONG;
            }
            let copy =
                if room == 0 { &mut [] } else { slice::from_raw_parts_mut(to.cast::<u8>(), found.len()) };
            found.copy_to(copy);
            frame.write(tapeline_frame { bytes: copy.as_ptr().cast(), ..borrowed(found) });
            TAPELINE_FRAME
        })
    }
}

#[inline]
fn borrowed(frame: Frame<'_>) -> tapeline_frame {
    let bytes = frame.bytes();
    tapeline_frame {
        bytes: bytes.as_ptr().cast(),
        len: bytes.len(),
        position: frame.position().0,
        epoch: frame.epoch(),
    }
}

/// Takes the next frame, or returns why there is none.
///
/// # Safety
/// `frame` is a place for a frame.
#[inline(always)]
unsafe fn look(
    handle: &mut tapeline_ring_subscriber,
    frame: *mut tapeline_frame,
    take: impl Fn(Frame<'_>, *mut tapeline_frame) -> tapeline_code,
) -> tapeline_code {
    let (position, code) = match &mut handle.0 {
        Either::Gated(subscriber) => match subscriber.next() {
            Poll::Frame(found) => return take(found, frame),
            Poll::Empty => return TAPELINE_EMPTY,
            Poll::Ended => return TAPELINE_ENDED,
            Poll::Evicted { position } => (position, TAPELINE_EVICTED),
            Poll::Damaged { position } => (position, TAPELINE_DAMAGED),
            _ => return TAPELINE_ERROR_OTHER,
        },
        Either::Broadcast { subscriber, lost } => match subscriber.next() {
            broadcast::BroadcastPoll::Frame(found) => return take(found, frame),
            broadcast::BroadcastPoll::Empty => return TAPELINE_EMPTY,
            broadcast::BroadcastPoll::Ended => return TAPELINE_ENDED,
            broadcast::BroadcastPoll::Lost { frames, bytes } => {
                *lost = (frames, bytes);
                (subscriber.position(), TAPELINE_LOST)
            }
            broadcast::BroadcastPoll::Damaged { position } => (position, TAPELINE_DAMAGED),
            _ => return TAPELINE_ERROR_OTHER,
        },
    };
    let none = tapeline_frame { bytes: ptr::null(), len: 0, position: position.0, epoch: 0 };
    // SAFETY: the caller's promise.
    unsafe { frame.write(none) };
    code
}

/// The loss that the latest TAPELINE_LOST reported: frames, and bytes of the ring. Either pointer may be NULL.
/// Zero on a gated ring.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_subscriber_lost(
    subscriber: *const tapeline_ring_subscriber,
    frames: *mut u64,
    bytes: *mut u64,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { subscriber.as_ref() }) else { return is_null("the subscriber") };
    let lost = match &handle.0 {
        Either::Gated(_) => (0, 0),
        Either::Broadcast { lost, .. } => *lost,
    };
    for (place, number) in [(frames, lost.0), (bytes, lost.1)] {
        if !place.is_null() {
            // SAFETY: not NULL, so a place for a number.
            unsafe { place.write(number) };
        }
    }
    TAPELINE_OK
}

/// Returns TAPELINE_EVICTED if this subscriber has been evicted, else TAPELINE_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_subscriber_is_evicted(
    subscriber: *const tapeline_ring_subscriber,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { subscriber.as_ref() }) else { return is_null("the subscriber") };
    if each!(&handle.0, subscriber => subscriber.is_evicted()) { TAPELINE_EVICTED } else { TAPELINE_OK }
}

/// Waits until tapeline_ring_subscriber_next() would return something other than TAPELINE_EMPTY: TAPELINE_OK, or
/// TAPELINE_TIMED_OUT after `timeout_ns`. `how`: a tapeline_wait. Releases all frames read, unless the next one
/// is already there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_subscriber_wait(
    subscriber: *mut tapeline_ring_subscriber,
    how: u32,
    timeout_ns: u64,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { subscriber.as_mut() }.ok_or_else(|| null("the subscriber"))?;
        let how = match how {
            0 => Wait::Adaptive,
            1 => Wait::Spin,
            2 => Wait::Pause,
            3 => Wait::Yield,
            4 => Wait::Park,
            other => return Err(no_value("way to wait", other, "a TAPELINE_WAIT_ value")),
        };
        let timeout = Duration::from_nanos(timeout_ns);
        let is_there = each!(&mut handle.0, subscriber => subscriber.wait(how, timeout));
        Ok(if is_there { TAPELINE_OK } else { TAPELINE_TIMED_OUT })
    })
}

/// Releases all frames read so far at once, including the one lent last. Only for a subscriber that pauses
/// without having seen TAPELINE_EMPTY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_subscriber_release(
    subscriber: *mut tapeline_ring_subscriber,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { subscriber.as_mut() }) else { return is_null("the subscriber") };
    each!(&mut handle.0, subscriber => subscriber.release());
    TAPELINE_OK
}

/// Returns the state of the subscriber and its ring. `size`: sizeof *state, because later releases add fields. Do
/// not call it for every message: it makes system calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_subscriber_look(
    subscriber: *const tapeline_ring_subscriber,
    state: *mut tapeline_ring_subscriber_state,
    size: usize,
) -> tapeline_code {
    guarded(|| {
        let place = given(state, "where the state goes")?;
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { subscriber.as_ref() }.ok_or_else(|| null("the subscriber"))?;
        let state = each!(&handle.0, subscriber => tapeline_ring_subscriber_state {
            position: subscriber.position().0,
            lag_bytes: subscriber.lag_bytes(),
            capacity: subscriber.capacity() as u64,
            max_frame: subscriber.max_frame() as u64,
            epoch: subscriber.epoch(),
            publisher_alive: subscriber.publisher_alive()?.into(),
            named: subscriber.is_named()?.into(),
            reserved: 0,
            stall_limit_ns: u64::try_from(subscriber.stall_limit().as_nanos()).unwrap_or(u64::MAX),
        });
        // SAFETY: not NULL, so `place` points to `size` bytes for the state.
        unsafe { write_sized(state, place, size) };
        Ok(TAPELINE_OK)
    })
}

/// Reads the publisher's note, 8 words, to `words`; all zero before the first. TAPELINE_EMPTY while notes are written
/// faster than they can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_subscriber_note(
    subscriber: *const tapeline_ring_subscriber,
    words: *mut u64,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { subscriber.as_ref() }) else { return is_null("the subscriber") };
    if words.is_null() {
        return is_null("where the note goes");
    }
    let Some(note) = each!(&handle.0, subscriber => subscriber.note()) else { return TAPELINE_EMPTY };
    // SAFETY: not NULL, so `words` points to space for 8 words.
    unsafe { words.cast::<[u64; 8]>().write(note) };
    TAPELINE_OK
}

/// Leaves the ring and frees the handle. NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_subscriber_leave(
    subscriber: *mut tapeline_ring_subscriber,
) -> tapeline_code {
    if subscriber.is_null() {
        return TAPELINE_OK;
    }
    guarded(|| {
        // SAFETY: made by `tapeline_ring_subscriber_join` from a box, and not freed before.
        drop(unsafe { Box::from_raw(subscriber) });
        Ok(TAPELINE_OK)
    })
}

/// Locks the ring's memory so that it is never paged out. An error if the limit on locked memory is too low.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_subscriber_lock_memory(
    subscriber: *const tapeline_ring_subscriber,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { subscriber.as_ref() }.ok_or_else(|| null("the subscriber"))?;
        each!(&handle.0, subscriber => subscriber.lock_memory()?);
        Ok(TAPELINE_OK)
    })
}
