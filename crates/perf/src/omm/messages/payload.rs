//! The payload of a message.

use tapeline_omm::rwf::{DataType, MapAction, MapEncoder, MapHead, SetDefinition, SetDefinitions};
use tapeline_omm::{Fid, FieldListEncoder, Full, Refused};

use super::super::stamp::{self, Stamp};
use super::value::Field;

/// The key of a map of orders: ORDER_ID, as in the public tools.
const KEY: Fid = Fid(3426);
/// Maximum bytes of a payload.
pub(super) const LONGEST: usize = 60_000;

/// The payload of a message: its values, encoded each time the message is sent.
#[derive(Debug)]
pub struct Payload {
    content: Content,
    /// Encoded without a stamp.
    encoded: Box<[u8]>,
}

/// The values of a payload.
#[derive(Debug)]
pub(super) enum Content {
    Fields(Box<[Field]>),
    Orders(Orders),
}

/// The orders of a book, or changes of them.
#[derive(Debug)]
pub(super) struct Orders {
    /// Set definitions in wire format.
    pub(super) sets: Option<Box<[u8]>>,
    /// Fields of the summary; without fields and without a stamp, the map has no summary.
    pub(super) summary: Box<[Field]>,
    pub(super) orders: Box<[Order]>,
}

#[derive(Debug)]
pub(super) struct Order {
    pub(super) action: MapAction,
    pub(super) key: Box<[u8]>,
    pub(super) fields: Box<[Field]>,
    /// Number of fields, from the first on, that are set data of set 0.
    pub(super) in_set: usize,
}

impl Payload {
    /// A payload of these values, encoded once to verify that encoding succeeds.
    pub(super) fn new(content: Content) -> Result<Self, Refused> {
        let mut payload = Self { content, encoded: Box::default() };
        let mut bytes = vec![0; LONGEST];
        let len = payload.encode(&mut bytes, None)?;
        bytes.truncate(len);
        payload.encoded = bytes.into();
        Ok(payload)
    }

    /// The container type: a field list or a map.
    pub const fn container(&self) -> DataType {
        match self.content {
            Content::Fields(_) => DataType::FIELD_LIST,
            Content::Orders(_) => DataType::MAP,
        }
    }

    /// The payload encoded without a stamp, which `--pre-enc` sends.
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// Encodes all values, then the stamp if there is one (a map's in its summary); returns the number of bytes.
    #[inline]
    pub(in super::super) fn encode(&self, out: &mut [u8], stamp: Option<Stamp>) -> Result<usize, Refused> {
        match &self.content {
            Content::Fields(fields) => Ok(list(out, fields, stamp)?),
            Content::Orders(orders) => orders.encode(out, stamp),
        }
    }
}

/// Encodes a field list, followed by the stamp if there is one.
#[inline]
fn list(out: &mut [u8], fields: &[Field], stamp: Option<Stamp>) -> Result<usize, Full> {
    let mut list = FieldListEncoder::new(out)?;
    for field in fields {
        field.write(&mut list)?;
    }
    if let Some(stamp) = stamp {
        list.uint(stamp.field, stamp.sent)?;
        if let Some(due) = stamp.due {
            list.uint(stamp::DUE, due)?;
        }
    }
    Ok(list.finish())
}

impl Orders {
    fn encode(&self, out: &mut [u8], stamp: Option<Stamp>) -> Result<usize, Refused> {
        let head = MapHead {
            key_fid: Some(KEY),
            set_definitions: self.sets.as_deref(),
            ..MapHead::new(DataType::RMTES_STRING, DataType::FIELD_LIST)
        };
        let mut map = if stamp.is_some() || !self.summary.is_empty() {
            MapEncoder::with_summary(out, &head, |out| Ok(list(out, &self.summary, stamp)?))?
        } else {
            MapEncoder::new(out, &head)?
        };
        // This program encoded the definitions, so they can be parsed.
        let sets = self.sets.as_deref().map(|sets| SetDefinitions::parse(sets, DataType::FIELD_LIST));
        let set = sets.and_then(Result::ok).and_then(|sets| sets.get(0));
        for order in &self.orders {
            map.entry_in_place(order.action, &order.key, None, |out| order.encode(out, set))?;
        }
        Ok(map.finish())
    }
}

impl Order {
    fn encode(&self, out: &mut [u8], set: Option<SetDefinition<'_>>) -> Result<usize, Refused> {
        let Some(set) = set.filter(|_| self.in_set > 0) else { return Ok(list(out, &self.fields, None)?) };
        let (in_set, others) = self.fields.split_at_checked(self.in_set).unwrap_or((&self.fields, &[]));
        let mut list = FieldListEncoder::with_set(out, None, &set, |values| {
            in_set.iter().try_for_each(|field| values.value(field.value.value()))
        })?;
        for field in others {
            field.write(&mut list)?;
        }
        Ok(list.finish())
    }
}
