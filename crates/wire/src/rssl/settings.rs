//! The settings of a connection, under the names that EMA and ETA use.

use std::net::IpAddr;

use super::websocket::SubProtocol;
use crate::tls::Tls;

/// The compression of payloads. Each side states what it supports; the server chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// One deflate stream for each direction of the connection; JSON messages are compressed one by one.
    Zlib,
    /// Each payload is a raw LZ4 block of its own.
    Lz4,
}

impl Compression {
    /// Returns its number in the answer to a connect request.
    pub(super) fn code(self) -> u16 {
        self as u16
    }

    pub(super) fn from_code(code: u16) -> Option<Self> {
        [Self::None, Self::Zlib, Self::Lz4].into_iter().find(|compression| compression.code() == code)
    }

    /// Returns its bit in a connect request; no bit if there is no compression.
    pub(super) fn bit(self) -> u8 {
        self as u8
    }
}

/// The opening of a client's connection. A server accepts both on the same port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionType {
    /// RSSL's own handshake.
    #[default]
    Socket,
    /// A WebSocket handshake.
    WebSocket,
}

/// The settings of one end of a connection. A setting that EMA and ETA have is described with its name there. Their
/// defaults are from the *EMA C++ Configuration Guide* (3.4 Channel Group, 3.7 Server Group) and from the behaviour of
/// the library on the wire. Values outside their range are moved to the nearest bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// `maxFragmentSize`, bytes: the largest payload of a frame; a longer message is sent in fragments. A server states
    /// the value in its answer and both sides keep to it; a client's own value limits what the client sends. 256 to
    /// 65,000; default 6144 as in ETA.
    pub max_fragment_size: u16,
    /// `guaranteedOutputBuffers`: the number of frames of the largest size that can wait to be sent. Smaller
    /// frames share a buffer, so the limit is in bytes (× `max_fragment_size`), not messages. At least 2;
    /// default 50 as in ETA (EMA: 100). The memory is reserved when the connection is made, at most 1 GiB;
    /// unused pages cost nothing.
    pub guaranteed_output_buffers: u32,
    /// Maximum bytes of the messages that share a frame, each with the two bytes of its length; a longer message gets a
    /// frame of its own. `None` means that only the size of a frame limits them. `-packBufSize` in ETA's performance
    /// tools.
    pub pack_bytes: Option<u16>,
    /// `numInputBuffers`: the number of frames of the largest size that can be received and not yet consumed. At least
    /// the longest frame of the protocol (64 KiB); default 10 as in ETA.
    pub num_input_buffers: u32,
    /// `highWaterMark`, bytes: sending flushes by itself as soon as more than this waits to be sent. 0 flushes after
    /// each message; default 6144 as in ETA.
    pub high_water_mark: u32,
    /// `sysSendBufSize`, bytes: `SO_SNDBUF`. 0, the default, keeps the system's own size, which adapts (EMA: 65535).
    pub sys_send_buf_size: u32,
    /// `sysRecvBufSize`, bytes: `SO_RCVBUF`. 0, the default, keeps the system's own size, which adapts (EMA: 65535).
    pub sys_recv_buf_size: u32,
    /// `tcpNodelay`: `TCP_NODELAY`. Default on, as in EMA: flushed bytes go out at once.
    pub tcp_nodelay: bool,
    /// `compressionType`: a client requests it. A server with a type set accepts whichever type the client requests (of
    /// several, the one with the lower number); a server without one compresses nothing, as EMA's does. JSON on a
    /// WebSocket is compressed with permessage-deflate, whichever type is set. Default none.
    pub compression_type: Compression,
    /// Server: every client must use `compression_type`, whatever it requested. Default off.
    pub compression_forced: bool,
    /// `compressionThreshold`, bytes: shorter payloads are not compressed. `None`, the default, is 30 for zlib and 300
    /// for LZ4, as in ETA.
    pub compression_threshold: Option<u32>,
    /// `compressionLevel`, 0 to 9: zlib's effort when this side sends (0 stores without compression). Default
    /// 6, zlib's own.
    pub compression_level: u8,
    /// `connectionPingTimeout`, seconds (EMA's files give milliseconds): a side that receives nothing for this time
    /// closes the connection. A client requests it; the server grants at most its own value. 1 to 255; default 30 as
    /// for EMA's consumers (EMA's providers: 60).
    pub connection_ping_timeout: u8,
    /// `connectionMinPingTimeout`, seconds. Server: the shortest time-out granted to a client. 1 to 255; default 20 as
    /// in EMA.
    pub connection_min_ping_timeout: u8,
    /// `initializationTimeout`, milliseconds: time limit for TCP, TLS, WebSocket and the handshake together. Default
    /// 10,000 as for EMA's consumers.
    pub initialization_timeout_ms: u64,
    /// Maximum length of a message that this side sends or receives, in bytes; also the maximum bytes received of
    /// incomplete messages. Default 16 MiB.
    pub max_message_bytes: u32,
    /// Maximum length of a received message, in bytes, if it is less than `max_message_bytes`: the length of a message is
    /// also the work that a peer can cause at once. Default none.
    pub max_received_bytes: Option<u32>,
    /// Server: while a client does not take its output, so that a message found no space ([`Sent::Full`](super::Sent::Full)),
    /// its input stays in the socket until half of the space is free. Do not use it on both ends of a connection: each
    /// would wait for the other. Default off.
    pub pause_when_full: bool,
    /// Maximum number of messages that a peer may have begun in fragments and not completed. Default 64.
    pub max_open_messages: u32,
    /// Client: request a key exchange, as EMA's clients do. The key is never used for encryption. Default off.
    pub key_exchange: bool,
    /// Client: `ChannelType`, the opening of the connection. Default RSSL's own handshake.
    pub connection_type: ConnectionType,
    /// `WsProtocols`: the sub-protocols that a WebSocket client requests, in this order; a server takes the first of
    /// the client's that is in this list. Default all: `rssl.rwf`, `tr_json2`, `rssl.json.v2`.
    pub ws_protocols: Vec<SubProtocol>,
    /// WebSocket server: origins of pages on other hosts from which a browser may connect, such as
    /// `https://desk.example.com`; `*` permits all. Pages on the same host are permitted if the host is an address,
    /// `localhost` or this machine's own name. Clients that state no origin are permitted: all except browsers. Default
    /// none.
    pub ws_origins: Vec<String>,
    /// WebSocket client: the path to request. Default `/WebSocket`, as EMA's clients.
    pub ws_path: String,
    /// Client: the server's name, or name and port, as sent in the WebSocket handshake and in TLS. Default empty: the
    /// server's address.
    pub host: String,
    /// `interfaceName`. Client: the local address to connect from; only server addresses of the same family can then be
    /// reached. `None`, the default: the routing table decides.
    pub interface: Option<IpAddr>,
    /// TLS of the connection, for a client or a server. Default none.
    pub tls: Option<Tls>,
    /// `protocolType`: the protocol of the messages; a server refuses a client with another one. 0 is RWF; ETA's own
    /// transport test has a number of its own. On a WebSocket the sub-protocol takes its place.
    pub protocol_type: u8,
    /// This side's component version, sent to the peer; at most 252 bytes.
    pub component_version: String,
    /// Client: the name of this host, sent to the server; at most 64 bytes. Default empty.
    pub host_name: String,
    /// Client: the IP address of this host, sent to the server; at most 64 bytes. Default empty.
    pub ip_address: String,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            max_fragment_size: 6144,
            guaranteed_output_buffers: 50,
            pack_bytes: None,
            num_input_buffers: 10,
            high_water_mark: 6144,
            sys_send_buf_size: 0,
            sys_recv_buf_size: 0,
            tcp_nodelay: true,
            compression_type: Compression::None,
            compression_forced: false,
            compression_threshold: None,
            compression_level: 6,
            connection_ping_timeout: 30,
            connection_min_ping_timeout: 20,
            initialization_timeout_ms: 10_000,
            max_message_bytes: 16 << 20,
            max_received_bytes: None,
            pause_when_full: false,
            max_open_messages: 64,
            key_exchange: false,
            connection_type: ConnectionType::Socket,
            ws_protocols: vec![SubProtocol::Rwf, SubProtocol::TrJson2, SubProtocol::RsslJsonV2],
            ws_origins: Vec::new(),
            ws_path: "/WebSocket".to_owned(),
            host: String::new(),
            interface: None,
            tls: None,
            protocol_type: 0,
            component_version: concat!("tapeline", env!("CARGO_PKG_VERSION")).to_owned(),
            host_name: String::new(),
            ip_address: String::new(),
        }
    }
}

/// The smallest `max_fragment_size`: a payload that compression made longer still fits into two frames.
pub(super) const SMALLEST_FRAGMENT: u16 = 256;
/// The largest `max_fragment_size`: a frame's length has 16 bits and includes its header.
pub(super) const LARGEST_FRAGMENT: u16 = 65_000;
/// The longest frame, with the header of a WebSocket message around it.
pub(super) const LONGEST_FRAME: usize = 65_535 + 14;

/// The largest buffer for either direction: a machine would probably refuse more.
const LARGEST_BLOCK: usize = 1 << 30;

/// A connection's own state, two long messages whose memory is retained for the next (64 KiB each), half of a
/// compressed payload, and the handshake's texts.
const CONNECTION: usize = 256 << 10;
/// State of zlib for one direction, as measured: inflating 48 KB, deflating 330 KB.
const INFLATE: usize = 64 << 10;
const DEFLATE: usize = 384 << 10;
/// State of TLS: 64 KiB that the socket has not accepted, records in both directions, the handshake.
const TLS: usize = 256 << 10;

impl ConnectionSettings {
    /// Moves every value into its range.
    pub(super) fn sound(mut self) -> Self {
        self.max_fragment_size = self.max_fragment_size.clamp(SMALLEST_FRAGMENT, LARGEST_FRAGMENT);
        self.guaranteed_output_buffers = self.guaranteed_output_buffers.max(2);
        self.compression_level = self.compression_level.min(9);
        self.connection_ping_timeout = self.connection_ping_timeout.max(1);
        self.connection_min_ping_timeout =
            self.connection_min_ping_timeout.clamp(1, self.connection_ping_timeout);
        truncate(&mut self.component_version, 252);
        truncate(&mut self.host_name, 64);
        truncate(&mut self.ip_address, 64);
        self
    }

    /// Returns the maximum length of a received message.
    pub(super) fn longest_received(&self) -> usize {
        self.max_received_bytes.unwrap_or(u32::MAX).min(self.max_message_bytes) as usize
    }

    pub(super) fn input_bytes(&self) -> usize {
        let frames = usize::try_from(self.num_input_buffers).unwrap_or(usize::MAX);
        frames.saturating_mul(usize::from(self.max_fragment_size) + 17).clamp(LONGEST_FRAME, LARGEST_BLOCK)
    }

    pub(super) fn output_bytes(&self) -> usize {
        let frames = usize::try_from(self.guaranteed_output_buffers).unwrap_or(usize::MAX);
        frames.saturating_mul(usize::from(self.max_fragment_size) + 17).min(LARGEST_BLOCK)
    }

    /// Returns the maximum memory, in bytes, of a server's connection with these settings, whatever its peer does, if
    /// no sent message is longer than `longest_sent`. Not included: incomplete messages
    /// ([`Reactor::limit_held`](super::Reactor::limit_held)), and the system's socket buffers.
    pub fn memory_bound(&self, longest_sent: usize) -> usize {
        let fragment = usize::from(self.max_fragment_size);
        // The rest of a long message that does not fit into the buffer; below, its compressed form, which can
        // be twice as long.
        let mut bytes = self.input_bytes() + self.output_bytes() + longest_sent + CONNECTION;
        if self.compression_type != Compression::None {
            let inflated = 1 << 16;
            bytes += inflated + 2 * (INFLATE + DEFLATE) + 2 * fragment + 2 * longest_sent;
        }
        if self.tls.is_some() {
            bytes += TLS;
        }
        bytes
    }

    /// Returns the length below which payloads are not compressed.
    pub(super) fn threshold(&self, compression: Compression) -> usize {
        let usual = if compression == Compression::Lz4 { 300 } else { 30 };
        self.compression_threshold.map_or(usual, |bytes| bytes as usize)
    }
}

/// Truncates a text to at most `bytes` bytes, between two characters.
fn truncate(text: &mut String, bytes: usize) {
    let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
}
