//! Headers of a request that a user chooses, such as the one with a server's key.

use std::fmt;

/// Maximum length of the text that headers are read from, in bytes: servers accept some 8 KiB in all.
pub const LONGEST_HEADERS: usize = 4 << 10;

/// Headers that a request sets itself.
const SET: [&str; 8] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "transfer-encoding",
    "user-agent",
];

/// Headers for a request. They may have keys, which are never displayed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct WebHeaders(String);

/// Why a text is not a list of headers; it never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeadersFault {
    /// The text is longer than [`LONGEST_HEADERS`].
    #[error("the headers are longer than {LONGEST_HEADERS} bytes")]
    TooLong,
    /// A line is not a header.
    #[error("line {0} is not `Name: value` in visible ASCII")]
    Line(usize),
    /// A line has a header that the request sets itself.
    #[error("line {0} has a header that the request sets itself")]
    Set(usize),
}

impl WebHeaders {
    /// Reads headers, one `Name: value` a line. Empty lines are skipped.
    ///
    /// # Errors
    /// [`HeadersFault`].
    pub fn parse(text: &str) -> Result<Self, HeadersFault> {
        if text.len() > LONGEST_HEADERS {
            return Err(HeadersFault::TooLong);
        }
        let mut headers = String::new();
        for (at, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let (name, value) = line.split_once(':').ok_or(HeadersFault::Line(at))?;
            let (name, value) = (name.trim(), value.trim());
            // RFC 9110, 5.1 and 5.6.2.
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            let is_value = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
            if name.is_empty() || !name.bytes().all(is_name) || !value.bytes().all(is_value) {
                return Err(HeadersFault::Line(at));
            }
            if SET.iter().any(|set| set.eq_ignore_ascii_case(name)) {
                return Err(HeadersFault::Set(at));
            }
            headers.extend([name, ": ", value, "\r\n"]);
        }
        Ok(Self(headers))
    }

    /// The headers as lines of a request.
    pub(super) fn lines(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for WebHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebHeaders")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_lines_and_nothing_else_can_enter_a_request() {
        let headers = WebHeaders::parse("Authorization: Bearer a=:b\r\n\n  X-Scope :  one two \n").unwrap();
        assert_eq!(headers.lines(), "Authorization: Bearer a=:b\r\nX-Scope: one two\r\n");
        assert_eq!(format!("{headers:?}"), "WebHeaders");
        assert_eq!(WebHeaders::parse(""), Ok(WebHeaders::default()));
        for (text, fault) in [
            ("key", HeadersFault::Line(1)),
            ("\n: value", HeadersFault::Line(2)),
            ("A B: value", HeadersFault::Line(1)),
            ("A: b\rC: d", HeadersFault::Line(1)),
            ("A: b\0", HeadersFault::Line(1)),
            ("A: ä", HeadersFault::Line(1)),
            ("A: b\nhost: c", HeadersFault::Set(2)),
            ("Content-Length: 1", HeadersFault::Set(1)),
        ] {
            assert_eq!(WebHeaders::parse(text), Err(fault), "{text:?}");
        }
        let long = format!("A: {}", "b".repeat(LONGEST_HEADERS));
        assert_eq!(WebHeaders::parse(&long), Err(HeadersFault::TooLong));
    }
}
