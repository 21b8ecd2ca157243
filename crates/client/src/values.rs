//! The last values of an item's fields.

use std::collections::BTreeMap;

use tapeline_omm::rwf::FieldListEncoder as Encoder;
use tapeline_omm::{Fid, FieldList, Malformed, Refused, Value};

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
        let mut list = Encoder::new(out)?;
        for (fid, data) in &self.0 {
            list.raw(Fid(*fid), data)?;
        }
        Ok(list.finish())
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
