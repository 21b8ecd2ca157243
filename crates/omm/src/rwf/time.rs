//! DATE, TIME and DATETIME (RWF chapter 3).

use std::fmt;

use crate::Malformed;

const NS_PER_DAY: u64 = 86_400_000_000_000;

/// Bits of a TIME's eight bytes that are present in each form, by its length; 0 for a length without a form. The form
/// of seven bytes lacks the nanoseconds, and that of eight lacks the top two bits of the microseconds.
const MASKS: [u64; 9] = [
    0,
    0,
    0xFFFF_0000_0000_0000,
    0xFFFF_FF00_0000_0000,
    0,
    0xFFFF_FFFF_FF00_0000,
    0,
    0xFFFF_FFFF_FF07_FF00,
    0xFFFF_FFFF_FF3F_FFFF,
];
/// All members blank.
const BLANK_WIDE: u64 = 0xFFFF_FFFF_FF3F_FFFF;

/// Returns up to eight bytes as the first ones of eight.
#[cold]
fn widen(data: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide.iter_mut().zip(data).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(wide)
}

/// Day of the Gregorian calendar. A member of 0 is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Date {
    /// 1–31, or 0.
    pub day: u8,
    /// 1–12, or 0.
    pub month: u8,
    /// The year, or 0.
    pub year: u16,
}

impl Date {
    /// Blank: all members are unknown. Written as four zero bytes if a length of 0 is not possible.
    pub const BLANK: Self = Self { day: 0, month: 0, year: 0 };

    /// Returns the day `days` after 1970-01-01; `None` beyond year 65535 or before year 1.
    #[must_use]
    pub const fn from_unix_days(days: i64) -> Option<Self> {
        // Years 1 to 65535; the bounds keep the sums below small.
        if days < -719_162 || days > 23_217_003 {
            return None;
        }
        // Eras of 400 years that begin on 1 March, so that a leap day is the last of its year.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + (month <= 2) as i64;
        Some(Self { day: day as u8, month: month as u8, year: year as u16 })
    }

    /// Decodes the bytes of an entry; `None` is blank: no bytes, or four zeros.
    ///
    /// # Errors
    ///
    /// Fails for any other length.
    #[inline]
    pub fn decode(data: &[u8]) -> Result<Option<Self>, Malformed> {
        match *data {
            [day, month, high, low] => {
                let date = Self { day, month, year: u16::from_be_bytes([high, low]) };
                Ok((date != Self::BLANK).then_some(date))
            }
            [] => Ok(None),
            _ => Err(Malformed::new(data.len().min(4), "DATE")),
        }
    }

    /// Decodes a date in the first `len` bytes of `ahead`, if they are a date and not blank.
    #[inline]
    pub(crate) fn ahead(len: usize, ahead: &[u8]) -> Option<Self> {
        match ahead.first_chunk::<4>() {
            Some(bytes) if len == 4 && *bytes != [0; 4] => {
                let [day, month, high, low] = *bytes;
                Some(Self { day, month, year: u16::from_be_bytes([high, low]) })
            }
            _ => None,
        }
    }

    #[inline]
    pub(crate) const fn encode(self) -> [u8; 4] {
        let [high, low] = self.year.to_be_bytes();
        [self.day, self.month, high, low]
    }
}

impl fmt::Display for Date {
    /// Formats as ISO 8601, unknown members as zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// Time of day, with a resolution of a nanosecond. Second 60 is allowed.
///
/// A member is blank (unknown) at 255, 65,535 for milliseconds, 2,047 for micro- and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Time {
    /// 0–23.
    pub hour: u8,
    /// 0–59.
    pub minute: u8,
    /// 0–60.
    pub second: u8,
    /// 0–999.
    pub millisecond: u16,
    /// 0–999, the part below a millisecond.
    pub microsecond: u16,
    /// 0–999, the part below a microsecond.
    pub nanosecond: u16,
}

impl Time {
    /// Blank: all members are unknown. Written as a pattern if a length of 0 is not possible.
    pub const BLANK: Self = Self {
        hour: 0xFF,
        minute: 0xFF,
        second: 0xFF,
        millisecond: 0xFFFF,
        microsecond: 0x7FF,
        nanosecond: 0x7FF,
    };

    /// Returns the time `ns` nanoseconds after midnight, without whole days.
    #[inline]
    #[must_use]
    pub const fn from_ns_of_day(ns: u64) -> Self {
        let ns = ns % NS_PER_DAY;
        let (seconds, ns) = ((ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32);
        let (minutes, second) = (seconds / 60, seconds % 60);
        Self {
            hour: (minutes / 60) as u8,
            minute: (minutes % 60) as u8,
            second: second as u8,
            millisecond: (ns / 1_000_000) as u16,
            microsecond: (ns / 1_000 % 1_000) as u16,
            nanosecond: (ns % 1_000) as u16,
        }
    }

    /// Returns the nanoseconds after midnight; `None` if a member is out of range or blank.
    #[inline]
    #[must_use]
    pub const fn ns_of_day(self) -> Option<u64> {
        if !self.is_valid() {
            return None;
        }
        let seconds = (self.hour as u64 * 60 + self.minute as u64) * 60 + self.second as u64;
        let micros = self.millisecond as u64 * 1_000 + self.microsecond as u64;
        Some(seconds * 1_000_000_000 + micros * 1_000 + self.nanosecond as u64)
    }

    /// Returns `true` if every member is in its range.
    #[inline]
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.hour < 24
            && self.minute < 60
            && self.second <= 60
            && self.millisecond < 1_000
            && self.microsecond < 1_000
            && self.nanosecond < 1_000
    }

    /// Decodes the bytes of an entry (2, 3, 5, 7 or 8); absent members are 0. `None` is blank: no bytes, or only blank
    /// members.
    ///
    /// # Errors
    ///
    /// Fails for any other length.
    #[inline]
    pub fn decode(data: &[u8]) -> Result<Option<Self>, Malformed> {
        Self::decode_ahead(data.len(), data)
    }

    /// As [`Time::decode`] for the first `len` bytes of `ahead`; the bytes after them are loaded but not used.
    #[inline]
    pub(crate) fn decode_ahead(len: usize, ahead: &[u8]) -> Result<Option<Self>, Malformed> {
        match Self::ahead(len, ahead) {
            Some(time) => Ok(Some(time)),
            None if MASKS.get(len).is_some_and(|mask| *mask != 0) || len == 0 => Ok(None),
            None => Err(Malformed::new(len.min(8), "TIME")),
        }
    }

    /// Decodes a time of a valid length that is not blank; `None` for every other.
    #[inline]
    pub(crate) fn ahead(len: usize, ahead: &[u8]) -> Option<Self> {
        let mask = *MASKS.get(len)?;
        let wide = match ahead.first_chunk::<8>() {
            Some(wide) => u64::from_be_bytes(*wide),
            None => widen(ahead.get(..len).unwrap_or_default()),
        } & mask;
        // An invalid length has a mask of 0, and the masked value is the blank of that mask.
        if wide == BLANK_WIDE & mask {
            return None;
        }
        let micros = (wide >> 8) as u16;
        Some(Self {
            hour: (wide >> 56) as u8,
            minute: (wide >> 48) as u8,
            second: (wide >> 40) as u8,
            millisecond: (wide >> 24) as u16,
            microsecond: micros & 0x7FF,
            // Bits 8 to 10 are stored in bits 11 to 13 of the microseconds.
            nanosecond: (micros >> 3) & 0x700 | wide as u16 & 0xFF,
        })
    }

    /// Returns the shortest form whose missing members are zero: its bytes are the first `len` of the word, from the
    /// top.
    #[inline]
    pub(crate) const fn encode_wide(self) -> (u64, usize) {
        let micros = (self.nanosecond as u64 & 0x700) << 3 | self.microsecond as u64 & 0x7FF;
        let wide = (self.hour as u64) << 56
            | (self.minute as u64) << 48
            | (self.second as u64) << 40
            | (self.millisecond as u64) << 24
            | micros << 8
            | self.nanosecond as u64 & 0xFF;
        // By the last non-zero byte.
        const LENGTHS: [u8; 9] = [2, 2, 2, 3, 5, 5, 7, 7, 8];
        let mut used = 8 - wide.trailing_zeros() as usize / 8;
        // The last byte of 256, 512 and 768 nanoseconds is zero.
        if self.nanosecond & 0x7FF != 0 {
            used = 8;
        }
        (wide, LENGTHS[used] as usize)
    }

    /// Returns the shortest form whose missing members are zero: its bytes are the first `len` of the array.
    #[inline]
    pub(crate) const fn encode(self) -> ([u8; 8], usize) {
        let (wide, len) = self.encode_wide();
        (wide.to_be_bytes(), len)
    }
}

impl fmt::Display for Time {
    /// Formats as `hh:mm:ss` and as many groups of three decimals as necessary; blank members as `--`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (member, before) in [(self.hour, ""), (self.minute, ":"), (self.second, ":")] {
            match member {
                0xFF => write!(f, "{before}--")?,
                member => write!(f, "{before}{member:02}")?,
            }
        }
        let known = |value: u16, blank: u16| if value == blank { 0 } else { value };
        let (ms, us, ns) =
            (known(self.millisecond, 0xFFFF), known(self.microsecond, 0x7FF), known(self.nanosecond, 0x7FF));
        match (ms, us, ns) {
            (0, 0, 0) => Ok(()),
            (_, 0, 0) => write!(f, ".{ms:03}"),
            (_, _, 0) => write!(f, ".{ms:03}{us:03}"),
            _ => write!(f, ".{ms:03}{us:03}{ns:03}"),
        }
    }
}

/// Day and time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DateTime {
    /// The day.
    pub date: Date,
    /// The time of day.
    pub time: Time,
}

impl DateTime {
    /// Blank: all members are unknown.
    pub const BLANK: Self = Self { date: Date::BLANK, time: Time::BLANK };

    /// Returns the moment `ns` nanoseconds after 1970-01-01 00:00 UTC, in UTC.
    #[must_use]
    pub const fn from_unix_ns(ns: u64) -> Self {
        let date = match Date::from_unix_days((ns / NS_PER_DAY) as i64) {
            Some(date) => date,
            // 2^64 ns end in the year 2554.
            None => Date::BLANK,
        };
        Self { date, time: Time::from_ns_of_day(ns % NS_PER_DAY) }
    }

    /// Decodes the bytes of an entry (6, 7, 9, 11 or 12); `None` is blank: no bytes, or both parts blank.
    ///
    /// # Errors
    ///
    /// Fails for any other length.
    #[inline]
    pub fn decode(data: &[u8]) -> Result<Option<Self>, Malformed> {
        let Some((date, time)) = data.split_first_chunk::<4>() else {
            return if data.is_empty() { Ok(None) } else { Err(Malformed::new(data.len(), "DATETIME")) };
        };
        if time.is_empty() {
            return Err(Malformed::new(4, "DATETIME"));
        }
        let time = Time::decode(time).map_err(|fault| Malformed::new(fault.offset + 4, "DATETIME"))?;
        Ok(match (Date::decode(date)?, time) {
            (None, None) => None,
            (date, time) => {
                Some(Self { date: date.unwrap_or(Date::BLANK), time: time.unwrap_or(Time::BLANK) })
            }
        })
    }

    /// Returns the shortest form whose missing members are zero: its bytes are the first `len` of the array.
    #[inline]
    pub(crate) const fn encode(self) -> ([u8; 12], usize) {
        let [a, b, c, d] = self.date.encode();
        let ([e, f, g, h, i, j, k, l], len) = self.time.encode();
        ([a, b, c, d, e, f, g, h, i, j, k, l], 4 + len)
    }
}

impl fmt::Display for DateTime {
    /// Formats as ISO 8601 with a `T` between date and time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{}", self.date, self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_with_nanoseconds() {
        let time =
            Time { hour: 10, minute: 20, second: 30, millisecond: 400, microsecond: 500, nanosecond: 600 };
        let bytes = [0x0A, 0x14, 0x1E, 0x01, 0x90, 0x11, 0xF4, 0x58];
        assert_eq!(time.encode(), (bytes, 8));
        assert_eq!(Time::decode(&bytes), Ok(Some(time)));
        assert_eq!(time.to_string(), "10:20:30.400500600");
        assert_eq!(time.ns_of_day().map(Time::from_ns_of_day), Some(time));
    }

    #[test]
    fn members_whose_low_byte_is_zero_are_kept() {
        for part in [1, 255, 256, 512, 768, 999] {
            let ns = Time { nanosecond: part, ..Time::default() };
            let us = Time { microsecond: part, ..Time::default() };
            let ms = Time { millisecond: part, ..Time::default() };
            for (time, form) in [(ns, 8), (us, 7), (ms, 5)] {
                let (bytes, len) = time.encode();
                assert_eq!(len, form, "{time:?}");
                assert_eq!(Time::decode(&bytes[..len]), Ok(Some(time)));
            }
        }
        assert_eq!(Time { second: 1, ..Time::default() }.encode().1, 3);
        assert_eq!(Time::default().encode().1, 2);
    }

    #[test]
    fn blank_members_of_a_known_time_are_kept() {
        let known = Time { hour: 10, minute: 20, ..Time::BLANK };
        let (bytes, len) = known.encode();
        assert_eq!(bytes[..len], [10, 20, 0xFF, 0xFF, 0xFF, 0x3F, 0xFF, 0xFF]);
        assert_eq!(Time::decode(&bytes[..len]), Ok(Some(known)));
        assert_eq!(known.ns_of_day(), None);
        assert_eq!(known.to_string(), "10:20:--");
    }

    #[test]
    fn bytes_that_follow_are_not_read() {
        let bytes = [0x0A, 0x14, 0x1E, 0x01, 0x90, 0xF9, 0xF4, 0x58, 0x77];
        for len in [2, 3, 5, 7, 8] {
            assert_eq!(Time::decode_ahead(len, &bytes), Time::decode(&bytes[..len]), "{len} bytes");
        }
    }

    #[test]
    fn every_blank_pattern() {
        for blank in [
            &[][..],
            &[0xFF; 2],
            &[0xFF; 3],
            &[0xFF; 5],
            &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0xFF],
            &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x3F, 0xFF, 0xFF],
        ] {
            assert_eq!(Time::decode(blank), Ok(None), "{blank:?}");
            assert_eq!(DateTime::decode(&[&[0; 4], blank].concat()).ok().flatten(), None, "{blank:?}");
        }
        assert_eq!(Time::BLANK.encode(), ([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x3F, 0xFF, 0xFF], 8));
        assert_eq!(Date::decode(&[0; 4]), Ok(None));
        assert_eq!(Date::decode(&[]), Ok(None));
    }

    #[test]
    fn one_part_blank_is_not_blank() {
        let date_only = DateTime::decode(&[1, 2, 7, 0xE8, 0xFF, 0xFF]).unwrap().unwrap();
        assert_eq!(date_only.time, Time::BLANK);
        let time_only = DateTime::decode(&[0, 0, 0, 0, 10, 20]).unwrap().unwrap();
        assert_eq!(time_only.date, Date::BLANK);
    }

    #[test]
    fn wrong_lengths() {
        for len in [1, 4, 6, 9, 40] {
            assert!(Time::decode(&[1; 40][..len]).is_err(), "TIME of {len} bytes");
        }
        for len in [1, 2, 3, 5] {
            assert!(Date::decode(&[1; 5][..len]).is_err(), "DATE of {len} bytes");
        }
        for len in [1, 4, 5, 8, 10, 13] {
            assert!(DateTime::decode(&[1; 13][..len]).is_err(), "DATETIME of {len} bytes");
        }
    }

    #[test]
    fn days_since_1970() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (19_782, "2024-02-29"),
            (-719_162, "0001-01-01"),
            (23_217_003, "65535-12-31"),
        ] {
            assert_eq!(Date::from_unix_days(days).unwrap().to_string(), text);
        }
        assert_eq!(Date::from_unix_days(-719_163), None);
        assert_eq!(Date::from_unix_days(23_217_004), None);
        assert_eq!(Date::from_unix_days(i64::MAX), None);
        let moment = DateTime::from_unix_ns(1_580_396_400_123_456_789);
        assert_eq!(moment.to_string(), "2020-01-30T15:00:00.123456789");
    }
}
