//! Texts and bytes that a call lends to C.

use std::ffi::{c_char, c_void};

/// A text: `len` bytes, usually UTF-8, without a zero byte at the end. Print it with `%.*s`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tapeline_text {
    /// The first byte; never NULL if the library wrote it.
    pub data: *const c_char,
    /// The number of bytes.
    pub len: usize,
}

/// Bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tapeline_bytes {
    /// The first byte; never NULL if the library wrote it.
    pub data: *const c_void,
    /// The number of bytes.
    pub len: usize,
}

impl tapeline_text {
    #[inline]
    pub(crate) const fn lend(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast(), len: bytes.len() }
    }
}

impl tapeline_bytes {
    #[inline]
    pub(crate) const fn lend(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast(), len: bytes.len() }
    }
}
