//! Writers of counted entries: the last part of every container of entries.

use super::Writer;
use super::entries::{Shared, SharedBits};
use crate::{Full, Refused};

/// Common methods of the encoders that count their entries.
macro_rules! counted {
    ($encoder:ident, $what:literal, $count:literal) => {
        impl $encoder<'_> {
            #[doc = concat!("Returns the number of ", $count, ".")]
            #[inline]
            #[must_use]
            pub const fn len(&self) -> usize {
                self.entries.len()
            }

            /// Returns `true` if there are none yet.
            #[inline]
            #[must_use]
            pub const fn is_empty(&self) -> bool {
                self.len() == 0
            }

            #[doc = concat!("Ends the ", $what, "; returns its length in bytes.")]
            #[must_use = "it is so many bytes long"]
            pub fn finish(self) -> usize {
                self.entries.finish()
            }
        }
    };
}
pub(super) use counted;

/// Common methods of the encoders of maps, vectors and series: start, count, end. Each has its own `begin`, for its
/// head.
macro_rules! entries_encoder {
    ($encoder:ident, $head:ident, $what:literal) => {
        impl<'a> $encoder<'a> {
            #[doc = concat!("Begins a ", $what, " at the start of `out`.")]
            ///
            /// # Errors
            ///
            /// [`Refused::Full`]; [`Refused::TooLong`] for set definitions, a summary or a hint beyond the format's limits.
            pub fn new(out: &'a mut [u8], head: &$head<'_>) -> Result<Self, Refused> {
                Self::begin(out, head, None::<NoWrite>)
            }

            #[doc = concat!("Begins a ", $what, " whose summary `write` puts into the room that is left, returning its length.")]
            /// The summary of `head` is ignored; the length has the two-byte form, because its space is reserved.
            ///
            /// # Errors
            ///
            #[doc = concat!("As [`", stringify!($encoder), "::new`], and what `write` comes back with.")]
            pub fn with_summary(
                out: &'a mut [u8],
                head: &$head<'_>,
                write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
            ) -> Result<Self, Refused> {
                Self::begin(out, &$head { summary: Some(&[]), ..*head }, Some(write))
            }
        }

        counted!($encoder, $what, "entries so far");
    };
}
pub(super) use entries_encoder;

/// Writer that appends entries and counts them. An entry is written completely or not at all.
#[derive(Debug)]
pub(super) struct EntriesWriter<'a> {
    writer: Writer<'a>,
    count_at: usize,
    count: u16,
    most: u16,
}

impl<'a> EntriesWriter<'a> {
    /// Starts after a head, with a count of two bytes.
    pub(super) fn begin(mut writer: Writer<'a>) -> Result<Self, Full> {
        let count_at = writer.reserve_u16()?;
        Ok(Self { writer, count_at, count: 0, most: u16::MAX })
    }

    /// Starts after a head, with a count of one byte.
    pub(super) fn begin_u8(mut writer: Writer<'a>) -> Result<Self, Full> {
        let count_at = writer.len();
        writer.u8(0)?;
        Ok(Self { writer, count_at, count: 0, most: u16::from(u8::MAX) })
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.count as usize
    }

    /// Appends one entry, which `write` writes. The container is full also if the count is at its maximum.
    #[inline]
    pub(super) fn append(
        &mut self,
        write: impl FnOnce(&mut Writer<'a>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        if self.count == self.most {
            return Err(Refused::Full);
        }
        self.writer.whole(write)?;
        self.count += 1;
        Ok(())
    }

    /// Ends the container; returns its length in bytes.
    #[inline]
    pub(super) fn finish(mut self) -> usize {
        if self.most == u16::from(u8::MAX) {
            self.writer.fill_u8(self.count_at, self.count as u8);
        } else {
            self.writer.fill_u16(self.count_at, self.count);
        }
        self.writer.len()
    }
}

/// Data of an entry: existing bytes, bytes to be written in place, or none.
pub(super) enum Data<'d, F> {
    None,
    Bytes(&'d [u8]),
    InPlace(F),
}

/// Type of the writer of an entry with existing data.
pub(super) type NoWrite = fn(&mut [u8]) -> Result<usize, Refused>;

impl<F: FnOnce(&mut [u8]) -> Result<usize, Refused>> Data<'_, F> {
    #[inline]
    pub(super) fn write(self, writer: &mut Writer<'_>, what: &'static str) -> Result<(), Refused> {
        match self {
            Self::None => Ok(()),
            Self::Bytes(bytes) => writer.b16(bytes, what),
            Self::InPlace(write) => writer.b16_in_place(what, write),
        }
    }
}

impl Shared<'_> {
    /// Returns the bits of the parts that are present.
    pub(super) const fn bits(&self, bits: SharedBits) -> u8 {
        (if self.set_definitions.is_some() { bits.set_definitions } else { 0 })
            | (if self.summary.is_some() { bits.summary } else { 0 })
            | (if self.count_hint.is_some() { bits.count_hint } else { 0 })
    }

    /// Writes the parts in order; `write_summary`, if given, writes the summary in place.
    pub(super) fn write(
        &self,
        writer: &mut Writer<'_>,
        write_summary: Option<impl FnOnce(&mut [u8]) -> Result<usize, Refused>>,
    ) -> Result<(), Refused> {
        if let Some(definitions) = self.set_definitions {
            writer.b15(definitions, "set definitions")?;
        }
        match (write_summary, self.summary) {
            (Some(write), _) => writer.b15_in_place("summary", write)?,
            (None, Some(summary)) => writer.b15(summary, "summary")?,
            (None, None) => {}
        }
        match self.count_hint {
            Some(hint) => writer.u30(hint, "count hint"),
            None => Ok(()),
        }
    }
}

/// Encodes into buffers of every size below `most`: each container has a head of at least `least` bytes, and holds the
/// accepted entries and nothing else. Every number of entries up to `N - 1` occurs.
#[cfg(test)]
pub(super) fn check_prefixes<const N: usize>(
    least: usize,
    most: usize,
    mut encode: impl FnMut(&mut [u8]) -> Option<(usize, usize)>,
    check: impl Fn(&[u8], usize),
) {
    let mut seen = [false; N];
    for size in 0..most {
        let mut out = vec![0xAA; size];
        let Some((len, written)) = encode(&mut out) else {
            assert!(size < least, "{size}");
            continue;
        };
        check(&out[..len], written);
        seen[written] = true;
    }
    assert_eq!(seen, [true; N]);
}
