//! The messages that open a connection, as bytes: connect request, ack, nak, and the client's key.

use super::fault::Fault;
use super::settings::Compression;

/// A version of the handshake. Each has two numbers: one in the request, one in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// No protocol type in the request.
    V11,
    /// Fragment ids of one byte, no component version.
    V12,
    /// Fragment ids of two bytes.
    V13,
    /// Key exchange, if requested.
    V14,
}

impl Version {
    const ALL: [Self; 4] = [Self::V11, Self::V12, Self::V13, Self::V14];

    /// Returns the version to try after a server closed without an answer to this one.
    pub fn below(self) -> Option<Self> {
        Self::ALL.into_iter().rfind(|version| *version < self)
    }

    fn requested(self) -> u32 {
        0x14 + self as u32
    }

    fn acknowledged(self) -> u32 {
        6 + self as u32
    }

    fn from_request(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.requested() == number)
    }

    fn has_component(self) -> bool {
        self >= Self::V13
    }

    /// Returns the length of a fragment's id in bytes.
    pub(super) fn id_bytes(self) -> usize {
        if self >= Self::V13 { 2 } else { 1 }
    }
}

/// The flag of the key exchange.
const KEY: u8 = 0x08;
/// An extended flags byte follows.
const EXTENDED: u8 = 0x01;
/// The server forces its compression.
const FORCED: u8 = 0x80;
const ACK: u8 = 0x01;
const NAK: u8 = 0x02;

/// RWF, the protocol type of version 11, which does not state one.
pub(super) const RWF: u8 = 0;
/// The version of RWF.
pub(super) const RWF_VERSION: (u8, u8) = (14, 1);

/// A client's connect request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectRequest<'a> {
    pub(super) version: Version,
    pub(super) key_exchange: bool,
    /// Bits of the compressions that the client supports.
    pub(super) compressions: u8,
    /// Seconds.
    pub(super) ping_timeout: u8,
    pub(super) protocol_type: u8,
    pub(super) codec: (u8, u8),
    pub(super) host: &'a [u8],
    pub(super) address: &'a [u8],
    pub(super) component: &'a [u8],
}

/// A connect request. If its version is unknown, the answer is to close.
pub(super) enum Requested<'a> {
    Known(ConnectRequest<'a>),
    UnknownVersion(u32),
}

impl<'a> ConnectRequest<'a> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0, 0, 0]);
        out.extend(self.version.requested().to_be_bytes());
        out.push(if self.key_exchange && self.version == Version::V14 { KEY } else { 0 });
        let header_length = out.len();
        out.push(0);
        if self.compressions == 0 {
            out.push(0);
        } else {
            out.extend([1, self.compressions]);
        }
        out.extend([self.ping_timeout, 0]);
        if self.version > Version::V11 {
            out.push(self.protocol_type);
        }
        out.extend([self.codec.0, self.codec.1]);
        text(self.host, out);
        text(self.address, out);
        out[header_length] = (out.len() - start) as u8;
        if self.version.has_component() {
            component(self.component, out);
        }
        end(start, out);
    }

    /// Reads a whole message.
    pub(super) fn read(message: &'a [u8]) -> Result<Requested<'a>, Fault> {
        let mut fields = Fields::of(message, "connect request");
        fields.skip(3)?;
        let number = fields.u32()?;
        let Some(version) = Version::from_request(number) else {
            return Ok(Requested::UnknownVersion(number));
        };
        let key_exchange = fields.u8()? & KEY != 0 && version == Version::V14;
        let header_length = fields.u8()?;
        let bitmap = fields.text()?;
        let compressions = bitmap.first().copied().unwrap_or(0);
        let ping_timeout = fields.u8()?;
        fields.skip(1)?;
        let protocol_type = if version > Version::V11 { fields.u8()? } else { RWF };
        let codec = (fields.u8()?, fields.u8()?);
        let (host, address) = (fields.text()?, fields.text()?);
        if fields.at != usize::from(header_length) {
            return Err(Fault::new(
                format!("connect request with a header length of {header_length}"),
                format!("{}", fields.at),
            ));
        }
        let component = if version.has_component() { fields.component()? } else { &[] };
        fields.ends()?;
        Ok(Requested::Known(Self {
            version,
            key_exchange,
            compressions,
            ping_timeout,
            protocol_type,
            codec,
            host,
            address,
            component,
        }))
    }
}

/// A server's key in the exchange: none, or the numbers of a Diffie-Hellman exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerKey {
    /// Type 0: the client answers with an empty key.
    None,
    /// Type 1.
    Numbers { prime: u64, generator: u64, key: u64 },
}

/// A server's ack: it accepts the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ack<'a> {
    pub(super) version: Version,
    /// The largest payload of a frame, in bytes.
    pub(super) max_fragment_size: u16,
    pub(super) client_pings: bool,
    pub(super) server_pings: bool,
    /// Seconds.
    pub(super) ping_timeout: u8,
    pub(super) codec: (u8, u8),
    pub(super) compression: Compression,
    pub(super) forced: bool,
    pub(super) compression_level: u8,
    pub(super) key: Option<ServerKey>,
    pub(super) component: &'a [u8],
}

/// A server's answer to a connect request.
pub(super) enum Answer<'a> {
    Ack(Ack<'a>),
    /// The reason, without the NUL at its end.
    Nak(&'a [u8]),
}

impl<'a> Ack<'a> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0, 0, if self.forced { EXTENDED | FORCED } else { EXTENDED }, ACK, 10, 0]);
        out.extend(self.version.acknowledged().to_be_bytes());
        out.extend(self.max_fragment_size.to_be_bytes());
        out.extend([u8::from(self.client_pings) | u8::from(self.server_pings) << 1, self.ping_timeout]);
        out.extend([self.codec.0, self.codec.1]);
        out.extend(self.compression.code().to_be_bytes());
        out.push(self.compression_level);
        match self.key {
            None => {}
            Some(ServerKey::None) => out.extend([KEY, 0, 0]),
            Some(ServerKey::Numbers { prime, generator, key }) => {
                out.extend([KEY, 1, 24]);
                [prime, generator, key].iter().for_each(|number| out.extend(number.to_be_bytes()));
            }
        }
        if self.version.has_component() {
            component(self.component, out);
        }
        end(start, out);
    }

    /// Reads a whole message, the answer to a request of this version with or without a key exchange.
    pub(super) fn read(message: &'a [u8], version: Version, key_exchange: bool) -> Result<Answer<'a>, Fault> {
        let mut fields = Fields::of(message, "answer to the connect request");
        fields.skip(2)?;
        let flags = fields.u8()?;
        let kind = fields.u8()?;
        if flags & EXTENDED == 0 || !matches!(kind, ACK | NAK) {
            return Err(Fault::new(
                format!("answer to the connect request with flags 0x{flags:02x} 0x{kind:02x}"),
                "0x01 and 0x01 (ack) or 0x02 (nak)",
            ));
        }
        // The header's length, and an unused byte.
        fields.skip(2)?;
        if kind == NAK {
            let length = fields.u16()?;
            let text = fields.take(usize::from(length))?;
            return Ok(Answer::Nak(text.strip_suffix(b"\0").unwrap_or(text)));
        }
        let number = fields.u32()?;
        if number != version.acknowledged() {
            return Err(Fault::new(
                format!("ack of version {number}"),
                format!("{}, which answers this request", version.acknowledged()),
            ));
        }
        let max_fragment_size = fields.u16()?;
        let pings = fields.u8()?;
        let ping_timeout = fields.u8()?;
        let codec = (fields.u8()?, fields.u8()?);
        let code = fields.u16()?;
        let compression = Compression::from_code(code).ok_or_else(|| {
            Fault::new(format!("compression type {code} in the ack"), "0, 1 (zlib) or 2 (LZ4)")
        })?;
        let compression_level = fields.u8()?;
        let key = if key_exchange && version == Version::V14 { Some(fields.server_key()?) } else { None };
        let component = if version.has_component() { fields.component()? } else { &[] };
        fields.ends()?;
        Ok(Answer::Ack(Self {
            version,
            max_fragment_size,
            client_pings: pings & 1 != 0,
            server_pings: pings & 2 != 0,
            ping_timeout,
            codec,
            compression,
            forced: flags & FORCED != 0,
            compression_level,
            key,
            component,
        }))
    }
}

/// Writes a nak. A text that is too long for the message is truncated.
pub(super) fn write_nak(text: &str, out: &mut Vec<u8>) {
    let start = out.len();
    let text = &text.as_bytes()[..text.len().min(1000)];
    out.extend([0, 0, EXTENDED, NAK, 8, 0]);
    out.extend((text.len() as u16 + 1).to_be_bytes());
    out.extend(text);
    out.push(0);
    end(start, out);
}

/// Writes the client's part of the key exchange.
pub(super) fn write_key(key: ServerKey, secret: u64, out: &mut Vec<u8>) {
    match key {
        ServerKey::None => out.extend([0, 4, KEY, 0]),
        ServerKey::Numbers { prime, generator, .. } => {
            out.extend([0, 12, KEY, 8]);
            out.extend(power(generator, secret, prime).to_be_bytes());
        }
    }
}

/// Checks that a whole message is the client's key.
pub(super) fn check_key(message: &[u8]) -> Result<(), Fault> {
    let mut fields = Fields::of(message, "client key");
    fields.skip(2)?;
    let flag = fields.u8()?;
    if flag != KEY {
        return Err(Fault::new(format!("flags 0x{flag:02x} after the ack"), "0x08, the client's key"));
    }
    fields.text()?;
    fields.ends()
}

/// Maximum length of a handshake message. A request has at most 1,053 bytes, an ack 302; a nak is rarely
/// longer.
const LONGEST: u16 = 4096;
/// The first byte of TLS.
const TLS_HANDSHAKE: u8 = 22;

/// Reads the length of a handshake message from its first bytes, if they are complete. Never less than 4.
pub(super) fn message_length(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let Some([high, low]) = bytes.first_chunk() else { return Ok(None) };
    let length = u16::from_be_bytes([*high, *low]);
    if !(4..=LONGEST).contains(&length) {
        let tls = if *high == TLS_HANDSHAKE { " (it looks like TLS)" } else { "" };
        let what = format!("handshake message of {length} bytes{tls}");
        return Err(Fault::new(what, format!("4 to {LONGEST}")));
    }
    Ok(Some(usize::from(length)))
}

/// Returns `base` to the power of `exponent`, modulo `modulus`; 0 if `modulus` is 0.
fn power(base: u64, mut exponent: u64, modulus: u64) -> u64 {
    if modulus == 0 {
        return 0;
    }
    let modulus = u128::from(modulus);
    let (mut square, mut product) = (u128::from(base) % modulus, 1 % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            product = product * square % modulus;
        }
        square = square * square % modulus;
        exponent >>= 1;
    }
    // Less than the modulus, which fits into 64 bits.
    product as u64
}

fn text(text: &[u8], out: &mut Vec<u8>) {
    let text = &text[..text.len().min(252)];
    out.push(text.len() as u8);
    out.extend(text);
}

/// Writes a container with one component's version.
fn component(version: &[u8], out: &mut Vec<u8>) {
    let version = &version[..version.len().min(252)];
    out.push(version.len() as u8 + 1);
    text(version, out);
}

/// Writes the length of the message that starts at `start` into its first two bytes.
fn end(start: usize, out: &mut [u8]) {
    let length = (out.len() - start) as u16;
    out[start..start + 2].copy_from_slice(&length.to_be_bytes());
}

/// Reads the members of a message in order, never beyond its end.
struct Fields<'a> {
    message: &'a [u8],
    at: usize,
    of: &'static str,
}

impl<'a> Fields<'a> {
    fn of(message: &'a [u8], of: &'static str) -> Self {
        Self { message, at: 0, of }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let taken = self.message.get(self.at..).and_then(|rest| rest.get(..count)).ok_or_else(|| {
            Fault::new(
                format!("{} of {} bytes", self.of, self.message.len()),
                format!("{count} more bytes at {} of it", self.at),
            )
        })?;
        self.at += count;
        Ok(taken)
    }

    fn skip(&mut self, count: usize) -> Result<(), Fault> {
        self.take(count).map(|_| ())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, Fault> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a text after its length of one byte.
    fn text(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.u8()?;
        self.take(usize::from(length))
    }

    /// Reads the version in a container of components and skips the rest of the container. ETA C counts the
    /// length's own byte in its ack, ETA Java does not.
    fn component(&mut self) -> Result<&'a [u8], Fault> {
        let length = usize::from(self.u8()?);
        let rest = self.message.len() - self.at;
        let container = self.take(if length == rest + 1 { rest } else { length })?;
        if container.is_empty() {
            return Ok(&[]);
        }
        Fields::of(container, "component container").text()
    }

    fn server_key(&mut self) -> Result<ServerKey, Fault> {
        let (flag, kind, length) = (self.u8()?, self.u8()?, self.u8()?);
        match (flag, kind, length) {
            (KEY, 0, 0) => Ok(ServerKey::None),
            (KEY, 1, 24) => {
                Ok(ServerKey::Numbers { prime: self.u64()?, generator: self.u64()?, key: self.u64()? })
            }
            _ => Err(Fault::new(
                format!("server key with flag 0x{flag:02x}, type {kind}, {length} bytes"),
                "flag 0x08 and type 0 with 0 or type 1 with 24 bytes",
            )),
        }
    }

    fn ends(&self) -> Result<(), Fault> {
        match &self.message[self.at..] {
            // Some clients end their request with a line break.
            [] | b"\r\n" => Ok(()),
            rest => Err(Fault::new(
                format!("{} with {} bytes too many", self.of, rest.len()),
                format!("{} bytes in all", self.at),
            )),
        }
    }
}
