//! Clients of web servers: a WebSocket, and single HTTPS requests. Blocking, for a thread of their own; over TLS or plain TCP.
//!
//! | file | owns |
//! |---|---|
//! | `url.rs` | addresses such as `wss://host:9443/stream` |
//! | `connection.rs` | a connection with time-outs, TLS inside if the address says so |
//! | `websocket.rs` | a WebSocket |
//! | `request.rs` | one HTTP request |
//! | `headers.rs` | headers that a user chooses |
//!
//! Every wait for a server has a limit, however slowly the server sends, and so has every buffer: it can neither hold the thread nor fill the memory.
//! The name is looked up by the system's resolver, in its own time (`resolv.conf`).

mod connection;
mod headers;
mod request;
mod url;
mod websocket;

use std::io;
use std::time::Duration;

pub use headers::{HeadersFault, LONGEST_HEADERS, WebHeaders};
pub use request::{HttpAnswer, get, post_json};
pub use url::{Url, UrlFault};
pub use websocket::{WebReceived, WebSocketClient, WebText};

/// Limits of a connection to a web server.
#[derive(Clone, Copy, Debug)]
pub struct WebLimits {
    /// Maximum time to connect, again for the handshake of TLS, and again to get the server's answer. A read that begins within the time may
    /// take as long again.
    pub answer_time: Duration,
    /// Maximum size of a message or an answer, in bytes.
    pub longest: usize,
}

impl Default for WebLimits {
    /// Ten seconds, 16 MiB.
    fn default() -> Self {
        Self { answer_time: Duration::from_secs(10), longest: 16 << 20 }
    }
}

/// Why a web server could not be reached or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    /// The name of the host has no address.
    #[error("cannot find the address of {host}: {cause}")]
    Resolve {
        /// The host.
        host: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The connection could not be established, or broke.
    #[error("the connection to {host} failed: {cause}")]
    Connection {
        /// Host and port.
        host: String,
        /// The system's error, or that of TLS.
        cause: io::Error,
    },
    /// The address asks for TLS, and there are no settings for it, or invalid ones.
    #[error(transparent)]
    Settings(#[from] crate::Error),
    /// The server answered the request for a WebSocket with an HTTP status other than 101.
    #[error("{host}: the server refuses the WebSocket with HTTP status {status}")]
    Refused {
        /// Host and port.
        host: String,
        /// The status with its name, such as `429 Too Many Requests`.
        status: String,
        /// After how long it may be asked again, as the server says in seconds.
        retry_after: Option<Duration>,
    },
    /// The server did not accept the WebSocket, or broke its protocol.
    #[error("{host}: {cause}")]
    WebSocket {
        /// Host and port.
        host: String,
        /// What happened.
        cause: String,
    },
    /// The server's answer is not HTTP, or too long, or ends early.
    #[error("{host}: {what}")]
    Http {
        /// Host and port.
        host: String,
        /// What is wrong.
        what: &'static str,
    },
}
