//! A container and all that it holds, against what the reference decoder says of it.

use serde_json::Value as Json;
use tapeline_omm::rwf::{Container, DataType, Map, MessageView, Series, SetDefinitions, SetName, Vector};
use tapeline_omm::{Dictionary, FieldList, Value};

use super::{headers, unhex, values};

/// What was compared, so that a test can tell that it compared something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) messages: usize,
    pub(crate) containers: usize,
    pub(crate) entries: usize,
    pub(crate) fields: usize,
    pub(crate) elements: usize,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.containers += other.containers;
        self.entries += other.entries;
        self.fields += other.fields;
        self.elements += other.elements;
    }
}

pub(crate) struct Check<'d> {
    pub(crate) place: String,
    pub(crate) dictionary: &'d Dictionary,
    pub(crate) tally: Tally,
}

impl<'d> Check<'d> {
    pub(crate) fn new(place: impl Into<String>, dictionary: &'d Dictionary) -> Self {
        Self { place: place.into(), dictionary, tally: Tally::default() }
    }

    /// A message, its key's attributes and its payload.
    pub(crate) fn message(&mut self, message: &MessageView<'_>, said: &Json) {
        self.tally.messages += 1;
        headers::check(&self.place, message, said);
        if let Some(attributes) = message.key().unwrap().and_then(|key| key.attributes) {
            self.container(&attributes.open().unwrap(), &said["key"]["attrib"]);
        }
        if !said["payload"].is_null() || !message.payload().is_empty() {
            self.container(&message.open().unwrap(), &said["payload"]);
        }
    }

    pub(crate) fn container(&mut self, container: &Container<'_>, said: &Json) {
        let place = &self.place;
        self.tally.containers += 1;
        if !matches!(container, Container::Message(_) | Container::NoData) {
            assert_eq!(container.data_type().name().unwrap(), said["type"], "{place}: {said}");
        }
        match container {
            Container::NoData => assert!(said.is_null(), "{place}"),
            Container::Message(message) => self.message(message, said),
            Container::FieldList(list) => self.field_list(list, said),
            Container::ElementList(list) => {
                assert_eq!(list.number().map(u64::from), said["elementListNum"].as_u64(), "{place}");
                assert_eq!(list.set_data().map(|set| u64::from(set.id)), set_id(said), "{place}");
                let elements: Vec<_> = list.iter().map(Result::unwrap).collect();
                self.tally.elements += elements.len();
                let said = all(said, "elements");
                assert_eq!(elements.len(), said.len(), "{place}");
                for (element, said) in elements.iter().zip(said) {
                    assert_eq!(text(element.name), said["name"], "{}", self.place);
                    self.value(element.data_type.base(), element.data, element.value().unwrap(), said);
                }
            }
            Container::FilterList(list) => {
                let head = *list.head();
                assert_eq!(head.container.name().unwrap(), said["containerType"], "{place}");
                assert_eq!(head.count_hint.map(u64::from), said["totalCountHint"].as_u64(), "{place}");
                assert_eq!(head.permission_data, has(said, "HAS_PER_ENTRY_PERM_DATA"), "{place}");
                self.each(list.iter(), said, |check, entry, said| {
                    assert_eq!(entry.action.name().unwrap(), said["action"]);
                    assert_eq!(u64::from(entry.id), said["id"]);
                    assert_eq!(entry.container.is_some(), has(said, "HAS_CONTAINER_TYPE"));
                    let container = entry.container.unwrap_or(head.container);
                    assert_eq!(container.name().unwrap(), said["containerType"], "{}", check.place);
                    assert_eq!(entry.permission_data.map(<[u8]>::to_vec), hex(&said["permDataHex"]));
                    check.data(entry.open(&head).unwrap(), entry.data, &said["data"]);
                });
            }
            Container::Map(map) => self.map(map, said),
            Container::Vector(vector) => self.vector(vector, said),
            Container::Series(series) => self.series(series, said),
            Container::Bytes(DataType::XML | DataType::JSON, bytes) => {
                assert_eq!(text(bytes), said["text"], "{place}");
            }
            Container::Bytes(_, bytes) => check_hex(place, bytes, said["hex"].as_str().unwrap()),
            _ => panic!("{place}: a container without a test"),
        }
    }

    pub(crate) fn field_list(&mut self, list: &FieldList<'_>, said: &Json) {
        let place = &self.place;
        let info = list.info().map(|info| (i64::from(info.dictionary_id), i64::from(info.list_number)));
        assert_eq!(info, said["dictionaryId"].as_i64().zip(said["fieldListNum"].as_i64()), "{place}");
        assert_eq!(list.set_data().map(|set| u64::from(set.id)), set_id(said), "{place}");
        let fields: Vec<_> = list.typed().map(Result::unwrap).collect();
        assert!(list.iter().map(Result::unwrap).eq(fields.iter().map(|(field, _)| *field)), "{place}");
        self.tally.fields += fields.len();
        let said = all(said, "fields");
        assert_eq!(fields.len(), said.len(), "{place}");
        for ((field, set_type), said) in fields.iter().zip(said) {
            assert_eq!(i64::from(field.fid.0), said["fid"].as_i64().unwrap(), "{}", self.place);
            // A field of a set has a type even where the dictionary does not know it.
            let definition = self.dictionary.field(field.fid);
            let name = definition.map(|definition| definition.name.as_ref());
            assert_eq!(name, said["name"].as_str(), "{}", self.place);
            let by_dictionary = definition.map_or(DataType::UNKNOWN, |definition| definition.data_type);
            let data_type = set_type.unwrap_or(by_dictionary);
            self.value(data_type.base(), field.data, field.value(data_type).unwrap(), said);
            assert_eq!(list.find(field.fid).unwrap().unwrap().fid, field.fid);
        }
    }

    fn value(&mut self, data_type: DataType, data: &[u8], value: Value<'_>, said: &Json) {
        assert_eq!(data_type.name().unwrap(), said["dataType"], "{}", self.place);
        match value.open().unwrap() {
            Some(container) => self.container(&container, &said["data"]),
            None if data_type == DataType::NO_DATA || data_type.is_container() => {
                assert_eq!((value, &said["blank"]), (Value::Blank, &Json::Bool(true)), "{}", self.place);
            }
            None => {
                // Long values are cut in the files.
                let said_hex = said["hex"].as_str().unwrap();
                check_hex(&self.place, data, said_hex);
                if !said_hex.contains("...") {
                    values::check(&self.place, value, said);
                }
            }
        }
    }

    fn map(&mut self, map: &Map<'_>, said: &Json) {
        let (place, head) = (&self.place, *map.head());
        assert_eq!(head.key_type.name().unwrap(), said["keyPrimitiveType"], "{place}");
        assert_eq!(head.container.name().unwrap(), said["containerType"], "{place}");
        assert_eq!(head.key_fid.map(|fid| i64::from(fid.0)), said["keyFieldId"].as_i64(), "{place}");
        assert_eq!(head.permission_data, has(said, "HAS_PER_ENTRY_PERM_DATA"), "{place}");
        let sets = map.sets().unwrap();
        self.shared(head.set_definitions, &sets, head.count_hint, said);
        self.data_if(head.summary.map(|summary| map.open(summary, &sets).unwrap()), &said["summary"]);
        self.each(map.iter(), said, |check, entry, said| {
            let place = &check.place;
            assert_eq!(entry.action.name().unwrap(), said["action"], "{place}");
            assert_eq!(entry.permission_data.map(<[u8]>::to_vec), hex(&said["permDataHex"]), "{place}");
            assert_eq!(head.key_type.name().unwrap(), said["key"]["dataType"], "{place}");
            check_hex(place, entry.key, said["key"]["hex"].as_str().unwrap());
            values::check(place, entry.key_value(head.key_type).unwrap(), &said["key"]);
            check.data(map.open(entry.data, &sets).unwrap(), entry.data, &said["data"]);
        });
    }

    fn vector(&mut self, vector: &Vector<'_>, said: &Json) {
        let (place, head) = (&self.place, *vector.head());
        assert_eq!(head.container.name().unwrap(), said["containerType"], "{place}");
        assert_eq!(head.permission_data, has(said, "HAS_PER_ENTRY_PERM_DATA"), "{place}");
        assert_eq!(head.sorting, has(said, "SUPPORTS_SORTING"), "{place}");
        let sets = vector.sets().unwrap();
        self.shared(head.set_definitions, &sets, head.count_hint, said);
        self.data_if(head.summary.map(|summary| vector.open(summary, &sets).unwrap()), &said["summary"]);
        self.each(vector.iter(), said, |check, entry, said| {
            assert_eq!(entry.action.name().unwrap(), said["action"], "{}", check.place);
            assert_eq!(u64::from(entry.index), said["index"], "{}", check.place);
            assert_eq!(entry.permission_data.map(<[u8]>::to_vec), hex(&said["permDataHex"]));
            check.data(vector.open(entry.data, &sets).unwrap(), entry.data, &said["data"]);
        });
    }

    fn series(&mut self, series: &Series<'_>, said: &Json) {
        let head = *series.head();
        assert_eq!(head.container.name().unwrap(), said["containerType"], "{}", self.place);
        let sets = series.sets().unwrap();
        self.shared(head.set_definitions, &sets, head.count_hint, said);
        self.data_if(head.summary.map(|summary| series.open(summary, &sets).unwrap()), &said["summary"]);
        self.each(series.iter(), said, |check, entry, said| {
            check.data(series.open(entry, &sets).unwrap(), entry, said);
        });
    }

    fn shared(&self, bytes: Option<&[u8]>, sets: &SetDefinitions<'_>, count_hint: Option<u32>, said: &Json) {
        let place = &self.place;
        assert_eq!(bytes.is_some(), has(said, "HAS_SET_DEFS"), "{place}");
        if let Some(said) = hex(&said["setDefsHex"]) {
            assert_eq!(bytes, Some(&said[..]), "{place}");
        }
        assert_eq!(count_hint.map(u64::from), said["totalCountHint"].as_u64(), "{place}");
        assert_eq!(has(said, "HAS_SUMMARY_DATA"), !said["summary"].is_null(), "{place}");
        for (set, said) in sets.iter().zip(said["setDefs"].as_array().into_iter().flatten()) {
            assert_eq!(u64::from(set.id), said["setId"], "{place}");
            let said = said["entries"].as_array().unwrap();
            assert_eq!((set.len(), set.iter().count()), (said.len(), said.len()), "{place}");
            for (entry, said) in set.iter().zip(said) {
                match entry.name {
                    SetName::Field(fid) => assert_eq!(i64::from(fid.0), said["fid"], "{place}"),
                    SetName::Element(name) => assert_eq!(text(name), said["name"], "{place}"),
                }
                assert_eq!(u64::from(entry.data_type.0), said["typeValue"], "{place}");
            }
        }
    }

    /// Every entry with what is said of it. Long lists are cut in the middle in the files.
    fn each<T: std::fmt::Debug>(
        &mut self,
        entries: impl Iterator<Item = Result<T, tapeline_omm::Malformed>>,
        said: &Json,
        mut check: impl FnMut(&mut Self, T, &Json),
    ) {
        let entries: Vec<_> = entries.map(Result::unwrap).collect();
        self.tally.entries += entries.len();
        let said = said["entries"].as_array().unwrap();
        let is_cut = |said: &Json| said.is_string();
        match said.iter().position(is_cut) {
            None => assert_eq!(entries.len(), said.len(), "{}", self.place),
            Some(at) => assert!(entries.len() > said.len() && at > 0, "{}", self.place),
        }
        for (entry, said) in entries.into_iter().zip(said).take_while(|(_, said)| !is_cut(said)) {
            check(self, entry, said);
        }
    }

    fn data(&mut self, container: Container<'_>, data: &[u8], said: &Json) {
        // Without bytes the reference says nothing of a container.
        if !data.is_empty() || !said.is_null() {
            self.container(&container, said);
        }
    }

    fn data_if(&mut self, container: Option<Container<'_>>, said: &Json) {
        if let Some(container) = container {
            self.container(&container, said);
        }
    }
}

fn has(said: &Json, flag: &str) -> bool {
    said["flags"].as_array().unwrap().iter().any(|said| said == flag)
}

fn set_id(said: &Json) -> Option<u64> {
    if has(said, "HAS_SET_DATA") { Some(said["setId"].as_u64().unwrap_or(0)) } else { None }
}

fn all<'j>(said: &'j Json, member: &str) -> Vec<&'j Json> {
    said[member].as_array().map(|items| items.iter().collect()).unwrap_or_default()
}

fn hex(said: &Json) -> Option<Vec<u8>> {
    said.as_str().map(unhex)
}

/// Long values are cut in the files.
fn check_hex(place: &str, bytes: &[u8], said: &str) {
    match said.split_once("...") {
        Some((front, _)) => assert!(bytes.starts_with(&unhex(&front[..front.len() & !1])), "{place}"),
        None => assert_eq!(bytes, unhex(said), "{place}"),
    }
}

/// The reference shows a byte for a character.
fn text(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Corrects what is said of the sizes of payloads, where a message and those in it were written again in another form.
pub(crate) fn say_payload_of(said: &mut Json, message: &MessageView<'_>) {
    if !said["payloadBytes"].is_null() {
        said["payloadBytes"] = message.payload().len().into();
    }
    if let Ok(Container::Message(inner)) = message.open() {
        say_payload_of(&mut said["payload"], &inner);
    }
}
