//! Entries behind a count, written: what every container of entries ends with.

use super::Writer;
use super::entries::{Shared, SharedBits};
use crate::{Full, Refused};

/// How the encoders of maps, vectors and series begin, count and end. Each has a `begin` of its own, for its head.
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
            /// The summary of `head` is passed over; the length takes the two-byte form, as its room is reserved.
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

            /// Entries so far.
            #[inline]
            #[must_use]
            pub const fn len(&self) -> usize {
                self.entries.len()
            }

            /// Whether there is no entry yet.
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
pub(super) use entries_encoder;

/// Appends entries and counts them; an entry goes in as a whole or not at all.
#[derive(Debug)]
pub(super) struct EntriesWriter<'a> {
    writer: Writer<'a>,
    count_at: usize,
    count: u16,
    most: u16,
}

impl<'a> EntriesWriter<'a> {
    /// Begins behind a head, with a count of two bytes.
    pub(super) fn begin(mut writer: Writer<'a>) -> Result<Self, Full> {
        let count_at = writer.reserve_u16()?;
        Ok(Self { writer, count_at, count: 0, most: u16::MAX })
    }

    /// Begins behind a head, with a count of one byte.
    pub(super) fn begin_u8(mut writer: Writer<'a>) -> Result<Self, Full> {
        let count_at = writer.len();
        writer.u8(0)?;
        Ok(Self { writer, count_at, count: 0, most: u16::from(u8::MAX) })
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.count as usize
    }

    /// One more entry, as `write` writes it.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] also where the count can go no further.
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

/// An entry's data: bytes that are there already, bytes to be written in place, or none at all.
pub(super) enum Data<'d, F> {
    None,
    Bytes(&'d [u8]),
    InPlace(F),
}

/// The writer of an entry whose data is there already.
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
    /// The bits of the parts that are there.
    pub(super) const fn bits(&self, bits: SharedBits) -> u8 {
        (if self.set_definitions.is_some() { bits.set_definitions } else { 0 })
            | (if self.summary.is_some() { bits.summary } else { 0 })
            | (if self.count_hint.is_some() { bits.count_hint } else { 0 })
    }

    /// The parts in their order; `write_summary`, if given, puts the summary in place.
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
