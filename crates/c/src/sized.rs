//! Structs that grow: caller and library may be of different releases, so each states the size of its own struct.

#![allow(unsafe_code)]

use std::mem::size_of;
use std::{ptr, slice};

use crate::failure::Failure;
use crate::tapeline_code::TAPELINE_ERROR_OPTIONS;

/// No struct of any release is larger: a larger size was never initialised.
const LARGEST: usize = 4096;

/// Reads a struct of options whose first field is its size in bytes. A newer caller's struct is longer; it is
/// accepted if all bytes that this library does not know are zero, which is every option's default.
///
/// # Safety
/// `options` points to as many bytes as its first field says, and any bytes are a `T`, whose first field is a `usize`.
pub(crate) unsafe fn read_sized<T: Copy>(options: *const T) -> Result<T, Failure> {
    let known = size_of::<T>();
    // SAFETY: at least the size can be read.
    let size = unsafe { options.cast::<usize>().read_unaligned() };
    if !(known..=LARGEST).contains(&size) {
        let text = format!(
            "the options' size is {size}, expected {known}; hint: start with {{ .size = sizeof options }}"
        );
        return Err(Failure::new(TAPELINE_ERROR_OPTIONS, text));
    }
    // SAFETY: `size` bytes can be read, which is at least as many as are known.
    let beyond = unsafe { slice::from_raw_parts(options.cast::<u8>().add(known), size - known) };
    if beyond.iter().any(|&byte| byte != 0) {
        return Err(Failure::new(
            TAPELINE_ERROR_OPTIONS,
            "the options have fields that this library does not know; hint: install the library of the header's release",
        ));
    }
    // SAFETY: all `known` bytes can be read, and any bytes are a `T`.
    Ok(unsafe { options.read_unaligned() })
}

/// Writes as much of a struct of results as fits the caller's, and zeros where the caller's is longer.
///
/// # Safety
/// `place` has space for `size` bytes.
pub(crate) unsafe fn write_sized<T: Copy>(found: T, place: *mut T, size: usize) {
    let known = size_of::<T>().min(size);
    let place = place.cast::<u8>();
    // SAFETY: the caller's promise; `found` is this function's own.
    unsafe {
        ptr::copy_nonoverlapping((&raw const found).cast::<u8>(), place, known);
        place.add(known).write_bytes(0, size - known);
    }
}
