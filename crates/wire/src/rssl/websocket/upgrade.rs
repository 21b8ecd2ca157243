//! The two HTTP heads that open a WebSocket.

use httparse::{EMPTY_HEADER, Header, Request, Response, Status};
use tungstenite::handshake::derive_accept_key;

use super::super::fault::{Fault, Reason};
use crate::impls::shown;
use crate::origin;

/// The content of WebSocket messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubProtocol {
    /// `rssl.rwf`: RSSL frames, each in a binary message.
    Rwf,
    /// `tr_json2`: JSON, in text messages.
    TrJson2,
    /// `rssl.json.v2`: an older name of `tr_json2`.
    RsslJsonV2,
}

impl SubProtocol {
    /// Returns the sub-protocol's name in the HTTP heads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rwf => "rssl.rwf",
            Self::TrJson2 => "tr_json2",
            Self::RsslJsonV2 => "rssl.json.v2",
        }
    }

    /// Returns `true` if the messages are JSON.
    pub fn is_json(self) -> bool {
        self != Self::Rwf
    }

    /// Returns the sub-protocol with this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Rwf, Self::TrJson2, Self::RsslJsonV2].into_iter().find(|protocol| protocol.name() == name)
    }
}

/// A login in the cookies of a WebSocket client's opening request, in place of a login message: a token that the client
/// got elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub struct CookieLogin {
    /// Cookie `AuthToken`: the token.
    pub token: String,
    /// Cookie `AuthPosition`, or `position`: the client's position as in logins; empty if missing.
    pub position: String,
    /// Cookie `applicationId`: a number as text; empty if missing.
    pub application_id: String,
}

shown!(CookieLogin, it => position: it.position, application_id: it.application_id);

impl CookieLogin {
    /// Returns the login in these headers, if their cookies contain a token (RFC 6265, section 4.2). Of two
    /// cookies with one name, the first is used.
    fn of(headers: &[Header<'_>]) -> Option<Self> {
        let lines = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("cookie"));
        let lines: Vec<&str> = lines.filter_map(|header| std::str::from_utf8(header.value).ok()).collect();
        let cookie = |names: &[&str]| {
            let mut all =
                lines.iter().flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
            let (_, value) = all.find(|(name, _)| names.contains(&name.trim()))?;
            Some(value.trim().trim_matches('"').to_owned()).filter(|value| !value.is_empty())
        };
        Some(Self {
            token: cookie(&["AuthToken"])?,
            position: cookie(&["AuthPosition", "position"]).unwrap_or_default(),
            application_id: cookie(&["applicationId"]).unwrap_or_default(),
        })
    }
}

/// Maximum length of a head in bytes. EMA's are below 300 bytes, a browser's with cookies below a few
/// thousand.
const LONGEST_HEAD: usize = 16 << 10;
/// Maximum number of characters of an origin in an error.
const LONGEST_ORIGIN: usize = 100;
/// Maximum number of header lines in a head.
const MOST_HEADERS: usize = 64;
/// The only supported extension, as EMA writes it.
const DEFLATE: &str = "permessage-deflate";
/// The header line that offers it or agrees to it.
const DEFLATE_LINE: &str = "Sec-WebSocket-Extensions: permessage-deflate;server_no_context_takeover\r\n";

/// The content of a whole head.
#[derive(Debug)]
pub(in super::super) struct Opening {
    /// Length of the head in bytes.
    pub(in super::super) length: usize,
    pub(in super::super) protocol: SubProtocol,
    /// Whether messages may be compressed.
    pub(in super::super) deflate: bool,
    /// A request's key.
    pub(in super::super) key: String,
    /// A request's login.
    pub(in super::super) login: Option<CookieLogin>,
}

/// Reads the head at the front of `bytes`, if it is complete: a request to a server that supports `known` and
/// permits pages of the origins `listed`, or the answer to the request with `key`, which asked for `known`.
pub(in super::super) fn head(
    bytes: &[u8],
    known: &[SubProtocol],
    listed: &[String],
    key: Option<&str>,
) -> Result<Option<Opening>, Reason> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let broken = |cause: httparse::Error| {
        Fault::new(format!("HTTP head ({cause})"), "a WebSocket opening handshake (RFC 6455, section 4)")
    };
    let opening = match key {
        None => {
            let mut request = Request::new(&mut headers);
            match request.parse(bytes).map_err(broken)? {
                Status::Complete(length) => Some(asked(length, &request, known, listed)?),
                Status::Partial => None,
            }
        }
        Some(key) => {
            let mut response = Response::new(&mut headers);
            match response.parse(bytes).map_err(broken)? {
                Status::Complete(length) => Some(answered(length, &response, known, key)?),
                Status::Partial => None,
            }
        }
    };
    if opening.is_none() && bytes.len() >= LONGEST_HEAD {
        return Err(Fault::new("HTTP head without an end", format!("at most {LONGEST_HEAD} bytes")).into());
    }
    Ok(opening)
}

fn asked(
    length: usize,
    request: &Request<'_, '_>,
    known: &[SubProtocol],
    listed: &[String],
) -> Result<Opening, Reason> {
    let headers = &*request.headers;
    let refused = |text: &str| Err(Reason::Refused(text.to_owned()));
    if request.method != Some("GET") || !has_word(headers, "upgrade", "websocket") {
        return refused("not a WebSocket opening request");
    }
    // EMA's server requires this of a path.
    if !request.path.is_some_and(|path| path.to_ascii_lowercase().contains("websocket")) {
        return refused("the path does not hold the word WebSocket");
    }
    // A browser sends the requests of any page, from inside its user's network.
    for origin in headers.iter().filter(|header| header.name.eq_ignore_ascii_case("origin")) {
        let origin = String::from_utf8_lossy(origin.value);
        if !origin::may_connect(origin.trim(), value(headers, "host"), listed) {
            let shown: String =
                origin.trim().chars().take(LONGEST_ORIGIN).flat_map(char::escape_default).collect();
            return Err(Reason::Refused(format!(
                "pages of {shown} may not connect here; the list of origins can let them in"
            )));
        }
    }
    if value(headers, "sec-websocket-version") != Some("13") {
        return refused("not version 13 of WebSocket");
    }
    let Some(key) = value(headers, "sec-websocket-key") else { return refused("no Sec-WebSocket-Key") };
    let first = words(headers, "sec-websocket-protocol").filter_map(SubProtocol::named);
    let Some(protocol) = first.into_iter().find(|protocol| known.contains(protocol)) else {
        return refused("no sub-protocol that is spoken here");
    };
    let deflate = words(headers, "sec-websocket-extensions").any(|offer| extension(offer) == DEFLATE);
    let login = CookieLogin::of(headers);
    Ok(Opening { length, protocol, deflate, key: key.to_owned(), login })
}

fn answered(
    length: usize,
    response: &Response<'_, '_>,
    asked: &[SubProtocol],
    key: &str,
) -> Result<Opening, Reason> {
    let headers = &*response.headers;
    if response.code != Some(101) {
        let (code, reason) = (response.code.unwrap_or(0), response.reason.unwrap_or(""));
        return Err(Reason::Refused(format!("HTTP {code} {reason}")));
    }
    let accept = value(headers, "sec-websocket-accept").unwrap_or("");
    let expected = derive_accept_key(key.as_bytes());
    if accept != expected || !has_word(headers, "upgrade", "websocket") {
        return Err(Fault::new(format!("Sec-WebSocket-Accept \"{accept}\""), expected).into());
    }
    let named = value(headers, "sec-websocket-protocol").unwrap_or("");
    let Some(protocol) = SubProtocol::named(named).filter(|protocol| asked.contains(protocol)) else {
        return Err(Fault::new(format!("sub-protocol \"{named}\""), "one that was asked for").into());
    };
    let mut extensions = words(headers, "sec-websocket-extensions").map(extension);
    let deflate = match extensions.next() {
        None | Some("") => false,
        Some(DEFLATE) => true,
        Some(other) => return Err(Fault::new(format!("extension \"{other}\""), DEFLATE).into()),
    };
    Ok(Opening { length, protocol, deflate, key: String::new(), login: None })
}

/// Returns a client's head.
pub(in super::super) fn request(
    host: &str,
    path: &str,
    protocols: &[SubProtocol],
    deflate: bool,
    key: &str,
) -> String {
    let names = protocols.iter().map(|protocol| protocol.name()).collect::<Vec<_>>().join(", ");
    let extensions = if deflate { DEFLATE_LINE } else { "" };
    format!(
        "GET {path} HTTP/1.1\r\nSec-WebSocket-Key: {key}\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Host: {host}\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: {names}\r\n{extensions}\r\n"
    )
}

/// Returns a server's head. `deflate`: the server agrees to compression.
pub(in super::super) fn response(opening: &Opening, deflate: bool) -> String {
    let accept = derive_accept_key(opening.key.as_bytes());
    let name = opening.protocol.name();
    let extensions = if deflate { DEFLATE_LINE } else { "" };
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {name}\r\n{extensions}\r\n"
    )
}

/// Returns a server's head for a refused client, with the reason as its text.
pub(in super::super) fn refusal(text: &str) -> String {
    let length = text.len() + 2;
    format!(
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{text}\r\n"
    )
}

pub(in super::super) fn new_key() -> String {
    tungstenite::handshake::client::generate_key()
}

/// Returns the value of the first header of this name (in lower case).
fn value<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a str> {
    let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    Some(std::str::from_utf8(header.value).ok()?.trim())
}

/// Returns the values between commas in all headers of this name.
fn words<'a>(headers: &'a [Header<'a>], name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    named
        .filter_map(|header| std::str::from_utf8(header.value).ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

fn has_word(headers: &[Header<'_>], name: &str, word: &str) -> bool {
    words(headers, name).any(|found| found.eq_ignore_ascii_case(word))
}

/// Returns the name of an extension, without its parameters.
fn extension(offer: &str) -> &str {
    offer.split(';').next().unwrap_or("").trim()
}
