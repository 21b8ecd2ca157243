//! One HTTP request on a connection of its own.

use std::io::{self, Read, Write};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::connection::WebConnection;
use super::{Url, WebError, WebHeaders, WebLimits};
use crate::tls::Tls;

/// Maximum length of an answer's head in bytes.
const LONGEST_HEAD: usize = 32 << 10;
/// Maximum number of an answer's headers.
const MOST_HEADERS: usize = 64;

/// The answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status, such as 200.
    pub status: u16,
    /// How long the server asks to wait before the next request, if it does so in seconds.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Vec<u8>,
}

/// Requests a resource with GET. Redirections are not followed.
///
/// # Errors
/// [`WebError`]: the server cannot be reached, does not answer in time, or its answer is too long or not HTTP.
pub fn get(url: &Url, tls: Option<&Tls>, limits: &WebLimits) -> Result<HttpAnswer, WebError> {
    exchange(url, tls, limits, "GET", "Accept: application/json\r\n", &[])
}

/// Sends a document in JSON with POST, compressed with gzip. Redirections are not followed, so that no other server gets the headers.
///
/// # Errors
/// As [`get`].
pub fn post_json(
    url: &Url,
    tls: Option<&Tls>,
    limits: &WebLimits,
    headers: &WebHeaders,
    document: &[u8],
) -> Result<HttpAnswer, WebError> {
    let body = gzip(document).map_err(|cause| WebError::Connection { host: url.authority(), cause })?;
    let length = body.len();
    let headers = format!(
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n{}",
        headers.lines()
    );
    exchange(url, tls, limits, "POST", &headers, &body)
}

fn gzip(document: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(document)?;
    encoder.finish()
}

fn exchange(
    url: &Url,
    tls: Option<&Tls>,
    limits: &WebLimits,
    method: &str,
    headers: &str,
    document: &[u8],
) -> Result<HttpAnswer, WebError> {
    let failed = |cause| WebError::Connection { host: url.authority(), cause };
    let wrong = |what| WebError::Http { host: url.authority(), what };
    let mut connection = WebConnection::dial(url, tls, limits)?;
    connection.socket().begin(limits.answer_time).map_err(failed)?;
    let head = format!(
        "{method} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tapeline/{}\r\n{headers}Connection: close\r\n\r\n",
        url.path(),
        url.authority(),
        env!("CARGO_PKG_VERSION")
    );
    let request = [head.as_bytes(), document].concat();
    connection.write_all(&request).and_then(|()| connection.flush()).map_err(failed)?;
    let (mut bytes, mut room) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match answer(&bytes, false) {
            Parsed::Whole(answer) => return Ok(answer),
            Parsed::Wrong(what) => return Err(wrong(what)),
            Parsed::Incomplete => {}
        }
        let count = match connection.read(&mut room) {
            Ok(count) => count,
            // Many servers close without a closing message of TLS; what is missing then is found below.
            Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => 0,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
            Err(cause) => return Err(failed(cause)),
        };
        if count == 0 {
            return match answer(&bytes, true) {
                Parsed::Whole(answer) => Ok(answer),
                Parsed::Wrong(what) => Err(wrong(what)),
                Parsed::Incomplete => Err(wrong("the answer ends early")),
            };
        }
        bytes.extend_from_slice(&room[..count]);
        if bytes.len() > limits.longest {
            return Err(wrong("the answer is too long"));
        }
    }
}

enum Parsed {
    Whole(HttpAnswer),
    Incomplete,
    Wrong(&'static str),
}

/// Reads an answer; `is_end`: the server sends no more.
fn answer(bytes: &[u8], is_end: bool) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() <= LONGEST_HEAD => return Parsed::Incomplete,
        Ok(httparse::Status::Partial) => return Parsed::Wrong("the head of the answer is too long"),
        Err(_) => return Parsed::Wrong("the answer is not HTTP"),
    };
    let value = |name: &str| {
        let header = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(std::str::from_utf8(header.value).ok()?.trim())
    };
    let rest = &bytes[length..];
    let is_chunked =
        value("transfer-encoding").is_some_and(|encoding| encoding.eq_ignore_ascii_case("chunked"));
    let body = if is_chunked {
        match unchunked(rest) {
            Ok(Some(body)) => body,
            Ok(None) => return Parsed::Incomplete,
            Err(what) => return Parsed::Wrong(what),
        }
    } else if let Some(length) = value("content-length") {
        let Ok(length) = length.parse::<usize>() else {
            return Parsed::Wrong("the answer's length is not a number");
        };
        match rest.get(..length) {
            Some(body) => body.to_vec(),
            None => return Parsed::Incomplete,
        }
    } else if is_end {
        rest.to_vec()
    } else {
        return Parsed::Incomplete;
    };
    let retry_after = value("retry-after").and_then(retry_after);
    Parsed::Whole(HttpAnswer { status: head.code.unwrap_or(0), retry_after, body })
}

/// Reads the value of a `Retry-After` in seconds; `None` if it is a date.
pub(super) fn retry_after(value: &str) -> Option<Duration> {
    value.trim().parse().ok().map(Duration::from_secs)
}

/// Joins the chunks of a body; `None` if the last one has not arrived.
fn unchunked(mut rest: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    let mut body = Vec::new();
    loop {
        let (from, size) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err("a chunk of the answer has no size"),
        };
        let size = usize::try_from(size).map_err(|_| "a chunk of the answer is too long")?;
        rest = &rest[from..];
        if size == 0 {
            return Ok(Some(body));
        }
        let Some(chunk) = rest.get(..size) else { return Ok(None) };
        body.extend_from_slice(chunk);
        rest = match &rest[size..] {
            [b'\r', b'\n', after @ ..] => after,
            [] | [b'\r'] => return Ok(None),
            _ => return Err("a chunk of the answer does not end"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str, is_end: bool) -> Option<HttpAnswer> {
        match answer(text.as_bytes(), is_end) {
            Parsed::Whole(answer) => Some(answer),
            Parsed::Incomplete | Parsed::Wrong(_) => None,
        }
    }

    #[test]
    fn bodies_of_all_three_kinds() {
        for (text, is_end) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", false),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3\r\nbod\r\n1;x=y\r\ny\r\n0\r\n\r\n",
                false,
            ),
            ("HTTP/1.1 200 OK\r\n\r\nbody", true),
        ] {
            let answer = whole(text, is_end).unwrap();
            assert_eq!(
                (answer.status, answer.retry_after, answer.body),
                (200, None, b"body".to_vec()),
                "{text}"
            );
            for (end, _) in text.char_indices() {
                // A body without a length may end anywhere, and the last chunk is empty.
                assert!(
                    is_end || whole(&text[..end], true).is_none_or(|_| text[..end].contains("\r\n0\r\n")),
                    "{end}"
                );
            }
        }
        let answer =
            whole("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", false).unwrap();
        assert_eq!((answer.status, answer.retry_after), (429, Some(Duration::from_secs(7))));
    }

    #[test]
    fn what_is_not_http_is_refused() {
        for text in [
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        ] {
            assert!(matches!(answer(text.as_bytes(), true), Parsed::Wrong(_)), "{text}");
        }
    }
}
