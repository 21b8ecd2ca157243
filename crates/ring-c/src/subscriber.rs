//! The reading end.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::ptr;
use std::slice;
use std::time::Duration;

use tapeline_ring::{Frame, Poll, Start, Subscriber, Wait};

use crate::failure::{self, Failure, guarded, is_null, null};
use crate::options::given;
use crate::sized::write_sized;
use crate::tapeline_code::{self, *};

/// One of a ring's subscribers. While it lives, the publisher does not write over what it has not released.
#[derive(Debug)]
pub struct tapeline_subscriber(Subscriber);

/// A frame, where it lies in shared memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tapeline_frame {
    /// Its bytes: read them, and only until the next call with this subscriber.
    pub bytes: *const c_void,
    /// How many.
    pub len: usize,
    /// Where it stands in the ring's stream: bytes since the first frame, headers and padding included.
    pub position: u64,
    /// Which publisher wrote it: 1 for the ring's first, one more for each that continued it (modulo 2^24).
    pub epoch: u32,
}

/// What tapeline_subscriber_look() tells.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct tapeline_subscriber_state {
    /// Where the next frame stands.
    pub position: u64,
    /// Bytes between this subscriber and the publisher's cursor, which lags by up to an eighth of the ring.
    pub lag_bytes: u64,
    /// Bytes of the data area.
    pub capacity: u64,
    /// The longest frame that can come, in bytes.
    pub max_frame: u64,
    /// Which publisher has the ring now.
    pub epoch: u32,
    /// 1 if there is a live publisher, by the lock that dies with it; else 0.
    pub publisher_alive: u32,
    /// 1 if the ring still goes by its name. If not, no publisher will ever continue it.
    pub named: u32,
    /// 0.
    pub reserved: u32,
}

/// Joins a ring. `start`: a tapeline_start. `label`: shown to people who look at the ring (its first 48 bytes), or
/// NULL: this process's command. The handle goes to `*subscriber`, which is NULL after an error; give it back with
/// tapeline_subscriber_leave().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_subscriber_join(
    name: *const c_char,
    start: u32,
    label: *const c_char,
    subscriber: *mut *mut tapeline_subscriber,
) -> tapeline_code {
    guarded(|| {
        let handle = given(subscriber, "where the subscriber goes")?;
        // SAFETY: not NULL, so a place for a pointer; name and label are NULL or texts.
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
        let joined = match label {
            Some(label) => Subscriber::join_as(&name, start, label)?,
            None => Subscriber::join(&name, start)?,
        };
        // SAFETY: as above.
        unsafe { handle.write(Box::into_raw(Box::new(tapeline_subscriber(joined)))) };
        Ok(TAPELINE_OK)
    })
}

/// The next frame, borrowed where it lies, to `*frame`; releases the one before. TAPELINE_FRAME, TAPELINE_EMPTY,
/// TAPELINE_ENDED, TAPELINE_DAMAGED (`frame->position` says where).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_subscriber_next(
    subscriber: *mut tapeline_subscriber,
    frame: *mut tapeline_frame,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { subscriber.as_mut() }) else { return is_null("the subscriber") };
    if frame.is_null() {
        return is_null("where the frame goes");
    }
    match handle.0.next() {
        Poll::Frame(found) => {
            // SAFETY: not NULL, so a place for a frame.
            unsafe { frame.write(borrowed(found)) };
            TAPELINE_FRAME
        }
        // SAFETY: as above.
        other => unsafe { nothing(other, frame) },
    }
}

/// Copies the next frame to the `room` bytes at `to`; `*frame` is that copy. TAPELINE_TOO_LONG if it is longer than
/// `room`: nothing is copied, and `*frame` is borrowed as by tapeline_subscriber_next(), so that it is not lost.
/// Otherwise as tapeline_subscriber_next().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_subscriber_copy(
    subscriber: *mut tapeline_subscriber,
    to: *mut c_void,
    room: usize,
    frame: *mut tapeline_frame,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { subscriber.as_mut() }) else { return is_null("the subscriber") };
    if frame.is_null() || (to.is_null() && room != 0) {
        return is_null("where the frame goes");
    }
    match handle.0.next() {
        Poll::Frame(found) if found.len() <= room => {
            let copy = if room == 0 {
                &mut []
            } else {
                // SAFETY: the room holds the frame, and is the caller's alone.
                unsafe { slice::from_raw_parts_mut(to.cast::<u8>(), found.len()) }
            };
            found.copy_to(copy);
            // SAFETY: not NULL, so a place for a frame.
            unsafe { frame.write(tapeline_frame { bytes: copy.as_ptr().cast(), ..borrowed(found) }) };
            TAPELINE_FRAME
        }
        Poll::Frame(found) => {
            // SAFETY: as above.
            unsafe { frame.write(borrowed(found)) };
            TAPELINE_TOO_LONG
        }
        // SAFETY: as above.
        other => unsafe { nothing(other, frame) },
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

/// # Safety
/// `frame` is a place for a frame.
#[inline]
unsafe fn nothing(poll: Poll<'_>, frame: *mut tapeline_frame) -> tapeline_code {
    match poll {
        Poll::Empty => TAPELINE_EMPTY,
        Poll::Ended => TAPELINE_ENDED,
        Poll::Damaged { position } => {
            let none = tapeline_frame { bytes: ptr::null(), len: 0, position: position.0, epoch: 0 };
            // SAFETY: the caller's promise.
            unsafe { frame.write(none) };
            TAPELINE_DAMAGED
        }
        _ => TAPELINE_ERROR_OTHER,
    }
}

/// Waits until tapeline_subscriber_next() has something other than TAPELINE_EMPTY to give: TAPELINE_OK, or
/// TAPELINE_TIMED_OUT after `timeout_ns`. `how`: a tapeline_wait. Releases all frames read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_subscriber_wait(
    subscriber: *mut tapeline_subscriber,
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
        let is_there = handle.0.wait(how, Duration::from_nanos(timeout_ns));
        Ok(if is_there { TAPELINE_OK } else { TAPELINE_TIMED_OUT })
    })
}

/// Tells the publisher now that all frames read so far are released, the one lent last included. Only for a subscriber
/// that stops reading for a while without having seen TAPELINE_EMPTY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_subscriber_release(subscriber: *mut tapeline_subscriber) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { subscriber.as_mut() }) else { return is_null("the subscriber") };
    handle.0.release();
    TAPELINE_OK
}

/// Tells about the subscriber and its ring. `size`: sizeof *state, since later releases add fields. Not for every
/// message: it asks the system whether the publisher lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_subscriber_look(
    subscriber: *const tapeline_subscriber,
    state: *mut tapeline_subscriber_state,
    size: usize,
) -> tapeline_code {
    guarded(|| {
        let place = given(state, "where the state goes")?;
        // SAFETY: NULL, or a handle that this thread alone uses.
        let Some(tapeline_subscriber(subscriber)) = (unsafe { subscriber.as_ref() }) else {
            return Err(null("the subscriber"));
        };
        let state = tapeline_subscriber_state {
            position: subscriber.position().0,
            lag_bytes: subscriber.lag_bytes(),
            capacity: subscriber.capacity() as u64,
            max_frame: subscriber.max_frame() as u64,
            epoch: subscriber.epoch(),
            publisher_alive: subscriber.publisher_alive()?.into(),
            named: subscriber.is_named()?.into(),
            reserved: 0,
        };
        // SAFETY: not NULL, so `size` bytes for the state.
        unsafe { write_sized(state, place, size) };
        Ok(TAPELINE_OK)
    })
}

/// Reads the publisher's note, 8 words, to `words`; all zero before the first. TAPELINE_EMPTY while notes are written
/// faster than they can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_subscriber_note(
    subscriber: *const tapeline_subscriber,
    words: *mut u64,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { subscriber.as_ref() }) else { return is_null("the subscriber") };
    if words.is_null() {
        return is_null("where the note goes");
    }
    let Some(note) = handle.0.note() else { return TAPELINE_EMPTY };
    // SAFETY: there is room for 8 words.
    unsafe { words.cast::<[u64; 8]>().write(note) };
    TAPELINE_OK
}

/// Leaves the ring and gives the handle back. NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_subscriber_leave(subscriber: *mut tapeline_subscriber) -> tapeline_code {
    if subscriber.is_null() {
        return TAPELINE_OK;
    }
    guarded(|| {
        // SAFETY: made by `tapeline_subscriber_join` of a box, and not given back before.
        drop(unsafe { Box::from_raw(subscriber) });
        Ok(TAPELINE_OK)
    })
}

fn no_value(what: &str, found: u32, expected: &str) -> Failure {
    Failure::new(TAPELINE_ERROR_ARGUMENT, format!("{found} is no {what}, expected {expected}"))
}
