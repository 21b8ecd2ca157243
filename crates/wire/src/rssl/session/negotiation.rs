//! RSSL's handshake: requested and negotiated settings.

use super::super::fault::{Fault, Reason};
use super::super::handshake::{
    self, Ack, Answer, ConnectRequest, RWF_VERSION, Requested, ServerKey, Version,
};
use super::super::receiver::Receiver;
use super::super::settings::{Compression, SMALLEST_FRAGMENT};
use super::super::websocket::{CookieLogin, SubProtocol};
use super::{Found, Phase, Session};

/// The settings negotiated between both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// The version of the handshake; `None` for JSON, which has none.
    pub version: Option<Version>,
    /// The sub-protocol of the WebSocket, if it is one.
    pub websocket: Option<SubProtocol>,
    /// The compression of payloads in both directions.
    pub compression: Compression,
    /// The largest payload of a frame, in bytes.
    pub max_fragment_size: u16,
    /// The longest message that this side takes, in bytes.
    pub max_received_bytes: usize,
    /// The ping time-out in seconds: a side that receives nothing for this time closes the connection.
    pub ping_timeout: u8,
    /// The version of RWF that the client stated: major, minor.
    pub codec: (u8, u8),
    /// The peer's component version; empty before version 13.
    pub peer_version: String,
    /// The host name that the client sent.
    pub peer_host: String,
    /// The IP address that the client sent.
    pub peer_address: String,
    /// The login that a JSON client sent in cookies; there may be no login message.
    pub login: Option<CookieLogin>,
}

impl Negotiated {
    /// Returns `true` if messages are JSON texts; otherwise they are RWF.
    pub fn is_json(&self) -> bool {
        self.websocket.is_some_and(SubProtocol::is_json)
    }
}

impl Session {
    pub(super) fn open(&mut self, input: &[u8]) -> Result<(usize, Option<Found>), Reason> {
        let position = self.position;
        self.handshake(input).map_err(|reason| match reason {
            Reason::Broken(fault) => fault.at(position).into(),
            other => other,
        })
    }

    fn handshake(&mut self, input: &[u8]) -> Result<(usize, Option<Found>), Reason> {
        let Some(length) = handshake::message_length(input)? else { return Ok((0, None)) };
        let Some(message) = input.get(..length) else { return Ok((0, None)) };
        match self.phase {
            Phase::Request => self.answer(message)?,
            Phase::Answer(version) => self.accept(message, version)?,
            Phase::Key => {
                handshake::check_key(message)?;
                self.phase = Phase::Open;
            }
            Phase::Open => {}
        }
        self.position += length as u64;
        if self.phase != Phase::Open {
            return Ok((length, None));
        }
        if let Some((agreed, version)) =
            self.negotiated.as_ref().and_then(|agreed| Some((agreed, agreed.version?)))
        {
            self.receiver = Some(Receiver::new(version, agreed.compression, &self.settings, self.position));
            self.output.open(agreed, &self.settings, self.level);
            self.pings.timeout = Some(agreed.ping_timeout);
        }
        Ok((length, Some(Found::Connected)))
    }

    pub(super) fn request(&mut self, version: Version) {
        let settings = &self.settings;
        let mut message = Vec::new();
        ConnectRequest {
            version,
            key_exchange: settings.key_exchange,
            compressions: settings.compression_type.bit(),
            ping_timeout: settings.connection_ping_timeout,
            protocol_type: self.protocol_type(),
            codec: RWF_VERSION,
            host: settings.host_name.as_bytes(),
            address: settings.ip_address.as_bytes(),
            component: settings.component_version.as_bytes(),
        }
        .write(&mut message);
        self.output.handshake(&message);
    }

    /// Returns the protocol type: on a WebSocket that of its sub-protocol, whatever the setting (as in ETA
    /// C).
    fn protocol_type(&self) -> u8 {
        let websocket = self.negotiated.as_ref().and_then(|agreed| agreed.websocket);
        if websocket.is_some() { handshake::RWF } else { self.settings.protocol_type }
    }

    /// Answers a connect request, as a server.
    fn answer(&mut self, message: &[u8]) -> Result<(), Reason> {
        let request = match ConnectRequest::read(message)? {
            Requested::Known(request) => request,
            Requested::UnknownVersion(number) => {
                let fault = Fault::new(format!("connect request of version 0x{number:02x}"), "0x14 to 0x17");
                return Err(fault.into());
            }
        };
        let (asked, ours) = (request.protocol_type, self.protocol_type());
        // The text for the client, and this side's own reason.
        let refusal = match &self.refusal {
            Some(text) => Some((text.as_str(), text.clone())),
            None if asked != ours => {
                Some(("Connection refused.", format!("a client of protocol type {asked}, expected {ours}")))
            }
            None => None,
        };
        if let Some((text, reason)) = refusal {
            let mut nak = Vec::new();
            handshake::write_nak(text, &mut nak);
            self.output.handshake(&nak);
            return Err(Reason::Refused(reason));
        }
        let settings = &self.settings;
        let compression = match settings.compression_type {
            Compression::None => Compression::None,
            forced if settings.compression_forced => forced,
            _ if request.compressions & Compression::Zlib.bit() != 0 => Compression::Zlib,
            _ if request.compressions & Compression::Lz4.bit() != 0 => Compression::Lz4,
            _ => Compression::None,
        };
        let ping_timeout = request
            .ping_timeout
            .clamp(settings.connection_min_ping_timeout, settings.connection_ping_timeout);
        let mut ack = Vec::new();
        Ack {
            version: request.version,
            max_fragment_size: settings.max_fragment_size,
            client_pings: true,
            server_pings: true,
            ping_timeout,
            codec: request.codec,
            compression,
            forced: settings.compression_forced && compression != Compression::None,
            compression_level: settings.compression_level,
            key: request.key_exchange.then_some(ServerKey::None),
            component: settings.component_version.as_bytes(),
        }
        .write(&mut ack);
        self.output.handshake(&ack);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.negotiated = Some(Negotiated {
            max_received_bytes: self.settings.longest_received(),
            version: Some(request.version),
            websocket: self.negotiated.as_ref().and_then(|agreed| agreed.websocket),
            compression,
            max_fragment_size: settings.max_fragment_size,
            ping_timeout,
            codec: request.codec,
            peer_version: text(request.component),
            peer_host: text(request.host),
            peer_address: text(request.address),
            ..Negotiated::default()
        });
        self.pings.sends = true;
        self.phase = if request.key_exchange { Phase::Key } else { Phase::Open };
        Ok(())
    }

    /// Reads the server's answer, as a client.
    fn accept(&mut self, message: &[u8], version: Version) -> Result<(), Reason> {
        let key_exchange = self.settings.key_exchange;
        let ack = match Ack::read(message, version, key_exchange)? {
            Answer::Ack(ack) => ack,
            Answer::Nak(text) => return Err(Reason::Refused(String::from_utf8_lossy(text).into_owned())),
        };
        if ack.max_fragment_size < SMALLEST_FRAGMENT {
            let what = format!("largest payload of {} bytes in the ack", ack.max_fragment_size);
            return Err(Fault::new(what, format!("at least {SMALLEST_FRAGMENT}")).into());
        }
        if ack.ping_timeout == 0 {
            return Err(Fault::new("ping time-out of 0 s in the ack", "1 to 255").into());
        }
        let compression = match ack.compression {
            Compression::None if ack.forced => Compression::Zlib,
            agreed => agreed,
        };
        if let Some(key) = ack.key {
            // The number is never used, so it need not be secret.
            let mut message = Vec::new();
            handshake::write_key(key, self.pings.started.0 | 1, &mut message);
            self.output.handshake(&message);
        }
        self.negotiated = Some(Negotiated {
            max_received_bytes: self.settings.longest_received(),
            version: Some(version),
            websocket: self.negotiated.as_ref().and_then(|agreed| agreed.websocket),
            compression,
            max_fragment_size: ack.max_fragment_size,
            ping_timeout: ack.ping_timeout,
            codec: ack.codec,
            peer_version: String::from_utf8_lossy(ack.component).into_owned(),
            ..Negotiated::default()
        });
        // EMA's server states 0, "do not compress", which would only lengthen zlib's payloads.
        if ack.compression_level > 0 {
            self.level = ack.compression_level;
        }
        self.pings.sends = ack.client_pings;
        self.phase = Phase::Open;
        Ok(())
    }
}
