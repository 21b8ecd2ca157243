//! Containers as text.

use super::super::fault::WriteError;
use super::super::names;
use super::super::scan;
use super::Writing;
use crate::Malformed;
use crate::rwf::{
    Container, DEPTH_LIMIT, DataType, Element, Entries, FilterAction, FilterList, Head, Map, MapAction,
    Series, SetDefinitions, Value, Vector, VectorAction,
};

impl Writing<'_, '_> {
    /// Writes a container as a member of its parent: a message, an entry or a key. An empty container of type
    /// `data_type` is written too.
    pub(super) fn payload(
        &mut self,
        container: &Container<'_>,
        data_type: DataType,
        depth: usize,
    ) -> Result<(), WriteError> {
        // A container that requires a head and has no bytes counts as absent.
        if matches!(container, Container::NoData) {
            return Ok(());
        }
        let Some(name) = names::word(names::CONTAINERS, data_type.0) else { return Ok(()) };
        self.out.key(name);
        self.container(container, depth)
    }

    /// Writes a container as a value.
    pub(super) fn container(&mut self, container: &Container<'_>, depth: usize) -> Result<(), WriteError> {
        if depth >= DEPTH_LIMIT {
            return Err(WriteError::TooDeep(DEPTH_LIMIT));
        }
        let depth = depth + 1;
        match container {
            Container::FieldList(list) => self.fields(list.iter(), depth),
            Container::ElementList(list) => self.each_element(&mut list.iter(), depth),
            Container::FilterList(list) => self.filter_list(list, depth),
            Container::Map(map) => self.map(map, depth),
            Container::Vector(vector) => self.vector(vector, depth),
            Container::Series(series) => self.series(series, depth),
            Container::Message(message) => self.message(message, depth),
            Container::Bytes(data_type, bytes) => {
                self.opaque(*data_type, bytes);
                Ok(())
            }
            Container::NoData => {
                self.out.null();
                Ok(())
            }
        }
    }

    fn opaque(&mut self, data_type: DataType, bytes: &[u8]) {
        match data_type {
            DataType::XML => self.out.utf8(bytes),
            DataType::ANSI_PAGE => self.out.latin1(bytes),
            // Bytes that are not JSON must not be embedded as JSON.
            DataType::JSON if scan::is_json(bytes) => self.out.raw(bytes.trim_ascii()),
            DataType::JSON => self.out.utf8(bytes),
            _ => self.out.base64(bytes),
        }
    }

    /// Writes elements as an object.
    pub(super) fn each_element<'a>(
        &mut self,
        elements: &mut dyn Iterator<Item = Result<Element<'a>, Malformed>>,
        depth: usize,
    ) -> Result<(), WriteError> {
        self.out.begin(b'{');
        for element in elements {
            let element = element?;
            self.out.any_key(element.name);
            match (element.value()?, element.data_type.base()) {
                (value @ Value::UInt(_), DataType::UINT)
                | (value @ Value::Ascii(_), DataType::ASCII_STRING) => self.value(&value, depth)?,
                (value, data_type) => {
                    self.out.begin(b'{');
                    self.code("Type", DataType::WORDS, data_type.0);
                    self.out.key("Data");
                    self.value(&value, depth)?;
                    self.out.end(b'}');
                }
            }
            self.bounded()?;
        }
        self.out.end(b'}');
        Ok(())
    }

    fn filter_list(&mut self, list: &FilterList<'_>, depth: usize) -> Result<(), WriteError> {
        self.out.begin(b'{');
        self.unsigned("CountHint", list.head().count_hint);
        self.entries(list, |writing, entry| {
            writing.unsigned("ID", Some(entry.id));
            writing.code("Action", FilterAction::WORDS, entry.action.0);
            writing.bytes("PermData", entry.permission_data);
            let data_type = entry.container.unwrap_or(list.head().container);
            writing.payload(&entry.open(list.head())?, data_type, depth)
        })?;
        self.out.end(b'}');
        Ok(())
    }

    fn map(&mut self, map: &Map<'_>, depth: usize) -> Result<(), WriteError> {
        let head = map.head();
        let sets = map.sets()?;
        self.out.begin(b'{');
        self.code("KeyType", DataType::WORDS, head.key_type.0);
        self.summary(map, &sets, depth)?;
        self.unsigned("CountHint", head.count_hint);
        if let Some(fid) = head.key_fid {
            self.out.key("KeyFieldID");
            self.out.signed(fid.0.into());
        }
        self.entries(map, |writing, entry| {
            writing.code("Action", MapAction::WORDS, entry.action.0);
            writing.out.key("Key");
            writing.value(&entry.key_value(head.key_type)?, depth)?;
            writing.bytes("PermData", entry.permission_data);
            writing.entry_data(map, entry.data, &sets, depth)
        })?;
        self.out.end(b'}');
        Ok(())
    }

    fn vector(&mut self, vector: &Vector<'_>, depth: usize) -> Result<(), WriteError> {
        let head = vector.head();
        let sets = vector.sets()?;
        self.out.begin(b'{');
        self.summary(vector, &sets, depth)?;
        self.unsigned("CountHint", head.count_hint);
        self.flag("SupportSorting", head.sorting, false);
        self.entries(vector, |writing, entry| {
            writing.unsigned("Index", Some(entry.index));
            writing.code("Action", VectorAction::WORDS, entry.action.0);
            writing.bytes("PermData", entry.permission_data);
            writing.entry_data(vector, entry.data, &sets, depth)
        })?;
        self.out.end(b'}');
        Ok(())
    }

    fn series(&mut self, series: &Series<'_>, depth: usize) -> Result<(), WriteError> {
        let sets = series.sets()?;
        self.out.begin(b'{');
        self.summary(series, &sets, depth)?;
        self.unsigned("CountHint", series.head().count_hint);
        self.entries(series, |writing, data| writing.entry_data(series, data, &sets, depth))?;
        self.out.end(b'}');
        Ok(())
    }

    fn summary<'a, H: Head<'a>>(
        &mut self,
        entries: &Entries<'a, H>,
        sets: &SetDefinitions<'a>,
        depth: usize,
    ) -> Result<(), WriteError> {
        if let Some(summary) = entries.head().summary() {
            self.out.key("Summary");
            self.out.begin(b'{');
            self.entry_data(entries, summary, sets, depth)?;
            self.out.end(b'}');
        }
        Ok(())
    }

    /// Writes the container of an entry; an entry without bytes has none.
    fn entry_data<'a, H: Head<'a>>(
        &mut self,
        entries: &Entries<'a, H>,
        data: &'a [u8],
        sets: &SetDefinitions<'a>,
        depth: usize,
    ) -> Result<(), WriteError> {
        if data.is_empty() {
            return Ok(());
        }
        self.payload(&entries.open(data, sets)?, entries.head().container(), depth)
    }

    /// Writes `Entries`, each an object whose members `write` writes.
    fn entries<'a, H: Head<'a>>(
        &mut self,
        entries: &Entries<'a, H>,
        mut write: impl FnMut(&mut Self, H::Entry) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        if entries.is_empty() {
            return Ok(());
        }
        self.out.key("Entries");
        self.out.begin(b'[');
        for entry in *entries {
            self.out.separate();
            self.out.begin(b'{');
            write(self, entry?)?;
            self.out.end(b'}');
            self.bounded()?;
        }
        self.out.end(b']');
        Ok(())
    }
}
