//! What was read, written again from the views alone.

use tapeline_omm::rwf::{
    Attributes, Container, ElementList, ElementListEncoder, FilterListEncoder, Header, MapEncoder, MapHead,
    MessageView, SeriesEncoder, SeriesHead, SetDataEncoder, SetDefinitions, SetDefinitionsEncoder,
    VectorEncoder, VectorHead, encode_element_set, encode_field_set,
};
use tapeline_omm::{Dictionary, FieldList, FieldListEncoder, Refused, Value};

use super::values;

/// Which form lengths take: the shortest, as for bytes that are there already, or the one that is reserved for what is
/// written in place.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Form {
    Short,
    InPlace,
}

/// Room for anything in the vectors.
const ROOM: usize = 0x2_0000;

pub(crate) struct Again<'d> {
    pub(crate) dictionary: &'d Dictionary,
    pub(crate) form: Form,
}

impl Again<'_> {
    pub(crate) fn message(&self, message: &MessageView<'_>) -> Result<Vec<u8>, Refused> {
        vec_of(|out| self.write_message(message, out))
    }

    fn write_message(&self, message: &MessageView<'_>, out: &mut [u8]) -> Result<usize, Refused> {
        let mut header = message.header().unwrap();
        let attributes = header.key().and_then(|key| key.attributes);
        let data = match attributes {
            Some(attributes) => self.bytes(&attributes.open().unwrap())?,
            None => Vec::new(),
        };
        let attributes = attributes.map(|attributes| Attributes { data: &data, ..attributes });
        set_attributes(&mut header, attributes);
        header.encode_with(out, |room| self.write(&message.open().unwrap(), room))
    }

    fn bytes(&self, container: &Container<'_>) -> Result<Vec<u8>, Refused> {
        vec_of(|out| self.write(container, out))
    }

    fn write(&self, container: &Container<'_>, out: &mut [u8]) -> Result<usize, Refused> {
        match container {
            Container::NoData => Ok(0),
            Container::Message(message) => self.write_message(message, out),
            Container::FieldList(list) => self.field_list(list, out),
            Container::ElementList(list) => self.element_list(list, out),
            Container::FilterList(list) => {
                let mut encoder = FilterListEncoder::new(out, list.head())?;
                for entry in list.iter() {
                    let entry = entry.unwrap();
                    let inner = entry.open(list.head()).unwrap();
                    match self.form {
                        Form::InPlace => encoder.any_in_place(&entry, |room| self.write(&inner, room))?,
                        Form::Short => {
                            let data = self.bytes(&inner)?;
                            encoder.entry(&tapeline_omm::rwf::FilterEntry { data: &data, ..entry })?;
                        }
                    }
                }
                Ok(encoder.finish())
            }
            Container::Map(map) => {
                let sets = map.sets().unwrap();
                let definitions = definitions(&sets, map.head().set_definitions);
                let head = MapHead { set_definitions: definitions.as_deref(), ..*map.head() };
                let summary = head.summary.map(|summary| map.open(summary, &sets).unwrap());
                let short = self.short(summary.as_ref())?;
                let mut encoder = match (self.form, &summary) {
                    (Form::InPlace, Some(inner)) => {
                        MapEncoder::with_summary(out, &head, |room| self.write(inner, room))?
                    }
                    _ => MapEncoder::new(out, &MapHead { summary: short.as_deref(), ..head })?,
                };
                for entry in map.iter() {
                    let entry = entry.unwrap();
                    let inner = map.open(entry.data, &sets).unwrap();
                    let key = entry.key_value(head.key_type).unwrap();
                    match self.form {
                        Form::InPlace => {
                            let write = |room: &mut [u8]| self.write(&inner, room);
                            encoder.keyed_in_place(entry.action, key, entry.permission_data, write)?;
                        }
                        Form::Short => {
                            let data = self.bytes(&inner)?;
                            encoder.entry(&tapeline_omm::rwf::MapEntry { data: &data, ..entry })?;
                        }
                    }
                }
                Ok(encoder.finish())
            }
            Container::Vector(vector) => {
                let sets = vector.sets().unwrap();
                let definitions = definitions(&sets, vector.head().set_definitions);
                let head = VectorHead { set_definitions: definitions.as_deref(), ..*vector.head() };
                let summary = head.summary.map(|summary| vector.open(summary, &sets).unwrap());
                let short = self.short(summary.as_ref())?;
                let mut encoder = match (self.form, &summary) {
                    (Form::InPlace, Some(inner)) => {
                        VectorEncoder::with_summary(out, &head, |room| self.write(inner, room))?
                    }
                    _ => VectorEncoder::new(out, &VectorHead { summary: short.as_deref(), ..head })?,
                };
                for entry in vector.iter() {
                    let entry = entry.unwrap();
                    let inner = vector.open(entry.data, &sets).unwrap();
                    match self.form {
                        Form::InPlace => {
                            let write = |room: &mut [u8]| self.write(&inner, room);
                            encoder.entry_in_place(
                                entry.action,
                                entry.index,
                                entry.permission_data,
                                write,
                            )?;
                        }
                        Form::Short => {
                            let data = self.bytes(&inner)?;
                            encoder.entry(&tapeline_omm::rwf::VectorEntry { data: &data, ..entry })?;
                        }
                    }
                }
                Ok(encoder.finish())
            }
            Container::Series(series) => {
                let sets = series.sets().unwrap();
                let definitions = definitions(&sets, series.head().set_definitions);
                let head = SeriesHead { set_definitions: definitions.as_deref(), ..*series.head() };
                let summary = head.summary.map(|summary| series.open(summary, &sets).unwrap());
                let short = self.short(summary.as_ref())?;
                let mut encoder = match (self.form, &summary) {
                    (Form::InPlace, Some(inner)) => {
                        SeriesEncoder::with_summary(out, &head, |room| self.write(inner, room))?
                    }
                    _ => SeriesEncoder::new(out, &SeriesHead { summary: short.as_deref(), ..head })?,
                };
                for entry in series.iter() {
                    let inner = series.open(entry.unwrap(), &sets).unwrap();
                    match self.form {
                        Form::InPlace => encoder.entry_in_place(|room| self.write(&inner, room))?,
                        Form::Short => encoder.entry(&self.bytes(&inner)?)?,
                    }
                }
                Ok(encoder.finish())
            }
            Container::Bytes(_, bytes) => {
                out.get_mut(..bytes.len()).ok_or(Refused::Full)?.copy_from_slice(bytes);
                Ok(bytes.len())
            }
            _ => panic!("a container without a test"),
        }
    }

    fn short(&self, summary: Option<&Container<'_>>) -> Result<Option<Vec<u8>>, Refused> {
        match (self.form, summary) {
            (Form::Short, Some(summary)) => self.bytes(summary).map(Some),
            _ => Ok(None),
        }
    }

    fn field_list(&self, list: &FieldList<'_>, out: &mut [u8]) -> Result<usize, Refused> {
        let of_set = list.set_definition().map_or(0, |set| set.len());
        let write_set = |set: &mut SetDataEncoder<'_, '_, '_>| {
            list.typed().take(of_set).try_for_each(|field| {
                let (field, set_type) = field.unwrap();
                self.set_value(set, field.value(set_type.unwrap()).unwrap())
            })
        };
        let mut encoder = match (list.set_definition(), list.info()) {
            (Some(set), None) if list.len() == of_set => return encode_field_set(out, &set, write_set),
            (Some(set), info) => FieldListEncoder::with_set(out, info, &set, write_set)?,
            (None, Some(info)) => FieldListEncoder::with_info(out, info)?,
            (None, None) => FieldListEncoder::new(out)?,
        };
        for field in list.iter().skip(of_set) {
            let field = field.unwrap();
            let data_type = self.dictionary.data_type(field.fid).unwrap();
            match field.value(data_type).unwrap().open().unwrap() {
                Some(inner) if self.form == Form::InPlace => {
                    encoder.in_place(field.fid, |room| self.write(&inner, room))?;
                }
                Some(inner) => encoder.raw(field.fid, &self.bytes(&inner)?)?,
                None => values::encode_again(&mut encoder, &field, data_type),
            }
        }
        Ok(encoder.finish())
    }

    fn element_list(&self, list: &ElementList<'_>, out: &mut [u8]) -> Result<usize, Refused> {
        let of_set = list.set_definition().map_or(0, |set| set.len());
        let write_set = |set: &mut SetDataEncoder<'_, '_, '_>| {
            let mut elements = list.iter().take(of_set);
            elements.try_for_each(|element| self.set_value(set, element.unwrap().value().unwrap()))
        };
        let mut encoder = match (list.set_definition(), list.number()) {
            (Some(set), None) if list.len() == of_set => return encode_element_set(out, &set, write_set),
            (Some(set), _) => ElementListEncoder::with_set(out, &set, write_set)?,
            (None, Some(number)) => ElementListEncoder::with_number(out, number)?,
            (None, None) => ElementListEncoder::new(out)?,
        };
        for element in list.iter().skip(of_set) {
            let element = element.unwrap();
            let value = element.value().unwrap();
            match value.open().unwrap() {
                Some(inner) if self.form == Form::InPlace => {
                    encoder.in_place(element.name, element.data_type, |room| self.write(&inner, room))?;
                }
                Some(inner) => encoder.raw(element.name, element.data_type, &self.bytes(&inner)?)?,
                None => match value {
                    Value::Blank => encoder.raw(element.name, element.data_type, element.data)?,
                    Value::Array(array) if self.form == Form::InPlace => {
                        encoder.array(element.name, array.item_type, array.item_len, |items| {
                            array.values().try_for_each(|value| items.value(&value.unwrap()))
                        })?;
                    }
                    value => encoder.value(element.name, value)?,
                },
            }
        }
        Ok(encoder.finish())
    }

    fn set_value(&self, set: &mut SetDataEncoder<'_, '_, '_>, value: Value<'_>) -> Result<(), Refused> {
        match value.open().unwrap() {
            Some(inner) => set.in_place(|room| self.write(&inner, room)),
            None => set.value(value),
        }
    }
}

/// Definitions written anew; those that we refuse to write as they are.
fn definitions(sets: &SetDefinitions<'_>, bytes: Option<&[u8]>) -> Option<Vec<u8>> {
    let bytes = bytes?;
    let written = vec_of(|out| {
        let mut encoder = SetDefinitionsEncoder::new(out)?;
        for set in sets.iter() {
            encoder.set(set.id, &set.iter().collect::<Vec<_>>())?;
        }
        Ok(encoder.finish())
    });
    if let Ok(written) = &written {
        assert_eq!(written, bytes);
    }
    Some(written.unwrap_or_else(|_| bytes.to_vec()))
}

fn vec_of(write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>) -> Result<Vec<u8>, Refused> {
    let mut out = vec![0; ROOM];
    let len = write(&mut out)?;
    out.truncate(len);
    Ok(out)
}

fn set_attributes<'a>(header: &mut Header<'a>, attributes: Option<Attributes<'a>>) {
    let key = match header {
        Header::Request(header) => Some(&mut header.key),
        Header::Refresh(header) => header.key.as_mut(),
        Header::Status(header) => header.key.as_mut(),
        Header::Update(header) => header.key.as_mut(),
        Header::Ack(header) => header.key.as_mut(),
        Header::Generic(header) => header.key.as_mut(),
        Header::Post(header) => header.key.as_mut(),
        _ => None,
    };
    if let Some(key) = key {
        key.attributes = attributes;
    }
}
