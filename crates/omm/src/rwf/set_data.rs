//! Set definitions and set data, written (RWF chapters 4 and 5).

use super::entries_encoder::EntriesWriter;
use super::field_list::{HAS_SET_DATA, HAS_SET_ID};
use super::sets::{SetEntries, Width};
use super::{DataType, SetDefinition, SetEntry, SetName, Value, Writer, fixed};
use crate::{Fid, Full, Refused};

/// Maximum number of a definition.
const MOST_ID: u16 = 15;

impl SetEntry<'static> {
    /// Returns an entry for a field.
    #[must_use]
    pub const fn field(fid: Fid, data_type: DataType) -> Self {
        Self { name: SetName::Field(fid), data_type }
    }

    /// Returns an entry for an element.
    #[must_use]
    pub const fn element(name: &'static str, data_type: DataType) -> Self {
        Self { name: SetName::Element(name.as_bytes()), data_type }
    }
}

/// Encoder that writes set definitions into the caller's buffer, for the head of a map, vector or series.
///
/// Definitions that the reference decoder misreads are refused (RWF chapter 6): definitions of fields with a number
/// other than 0, negative field ids, and the types REAL_4RB and REAL_8RB.
///
/// ```
/// use tapeline_omm::rwf::{
///     DataType, FieldList, SetDefinitions, SetDefinitionsEncoder, SetEntry, encode_field_set,
/// };
/// use tapeline_omm::{Fid, Real};
///
/// let mut out = [0; 64];
/// let mut definitions = SetDefinitionsEncoder::new(&mut out)?;
/// let order = [SetEntry::field(Fid(3427), DataType::REAL), SetEntry::field(Fid(3428), DataType::ENUM)];
/// definitions.set(0, &order)?;
/// let len = definitions.finish();
///
/// // A list by that definition: values alone.
/// let sets = SetDefinitions::parse(&out[..len], DataType::FIELD_LIST)?;
/// let mut list = [0; 64];
/// let len = encode_field_set(&mut list, &sets.get(0).expect("written above"), |set| {
///     set.value(Real::decimal(4000, 2))?;
///     set.enumeration(1)
/// })?;
/// assert_eq!(list[..len], [2, 3, 12, 15, 160, 1, 1]);
/// let list = FieldList::parse_with(&list[..len], &sets)?;
/// assert_eq!(list.find(Fid(3427))?.expect("written above").real()?, Some(Real::decimal(4000, 2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SetDefinitionsEncoder<'a> {
    entries: EntriesWriter<'a>,
}

impl<'a> SetDefinitionsEncoder<'a> {
    /// Starts definitions at the start of `out`.
    ///
    /// # Errors
    ///
    /// [`Full`] if two bytes do not fit.
    pub fn new(out: &'a mut [u8]) -> Result<Self, Full> {
        let mut writer = Writer::new(out);
        writer.u8(0)?;
        Ok(Self { entries: EntriesWriter::begin_u8(writer)? })
    }

    /// Appends a definition: fields for a container of field lists, elements for a container of element lists.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for a number above 15, more than 255 entries or a name of more than
    /// 32,767 bytes; [`Refused::Misplaced`] for a definition that the reference decoder misreads, or a type that sets
    /// do not have.
    pub fn set(&mut self, id: u16, entries: &[SetEntry<'_>]) -> Result<(), Refused> {
        if id > MOST_ID {
            return Err(Refused::TooLong { what: "set id", limit: usize::from(MOST_ID) });
        }
        let count = u8::try_from(entries.len())
            .map_err(|_| Refused::TooLong { what: "set definition", limit: usize::from(u8::MAX) })?;
        self.entries.append(|writer| {
            writer.u15(usize::from(id), "set id")?;
            writer.u8(count)?;
            for entry in entries {
                match entry.name {
                    SetName::Field(_) if id != 0 => {
                        return Err(Refused::Misplaced("a set of fields with a number other than 0"));
                    }
                    SetName::Field(Fid(..=-1)) => {
                        return Err(Refused::Misplaced("a negative field id in a set"));
                    }
                    SetName::Field(fid) => writer.bytes(&fid.0.to_be_bytes())?,
                    SetName::Element(name) => writer.b15(name, "set element name")?,
                }
                match entry.data_type.set_width() {
                    None | Some(Width::Real(_)) => return Err(Refused::Misplaced("this type in a set")),
                    Some(_) => writer.u8(entry.data_type.0)?,
                }
            }
            Ok(())
        })
    }

    /// Ends the definitions; returns their length in bytes.
    #[must_use = "the definitions are `len` bytes long"]
    pub fn finish(self) -> usize {
        self.entries.finish()
    }
}

/// Encoder that writes the values of a set in the order of its definition. All values must be written.
#[derive(Debug)]
pub struct SetDataEncoder<'w, 'o, 'd> {
    writer: &'w mut Writer<'o>,
    entries: SetEntries<'d>,
}

impl SetDataEncoder<'_, '_, '_> {
    /// Appends the next value, in the form that the definition gives it.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for a value that does not fit its form; [`Refused::Misplaced`] for a
    /// value of another type, a surplus value, or a blank if the form has none.
    pub fn value<'v>(&mut self, value: impl Into<Value<'v>>) -> Result<(), Refused> {
        const WHAT: &str = "a set value of this type";
        let (value, data_type) = (value.into(), self.next()?);
        let base = data_type.base();
        if value.data_type().is_some_and(|of_value| of_value != base) {
            return Err(Refused::Misplaced(WHAT));
        }
        match data_type.set_width() {
            Some(Width::Fixed(width)) => fixed::write(self.writer, &value, base, width, WHAT),
            Some(Width::B8) => value.write_b8(self.writer, WHAT),
            Some(Width::B16) => value.write_b16(self.writer, WHAT),
            Some(Width::Real(_)) | None => Err(Refused::Misplaced(WHAT)),
        }
    }

    /// Appends an ENUM as the next value. Fails as [`SetDataEncoder::value`].
    pub fn enumeration(&mut self, value: u16) -> Result<(), Refused> {
        self.value(Value::Enum(value))
    }

    /// Appends an ASCII_STRING as the next value. Fails as [`SetDataEncoder::value`].
    pub fn ascii(&mut self, value: impl AsRef<[u8]>) -> Result<(), Refused> {
        self.value(Value::Ascii(value.as_ref()))
    }

    /// Appends the next value, an array or a container, which `write` writes into the free space; `write` returns its
    /// length.
    ///
    /// # Errors
    ///
    /// [`Refused::Misplaced`] if the definition has neither; as [`SetDataEncoder::value`], and what `write` returns.
    pub fn in_place(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<(), Refused> {
        let data_type = self.next()?;
        if data_type != DataType::ARRAY && !data_type.is_container() {
            return Err(Refused::Misplaced("an array or container in this set"));
        }
        self.writer.b16_in_place("set value", write)
    }

    fn next(&mut self) -> Result<DataType, Refused> {
        let entry = self.entries.next().ok_or(Refused::Misplaced("more values than the set has"))?;
        Ok(entry.data_type)
    }
}

/// Writes a list with only set data to the start of `out`; `write` writes the values. Returns its length. Field lists
/// and element lists have the same form here.
pub(super) fn encode_set(
    out: &mut [u8],
    definition: &SetDefinition<'_>,
    write: impl FnOnce(&mut SetDataEncoder<'_, '_, '_>) -> Result<(), Refused>,
) -> Result<usize, Refused> {
    let mut writer = Writer::new(out);
    writer.u8(definition.flags())?;
    write_set(&mut writer, definition, false, write)?;
    Ok(writer.len())
}

impl SetDefinition<'_> {
    /// Returns the flags of a list with set data by this definition.
    pub(super) const fn flags(&self) -> u8 {
        HAS_SET_DATA | if self.id == 0 { 0 } else { HAS_SET_ID }
    }
}

/// Writes set data by `definition`: its number unless it is 0, its length if something follows it, and its values.
pub(super) fn write_set(
    writer: &mut Writer<'_>,
    definition: &SetDefinition<'_>,
    is_followed: bool,
    write: impl FnOnce(&mut SetDataEncoder<'_, '_, '_>) -> Result<(), Refused>,
) -> Result<(), Refused> {
    if definition.id != 0 {
        writer.u15(usize::from(definition.id), "set id")?;
    }
    let values = |writer: &mut Writer<'_>| {
        let mut set = SetDataEncoder { writer, entries: definition.iter() };
        write(&mut set)?;
        match set.entries.next() {
            None => Ok(()),
            Some(_) => Err(Refused::Misplaced("fewer values than the set has")),
        }
    };
    if !is_followed {
        return values(writer);
    }
    writer.b15_in_place("set data", |room| {
        let mut inner = Writer::new(room);
        values(&mut inner)?;
        Ok(inner.len())
    })
}

#[cfg(test)]
mod tests {
    use super::super::{ElementList, FieldList, SetDefinitions, encode_element_set};
    use super::*;
    use crate::rwf::Info;
    use crate::rwf::{ElementListEncoder, FieldListEncoder};
    use crate::{Date, DateTime, Qos, Real, State, Time};

    fn definitions(out: &mut [u8], id: u16, entries: &[SetEntry<'_>]) -> Result<usize, Refused> {
        let mut encoder = SetDefinitionsEncoder::new(out)?;
        encoder.set(id, entries)?;
        Ok(encoder.finish())
    }

    /// Returns the definitions of a container with one set, which is written to `out`.
    fn parsed<'o>(
        out: &'o mut [u8],
        id: u16,
        container: DataType,
        set: &[SetEntry<'_>],
    ) -> SetDefinitions<'o> {
        let len = definitions(out, id, set).unwrap();
        SetDefinitions::parse(&out[..len], container).unwrap()
    }

    /// Returns every type that sets have, with a value of that type.
    fn every_type() -> Vec<(DataType, Value<'static>)> {
        let time = Time { hour: 1, minute: 2, second: 3, ..Time::default() };
        let (ms, us, ns) = (
            Time { millisecond: 4, ..time },
            Time { millisecond: 4, microsecond: 5, ..time },
            Time { millisecond: 4, microsecond: 5, nanosecond: 600, ..time },
        );
        let date = Date { day: 29, month: 2, year: 2024 };
        let at = |time| Value::DateTime(DateTime { date, time });
        vec![
            (DataType::INT_1, Value::Int(-128)),
            (DataType::UINT_1, Value::UInt(255)),
            (DataType::INT_2, Value::Int(-2)),
            (DataType::UINT_2, Value::UInt(65_535)),
            (DataType::INT_4, Value::Int(i64::from(i32::MIN))),
            (DataType::UINT_4, Value::UInt(1)),
            (DataType::INT_8, Value::Int(i64::MIN)),
            (DataType::UINT_8, Value::UInt(u64::MAX)),
            (DataType::FLOAT_4, Value::Float(1.5)),
            (DataType::DOUBLE_8, Value::Double(-2.5)),
            (DataType::DATE_4, Value::Date(date)),
            (DataType::TIME_3, Value::Time(time)),
            (DataType::TIME_5, Value::Time(ms)),
            (DataType::TIME_7, Value::Time(us)),
            (DataType::TIME_8, Value::Time(ns)),
            (DataType::DATETIME_7, at(time)),
            (DataType::DATETIME_9, at(ms)),
            (DataType::DATETIME_11, at(us)),
            (DataType::DATETIME_12, at(ns)),
            (DataType::INT, Value::Int(-300)),
            (DataType::UINT, Value::UInt(300)),
            (DataType::FLOAT, Value::Float(0.5)),
            (DataType::DOUBLE, Value::Double(0.25)),
            (DataType::REAL, Value::Real(Real::decimal(4000, 2))),
            (DataType::DATE, Value::Date(date)),
            (DataType::TIME, Value::Time(ns)),
            (DataType::DATETIME, at(us)),
            (DataType::QOS, Value::Qos(Qos::REALTIME_TICK)),
            (DataType::STATE, Value::State(State::OPEN_OK)),
            (DataType::ENUM, Value::Enum(300)),
            (DataType::BUFFER, Value::Buffer(b"b")),
            (DataType::ASCII_STRING, Value::Ascii(&[b'a'; 300])),
            (DataType::UTF8_STRING, Value::Utf8(b"u")),
            (DataType::RMTES_STRING, Value::Rmtes(crate::rwf::Rmtes(b"r"))),
            (DataType::MAP, Value::Container(DataType::MAP, &[0, 4, 4, 0, 0])),
        ]
    }

    #[test]
    fn every_type_comes_back() {
        const NAMES: [&str; 35] = ["n"; 35];
        let types = every_type();
        let entry = |((data_type, _), name): (&(DataType, _), _)| SetEntry::element(name, *data_type);
        let entries: Vec<_> = types.iter().zip(NAMES).map(entry).collect();
        let mut bytes = [0; 1024];
        let sets = parsed(&mut bytes, 7, DataType::ELEMENT_LIST, &entries);
        assert_eq!(sets.get(7).unwrap().iter().collect::<Vec<_>>(), entries);
        let encode = |out: &mut [u8]| {
            encode_element_set(out, &sets.get(7).unwrap(), |set| {
                types.iter().try_for_each(|(_, value)| set.value(*value))
            })
        };
        let mut out = [0; 1024];
        let len = encode(&mut out).unwrap();
        let list = ElementList::parse_with(&out[..len], &sets).unwrap();
        let values: Vec<_> = list.iter().map(|element| element.unwrap().value().unwrap()).collect();
        assert_eq!(values, types.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        for size in 0..len {
            assert_eq!(encode(&mut vec![0; size]), Err(Refused::Full), "{size} bytes");
        }
        // Blanks, for the types that have one.
        let blank = |data_type: &DataType| {
            let number = [DataType::INT, DataType::UINT, DataType::FLOAT, DataType::DOUBLE];
            !matches!(data_type.set_width(), Some(Width::Fixed(_))) || !number.contains(&data_type.base())
        };
        for (data_type, _) in &types {
            let entries = [SetEntry::element("n", *data_type)];
            let sets = parsed(&mut bytes, 0, DataType::ELEMENT_LIST, &entries);
            let done = encode_element_set(&mut out, &sets.get(0).unwrap(), |set| set.value(Value::Blank));
            match done {
                Ok(len) => {
                    let list = ElementList::parse_with(&out[..len], &sets).unwrap();
                    assert_eq!(list.find("n").unwrap().unwrap().value(), Ok(Value::Blank), "{data_type}");
                    assert!(blank(data_type), "{data_type}");
                }
                Err(refused) => {
                    assert_eq!(refused, Refused::Misplaced("a set value of this type"));
                    assert!(!blank(data_type), "{data_type}");
                }
            }
        }
    }

    #[test]
    fn fields_behind_a_set() {
        let mut bytes = [0; 32];
        let entries = [SetEntry::field(Fid(22), DataType::REAL), SetEntry::field(Fid(30), DataType::UINT_2)];
        let sets = parsed(&mut bytes, 0, DataType::FIELD_LIST, &entries);
        let set = sets.get(0).unwrap();
        let info = Info { dictionary_id: 200, list_number: -1 };
        let mut out = [0; 64];
        let mut list = FieldListEncoder::with_set(&mut out, Some(info), &set, |set| {
            set.value(Real::integer(5))?;
            set.value(7_u64)
        })
        .unwrap();
        list.uint(Fid(1021), 9).unwrap();
        let len = list.finish();
        let list = FieldList::parse_with(&out[..len], &sets).unwrap();
        assert_eq!((list.info(), list.len()), (Some(info), 3));
        let types: Vec<_> = list.typed().map(|field| field.unwrap().1).collect();
        assert_eq!(types, [Some(DataType::REAL), Some(DataType::UINT_2), None]);
        assert_eq!(list.find(Fid(30)).unwrap().unwrap().uint(), Ok(Some(7)));
        assert_eq!(list.find(Fid(1021)).unwrap().unwrap().uint(), Ok(Some(9)));
        let info = FieldListEncoder::with_info(&mut out, Info { dictionary_id: 3, list_number: 61 }).unwrap();
        let len = info.finish();
        assert_eq!(out[..len], [9, 3, 3, 0, 61, 0, 0]);
        let list = ElementListEncoder::with_set(&mut out, &set, |set| set.value(1_u64)).map(|_| ());
        assert_eq!(list, Err(Refused::Misplaced("a set value of this type")));
    }

    #[test]
    fn what_sets_cannot_hold_is_refused() {
        let mut out = [0; 64];
        let misplaced = |done: Result<usize, Refused>| matches!(done, Err(Refused::Misplaced(_)));
        let element = |data_type| [SetEntry::element("n", data_type)];
        assert!(misplaced(definitions(&mut out, 1, &[SetEntry::field(Fid(1), DataType::INT)])));
        assert!(misplaced(definitions(&mut out, 0, &[SetEntry::field(Fid(-1), DataType::INT)])));
        for data_type in [DataType::REAL_4RB, DataType::REAL_8RB, DataType::UNKNOWN, DataType(20)] {
            assert!(misplaced(definitions(&mut out, 0, &element(data_type))), "{data_type}");
        }
        let id = definitions(&mut out, 16, &element(DataType::INT));
        assert_eq!(id, Err(Refused::TooLong { what: "set id", limit: 15 }));
        let sets = parsed(&mut out, 0, DataType::ELEMENT_LIST, &element(DataType::INT_1));
        let set = sets.get(0).unwrap();
        let mut list = [0; 32];
        assert!(misplaced(encode_element_set(&mut list, &set, |_| Ok(()))));
        assert!(misplaced(encode_element_set(&mut list, &set, |set| {
            set.value(1_i64)?;
            set.value(1_i64)
        })));
        assert!(misplaced(encode_element_set(&mut list, &set, |set| set.value(1_u64))));
        assert!(misplaced(encode_element_set(&mut list, &set, |set| set.in_place(|_| Ok(0)))));
        let too_long = encode_element_set(&mut list, &set, |set| set.value(128_i64));
        assert_eq!(too_long, Err(Refused::TooLong { what: "a set value of this type", limit: 1 }));
    }
}
