//! The limits of posts to the feeds' items. A feed sends no image again before its next session, so data that cannot be folded into an image, or
//! makes it too long, would damage it for all clients until then.

use std::collections::HashMap;

use tapeline_omm::rwf::{DataType, FieldList, Header, NakCode};
use tapeline_omm::{Dictionary, Fid};

use super::passing::Passed;
use crate::ItemId;

/// Maximum number of different fields of one item that posts may set: with the longest values its image grows by 17 kB, within the limit of 64 kB
/// for source and posts together.
const MOST_FIELDS: usize = 64;
/// Maximum size of a field's value in bytes: more than any field of a quote has, including a page's row of 80 characters in UTF-8 or RMTES.
const MOST_VALUE: usize = 255;

/// The posted fields of each item of the feeds, in ascending order.
#[derive(Debug, Default)]
pub(super) struct PostedFields(HashMap<ItemId, Vec<Fid>>);

/// The reason to refuse posted data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotTaken {
    NoFields,
    Unknown,
    TooLong,
    TooMany,
}

impl NotTaken {
    pub(super) const fn code(self) -> NakCode {
        match self {
            Self::TooMany => NakCode::NO_RESOURCES,
            _ => NakCode::INVALID_CONTENT,
        }
    }

    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::NoFields => "What is posted to this item has to be fields, and can be read to its end",
            Self::Unknown => "The dictionary of this service does not have a field of the post",
            Self::TooLong => "A field of the post is longer than 255 bytes, the most that this item takes",
            Self::TooMany => "This item takes 64 different fields from posts, and has had them",
        }
    }
}

impl PostedFields {
    /// Accepts the messages of one post, all or none of them.
    pub(super) fn take(
        &mut self,
        item: ItemId,
        messages: &[Passed<'_>],
        dictionary: &Dictionary,
    ) -> Result<(), NotTaken> {
        let before = self.0.get(&item).map_or(&[][..], Vec::as_slice);
        let mut all = before.to_vec();
        for passed in messages {
            let Header::Update(update) = &passed.header else { return Err(NotTaken::NoFields) };
            let list = FieldList::parse(passed.payload).ok();
            let list =
                list.filter(|list| update.container == DataType::FIELD_LIST && list.set_data().is_none());
            for field in list.ok_or(NotTaken::NoFields)?.iter() {
                let field = field.map_err(|_| NotTaken::NoFields)?;
                if dictionary.field(field.fid).is_none() {
                    return Err(NotTaken::Unknown);
                }
                if field.data.len() > MOST_VALUE {
                    return Err(NotTaken::TooLong);
                }
                if let Err(at) = all.binary_search(&field.fid) {
                    if all.len() == MOST_FIELDS {
                        return Err(NotTaken::TooMany);
                    }
                    all.insert(at, field.fid);
                }
            }
        }
        if all.len() > before.len() {
            self.0.insert(item, all);
        }
        Ok(())
    }
}
