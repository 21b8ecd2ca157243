//! Whole messages in human-readable form: one line for each member, field and entry, indented by depth.

use std::fmt;
use std::net::Ipv4Addr;

use super::render::{Hex, Printable, named};
use super::{
    Conflation, Container, DEPTH_LIMIT, DataType, ElementList, Entries, FieldList, FilterList, Flags, Head,
    Header, Key, Map, MessageView, Series, SetData, SetDefinition, SetDefinitions, SetName, Text, Value,
    Vector, flags,
};
use crate::{Dictionary, Malformed};

/// Message or container that formats as a tree of lines with the names of a dictionary, without a line end after the
/// last one. A part that cannot be read shows the reason in its place, and containers below [`DEPTH_LIMIT`] are
/// omitted.
///
/// ```
/// use tapeline_omm::{Dictionary, rwf::MessageView};
///
/// let bytes = [
///     0, 9, 4, 6, 0, 0, 0, 3, 0, 4, 1, // the header of an update
///     8, 0, 2, 0, 22, 3, 12, 15, 0x97, 0, 30, 2, 14, 10,
/// ];
/// let outline = MessageView::parse(&bytes)?.outline(Dictionary::builtin()).to_string();
/// assert_eq!(
///     outline,
///     "UPDATE MarketPrice stream 3\n  \
///        update type QUOTE\n  \
///        FIELD_LIST\n    \
///          22 BID = 39.91\n    \
///          30 BIDSIZE = 10"
/// );
/// # Ok::<(), tapeline_omm::Malformed>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Outline<'a, 'd> {
    of: Container<'a>,
    dictionary: &'d Dictionary,
}

impl<'a> MessageView<'a> {
    /// Returns the message in human-readable form, with the names and types of `dictionary`.
    #[must_use]
    pub const fn outline<'d>(&self, dictionary: &'d Dictionary) -> Outline<'a, 'd> {
        Outline { of: Container::Message(*self), dictionary }
    }
}

impl<'a> Container<'a> {
    /// Returns the container in human-readable form, with the names and types of `dictionary`.
    #[must_use]
    pub const fn outline<'d>(&self, dictionary: &'d Dictionary) -> Outline<'a, 'd> {
        Outline { of: *self, dictionary }
    }
}

impl fmt::Display for Outline<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Page { f, dictionary: self.dictionary, depth: 0, is_empty: true }.container(Ok(self.of))
    }
}

struct Page<'p, 'f, 'd> {
    f: &'p mut fmt::Formatter<'f>,
    dictionary: &'d Dictionary,
    depth: usize,
    is_empty: bool,
}

impl Page<'_, '_, '_> {
    fn line(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        if !self.is_empty {
            self.f.write_str("\n")?;
        }
        self.is_empty = false;
        for _ in 0..self.depth {
            self.f.write_str("  ")?;
        }
        self.f.write_fmt(text)
    }

    fn fault(&mut self, fault: Malformed) -> fmt::Result {
        self.line(format_args!("<{fault}>"))
    }

    /// Runs `write` with one more level of indentation.
    fn inside(&mut self, write: impl FnOnce(&mut Self) -> fmt::Result) -> fmt::Result {
        self.depth += 1;
        let done = write(self);
        self.depth -= 1;
        done
    }

    fn container(&mut self, container: Result<Container<'_>, Malformed>) -> fmt::Result {
        // Each container takes two steps: its own line, and one for the entry that holds the next.
        if self.depth >= 2 * DEPTH_LIMIT {
            return self.line(format_args!("<deeper than {DEPTH_LIMIT} containers>"));
        }
        match container {
            Err(fault) => self.fault(fault),
            Ok(Container::NoData) => Ok(()),
            Ok(Container::Message(message)) => self.message(&message),
            Ok(Container::FieldList(list)) => self.field_list(&list),
            Ok(Container::ElementList(list)) => self.element_list(&list),
            Ok(Container::FilterList(list)) => self.filter_list(&list),
            Ok(Container::Map(map)) => self.map(&map),
            Ok(Container::Vector(vector)) => self.vector(&vector),
            Ok(Container::Series(series)) => self.series(&series),
            Ok(Container::Bytes(data_type @ (DataType::XML | DataType::JSON), bytes)) => {
                self.line(format_args!("{data_type} {}", Text(bytes)))
            }
            Ok(Container::Bytes(data_type, bytes)) => self.line(format_args!("{data_type} {}", Hex(bytes))),
        }
    }

    fn message(&mut self, message: &MessageView<'_>) -> fmt::Result {
        let (class, domain, stream_id) = (message.class(), message.domain(), message.stream_id());
        self.line(format_args!("{class} {domain} stream {stream_id}"))?;
        self.inside(|page| {
            match message.header() {
                Ok(header) => page.header(&header)?,
                Err(fault) => page.fault(fault)?,
            }
            page.container(message.open())
        })
    }

    fn header(&mut self, header: &Header<'_>) -> fmt::Result {
        // Flags that mark members as present are not shown: the members show it.
        let has = |(name, flag): &&(&str, Flags)| !name.starts_with("HAS_") && header.flags().has(*flag);
        let mut names = flags::names(header.class()).iter().filter(has).peekable();
        if names.peek().is_some() {
            self.line(format_args!("flags"))?;
        }
        for (name, _) in names {
            write!(self.f, " {name}")?;
        }
        self.own_members(header)?;
        self.member("sequence", header.sequence())?;
        self.member("part", header.part())?;
        self.member("state", header.state())?;
        self.member("qos", header.qos())?;
        self.member("group", header.group_id().map(Hex))?;
        self.member("permission data", header.permission_data().map(Hex))?;
        self.member("extended header", header.extended_header().map(Hex))?;
        if let Some(user) = header.post_user_info() {
            self.line(format_args!("user {} at {}", user.user_id, Ipv4Addr::from_bits(user.address)))?;
        }
        header.key().map_or(Ok(()), |key| self.key(key))
    }

    /// Writes the members that only one class has.
    fn own_members(&mut self, header: &Header<'_>) -> fmt::Result {
        match header {
            Header::Request(request) => {
                if let Some(priority) = request.priority {
                    self.line(format_args!("priority {} {}", priority.class, priority.count))?;
                }
                self.member("worst qos", request.worst_qos)
            }
            Header::Update(update) => {
                self.member("update type", Some(update.update_type))?;
                update.conflation.map_or(Ok(()), |Conflation { count, time_ms }| {
                    self.line(format_args!("conflated {count} in {time_ms} ms"))
                })
            }
            Header::Ack(ack) => {
                self.member("ack id", Some(ack.ack_id))?;
                self.member("nak code", ack.nak_code)?;
                self.member("text", ack.text.map(Text))
            }
            Header::Generic(generic) => self.member("secondary sequence", generic.secondary_sequence),
            Header::Post(post) => {
                self.member("post id", post.post_id)?;
                self.member("post user rights", post.post_user_rights)
            }
            _ => Ok(()),
        }
    }

    fn member(&mut self, name: &str, value: Option<impl fmt::Display>) -> fmt::Result {
        value.map_or(Ok(()), |value| self.line(format_args!("{name} {value}")))
    }

    fn key(&mut self, key: &Key<'_>) -> fmt::Result {
        self.line(format_args!("key"))?;
        if let Some(service_id) = key.service_id {
            write!(self.f, " service {service_id}")?;
        }
        if let Some(name) = key.name {
            write!(self.f, " name \"{}\"", Text(name))?;
        }
        if let Some(name_type) = key.name_type {
            write!(self.f, " of type {}", name_type.0)?;
        }
        if let Some(filter) = key.filter {
            write!(self.f, " filter {filter:#x}")?;
        }
        if let Some(identifier) = key.identifier {
            write!(self.f, " identifier {identifier}")?;
        }
        key.attributes.map_or(Ok(()), |attributes| self.inside(|page| page.container(attributes.open())))
    }

    fn set_definitions(&mut self, sets: &SetDefinitions<'_>) -> fmt::Result {
        for set in sets.iter() {
            self.line(format_args!("set {}", set.id))?;
            for entry in set.iter() {
                match entry.name {
                    SetName::Field(fid) => write!(self.f, " {fid}:{}", entry.data_type)?,
                    SetName::Element(name) => write!(self.f, " {}:{}", Text(name), entry.data_type)?,
                }
            }
        }
        Ok(())
    }

    fn field_list(&mut self, list: &FieldList<'_>) -> fmt::Result {
        match list.info() {
            Some(info) => self.line(format_args!(
                "FIELD_LIST dictionary {} list {}",
                info.dictionary_id, info.list_number
            ))?,
            None => self.line(format_args!("FIELD_LIST"))?,
        }
        self.inside(|page| {
            page.undefined(list.set_data(), list.set_definition())?;
            for field in list.typed() {
                let (field, set_type) = match field {
                    Ok(field) => field,
                    Err(fault) => return page.fault(fault),
                };
                let dictionary = page.dictionary;
                let name = dictionary.field(field.fid).map_or("?", |definition| &definition.name);
                match named(&field, set_type, dictionary) {
                    Ok(value) => {
                        page.value(format_args!("{} {name}", field.fid), value.value, value.display)?;
                    }
                    Err(fault) => page.line(format_args!("{} {name} = <{fault}>", field.fid))?,
                }
            }
            Ok(())
        })
    }

    /// Writes set data without its definition.
    fn undefined(&mut self, set: Option<SetData<'_>>, definition: Option<SetDefinition<'_>>) -> fmt::Result {
        match (set, definition) {
            (Some(set), None) => {
                self.line(format_args!("<{} bytes by set definition {}>", set.data.len(), set.id))
            }
            _ => Ok(()),
        }
    }

    fn element_list(&mut self, list: &ElementList<'_>) -> fmt::Result {
        match list.number() {
            Some(number) => self.line(format_args!("ELEMENT_LIST list {number}"))?,
            None => self.line(format_args!("ELEMENT_LIST"))?,
        }
        self.inside(|page| {
            page.undefined(list.set_data(), list.set_definition())?;
            for element in list.iter() {
                let element = match element {
                    Ok(element) => element,
                    Err(fault) => return page.fault(fault),
                };
                let (name, data_type) = (Text(element.name), element.data_type);
                match element.value() {
                    Ok(value) => page.value(format_args!("{name} {data_type}"), value, None)?,
                    Err(fault) => page.line(format_args!("{name} {data_type} = <{fault}>"))?,
                }
            }
            Ok(())
        })
    }

    /// Writes a primitive after its name, a container below it.
    fn value(&mut self, name: fmt::Arguments<'_>, value: Value<'_>, display: Option<&str>) -> fmt::Result {
        if let Value::Container(..) = value {
            self.line(name)?;
            return match value.open() {
                Ok(Some(container)) => self.inside(|page| page.container(Ok(container))),
                Ok(None) => Ok(()),
                Err(fault) => self.inside(|page| page.fault(fault)),
            };
        }
        match display {
            Some(display) => self.line(format_args!("{name} = {}", display.trim_end())),
            None => self.line(format_args!("{name} = {value}")),
        }
    }

    fn filter_list(&mut self, list: &FilterList<'_>) -> fmt::Result {
        let head = list.head();
        self.line(format_args!("FILTER_LIST of {}{}", head.container, Hint(head.count_hint.map(u32::from))))?;
        self.entries(list, |page, entry, _| {
            page.line(format_args!("{} {}{}", entry.action, entry.id, Permission(entry.permission_data)))?;
            page.inside(|page| page.container(entry.open(head)))
        })
    }

    fn map(&mut self, map: &Map<'_>) -> fmt::Result {
        let head = map.head();
        self.line(format_args!("MAP of {} by {}", head.container, head.key_type))?;
        if let Some(fid) = head.key_fid {
            write!(self.f, " {fid}")?;
        }
        write!(self.f, "{}", Hint(head.count_hint))?;
        self.entries(map, |page, entry, sets| {
            let permission = Permission(entry.permission_data);
            match entry.key_value(head.key_type) {
                Ok(Value::Buffer(key)) => {
                    page.line(format_args!("{} {}{permission}", entry.action, Printable(key)))?;
                }
                Ok(key) => page.line(format_args!("{} {key}{permission}", entry.action))?,
                Err(fault) => page.line(format_args!("{} <{fault}>", entry.action))?,
            }
            if head.has_data(entry.action) {
                page.inside(|page| page.container(map.open(entry.data, sets)))?;
            }
            Ok(())
        })
    }

    fn vector(&mut self, vector: &Vector<'_>) -> fmt::Result {
        let head = vector.head();
        let sorting = if head.sorting { " sortable" } else { "" };
        self.line(format_args!("VECTOR of {}{sorting}{}", head.container, Hint(head.count_hint)))?;
        self.entries(vector, |page, entry, sets| {
            page.line(format_args!("{} {}{}", entry.action, entry.index, Permission(entry.permission_data)))?;
            if head.has_data(entry.action) {
                page.inside(|page| page.container(vector.open(entry.data, sets)))?;
            }
            Ok(())
        })
    }

    fn series(&mut self, series: &Series<'_>) -> fmt::Result {
        let head = series.head();
        self.line(format_args!("SERIES of {}{}", head.container, Hint(head.count_hint)))?;
        if head.container == DataType::NO_DATA {
            // A few bytes can state tens of thousands of entries.
            return self.inside(|page| {
                page.shared(series)?;
                page.line(format_args!("{} entries without data", series.len()))
            });
        }
        let mut n = 0;
        self.entries(series, |page, entry, sets| {
            page.line(format_args!("entry {n}"))?;
            n += 1;
            page.inside(|page| page.container(series.open(entry, sets)))
        })
    }

    /// Writes the definitions and the summary, then each entry; the reason in place of what cannot be read.
    fn entries<'a, H: Head<'a>>(
        &mut self,
        entries: &Entries<'a, H>,
        mut write: impl FnMut(&mut Self, H::Entry, &SetDefinitions<'a>) -> fmt::Result,
    ) -> fmt::Result {
        self.inside(|page| {
            let sets = page.shared(entries)?;
            entries.iter().try_for_each(|entry| match entry {
                Ok(entry) => write(page, entry, &sets),
                Err(fault) => page.fault(fault),
            })
        })
    }

    /// Writes the definitions, which it returns, and the summary.
    fn shared<'a, H: Head<'a>>(
        &mut self,
        entries: &Entries<'a, H>,
    ) -> Result<SetDefinitions<'a>, fmt::Error> {
        let sets = match entries.sets() {
            Ok(sets) => sets,
            Err(fault) => {
                self.fault(fault)?;
                SetDefinitions::NONE
            }
        };
        self.set_definitions(&sets)?;
        if let Some(summary) = entries.head().summary() {
            self.line(format_args!("summary"))?;
            self.inside(|page| page.container(entries.open(summary, &sets)))?;
        }
        Ok(sets)
    }
}

/// Count hint after a head.
struct Hint(Option<u32>);

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |hint| write!(f, " hint {hint}"))
    }
}

/// Permission data after an entry.
struct Permission<'a>(Option<&'a [u8]>);

impl fmt::Display for Permission<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |data| write!(f, " permission data {}", Hex(data)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Domain, ElementListEncoder, MapAction, MapEncoder, MapHead, RefreshHeader, RequestHeader,
        VectorAction, VectorEncoder, VectorHead,
    };
    use super::*;
    use crate::{Fid, State};

    fn outline(bytes: &[u8]) -> String {
        MessageView::parse(bytes).unwrap().outline(Dictionary::builtin()).to_string()
    }

    #[test]
    fn a_login_request() {
        let mut attributes = [0; 64];
        let mut list = ElementListEncoder::new(&mut attributes).unwrap();
        list.ascii("Position", "127.0.0.1/net").unwrap();
        list.uint("Role", 0).unwrap();
        let len = list.finish();
        let attributes =
            super::super::Attributes { container: DataType::ELEMENT_LIST, data: &attributes[..len] };
        let key = Key { name: Some(b"user"), attributes: Some(attributes), ..Key::default() };
        let request =
            RequestHeader { flags: flags::request::STREAMING, ..RequestHeader::new(Domain::LOGIN, 1, key) };
        let mut out = [0; 128];
        let len = request.encode(&mut out).unwrap();
        assert_eq!(
            outline(&out[..len]).lines().collect::<Vec<_>>(),
            [
                "REQUEST Login stream 1",
                "  flags STREAMING",
                "  key name \"user\"",
                "    ELEMENT_LIST",
                "      Position ASCII_STRING = 127.0.0.1/net",
                "      Role UINT = 0",
            ]
        );
    }

    #[test]
    fn sets_summaries_and_faults() {
        let definitions = [0, 1, 0, 2, 0, 22, 8, 0, 30, 65];
        let head = MapHead {
            key_fid: Some(Fid(3426)),
            set_definitions: Some(&definitions),
            summary: Some(&[8, 0, 1, 0, 15, 1, 9]),
            count_hint: Some(2),
            ..MapHead::new(DataType::BUFFER, DataType::FIELD_LIST)
        };
        let refresh = RefreshHeader::new(Domain::MARKET_BY_ORDER, 3, State::OPEN_OK, DataType::MAP);
        let mut out = [0; 256];
        let len = refresh.encode_with(&mut out, |room| {
            let mut map = MapEncoder::new(room, &head)?;
            map.entry_in_place(MapAction::ADD, b"1234", None, |room| {
                let list = [2, 3, 12, 0x0F, 0xA0, 7];
                room[..list.len()].copy_from_slice(&list);
                Ok(list.len())
            })?;
            map.delete(&[0, 7])?;
            map.entry_in_place(MapAction::ADD, b"cut", None, |room| {
                room[..2].copy_from_slice(&[2, 3]);
                Ok(2)
            })?;
            Ok(map.finish())
        });
        assert_eq!(
            outline(&out[..len.unwrap()]).lines().skip(3).collect::<Vec<_>>(),
            [
                "  MAP of FIELD_LIST by BUFFER 3426 hint 2",
                "    set 0 22:REAL 30:UINT_1",
                "    summary",
                "      FIELD_LIST",
                "        15 CURRENCY = 9",
                "    ADD 1234",
                "      FIELD_LIST",
                "        22 BID = 40.00",
                "        30 BIDSIZE = 7",
                "    DELETE 0007",
                "    ADD cut",
                "      FIELD_LIST",
                "        <malformed set value at byte 1>",
            ]
        );
    }

    #[test]
    fn depth_and_length_are_bounded() {
        // Vectors in vectors, 100 deep.
        let mut inner = Vec::new();
        for _ in 0..100 {
            let mut out = vec![0; inner.len() + 16];
            let mut vector = VectorEncoder::new(&mut out, &VectorHead::new(DataType::VECTOR)).unwrap();
            let copy = |room: &mut [u8]| {
                room[..inner.len()].copy_from_slice(&inner);
                Ok(inner.len())
            };
            vector.entry_in_place(VectorAction::SET, 1, None, copy).unwrap();
            let len = vector.finish();
            out.truncate(len);
            inner = out;
        }
        let vector = Container::parse(DataType::VECTOR, &inner, &SetDefinitions::NONE).unwrap();
        let text = vector.outline(Dictionary::builtin()).to_string();
        assert_eq!(text.lines().count(), 2 * DEPTH_LIMIT + 1);
        assert!(text.ends_with("<deeper than 16 containers>"), "{text}");
        // 65,535 entries in four bytes.
        let series = Container::parse(DataType::SERIES, &[0, 0, 0xFF, 0xFF], &SetDefinitions::NONE).unwrap();
        let text = series.outline(Dictionary::builtin()).to_string();
        assert_eq!(text, "SERIES of NO_DATA\n  65535 entries without data");
    }
}
