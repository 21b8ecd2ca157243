//! The last value of each field of an item.

use tapeline_omm::{FieldList, Malformed};

/// Length of a field's id.
const FID: usize = 2;
/// The first byte of a length of three bytes.
const LONG: u8 = 0xFE;

/// The fields of an item as entries of an RWF field list: id, length, bytes. One piece of memory for each item.
#[derive(Debug, Default)]
pub(crate) struct LastValues {
    entries: Vec<u8>,
    count: u16,
}

impl LastValues {
    /// Takes over the values of a message. The fields of an item come mostly in one order, and with one length.
    ///
    /// # Errors
    /// The list is malformed; the fields before the fault were taken over.
    pub(crate) fn merge(&mut self, list: &FieldList<'_>) -> Result<(), Malformed> {
        let mut next = 0;
        for field in list.iter() {
            let field = field?;
            let found = self.find(field.fid.0, next).or_else(|| self.find(field.fid.0, 0));
            next = match found {
                Some((begin, end)) if end - begin == field.data.len() => {
                    self.entries[begin..end].copy_from_slice(field.data);
                    end
                }
                Some((begin, end)) => {
                    let header = begin - header_length(end - begin);
                    self.entries.splice(header..end, encoded(field.fid.0, field.data));
                    header + header_length(field.data.len()) + field.data.len()
                }
                None => {
                    self.entries.extend(encoded(field.fid.0, field.data));
                    self.count = self.count.saturating_add(1);
                    self.entries.len()
                }
            };
        }
        Ok(())
    }

    /// Writes the values as a field list.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        const HAS_STANDARD_DATA: u8 = 0x08;
        out.clear();
        out.push(HAS_STANDARD_DATA);
        out.extend_from_slice(&self.count.to_be_bytes());
        out.extend_from_slice(&self.entries);
    }

    /// Returns where the bytes of a field begin and end, if it is among the entries from `at` on.
    fn find(&self, fid: i16, mut at: usize) -> Option<(usize, usize)> {
        while let Some(&[high, low, short, ..]) = self.entries.get(at..) {
            let (begin, length) = match self.entries.get(at + FID + 1..at + FID + 3) {
                Some(&[high, low]) if short == LONG => {
                    (at + FID + 3, usize::from(u16::from_be_bytes([high, low])))
                }
                _ => (at + FID + 1, usize::from(short)),
            };
            if i16::from_be_bytes([high, low]) == fid {
                return Some((begin, begin + length));
            }
            at = begin + length;
        }
        None
    }
}

/// Length of what is before a value of this length.
const fn header_length(length: usize) -> usize {
    if length < LONG as usize { FID + 1 } else { FID + 3 }
}

fn encoded(fid: i16, data: &[u8]) -> impl Iterator<Item = u8> {
    let [high, low] = fid.to_be_bytes();
    // A value has at most 65,535 bytes: it came in such an entry.
    let [long_high, long_low] = (data.len() as u16).to_be_bytes();
    let header = [high, low, if data.len() < usize::from(LONG) { long_low } else { LONG }];
    let longer = (data.len() >= usize::from(LONG)).then_some([long_high, long_low]);
    header.into_iter().chain(longer.into_iter().flatten()).chain(data.iter().copied())
}
