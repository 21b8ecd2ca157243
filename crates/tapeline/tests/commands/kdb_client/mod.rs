//! A blocking client of kdb+ for tests.

use std::io::{Read, Write};
use std::net::TcpStream;

use tapeline_kdb::{Encoder, Frames, Log, MessageKind, Order, Refused, Value};

/// A time zone in which it is about noon, so that no day ends during the test. (West is positive in these names.)
pub(crate) fn zone() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let hour = (now.as_secs() / 3_600 % 24) as i64;
    format!("Etc/GMT{:+}", hour - 12)
}

pub(crate) trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// A client with blocking sockets.
pub(crate) struct Client {
    pub(crate) stream: Box<dyn Stream>,
    frames: Frames,
}

impl Client {
    /// Logs in; `None` if the login is refused.
    pub(crate) fn hello(mut stream: impl Stream + 'static, hello: &[u8]) -> Option<Self> {
        stream.write_all(hello).unwrap();
        let mut capability = [0xFF];
        // Closed or reset, depending on unread data.
        if !matches!(stream.read(&mut capability), Ok(1)) {
            return None;
        }
        assert_eq!(capability, [3]);
        Some(Self { stream: Box::new(stream), frames: Frames::new(1 << 20) })
    }

    /// A client over TCP.
    pub(crate) fn tcp(address: &str) -> Self {
        Self::hello(TcpStream::connect(address).unwrap(), b"me:secret\x03\0").unwrap()
    }

    /// Sends a message.
    pub(crate) fn say(
        &mut self,
        kind: MessageKind,
        write: impl FnOnce(&mut Encoder<'_>) -> Result<(), Refused>,
    ) {
        self.try_say(kind, write).unwrap();
    }

    /// Sends a message; the peer may have closed the connection.
    pub(crate) fn try_say(
        &mut self,
        kind: MessageKind,
        write: impl FnOnce(&mut Encoder<'_>) -> Result<(), Refused>,
    ) -> std::io::Result<()> {
        let mut room = vec![0; 4 << 20];
        let mut message = Encoder::message(&mut room, kind).unwrap();
        write(&mut message).unwrap();
        let len = message.finish().unwrap();
        self.stream.write_all(&room[..len])
    }

    /// The next message.
    pub(crate) fn next(&mut self) -> Value {
        self.try_next().expect("it was closed")
    }

    /// The next message; `None` when the peer has closed the connection.
    pub(crate) fn try_next(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.frames.next().unwrap() {
                return Some(message.view().unwrap().to_value());
            }
            let count = self.stream.read(self.frames.room()).unwrap_or(0);
            if count == 0 {
                return None;
            }
            self.frames.received(count);
        }
    }

    /// The result of a query.
    pub(crate) fn ask(&mut self, text: &str) -> Value {
        self.say(MessageKind::Sync, |out| out.string(text.as_bytes()));
        self.next()
    }
}

/// The number of messages in a log, which must be whole.
pub(crate) fn logged(path: &str) -> usize {
    let bytes = std::fs::read(path).unwrap();
    let mut log = Log::parse(&bytes, Order::Little).unwrap();
    let count = log.by_ref().count();
    assert_eq!(log.torn(), None);
    count
}
