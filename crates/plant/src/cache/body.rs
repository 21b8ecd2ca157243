//! The data of an image, in any container.

use tapeline_omm::FieldList;
use tapeline_omm::rwf::{DataType, SetDefinitions};

use super::fold::{Folding, check};
use super::limits::{Limits, NotApplied};
use super::record::{Record, Scratch, Words};
use super::rows::Entries;
use super::shape::Shapes;

/// Maximum size of a buffer that is kept between messages: larger ones are freed.
const MOST_KEPT: usize = 1 << 17;

/// The data of an image.
#[derive(Debug)]
pub(super) enum Body {
    /// No data, or none yet.
    None,
    /// A field list.
    Record(Record),
    /// A map, a vector or a series.
    Rows(Box<Entries>),
    /// Any other container in its wire form: element lists and filter lists, folded; and containers that are replaced as a whole, OPAQUE, XML,
    /// JSON, ANSI_PAGE, messages and unknown types.
    Bytes(Vec<u8>),
}

/// The context for applying a message.
pub(super) struct Tools<'t> {
    pub(super) shapes: &'t mut Shapes,
    pub(super) scratch: &'t mut Scratch,
    pub(super) limits: &'t Limits,
    pub(super) words: Words<'t>,
    pub(super) rooms: &'t mut Vec<Vec<u8>>,
}

impl Tools<'_> {
    fn folding(&mut self) -> Folding<'_> {
        Folding {
            merging: &mut self.scratch.merging,
            dictionary: self.words.map(|(_, dictionary)| dictionary),
            limits: self.limits,
            rooms: self.rooms,
        }
    }
}

impl Body {
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Record(record) => record.bytes(),
            Self::Rows(rows) => rows.bytes(),
            Self::Bytes(bytes) => bytes.capacity(),
        }
    }

    /// Drops all data.
    pub(super) fn clear(&mut self, shapes: &mut Shapes) {
        if let Self::Record(record) = std::mem::replace(self, Self::None) {
            record.release(shapes);
        }
    }

    /// Applies the payload of an update or a refresh if it only replaces values of existing fields; returns `true` if it does.
    #[inline]
    pub(super) fn overwrite(&mut self, bytes: &[u8], ripples: bool, shapes: &mut Shapes) -> bool {
        let Self::Record(record) = self else { return false };
        record.overwrite(bytes, ripples, shapes)
    }

    /// Applies the payload of a refresh or an update.
    ///
    /// # Errors
    /// The data is unchanged, except after an error of a limit.
    pub(super) fn apply(
        &mut self,
        container: DataType,
        bytes: &[u8],
        ripples: bool,
        tools: &mut Tools<'_>,
    ) -> Result<(), NotApplied> {
        match container {
            DataType::FIELD_LIST => {
                let list = FieldList::parse_with(bytes, &SetDefinitions::NONE)?;
                if list.set_data().is_some() {
                    return Err(NotApplied::Undefined);
                }
                if !matches!(self, Self::Record(_)) {
                    let (shapes, scratch) = (&mut *tools.shapes, &mut *tools.scratch);
                    if let Some(record) = Record::of_known_shape((&list, bytes), tools.words, shapes, scratch)
                    {
                        *self = Self::Record(record);
                        return Ok(());
                    }
                    *self = Self::Record(Record::new(tools.shapes, tools.words));
                }
                let Self::Record(record) = self else { return Ok(()) };
                record.apply((&list, bytes), ripples, tools.words, tools.shapes, tools.scratch)
            }
            // Without bytes it is blank, and changes nothing.
            DataType::MAP | DataType::VECTOR | DataType::SERIES if bytes.is_empty() => Ok(()),
            DataType::MAP | DataType::VECTOR | DataType::SERIES => {
                check(container, bytes, &SetDefinitions::NONE, 0)?;
                if !matches!(self, Self::Rows(_)) {
                    *self = Self::Rows(Box::default());
                }
                let Self::Rows(rows) = self else { return Ok(()) };
                if let Some((image, update)) = rows.mismatch(container, bytes)? {
                    return Err(NotApplied::Mismatch { image, update });
                }
                rows.apply(container, bytes, &mut tools.folding())
            }
            _ => {
                check(container, bytes, &SetDefinitions::NONE, 0)?;
                let most = tools.limits.image_bytes;
                let mut folded = tools.rooms.pop().unwrap_or_default();
                folded.clear();
                let old = if let Self::Bytes(old) = self { &old[..] } else { &[] };
                let new = (bytes, &SetDefinitions::NONE);
                let mut done = tools.folding().fold(container, old, new, most, &mut folded);
                if let Err(NotApplied::Limit { what, limit }) = &mut done
                    && *limit == most
                {
                    *what = "bytes of an image";
                }
                match (done.is_ok(), &mut *self) {
                    (false, _) => {}
                    (true, Self::Bytes(old)) => {
                        old.clear();
                        old.extend_from_slice(&folded);
                    }
                    (true, body) => *body = Self::Bytes(folded.clone()),
                }
                if folded.capacity() <= MOST_KEPT {
                    tools.rooms.push(folded);
                }
                done
            }
        }
    }
}
