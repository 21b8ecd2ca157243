//! Decodes payloads: every value by the type in the dictionary, as in the public tools; and finds the times in them.

use std::hint::black_box;
use std::sync::Arc;

use tapeline_measure::monotonic_ns;
use tapeline_omm::rwf::{DataType, Map, SetDefinitions};
use tapeline_omm::{Dictionary, Fid, Field, FieldList, Malformed, Value};

use super::super::stamp;
use super::super::tally::Tally;

/// Times in a payload, in wire units; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct FoundTimes {
    pub(in super::super) update: u64,
    pub(in super::super) post: u64,
    pub(in super::super) generic: u64,
    pub(in super::super) due: u64,
}

impl FoundTimes {
    /// Checks whether a UINT value is one of the times.
    #[inline]
    fn look_at(&mut self, fid: Fid, value: u64) {
        // All four field IDs are consecutive.
        if fid.0.wrapping_sub(stamp::UPDATE.0) as u16 > 3 {
            return;
        }
        match fid {
            stamp::UPDATE => self.update = value,
            stamp::POST => self.post = value,
            stamp::GENERIC => self.generic = value,
            _ => self.due = value,
        }
    }

    /// Whether the payload has any.
    #[inline]
    pub(super) fn is_any(&self) -> bool {
        self.update | self.post | self.generic != 0
    }
}

/// Decodes payloads.
#[derive(Debug)]
pub(in super::super) struct Decoder {
    pub(super) dictionary: Arc<Dictionary>,
    /// The first field that the dictionary does not have.
    unknown: Option<Fid>,
}

impl Decoder {
    pub(in super::super) fn new(dictionary: Arc<Dictionary>) -> Self {
        Self { dictionary, unknown: None }
    }

    /// Returns, once, the first field that the dictionary does not have.
    pub(super) fn take_unknown(&mut self) -> Option<Fid> {
        // 0 marks it as reported, so that no field is reported again.
        self.unknown.filter(|fid| fid.0 != 0).inspect(|_| self.unknown = Some(Fid(0)))
    }

    /// As [`Self::read`], for a provider: counts malformed payloads, and records the decoding time if `is_measured`.
    pub(in super::super) fn read_and_count(
        &mut self,
        container: DataType,
        payload: &[u8],
        is_measured: bool,
        tally: &mut Tally,
    ) -> Option<FoundTimes> {
        let begun = if is_measured { monotonic_ns() } else { 0 };
        let found = self.read(container, payload);
        if is_measured {
            tally.decoding.record(monotonic_ns().wrapping_sub(begun).cast_signed());
        }
        tally.counts.malformed += u64::from(found.is_err());
        found.ok()
    }

    /// Decodes a payload with all its contents, up to the first malformed part, which is the error.
    #[inline]
    pub(in super::super) fn read(
        &mut self,
        container: DataType,
        payload: &[u8],
    ) -> Result<FoundTimes, Malformed> {
        let mut found = FoundTimes::default();
        match container {
            DataType::FIELD_LIST => self.fields(&FieldList::parse(payload)?, &mut found)?,
            DataType::MAP => self.map(payload, &mut found)?,
            _ => _ = black_box(payload),
        }
        Ok(found)
    }

    #[inline]
    fn fields(&mut self, list: &FieldList<'_>, found: &mut FoundTimes) -> Result<(), Malformed> {
        if list.set_definition().is_some() {
            return self.fields_of_set(list, found);
        }
        for field in list.iter() {
            let field = field?;
            match self.dictionary.data_type(field.fid) {
                Some(data_type) => self.value(&field, data_type, found)?,
                None => self.unknown(&field, found)?,
            }
        }
        Ok(())
    }

    /// A field that the dictionary does not have. The time fields do not need a definition.
    #[cold]
    fn unknown(&mut self, field: &Field<'_>, found: &mut FoundTimes) -> Result<(), Malformed> {
        match field.fid {
            stamp::UPDATE | stamp::POST | stamp::GENERIC | stamp::DUE => {
                self.value(field, DataType::UINT, found)
            }
            fid => {
                self.unknown = self.unknown.or(Some(fid));
                Ok(())
            }
        }
    }

    /// A list whose set definition gives types, which can differ from the dictionary's.
    fn fields_of_set(&mut self, list: &FieldList<'_>, found: &mut FoundTimes) -> Result<(), Malformed> {
        for field in list.typed() {
            let (field, of_set) = field?;
            match of_set.or_else(|| self.dictionary.data_type(field.fid)) {
                Some(data_type) => match Value::decode(data_type, field.data)? {
                    Value::UInt(value) => found.look_at(field.fid, value),
                    value => _ = black_box(value),
                },
                None => self.unknown(&field, found)?,
            }
        }
        Ok(())
    }

    /// Values go into a black box: otherwise the compiler would remove the unused decoding.
    #[inline(always)]
    fn value(&self, field: &Field<'_>, data_type: DataType, found: &mut FoundTimes) -> Result<(), Malformed> {
        match data_type {
            DataType::REAL => _ = black_box(field.real()?),
            DataType::UINT => {
                if let Some(value) = black_box(field.uint()?) {
                    found.look_at(field.fid, value);
                }
            }
            DataType::ENUM => {
                if let Some(value) = field.enumeration()? {
                    black_box(self.dictionary.display(field.fid, value));
                }
            }
            DataType::INT => _ = black_box(field.int()?),
            DataType::TIME => _ = black_box(field.time()?),
            DataType::DATE => _ = black_box(field.date()?),
            // Characters are not converted, as in the public tools.
            DataType::RMTES_STRING | DataType::ASCII_STRING | DataType::UTF8_STRING | DataType::BUFFER => {
                black_box(field.data);
            }
            data_type => _ = black_box(Value::decode(data_type, field.data)?),
        }
        Ok(())
    }

    fn map(&mut self, payload: &[u8], found: &mut FoundTimes) -> Result<(), Malformed> {
        let map = Map::parse(payload)?;
        let head = map.head();
        let is_fields = head.container == DataType::FIELD_LIST;
        let sets =
            if is_fields && head.set_definitions.is_some() { map.sets()? } else { SetDefinitions::NONE };
        if let Some(summary) = head.summary.filter(|_| is_fields) {
            self.fields(&FieldList::parse_with(summary, &sets)?, found)?;
        }
        for entry in map.iter() {
            let entry = entry?;
            black_box(entry.key_value(head.key_type)?);
            match is_fields && !entry.data.is_empty() {
                true => self.fields(&FieldList::parse_with(entry.data, &sets)?, found)?,
                false => _ = black_box(entry.data),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tapeline_omm::rwf::{MapAction, MapEncoder, MapEntry, MapHead};
    use tapeline_omm::{FieldListEncoder, Real};

    use super::*;

    fn decoder() -> Decoder {
        let text = "BID \"BID\" 22 NULL PRICE 17 REAL64 7\n\
            TIM_TRK_1 \"TIME TRACKER 1\" 3902 NULL INTEGER 15 UINT64 8\n";
        Decoder::new(Arc::new(Dictionary::parse(text).unwrap()))
    }

    fn list(times: &[(Fid, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        let mut list = FieldListEncoder::new(&mut bytes).unwrap();
        list.real(Fid(22), Real::integer(39)).unwrap();
        for (fid, time) in times {
            list.uint(*fid, *time).unwrap();
        }
        let len = list.finish();
        bytes.truncate(len);
        bytes
    }

    #[test]
    fn times_are_found() {
        let mut decoder = decoder();
        let none = decoder.read(DataType::FIELD_LIST, &list(&[])).unwrap();
        assert!(!none.is_any());
        for (fid, found) in [
            (stamp::UPDATE, FoundTimes { update: 7, due: 5, ..none }),
            (stamp::POST, FoundTimes { post: 7, due: 5, ..none }),
            (stamp::GENERIC, FoundTimes { generic: 7, due: 5, ..none }),
        ] {
            let times = list(&[(fid, 7), (stamp::DUE, 5)]);
            assert_eq!(decoder.read(DataType::FIELD_LIST, &times), Ok(found));
            assert!(found.is_any());
        }
        assert_eq!(decoder.take_unknown(), None);
    }

    #[test]
    fn times_are_found_in_a_map() {
        let (summary, entry) = (list(&[(stamp::UPDATE, 7), (stamp::DUE, 5)]), list(&[(stamp::POST, 9)]));
        let head =
            MapHead { summary: Some(&summary), ..MapHead::new(DataType::BUFFER, DataType::FIELD_LIST) };
        let mut bytes = vec![0; 512];
        let mut map = MapEncoder::new(&mut bytes, &head).unwrap();
        let added = MapEntry { action: MapAction::ADD, permission_data: None, key: b"ORD1", data: &entry };
        map.entry(&added).unwrap();
        map.delete(b"ORD2").unwrap();
        let len = map.finish();
        let found = decoder().read(DataType::MAP, &bytes[..len]).unwrap();
        assert_eq!(found, FoundTimes { update: 7, due: 5, post: 9, generic: 0 });
    }

    #[test]
    fn a_field_that_nobody_knows_is_said_once() {
        let mut decoder = decoder();
        let unknown = list(&[(Fid(4_000), 1), (Fid(4_001), 1)]);
        for expected in [Some(Fid(4_000)), None] {
            assert!(decoder.read(DataType::FIELD_LIST, &unknown).is_ok());
            assert_eq!(decoder.take_unknown(), expected);
        }
    }

    #[test]
    fn every_value_is_looked_at() {
        // A mantissa of nine bytes, in a field that is decoded with all others or not at all.
        let mut bytes = vec![8, 0, 1, 0, 22, 10, 14];
        bytes.extend([1; 9]);
        assert!(decoder().read(DataType::FIELD_LIST, &bytes).is_err());
        let complete = list(&[(stamp::UPDATE, 7)]);
        for cut in 3..complete.len() {
            assert!(decoder().read(DataType::FIELD_LIST, &complete[..cut]).is_err(), "cut at {cut}");
        }
    }
}
