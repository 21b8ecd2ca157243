//! QOS: age and completeness of the data of a stream (RWF chapter 2).

use std::fmt;

use super::{Cursor, Rate, Timeliness, Writer};
use crate::{Malformed, Refused};

/// Quality of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Qos {
    /// Age of the data.
    pub timeliness: Timeliness,
    /// Conflation of the changes.
    pub rate: Rate,
    /// `true` if it may change while the stream is open.
    pub dynamic: bool,
    /// Seconds of delay; on the wire only with a timeliness above 2.
    pub time_info: u16,
    /// Milliseconds between changes; on the wire only with a rate above 2.
    pub rate_info: u16,
}

impl Qos {
    /// Real time, every tick: `22` on the wire.
    pub const REALTIME_TICK: Self = Self {
        timeliness: Timeliness::REALTIME,
        rate: Rate::TICK_BY_TICK,
        dynamic: false,
        time_info: 0,
        rate_info: 0,
    };

    /// Decodes the bytes of an entry; `None` is blank.
    ///
    /// # Errors
    ///
    /// Fails if bytes are missing that the first byte announces.
    pub fn decode(data: &[u8]) -> Result<Option<Self>, Malformed> {
        if data.is_empty() { Ok(None) } else { Self::read(&mut Cursor::new(data)).map(Some) }
    }

    /// Reads a QOS at `cursor`.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let first = cursor.u8("QOS")?;
        let (timeliness, rate) = (first >> 5, (first >> 1) & 0x0F);
        Ok(Self {
            timeliness: Timeliness(timeliness),
            rate: Rate(rate),
            dynamic: first & 1 != 0,
            time_info: if timeliness > 2 { cursor.u16("QOS time info")? } else { 0 },
            rate_info: if rate > 2 { cursor.u16("QOS rate info")? } else { 0 },
        })
    }

    /// Returns the encoded bytes: the first `len` of the array.
    pub(crate) fn encode(self) -> ([u8; 5], usize) {
        let (timeliness, rate) = (self.timeliness.0 & 0x07, self.rate.0 & 0x0F);
        let mut bytes = [0; 5];
        bytes[0] = timeliness << 5 | rate << 1 | u8::from(self.dynamic);
        let mut len = 1;
        for (is_there, info) in [(timeliness > 2, self.time_info), (rate > 2, self.rate_info)] {
            if is_there {
                bytes[len..len + 2].copy_from_slice(&info.to_be_bytes());
                len += 2;
            }
        }
        (bytes, len)
    }

    /// Writes the QOS at `writer`.
    pub(crate) fn write(self, writer: &mut Writer<'_>) -> Result<(), Refused> {
        let (bytes, len) = self.encode();
        Ok(writer.bytes(bytes.get(..len).unwrap_or_default())?)
    }
}

impl fmt::Display for Qos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.timeliness)?;
        if self.timeliness.0 > 2 {
            write!(f, "({} s)", self.time_info)?;
        }
        write!(f, "/{}", self.rate)?;
        if self.rate.0 > 2 {
            write!(f, "({} ms)", self.rate_info)?;
        }
        if self.dynamic { f.write_str("/dynamic") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_examples() {
        assert_eq!(Qos::decode(&[0x22]), Ok(Some(Qos::REALTIME_TICK)));
        let delayed = Qos {
            timeliness: Timeliness::DELAYED,
            rate: Rate::TIME_CONFLATED,
            dynamic: true,
            time_info: 300,
            rate_info: 2000,
        };
        let bytes = [0x67, 0x01, 0x2C, 0x07, 0xD0];
        assert_eq!(Qos::decode(&bytes), Ok(Some(delayed)));
        assert_eq!(delayed.encode(), (bytes, 5));
        assert_eq!(delayed.to_string(), "DELAYED(300 s)/TIME_CONFLATED(2000 ms)/dynamic");
        for cut in 1..5 {
            assert!(Qos::decode(&bytes[..cut]).is_err(), "{cut} bytes");
        }
        assert_eq!(Qos::decode(&[]), Ok(None));
    }
}
