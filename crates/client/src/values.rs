//! A service of prices: its description, and the last values of an item's fields.

use std::collections::BTreeMap;

use tapeline_omm::domain::directory::Info;
use tapeline_omm::rwf::{DataType, Domain, FieldListEncoder as Encoder, RefreshHeader, flags};
use tapeline_omm::{Fid, FieldList, Malformed, Qos, Refused, State, Value};

/// Upper bound for the bytes that one value needs in addition to its data.
const AROUND: usize = 64;

/// The last value of each field that an item has had, as bytes of RWF.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastValues(BTreeMap<i16, Box<[u8]>>);

impl LastValues {
    /// Stores the fields of a list.
    pub(crate) fn merge(&mut self, list: &[u8]) -> Result<(), Malformed> {
        for field in FieldList::parse(list)?.iter() {
            let field = field?;
            self.0.insert(field.fid.0, field.data.into());
        }
        Ok(())
    }

    /// Writes all fields as a list. Returns its length.
    pub(crate) fn encode(&self, out: &mut [u8]) -> Result<usize, Refused> {
        self.encode_view(None, out)
    }

    /// Writes the fields of a view as a list; all fields without a view. Returns its length.
    pub(crate) fn encode_view(&self, view: Option<&[i16]>, out: &mut [u8]) -> Result<usize, Refused> {
        let mut list = Encoder::new(out)?;
        for (fid, data) in &self.0 {
            if view.is_none_or(|view| view.contains(fid)) {
                list.raw(Fid(*fid), data)?;
            }
        }
        Ok(list.finish())
    }
}

/// Returns the bytes of a list of the fields of a view; `None` if the list has none of them.
pub(crate) fn of_view(list: &[u8], view: &[i16]) -> Option<Vec<u8>> {
    let fields = FieldList::parse(list).ok()?.iter().flatten().filter(|field| view.contains(&field.fid.0));
    let mut out = vec![0; list.len() + AROUND];
    let mut kept = Encoder::new(&mut out).ok()?;
    let mut count = 0;
    for field in fields {
        kept.raw(field.fid, field.data).ok()?;
        count += 1;
    }
    let len = kept.finish();
    out.truncate(len);
    (count > 0).then_some(out)
}

/// Writes bytes that are encoded already.
pub(crate) fn copy(bytes: &[u8], room: &mut [u8]) -> Result<usize, Refused> {
    room.get_mut(..bytes.len()).ok_or(Refused::Full)?.copy_from_slice(bytes);
    Ok(bytes.len())
}

/// Returns the description of a service with MarketPrice items.
pub(crate) fn service(name: &str) -> Info {
    Info {
        name: Some(name.to_owned()),
        capabilities: Some(vec![Domain::MARKET_PRICE]),
        dictionaries_used: Some(vec!["RWFFld".to_owned(), "RWFEnum".to_owned()]),
        qos: Some(vec![Qos::REALTIME_TICK]),
        ..Info::default()
    }
}

/// Returns the header of an item's image, with a payload of this type.
pub(crate) fn image(container: DataType) -> RefreshHeader<'static> {
    RefreshHeader {
        flags: flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE,
        qos: Some(Qos::REALTIME_TICK),
        ..RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, container)
    }
}

/// Encodes fields as a list in RWF.
///
/// # Errors
/// A value does not fit in a field list.
pub(crate) fn encode(fields: &[(Fid, Value<'_>)]) -> Result<Vec<u8>, Refused> {
    let mut bytes = vec![0; AROUND * (fields.len() + 1)];
    loop {
        match write(fields, &mut bytes) {
            Ok(len) => {
                bytes.truncate(len);
                return Ok(bytes);
            }
            Err(Refused::Full) if bytes.len() < usize::from(u16::MAX) * (fields.len() + 1) => {
                bytes.resize(bytes.len() * 4, 0);
            }
            Err(refused) => return Err(refused),
        }
    }
}

fn write(fields: &[(Fid, Value<'_>)], out: &mut [u8]) -> Result<usize, Refused> {
    let mut list = Encoder::new(out)?;
    for (fid, value) in fields {
        list.value(*fid, value)?;
    }
    Ok(list.finish())
}
