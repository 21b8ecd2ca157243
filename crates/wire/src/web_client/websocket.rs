//! A WebSocket client of text messages.

use std::time::Duration;

use tungstenite::client::client_with_config;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{HandshakeError, Message, Utf8Bytes, WebSocket};

use super::connection::{WebConnection, is_time_out};
use super::request::retry_after;
use super::{Url, WebError, WebLimits};
use crate::impls::shown;
use crate::tls::Tls;

/// A connection to a WebSocket server.
pub struct WebSocketClient {
    socket: WebSocket<WebConnection>,
    host: String,
}

shown!(WebSocketClient, it => host: it.host);

/// A received text message.
#[derive(Clone, Debug)]
pub struct WebText(Utf8Bytes);

impl WebText {
    /// Returns the text's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_str().as_bytes()
    }
}

/// The result of a read.
#[derive(Clone, Debug)]
#[must_use]
pub enum WebReceived {
    /// A text message.
    Text(WebText),
    /// A ping or a pong, a message that is not text, or a part of a message: the server is alive.
    Alive,
    /// Nothing within the time.
    Nothing,
    /// The server closed the connection, with its reason.
    Closed(String),
}

impl WebSocketClient {
    /// Connects, and opens the WebSocket.
    ///
    /// # Errors
    /// [`WebError`]: the server cannot be reached, or refuses.
    pub fn connect(url: &Url, tls: Option<&Tls>, limits: &WebLimits) -> Result<Self, WebError> {
        let host = url.authority();
        let connection = WebConnection::dial(url, tls, limits)?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(limits.longest))
            .max_frame_size(Some(limits.longest))
            .max_write_buffer_size(limits.longest.max(256 << 10));
        let refused = |cause: String| WebError::WebSocket { host: host.clone(), cause };
        let opened = client_with_config(url.to_string(), connection, Some(config));
        let (socket, _) = opened.map_err(|error| match error {
            HandshakeError::Interrupted(_) => refused("the server did not answer in time".to_owned()),
            HandshakeError::Failure(tungstenite::Error::Http(answer)) => {
                let asked = answer.headers().get("retry-after").and_then(|asked| asked.to_str().ok());
                let retry_after = asked.and_then(retry_after);
                WebError::Refused { host: host.clone(), status: answer.status().to_string(), retry_after }
            }
            HandshakeError::Failure(cause) => refused(cause.to_string()),
        })?;
        Ok(Self { socket, host })
    }

    /// Waits for a message, for at most `time`. Pings of the server are answered.
    ///
    /// # Errors
    /// [`WebError`]: the connection can no longer be used.
    pub fn receive(&mut self, time: Duration) -> Result<WebReceived, WebError> {
        let before = self.begin(time)?;
        match self.socket.read() {
            Ok(Message::Text(text)) => Ok(WebReceived::Text(WebText(text))),
            Ok(Message::Close(frame)) => {
                // Sends the answer; a failure does not matter.
                let _ = self.socket.flush();
                Ok(WebReceived::Closed(frame.map_or_else(String::new, |frame| frame.to_string())))
            }
            Ok(_) => Ok(WebReceived::Alive),
            Err(tungstenite::Error::Io(cause)) if is_time_out(&cause) => {
                let is_part = self.socket.get_mut().socket().received() > before;
                Ok(if is_part { WebReceived::Alive } else { WebReceived::Nothing })
            }
            Err(tungstenite::Error::Io(cause)) => Err(self.broken(cause)),
            Err(tungstenite::Error::ConnectionClosed) => Ok(WebReceived::Closed(String::new())),
            Err(cause) => Err(self.broke(cause.to_string())),
        }
    }

    /// Sends a text message.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn send(&mut self, text: &str) -> Result<(), WebError> {
        self.write(Message::text(text))
    }

    /// Sends a ping: the server answers with a pong.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn ping(&mut self) -> Result<(), WebError> {
        self.write(Message::Ping(Vec::new().into()))
    }

    /// Tells the server that the connection ends.
    pub fn close(mut self) {
        let _ = self.socket.close(None);
        let _ = self.socket.flush();
    }

    /// Begins an exchange; returns the number of bytes received before it.
    fn begin(&mut self, time: Duration) -> Result<u64, WebError> {
        let socket = self.socket.get_mut().socket();
        let before = socket.received();
        match socket.begin(time) {
            Ok(()) => Ok(before),
            Err(cause) => Err(self.broken(cause)),
        }
    }

    fn write(&mut self, message: Message) -> Result<(), WebError> {
        let time = self.socket.get_mut().socket().read_time();
        self.begin(time)?;
        match self.socket.send(message) {
            Ok(()) => Ok(()),
            Err(tungstenite::Error::Io(cause)) => Err(self.broken(cause)),
            Err(cause) => Err(self.broke(cause.to_string())),
        }
    }

    fn broken(&self, cause: std::io::Error) -> WebError {
        WebError::Connection { host: self.host.clone(), cause }
    }

    fn broke(&self, cause: String) -> WebError {
        WebError::WebSocket { host: self.host.clone(), cause }
    }
}
