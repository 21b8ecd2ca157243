//! The address of a web server.

use std::fmt;

/// The address of a server and a resource on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    scheme: Scheme,
    host: String,
    port: u16,
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Ws,
    Wss,
    Http,
    Https,
}

const SCHEMES: [(&str, Scheme, u16); 4] = [
    ("wss://", Scheme::Wss, 443),
    ("https://", Scheme::Https, 443),
    ("ws://", Scheme::Ws, 80),
    ("http://", Scheme::Http, 80),
];

/// Why a text is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlFault {
    /// The address does not begin with a known scheme.
    #[error("an address begins with wss://, ws://, https:// or http://")]
    Scheme,
    /// The address has no host, or characters that no host has.
    #[error("the host of the address is not valid")]
    Host,
    /// The port is not a number from 1 to 65,535.
    #[error("the port of the address is not a number from 1 to 65535")]
    Port,
    /// The path has blanks or characters that are not ASCII.
    #[error("the path of the address has a blank or a character that is not ASCII")]
    Path,
}

impl Url {
    /// Reads an address. A user name, a fragment and an IPv6 address are not accepted.
    ///
    /// # Errors
    /// [`UrlFault`].
    pub fn parse(text: &str) -> Result<Self, UrlFault> {
        let found = SCHEMES
            .iter()
            .find_map(|(prefix, scheme, port)| Some((text.strip_prefix(prefix)?, *scheme, *port)));
        let (rest, scheme, usual) = found.ok_or(UrlFault::Scheme)?;
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().ok().filter(|port| *port > 0).ok_or(UrlFault::Port)?),
            None => (authority, usual),
        };
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if host.is_empty() || host.len() > 253 || !host.bytes().all(is_part) {
            return Err(UrlFault::Host);
        }
        if !path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err(UrlFault::Path);
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { scheme, host: host.to_owned(), port, path })
    }

    /// Returns `true` for `wss` and `ws`.
    #[must_use]
    pub const fn is_websocket(&self) -> bool {
        matches!(self.scheme, Scheme::Ws | Scheme::Wss)
    }

    /// Returns `true` for `wss` and `https`.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        matches!(self.scheme, Scheme::Wss | Scheme::Https)
    }

    /// Returns the host's name or address.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns host and port.
    #[must_use]
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns the path with its query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns this address with a query, or with a longer one.
    #[must_use]
    pub fn with_query(&self, query: &str) -> Self {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        Self { path: format!("{}{separator}{query}", self.path), ..self.clone() }
    }
}

/// Writes the address.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = SCHEMES.iter().find(|(_, scheme, _)| *scheme == self.scheme);
        let (prefix, _, usual) = known.map_or(("", Scheme::Ws, 0), |known| *known);
        f.write_str(prefix)?;
        f.write_str(&self.host)?;
        if self.port != usual {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_all_forms() {
        for (text, authority, path, shown) in [
            ("wss://stream.binance.com:9443/stream", "stream.binance.com:9443", "/stream", None),
            ("https://api.binance.com/api/v3/depth", "api.binance.com:443", "/api/v3/depth", None),
            ("ws://127.0.0.1:8080", "127.0.0.1:8080", "/", Some("ws://127.0.0.1:8080/")),
            ("http://localhost?a=1", "localhost:80", "/?a=1", Some("http://localhost/?a=1")),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!((url.authority().as_str(), url.path()), (authority, path));
            assert_eq!(url.to_string(), shown.unwrap_or(text));
            assert_eq!(Url::parse(&url.to_string()), Ok(url));
        }
        let url = Url::parse("https://h/p").unwrap().with_query("a=1");
        assert_eq!((url.path(), url.with_query("b=2").path()), ("/p?a=1", "/p?a=1&b=2"));
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, fault) in [
            ("", UrlFault::Scheme),
            ("stream.binance.com", UrlFault::Scheme),
            ("ftp://host", UrlFault::Scheme),
            ("wss://", UrlFault::Host),
            ("wss://user@host/", UrlFault::Host),
            ("wss://ho st/", UrlFault::Host),
            ("wss://host:0/", UrlFault::Port),
            ("wss://host:70000/", UrlFault::Port),
            ("wss://host:x", UrlFault::Port),
            ("wss://host/a b", UrlFault::Path),
            ("wss://host/\r\nX: y", UrlFault::Path),
            ("wss://host/#x", UrlFault::Path),
        ] {
            assert_eq!(Url::parse(text), Err(fault), "{text}");
        }
    }
}
