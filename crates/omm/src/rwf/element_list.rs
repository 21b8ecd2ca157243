//! ELEMENT_LIST, read (RWF chapter 4).

use super::field_list::{HAS_INFO, HAS_SET_DATA, HAS_SET_ID, HAS_STANDARD_DATA, list, readers};
use super::number;
use super::sets::{SetName, SetValues};
use super::{Array, Cursor, DataType, SetData, SetDefinition, SetDefinitions, State, Value};
use crate::Malformed;

/// View of a list of named values, borrowed from its message.
///
/// Reading the head does not check the entries; iteration checks them one by one.
///
/// ```
/// use tapeline_omm::rwf::{ElementList, ElementListEncoder};
///
/// let mut out = [0; 64];
/// let mut list = ElementListEncoder::new(&mut out)?;
/// list.ascii("ApplicationId", "256")?;
/// list.uint("Role", 0)?;
/// let len = list.finish();
///
/// let list = ElementList::parse(&out[..len])?;
/// assert_eq!(list.find("Role")?.expect("written above").uint()?, Some(0));
/// assert_eq!(list.find("ApplicationId")?.map(|id| id.data), Some(&b"256"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ElementList<'a> {
    number: Option<u16>,
    set_data: Option<SetData<'a>>,
    definition: Option<SetDefinition<'a>>,
    /// End of the set data.
    set_end: usize,
    count: u16,
    entries: &'a [u8],
    /// Length of the whole list: offsets of faults count from its start.
    end: usize,
}

impl<'a> ElementList<'a> {
    /// Reads the head of a list that occupies all of `bytes`. No bytes, or a first byte without flags, is an empty
    /// list. Fails if the head is truncated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Self::parse_with(bytes, &SetDefinitions::NONE)
    }

    /// As [`ElementList::parse`], in a container with set definitions. Fails if the head is truncated.
    pub fn parse_with(bytes: &'a [u8], sets: &SetDefinitions<'a>) -> Result<Self, Malformed> {
        let mut list = Self { end: bytes.len(), ..Self::default() };
        let mut cursor = Cursor::new(bytes);
        if cursor.is_empty() {
            return Ok(list);
        }
        let flags = cursor.u8("element list flags")?;
        if flags & HAS_INFO != 0 {
            // Additions of a later version to the block are skipped by its length.
            list.number = Cursor::new(cursor.b8("element list info")?).u16("element list number").ok();
        }
        list.read_entries(flags, cursor, sets)?;
        Ok(list)
    }

    /// Returns the number of the list (its template), if it has one.
    #[must_use]
    pub const fn number(&self) -> Option<u16> {
        self.number
    }

    /// Returns the elements in order: those of a set, then the others.
    #[must_use]
    pub fn iter(&self) -> Elements<'a> {
        let set = match (&self.definition, &self.set_data) {
            (Some(definition), Some(set)) => Some(definition.values(set.data, self.set_end)),
            _ => None,
        };
        Elements { set, rest: self.entries, left: self.count, end: self.end }
    }

    /// Returns the first element with this name. The values of the elements before it are not read. Fails at a fault in
    /// the entries up to that element.
    pub fn find(&self, name: impl AsRef<[u8]>) -> Result<Option<Element<'a>>, Malformed> {
        let name = name.as_ref();
        for element in self.iter() {
            let element = element?;
            if element.name == name {
                return Ok(Some(element));
            }
        }
        Ok(None)
    }
}

list!(ElementList, ELEMENT_LIST, Elements, Element, "elements", "element count");

/// Iterator over the elements of an [`ElementList`] in order. It ends after a fault.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    set: Option<SetValues<'a>>,
    rest: &'a [u8],
    left: u16,
    end: usize,
}

impl<'a> Elements<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Element<'a>, Malformed> {
        let name = cursor.b15("element name")?;
        let data_type = DataType(cursor.u8("element type")?);
        let data = if data_type == DataType::NO_DATA { &[] } else { cursor.b16("element value")? };
        Ok(Element { name, data_type, data })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.set.as_mut().and_then(Iterator::next) {
            Some(Ok((entry, data))) => {
                let name = match entry.name {
                    SetName::Element(name) => name,
                    // Definitions of element lists have names.
                    SetName::Field(_) => &[],
                };
                return Some(Ok(Element { name, data_type: entry.data_type, data }));
            }
            Some(Err(fault)) => {
                (self.set, self.left) = (None, 0);
                return Some(Err(fault));
            }
            None => self.set = None,
        }
        self.left = self.left.checked_sub(1)?;
        let mut cursor = Cursor::new(self.rest);
        match Self::read(&mut cursor) {
            Ok(element) => {
                self.rest = cursor.rest();
                Some(Ok(element))
            }
            Err(fault) => {
                self.left = 0;
                Some(Err(fault.within(self.end - self.rest.len())))
            }
        }
    }
}

/// One element: its name, its type and the bytes of its value.
///
/// Each reader below decodes the bytes as the type in its name; `None` is blank. Text is [`Element::data`] itself.
/// Offsets of their faults count from the start of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    /// Name.
    pub name: &'a [u8],
    /// Type: a primitive, a container, or in set data a type of fixed size.
    pub data_type: DataType,
    /// Bytes of the value; no bytes are blank.
    pub data: &'a [u8],
}

impl<'a> Element<'a> {
    /// Returns the value. Fails if the bytes are not valid for the type.
    pub fn value(&self) -> Result<Value<'a>, Malformed> {
        Value::decode(self.data_type, self.data)
    }
}

readers! {
    Element, self:
    int i64, "INT", "for more than eight bytes", number::decode_int(self.data);
    uint u64, "UINT", "for more than eight bytes", number::decode_uint(self.data);
    state State<'a>, "STATE", "if bytes are missing", State::decode(self.data);
    array Array<'a>, "ARRAY", "if there are fewer bytes than the count requires", Array::decode(self.data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Real;

    #[test]
    fn the_worked_example() {
        let bytes = [8, 0, 1, 4, b'R', b'o', b'l', b'e', 4, 1, 0];
        let list = ElementList::parse(&bytes).unwrap();
        assert_eq!((list.len(), list.number(), list.set_data()), (1, None, None));
        let role = list.find("Role").unwrap().unwrap();
        assert_eq!(
            (role.data_type, role.uint(), role.value()),
            (DataType::UINT, Ok(Some(0)), Ok(Value::UInt(0)))
        );
        assert_eq!(list.find(b"role"), Ok(None));
        for cut in 3..bytes.len() {
            let list = ElementList::parse(&bytes[..cut]).unwrap();
            let faults: Vec<_> = list.iter().filter_map(Result::err).collect();
            assert_eq!(faults.len(), 1, "cut at {cut}");
            assert!((3..=cut).contains(&faults[0].offset), "cut at {cut}: {}", faults[0]);
        }
        for cut in 1..3 {
            assert!(ElementList::parse(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for empty in [&[][..], &[0], &[8, 0, 0]] {
            assert!(ElementList::parse(empty).unwrap().is_empty());
        }
    }

    #[test]
    fn no_data_has_no_length() {
        let list = ElementList::parse(&[9, 2, 0, 7, 0, 2, 1, b'a', 128, 1, b'b', 3, 1, 9]).unwrap();
        assert_eq!(list.number(), Some(7));
        let elements: Vec<_> = list.iter().map(Result::unwrap).collect();
        assert_eq!((elements[0].data_type, elements[0].data), (DataType::NO_DATA, &[][..]));
        assert_eq!(elements[1].int(), Ok(Some(9)));
    }

    #[test]
    fn set_data_takes_names_and_types_from_its_definition() {
        let definitions = [0, 1, 5, 3, 1, b'a', 67, 1, b'b', 8, 1, b'c', 17];
        let sets = SetDefinitions::parse(&definitions, DataType::ELEMENT_LIST).unwrap();
        // Set 5: 258, 40.00, "hi"; then one standard element.
        let bytes = [0x0E, 5, 9, 1, 2, 3, 12, 15, 0xA0, 2, b'h', b'i', 0, 1, 1, b'd', 4, 1, 7];
        let list = ElementList::parse_with(&bytes, &sets).unwrap();
        let values: Vec<_> = list.iter().map(Result::unwrap).map(|e| (e.name, e.value().unwrap())).collect();
        assert_eq!(
            values,
            [
                (&b"a"[..], Value::UInt(258)),
                (b"b", Value::Real(Real::decimal(4000, 2))),
                (b"c", Value::Ascii(b"hi")),
                (b"d", Value::UInt(7)),
            ]
        );
        assert_eq!((list.len(), list.find("d").unwrap().is_some()), (4, true));
        // Without the definition, the standard element is still there.
        let list = ElementList::parse(&bytes).unwrap();
        assert_eq!((list.len(), list.iter().count()), (1, 1));
        // Values that do not fill the definition are a fault, which ends the iteration.
        let list = ElementList::parse_with(&[0x06, 5, 1, 2, 3, 12], &sets).unwrap();
        let elements: Vec<_> = list.iter().collect();
        assert_eq!(elements[1], Err(Malformed::new(4, "set value")));
        assert_eq!(elements.len(), 2);
    }
}
