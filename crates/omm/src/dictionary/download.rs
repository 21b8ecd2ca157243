//! A dictionary built from the refreshes of a peer.

use super::enumerations::text;
use super::error::Problem;
use super::fields::add;
use super::{Dictionary, EnumeratedValue, EnumerationTable, FieldDefinition, MarketfeedType};
use crate::rwf::{Array, DataType, Element, ElementList, Series, Value};
use crate::{Fid, Malformed};

/// Maximum total bytes of names and texts. The standard dictionary of 2024 has two million.
const MOST_TEXT: usize = 32 << 20;
/// Maximum number of enumerated values. The standard dictionary of 2024 has twenty thousand.
const MOST_VALUES: usize = 1 << 18;

/// Reason why a part of a dictionary was rejected. The peer is at fault; discard the whole dictionary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// Bytes that do not follow the format.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// An invalid entry.
    #[error("entry {entry} of the part: {problem}")]
    Entry {
        /// Index of the entry, from 0.
        entry: usize,
        /// Problem with the entry.
        problem: Problem,
    },
    /// More data than any real dictionary has.
    #[error("the dictionary has more than {limit} {what}")]
    TooMuch {
        /// Kind of data.
        what: &'static str,
        /// Maximum amount.
        limit: usize,
    },
}

/// Builder of a dictionary from its parts: first the parts of the fields, then those of the enumerations.
///
/// Memory use is limited to about a hundred megabytes, whatever the peer sends.
#[derive(Debug, Default)]
pub struct Download {
    dictionary: Dictionary,
    /// Ripple targets by index in the dictionary's fields; resolved to names when all fields have arrived.
    ripples: Vec<(usize, Fid)>,
    text: usize,
    values: usize,
}

impl Download {
    /// Creates an empty download.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the payload of one part of the field dictionary (`RWFFld`).
    ///
    /// An entry needs `NAME`, `FID` and `RWFTYPE`; every other element has a default.
    ///
    /// # Errors
    ///
    /// Fails at the first fault of the part. A duplicate field id, a duplicate name and field id 0 are faults.
    pub fn fields(&mut self, payload: &[u8]) -> Result<(), DownloadError> {
        let series = Series::parse(payload)?;
        self.summary(&series, false)?;
        let sets = series.sets()?;
        for (entry, list) in series.iter().enumerate() {
            let wrong = |problem| DownloadError::Entry { entry, problem };
            let row = Row::read(&ElementList::parse_with(list?, &sets)?)?;
            let (field, ripples_to) = row.field().map_err(wrong)?;
            self.count_text(field.name.len() + field.long_name.len())?;
            if ripples_to != Fid(0) {
                self.ripples.push((self.dictionary.fields.len(), ripples_to));
            }
            add(field, &mut self.dictionary).map_err(wrong)?;
        }
        Ok(())
    }

    /// Adds the payload of one part of the enumerations (`RWFEnum`). Tables of fields that are not in the dictionary
    /// are skipped.
    ///
    /// # Errors
    ///
    /// Fails at the first fault of the part. A field under two tables and a duplicate value are faults.
    pub fn enumerations(&mut self, payload: &[u8]) -> Result<(), DownloadError> {
        let series = Series::parse(payload)?;
        self.summary(&series, true)?;
        let sets = series.sets()?;
        for (entry, list) in series.iter().enumerate() {
            self.table(&ElementList::parse_with(list?, &sets)?, entry)?;
        }
        Ok(())
    }

    fn table(&mut self, list: &ElementList<'_>, entry: usize) -> Result<(), DownloadError> {
        let wrong = |problem| DownloadError::Entry { entry, problem };
        let array = |name| -> Result<Option<Array<'_>>, Malformed> {
            list.find(name)?.map_or(Ok(None), |element| element.array())
        };
        let fids = array("FIDS")?.ok_or(wrong(Problem::Missing("FIDS")))?;
        let numbers = array("VALUE")?.ok_or(wrong(Problem::Missing("VALUE")))?;
        let mut displays = array("DISPLAY")?.map(|array| array.iter());
        let mut meanings = array("MEANING")?.map(|array| array.iter());
        let mut values = Vec::new();
        for number in numbers.values() {
            let display = displays.as_mut().and_then(Iterator::next).transpose()?.unwrap_or_default();
            let meaning = meanings.as_mut().and_then(Iterator::next).transpose()?.unwrap_or_default();
            self.count_text(2 * display.len() + meaning.len())?;
            self.values += 1;
            if self.values > MOST_VALUES {
                return Err(DownloadError::TooMuch { what: "enumerated values", limit: MOST_VALUES });
            }
            let number = match number? {
                Value::Enum(number) => number,
                Value::UInt(number) => u16::try_from(number).unwrap_or(u16::MAX),
                _ => return Err(wrong(Problem::Missing("VALUE"))),
            };
            values.push(EnumeratedValue::new(number, display, &text(meaning)));
        }
        let mut table = EnumerationTable::of(values).map_err(wrong)?;
        for fid in fids.values() {
            let Value::Int(fid) = fid? else { return Err(wrong(Problem::Missing("FIDS"))) };
            let Ok(fid) = i16::try_from(fid) else { continue };
            if self.dictionary.field(Fid(fid)).is_some() {
                self.dictionary.share(Fid(fid), &mut table).map_err(wrong)?;
            }
        }
        self.dictionary.add_table(table);
        Ok(())
    }

    /// Stores versions and similar elements of the summary as tags, under the names that files use.
    fn summary(&mut self, series: &Series<'_>, is_enumeration: bool) -> Result<(), DownloadError> {
        let Some(summary) = series.head().summary else { return Ok(()) };
        let list = ElementList::parse_with(summary, &series.sets()?)?;
        for name in ["Type", "DictionaryId", "RT_Version", "DT_Version", "Version"] {
            let Some(element) = list.find(name)? else { continue };
            let value = element.value()?.to_string();
            self.count_text(value.len())?;
            let tags = if is_enumeration {
                &mut self.dictionary.enumeration_tags
            } else {
                &mut self.dictionary.field_tags
            };
            if tags.iter().all(|(tag, _)| **tag != *name) {
                tags.push((name.into(), value.into()));
            }
        }
        Ok(())
    }

    fn count_text(&mut self, len: usize) -> Result<(), DownloadError> {
        self.text = self.text.saturating_add(len);
        if self.text > MOST_TEXT {
            return Err(DownloadError::TooMuch { what: "bytes of text", limit: MOST_TEXT });
        }
        Ok(())
    }

    /// Returns the dictionary. Call after the last part.
    #[must_use]
    pub fn finish(self) -> Dictionary {
        let mut dictionary = self.dictionary;
        for (place, fid) in self.ripples {
            let name = dictionary.field(fid).map(|target| target.name.clone());
            if let Some(field) = dictionary.fields.get_mut(place) {
                field.ripples_to = name;
            }
        }
        dictionary
    }
}

/// Elements of one entry of the field dictionary.
#[derive(Default)]
struct Row<'a> {
    name: Option<&'a [u8]>,
    long_name: Option<&'a [u8]>,
    fid: Option<i64>,
    ripples_to: Option<i64>,
    marketfeed_type: Option<i64>,
    marketfeed_len: Option<u64>,
    data_type: Option<u64>,
    data_len: Option<u64>,
    display_len: Option<u64>,
}

impl<'a> Row<'a> {
    fn read(list: &ElementList<'a>) -> Result<Self, Malformed> {
        let mut row = Self::default();
        for element in list.iter() {
            let element @ Element { name, data, .. } = element?;
            match name {
                b"NAME" => row.name = Some(data),
                b"LONGNAME" => row.long_name = Some(data),
                b"FID" => row.fid = element.int()?,
                b"RIPPLETO" => row.ripples_to = element.int()?,
                b"TYPE" => row.marketfeed_type = element.int()?,
                b"LENGTH" => row.marketfeed_len = element.uint()?,
                b"RWFTYPE" => row.data_type = element.uint()?,
                b"RWFLEN" => row.data_len = element.uint()?,
                b"ENUMLENGTH" => row.display_len = element.uint()?,
                _ => {}
            }
        }
        Ok(row)
    }

    /// Returns the field and the id of its ripple field (0 is none).
    fn field(&self) -> Result<(FieldDefinition, Fid), Problem> {
        let name = self.name.filter(|name| !name.is_empty()).ok_or(Problem::Missing("NAME"))?;
        let fid = self.fid.and_then(|fid| i16::try_from(fid).ok()).ok_or(Problem::Missing("FID"))?;
        let data_type =
            self.data_type.and_then(|number| u8::try_from(number).ok()).ok_or(Problem::Missing("RWFTYPE"))?;
        let small = |number: Option<u64>| u16::try_from(number.unwrap_or(0)).unwrap_or(u16::MAX);
        let ripples_to = self.ripples_to.and_then(|fid| i16::try_from(fid).ok()).unwrap_or(0);
        let marketfeed_type = self.marketfeed_type.and_then(MarketfeedType::from_number);
        let field = FieldDefinition {
            fid: Fid(fid),
            name: text(name),
            long_name: text(self.long_name.unwrap_or_default()),
            ripples_to: None,
            marketfeed_type: marketfeed_type.unwrap_or(MarketfeedType::None),
            marketfeed_len: small(self.marketfeed_len),
            display_len: Some(small(self.display_len)).filter(|len| *len > 0),
            data_type: DataType(data_type).base(),
            data_len: small(self.data_len),
        };
        Ok((field, Fid(ripples_to)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rwf::{ElementListEncoder, SeriesEncoder, SeriesHead};

    /// A series of rows without sets, as any peer may send it.
    fn part(rows: &[&[(&str, Value<'_>)]]) -> Vec<u8> {
        let mut out = vec![0; 0x2_0000];
        let mut series = SeriesEncoder::new(&mut out, &SeriesHead::new(DataType::ELEMENT_LIST)).unwrap();
        for row in rows {
            let write = |room: &mut [u8]| {
                let mut list = ElementListEncoder::new(room)?;
                row.iter().try_for_each(|(name, value)| list.value(name, *value))?;
                Ok(list.finish())
            };
            series.entry_in_place(write).unwrap();
        }
        let len = series.finish();
        out.truncate(len);
        out
    }

    const BID: &[(&str, Value<'static>)] =
        &[("NAME", Value::Ascii(b"BID")), ("FID", Value::Int(22)), ("RWFTYPE", Value::UInt(8))];

    #[test]
    fn three_elements_are_enough() {
        let mut download = Download::new();
        download.fields(&part(&[BID])).unwrap();
        let dictionary = download.finish();
        let bid = dictionary.field_named("BID").unwrap();
        assert_eq!((bid.fid, bid.data_type, &*bid.long_name), (Fid(22), DataType::REAL, ""));
        assert_eq!(dictionary.data_type(Fid(22)), Some(DataType::REAL));
    }

    #[test]
    fn faults_say_which_entry() {
        let fault =
            |rows: &[&[(&str, Value<'_>)]]| Download::new().fields(&part(rows)).unwrap_err().to_string();
        assert_eq!(fault(&[BID, &BID[..2]]), "entry 1 of the part: RWFTYPE is missing");
        assert_eq!(fault(&[&BID[1..]]), "entry 0 of the part: NAME is missing");
        let nobody = [BID[0], ("FID", Value::Int(0)), BID[2]];
        let said = fault(&[&nobody]);
        assert!(said.starts_with("entry 0 of the part: field id 0 stands for no field"), "{said}");
        assert_eq!(fault(&[BID, BID]), "entry 1 of the part: field id 22 was given to BID before");
        assert_eq!(
            Download::new().fields(&[0]).unwrap_err().to_string(),
            "malformed series container type at byte 1"
        );
    }

    #[test]
    fn no_more_is_kept_than_a_dictionary_can_have() {
        let long = vec![b'n'; 65_000];
        let mut download = Download::new();
        let mut taken = 0;
        let refused = loop {
            let (name, fid) = (format!("N{taken}"), taken + 1);
            let row = [
                ("NAME", Value::Ascii(name.as_bytes())),
                ("LONGNAME", Value::Ascii(&long)),
                ("FID", Value::Int(fid)),
                ("RWFTYPE", Value::UInt(8)),
            ];
            match download.fields(&part(&[&row])) {
                Ok(()) => taken += 1,
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused, DownloadError::TooMuch { what: "bytes of text", limit: MOST_TEXT });
        assert!(taken < 600, "{taken}");
    }
}
