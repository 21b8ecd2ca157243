//! The data of an image, of whatever container it is.

use tapeline_omm::FieldList;
use tapeline_omm::rwf::{DataType, SetDefinitions};

use super::limits::{Limits, Refused};
use super::record::{Record, Scratch, Words};
use super::shape::Shapes;

/// The data of an image.
#[derive(Debug)]
pub(super) enum Body {
    /// None, or not yet.
    None,
    /// A field list.
    Record(Record),
    /// Bytes that are replaced as a whole: OPAQUE, XML, JSON, ANSI_PAGE, a message, and types that are not known.
    Whole(Vec<u8>),
}

/// What applying works with.
pub(super) struct Tools<'t> {
    pub(super) shapes: &'t mut Shapes,
    pub(super) scratch: &'t mut Scratch,
    pub(super) limits: &'t Limits,
    pub(super) words: Words<'t>,
}

impl Body {
    /// Bytes of memory.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Record(record) => record.bytes(),
            Self::Whole(bytes) => bytes.capacity(),
        }
    }

    /// Lets everything go.
    pub(super) fn clear(&mut self, shapes: &mut Shapes) {
        if let Self::Record(record) = std::mem::replace(self, Self::None) {
            record.release(shapes);
        }
    }

    /// Applies the payload of a refresh or an update.
    ///
    /// # Errors
    ///
    /// Nothing has changed then.
    pub(super) fn apply(
        &mut self,
        container: DataType,
        bytes: &[u8],
        ripples: bool,
        tools: &mut Tools<'_>,
    ) -> Result<(), Refused> {
        match container {
            DataType::FIELD_LIST => {
                let list = FieldList::parse_with(bytes, &SetDefinitions::NONE)?;
                if list.set_data().is_some() {
                    return Err(Refused::Undefined);
                }
                if !matches!(self, Self::Record(_)) {
                    *self = Self::Record(Record::new(tools.shapes, tools.words));
                }
                let Self::Record(record) = self else { return Ok(()) };
                record.apply((&list, bytes), ripples, tools.words, tools.shapes, tools.scratch)
            }
            _ => {
                let limit = tools.limits.image_bytes;
                if bytes.len() > limit {
                    return Err(Refused::Limit { what: "bytes of an image", limit });
                }
                if let Self::Whole(whole) = self {
                    whole.clear();
                    whole.extend_from_slice(bytes);
                } else {
                    *self = Self::Whole(bytes.to_vec());
                }
                Ok(())
            }
        }
    }
}
