//! The connection of two programs: a transport and a compression.

use std::fmt;

/// A way of connecting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Way {
    /// The programs' name for it.
    pub(crate) transport: &'static str,
    /// Over JSON, any value except `none` is permessage-deflate of the WebSocket.
    pub(crate) compression: &'static str,
}

/// Each transport, and each compression that is implemented in a separate place.
pub(crate) const WAYS: [Way; 12] = [
    Way::new("tcp", "none"),
    Way::new("tcp", "zlib"),
    Way::new("tcp", "lz4"),
    Way::new("ws-rwf", "none"),
    Way::new("ws-rwf", "zlib"),
    Way::new("ws-rwf", "lz4"),
    Way::new("ws-json", "none"),
    Way::new("ws-json", "zlib"),
    Way::new("ws-json-v2", "none"),
    Way::new("tls", "none"),
    Way::new("tls-ws-rwf", "none"),
    Way::new("tls-ws-json", "none"),
];

impl Way {
    pub(crate) const fn new(transport: &'static str, compression: &'static str) -> Self {
        Self { transport, compression }
    }

    pub(crate) fn is_encrypted(self) -> bool {
        self.transport.starts_with("tls")
    }

    /// The sub-protocol in the opening of a WebSocket.
    pub(crate) fn sub_protocol(self) -> Option<&'static str> {
        match self.transport {
            "ws-rwf" | "tls-ws-rwf" => Some("rssl.rwf"),
            "ws-json" | "tls-ws-json" => Some("tr_json2"),
            "ws-json-v2" => Some("rssl.json.v2"),
            _ => None,
        }
    }

    pub(crate) fn is_json(self) -> bool {
        self.transport.contains("json")
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            "tcp" => "TCP",
            "tls" => "TLS",
            "ws-rwf" => "WS `rssl.rwf`",
            "ws-json" => "WS `tr_json2`",
            "ws-json-v2" => "WS `rssl.json.v2`",
            "tls-ws-rwf" => "TLS WS `rssl.rwf`",
            "tls-ws-json" => "TLS WS `tr_json2`",
            "zeromq-rwf" => "RWF",
            "zeromq-json" => "JSON",
            other => other,
        };
        f.write_str(transport)?;
        match self.compression {
            "none" => Ok(()),
            _ if self.is_json() => f.write_str(", deflate"),
            other => write!(f, ", {other}"),
        }
    }
}
