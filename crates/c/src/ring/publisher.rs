//! The publisher for C.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::slice;

use tapeline_ring::{Broadcast, Gated, Policy, PublisherOf};

use super::end::End;
use super::options::tapeline_ring_publisher_options;
use crate::failure::{self, given, guarded, is_null, null};
use crate::sized::write_sized;
use crate::tapeline_code::{self, *};

/// The single publisher of a ring.
#[derive(Debug)]
pub struct tapeline_ring_publisher(Either);

#[derive(Debug)]
enum Either {
    Gated(End<Gated>),
    Broadcast(End<Broadcast>),
}

/// Makes the same call for either policy.
macro_rules! each {
    ($handle:expr, $end:ident => $call:expr) => {
        match &mut $handle.0 {
            Either::Gated($end) => $call,
            Either::Broadcast($end) => $call,
        }
    };
}

/// The result of tapeline_ring_publisher_look().
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct tapeline_ring_publisher_state {
    /// The position of the next frame: bytes since the ring's first frame, headers and padding included.
    pub position: u64,
    /// Frames committed to this ring by this publisher and its predecessors.
    pub frames: u64,
    /// Claims refused because the ring was full.
    pub full: u64,
    /// Subscribers that died and no longer block the ring.
    pub reclaimed: u64,
    /// Bytes that the slowest subscriber has not released yet, by its last stored position.
    pub backlog_bytes: u64,
    /// Bytes of the data area.
    pub capacity: u64,
    /// The longest frame in bytes.
    pub max_frame: u64,
    /// 1 for the ring's first publisher, one more for each that continued it (modulo 2^24).
    pub epoch: u32,
    /// Registered subscribers. A dead one counts until its space is needed.
    pub subscribers: u32,
    /// Live subscribers evicted because they stalled for longer than the ring's limit.
    pub evicted: u64,
}

/// Creates a ring, or continues one whose publisher is gone: with the next epoch, from the last committed frame.
/// Its subscribers keep their positions.
///
/// `name`: 1 to 64 of A-Z a-z 0-9 . _ -. `options` may be NULL: all defaults. The handle goes to `*publisher`,
/// which is NULL after an error; free it with tapeline_ring_publisher_close().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_publisher_open(
    name: *const c_char,
    options: *const tapeline_ring_publisher_options,
    publisher: *mut *mut tapeline_ring_publisher,
) -> tapeline_code {
    guarded(|| {
        let handle = given(publisher, "where the publisher goes")?;
        // SAFETY: not NULL, so a place for a pointer; `name` and `options` are what they are declared to be.
        let (name, options) = unsafe {
            handle.write(std::ptr::null_mut());
            (failure::name(name)?, tapeline_ring_publisher_options::read(options)?)
        };
        let (policy, options) = options;
        let opened = Box::new(tapeline_ring_publisher(match policy {
            Policy::Broadcast => Either::Broadcast(End::new(PublisherOf::open(&name, &options)?)),
            _ => Either::Gated(End::new(PublisherOf::open(&name, &options)?)),
        }));
        // SAFETY: as above.
        unsafe { handle.write(Box::into_raw(opened)) };
        Ok(TAPELINE_OK)
    })
}

/// Claims a frame of `len` bytes. Write it at `*bytes`, then commit or abort it. The bytes contain whatever the
/// ring stored there before. TAPELINE_FULL, TAPELINE_TOO_LONG: nothing is claimed, and `*bytes` is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_publisher_claim(
    publisher: *mut tapeline_ring_publisher,
    len: usize,
    bytes: *mut *mut c_void,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { publisher.as_mut() }) else { return is_null("the publisher") };
    if bytes.is_null() {
        return is_null("where the claim's address goes");
    }
    // SAFETY: not NULL, so a place for a pointer.
    unsafe { tell(bytes, each!(handle, end => end.claim(len))) }
}

/// Claims the next frame of a batch, which the first such call opens: its frames become visible together, with
/// tapeline_ring_publisher_commit(). TAPELINE_FULL, TAPELINE_TOO_LONG: frames claimed earlier can still be committed.
/// A batch that fills nearly the whole ring gets TAPELINE_FULL for every further claim: commit it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_publisher_batch_claim(
    publisher: *mut tapeline_ring_publisher,
    len: usize,
    bytes: *mut *mut c_void,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { publisher.as_mut() }) else { return is_null("the publisher") };
    if bytes.is_null() {
        return is_null("where the claim's address goes");
    }
    // SAFETY: not NULL, so a place for a pointer.
    unsafe { tell(bytes, each!(handle, end => end.batch_claim(len))) }
}

/// Makes the claimed frame visible, or all frames of the batch at once. `*position` gets the position of the
/// (first) frame; `position` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_publisher_commit(
    publisher: *mut tapeline_ring_publisher,
    position: *mut u64,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { publisher.as_mut() }) else { return is_null("the publisher") };
    // SAFETY: the caller's `position` is NULL or a place for it.
    unsafe { tell(position, each!(handle, end => end.commit())) }
}

/// Makes the claimed frame visible with only its first `len` bytes. TAPELINE_TOO_LONG if less was claimed; then
/// the claim is aborted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_publisher_commit_prefix(
    publisher: *mut tapeline_ring_publisher,
    len: usize,
    position: *mut u64,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { publisher.as_mut() }) else { return is_null("the publisher") };
    // SAFETY: the caller's `position` is NULL or a place for it.
    unsafe { tell(position, each!(handle, end => end.commit_prefix(len))) }
}

/// Aborts the open claim or batch: none of it becomes visible.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_publisher_abort(
    publisher: *mut tapeline_ring_publisher,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { publisher.as_mut() }) else { return is_null("the publisher") };
    each!(handle, end => end.abort())
}

/// Claims, copies and commits in one call: `len` bytes at `bytes`, which may be NULL if `len` is 0. `position`
/// may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_publisher_publish(
    publisher: *mut tapeline_ring_publisher,
    bytes: *const c_void,
    len: usize,
    position: *mut u64,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    let Some(handle) = (unsafe { publisher.as_mut() }) else { return is_null("the publisher") };
    let message: &[u8] = match (bytes.is_null(), len) {
        (true, 0) => &[],
        (true, _) => return is_null("the message"),
        // Longer than any slice can be: refused before one is made.
        _ if len > isize::MAX as usize => return TAPELINE_TOO_LONG,
        // SAFETY: `bytes` points to `len` bytes, and nobody changes them meanwhile.
        _ => unsafe { slice::from_raw_parts(bytes.cast::<u8>(), len) },
    };
    // SAFETY: the caller's `position` is NULL or a place for it.
    unsafe { tell(position, each!(handle, end => end.publish(message))) }
}

/// # Safety
/// `place` is NULL or a place for the result.
#[inline]
unsafe fn tell<T>(place: *mut T, result: Result<T, tapeline_code>) -> tapeline_code {
    match result {
        Ok(result) => {
            if !place.is_null() {
                // SAFETY: the caller's promise.
                unsafe { place.write(result) };
            }
            TAPELINE_OK
        }
        Err(code) => code,
    }
}

/// Stores the current cursor for observers. Wakes sleeping subscribers if the option `wake_on_flush` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_publisher_flush(
    publisher: *mut tapeline_ring_publisher,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { publisher.as_mut() }.ok_or_else(|| null("the publisher"))?;
        each!(handle, end => end.with_idle(PublisherOf::flush)?);
        Ok(TAPELINE_OK)
    })
}

/// Writes the ring's note: 8 words that any subscriber can read at any time, always as a whole.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_publisher_set_note(
    publisher: *mut tapeline_ring_publisher,
    words: *const u64,
) -> tapeline_code {
    if words.is_null() {
        return is_null("the note");
    }
    // SAFETY: 8 words are there.
    let note = unsafe { words.cast::<[u64; 8]>().read() };
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { publisher.as_mut() }.ok_or_else(|| null("the publisher"))?;
        each!(handle, end => end.with_idle(|publisher| publisher.set_note(note))?);
        Ok(TAPELINE_OK)
    })
}

/// Returns the state of the publisher and its ring. `size`: sizeof *state, because later releases add fields. Do
/// not call it for every message: it reads each subscriber's position.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_publisher_look(
    publisher: *mut tapeline_ring_publisher,
    state: *mut tapeline_ring_publisher_state,
    size: usize,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { publisher.as_mut() }.ok_or_else(|| null("the publisher"))?;
        let place = given(state, "where the state goes")?;
        let state = each!(handle, end => end.with_idle(|publisher| tapeline_ring_publisher_state {
            position: publisher.position().0,
            frames: publisher.frames(),
            full: publisher.full(),
            reclaimed: publisher.reclaimed(),
            backlog_bytes: publisher.backlog_bytes(),
            capacity: publisher.capacity() as u64,
            max_frame: publisher.max_frame() as u64,
            epoch: publisher.epoch(),
            subscribers: publisher.subscribers() as u32,
            evicted: publisher.evicted(),
        })?);
        // SAFETY: `size` bytes are there for the state.
        unsafe { write_sized(state, place, size) };
        Ok(TAPELINE_OK)
    })
}

/// Ends the ring and frees the handle, also after an error: subscribers drain the ring, then get TAPELINE_ENDED.
/// Removes the ring's name unless the option `keep` is set. Aborts an open claim or batch. NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_publisher_close(
    publisher: *mut tapeline_ring_publisher,
) -> tapeline_code {
    if publisher.is_null() {
        return TAPELINE_OK;
    }
    guarded(|| {
        // SAFETY: made by `tapeline_ring_publisher_open` from a box, and not freed before.
        let handle = unsafe { *Box::from_raw(publisher) };
        match handle.0 {
            Either::Gated(end) => end.close()?,
            Either::Broadcast(end) => end.close()?,
        }
        Ok(TAPELINE_OK)
    })
}

/// Locks the ring's memory so that it is never paged out. An error if the limit on locked memory is too low.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_ring_publisher_lock_memory(
    publisher: *mut tapeline_ring_publisher,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { publisher.as_mut() }.ok_or_else(|| null("the publisher"))?;
        each!(handle, end => end.with_idle(|publisher| publisher.lock_memory())??);
        Ok(TAPELINE_OK)
    })
}
