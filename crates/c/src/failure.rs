//! Errors for C: a code, and a text stored for the thread.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tapeline_ring::{Error, Name};

use crate::tapeline_code::{self, *};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// An error with all information that C gets.
pub(crate) struct Failure {
    code: tapeline_code,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: tapeline_code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// Stores the text for this thread; returns the code.
    #[cold]
    pub(crate) fn tell(self) -> tapeline_code {
        let mut bytes = self.text.into_bytes();
        bytes.retain(|&byte| byte != 0);
        let text = CString::new(bytes).unwrap_or_default();
        // A thread that is ending cannot store the text any more; the code is still returned.
        let _ = LAST.try_with(|last| last.replace(text));
        self.code
    }
}

/// An error and its causes in one sentence.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

impl Failure {
    /// Makes an error of this code of a library's error and its hint.
    pub(crate) fn of(code: tapeline_code, error: &dyn std::error::Error, hint: Option<String>) -> Self {
        let mut text = chain(error);
        if let Some(hint) = hint {
            text.push_str(&format!("; hint: {hint}"));
        }
        Self { code, text }
    }

    /// Names the place of the error, such as a server or a folder.
    pub(crate) fn at(self, place: &str) -> Self {
        Self { text: format!("{place}: {}", self.text), ..self }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::of((&error).into(), &error, error.hint())
    }
}

impl From<::tapeline_journal::Error> for Failure {
    fn from(error: ::tapeline_journal::Error) -> Self {
        Self::of((&error).into(), &error, error.hint().map(str::to_owned))
    }
}

impl From<tapeline_client::Error> for Failure {
    fn from(error: tapeline_client::Error) -> Self {
        let hint = match error {
            tapeline_client::Error::Ended(_) => {
                Some("check the user and the password; the server's log has more".to_owned())
            }
            _ => error.hint(),
        };
        Self::of((&error).into(), &error, hint)
    }
}

/// Runs a call that may fail or, because of a bug, panic.
pub(crate) fn guarded(what: impl FnOnce() -> Result<tapeline_code, Failure>) -> tapeline_code {
    match catch_unwind(AssertUnwindSafe(what)) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => failure.tell(),
        Err(panic) => {
            let why = panic.downcast_ref::<&str>().copied().map(str::to_owned);
            let why = why.or_else(|| panic.downcast_ref::<String>().cloned());
            let why = why.unwrap_or_else(|| "without a word".to_owned());
            Failure::new(TAPELINE_ERROR_PANIC, format!("the library panicked: {why}; hint: report this"))
                .tell()
        }
    }
}

/// A NULL where none is allowed.
#[cold]
pub(crate) fn is_null(what: &str) -> tapeline_code {
    null(what).tell()
}

pub(crate) fn null(what: &str) -> Failure {
    Failure::new(TAPELINE_ERROR_NULL, format!("{what} is NULL; hint: check what the call before gave"))
}

/// A call that the open claim or batch, or its absence, forbids.
#[cold]
pub(crate) fn out_of_order(text: &str) -> tapeline_code {
    Failure::new(TAPELINE_ERROR_ORDER, text).tell()
}

/// The error for a number that is none of the valid values.
pub(crate) fn no_value(what: &str, found: u32, expected: &str) -> Failure {
    Failure::new(TAPELINE_ERROR_ARGUMENT, format!("{found} is no {what}, expected {expected}"))
}

/// Checks that a pointer to a result is not NULL.
pub(crate) fn given<T>(pointer: *mut T, what: &str) -> Result<*mut T, Failure> {
    if pointer.is_null() { Err(null(what)) } else { Ok(pointer) }
}

/// Text from C.
///
/// # Safety
/// `text` is NULL or ends with a zero byte, and nobody changes it meanwhile.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| {
        Failure::new(TAPELINE_ERROR_ARGUMENT, format!("{what} `{}` is not UTF-8", text.to_string_lossy()))
    })
}

/// A ring's name from C.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn name(name: *const c_char) -> Result<Name, Failure> {
    // SAFETY: the caller's promise.
    Ok(Name::new(unsafe { text(name, "the ring's name") }?)?)
}

/// The text of this thread's latest error, with a hint where there is one; "" before the first. Never NULL. The
/// text is valid until this thread's next error: copy it to use it later.
#[unsafe(no_mangle)]
pub extern "C" fn tapeline_last_error() -> *const c_char {
    // The buffer of a `CString` does not move until `tell` replaces it.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// This library's version, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn tapeline_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
