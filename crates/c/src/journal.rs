//! The reader of a journal, for C.

#![allow(unsafe_code)]

use std::ffi::c_char;
use std::path::Path;
use std::ptr;

use ::tapeline_journal::{Directory, From, Next, Reader};
use tapeline_nanos::Nanos;

use crate::failure::{self, Failure, given, guarded, null};
use crate::sized::write_sized;
use crate::tapeline_code::{self, *};
use crate::tapeline_tick;

/// A reader of a plant's journal, also while the plant writes it.
#[derive(Debug)]
pub struct tapeline_journal {
    reader: Reader<Directory>,
    folder: String,
    /// The first and the last sequence of the latest gap.
    missing: (u64, u64),
}

/// Opens the journal in a folder, at its oldest tick. The handle goes to `*journal`, which is NULL after an error; free it
/// with tapeline_journal_close().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_journal_open(
    folder: *const c_char,
    journal: *mut *mut tapeline_journal,
) -> tapeline_code {
    guarded(|| {
        let handle = given(journal, "where the journal goes")?;
        // SAFETY: not NULL, so a place for a pointer; `folder` is NULL or a text.
        let folder = unsafe {
            handle.write(ptr::null_mut());
            failure::text(folder, "the journal's folder")?
        };
        let opened = Directory::open(Path::new(folder)).and_then(Reader::open);
        let reader = opened.map_err(|error| Failure::from(error).at(folder))?;
        let opened = tapeline_journal { reader, folder: folder.to_owned(), missing: (0, 0) };
        // SAFETY: as above.
        unsafe { handle.write(Box::into_raw(Box::new(opened))) };
        Ok(TAPELINE_OK)
    })
}

/// # Safety
/// `journal` is NULL, or a handle that this thread alone uses.
unsafe fn seek(journal: *mut tapeline_journal, to: From) -> tapeline_code {
    guarded(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { journal.as_mut() }.ok_or_else(|| null("the journal"))?;
        handle.reader.seek(to).map_err(|error| Failure::from(error).at(&handle.folder))?;
        Ok(TAPELINE_OK)
    })
}

/// Moves to a sequence. If the journal no longer has it, the next call returns TAPELINE_MISSING.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_journal_seek(
    journal: *mut tapeline_journal,
    sequence: u64,
) -> tapeline_code {
    // The first sequence is 1.
    // SAFETY: NULL, or a handle that this thread alone uses.
    unsafe { seek(journal, From::Seq(sequence.max(1))) }
}

/// Moves to the first tick that was published at this time or later, in ns since 1970 UTC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_journal_seek_time(
    journal: *mut tapeline_journal,
    time_ns: u64,
) -> tapeline_code {
    // SAFETY: NULL, or a handle that this thread alone uses.
    unsafe { seek(journal, From::Time(Nanos(time_ns))) }
}

/// Reads the next tick to `*tick`: TAPELINE_TICK; TAPELINE_MISSING where ticks are not in the journal; TAPELINE_EMPTY at
/// its end, where a running plant writes on. After an error the next call tries the same place again. The tick is valid
/// until the next call with this journal. `size`: sizeof *tick.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_journal_next(
    journal: *mut tapeline_journal,
    tick: *mut tapeline_tick,
    size: usize,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { journal.as_mut() }.ok_or_else(|| null("the journal"))?;
        let place = given(tick, "where the tick goes")?;
        let tapeline_journal { reader, folder, missing } = handle;
        match reader.next().map_err(|error| Failure::from(error).at(folder))? {
            Next::Record(record) => {
                let found = tapeline_tick::of(record.body)
                    .map_err(|failure| failure.at(&format!("{folder}, record {}", record.seq)))?;
                // SAFETY: not NULL, so `size` bytes for a tick.
                unsafe { write_sized(found, place, size) };
                Ok(TAPELINE_TICK)
            }
            Next::Missing { from, to } => {
                *missing = (from, to);
                Ok(TAPELINE_MISSING)
            }
            Next::End => Ok(TAPELINE_EMPTY),
        }
    })
}

/// The gap that the latest TAPELINE_MISSING reported: its first and its last sequence. Either pointer may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_journal_missing(
    journal: *const tapeline_journal,
    first: *mut u64,
    last: *mut u64,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { journal.as_ref() }.ok_or_else(|| null("the journal"))?;
        for (place, sequence) in [(first, handle.missing.0), (last, handle.missing.1)] {
            if !place.is_null() {
                // SAFETY: not NULL, so a place for a number.
                unsafe { place.write(sequence) };
            }
        }
        Ok(TAPELINE_OK)
    })
}

/// Frees the journal. NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_journal_close(journal: *mut tapeline_journal) -> tapeline_code {
    if journal.is_null() {
        return TAPELINE_OK;
    }
    guarded(|| {
        // SAFETY: made by `tapeline_journal_open` from a box, and not freed before.
        drop(unsafe { Box::from_raw(journal) });
        Ok(TAPELINE_OK)
    })
}
