//! Messages as JSON, and as a line of text.

use serde_json::{Map, Value as Json};
use tapeline_omm::rwf::{
    Container, DEPTH_LIMIT, Element, Field, FieldList, Header, Key, MessageView, NamedValue, SetDefinitions,
    StreamState, Value,
};
use tapeline_omm::{Dictionary, Malformed, State};

/// Describes a message as members of a JSON object: class, domain, state and payload. A decoding fault is a member too.
pub(crate) fn describe(line: &mut Map<String, Json>, message: &MessageView<'_>, dictionary: &Dictionary) {
    describe_at(line, message, dictionary, 0);
}

fn describe_at(
    line: &mut Map<String, Json>,
    message: &MessageView<'_>,
    dictionary: &Dictionary,
    depth: usize,
) {
    line.insert("event".into(), message.class().to_string().to_lowercase().into());
    line.insert("domain".into(), message.domain().to_string().into());
    match message.header() {
        Ok(header) => members(line, &header),
        Err(fault) => note(line, fault),
    }
    if !message.payload().is_empty() {
        match message.open() {
            Ok(container) => carried(line, &container, dictionary, depth),
            Err(fault) => note(line, fault),
        }
    }
}

/// The content of a container, as members of a JSON object.
pub(crate) fn carry(line: &mut Map<String, Json>, container: &Container<'_>, dictionary: &Dictionary) {
    carried(line, container, dictionary, 0);
}

/// The members of a header that matter to a user.
fn members(line: &mut Map<String, Json>, header: &Header<'_>) {
    if let Some(state) = header.state() {
        line.insert("state".into(), state_json(&state));
        if let Some(key) = redirected(header) {
            let mut to = Map::new();
            if let Some(service) = key.service_id {
                to.insert("service".into(), service.into());
            }
            to.insert("name".into(), lossy(key.name.unwrap_or_default()));
            line.insert("redirected".into(), to.into());
        }
    }
    match header {
        Header::Refresh(refresh) => {
            let flags = tapeline_omm::rwf::flags::refresh::REFRESH_COMPLETE;
            line.insert("complete".into(), refresh.flags.has(flags).into());
        }
        Header::Update(update) => {
            line.insert("type".into(), update.update_type.to_string().into());
        }
        Header::Ack(ack) => {
            line.insert("ack_id".into(), ack.ack_id.into());
            if let Some(code) = ack.nak_code {
                line.insert("nak".into(), code.to_string().into());
            }
            if let Some(text) = ack.text {
                line.insert("text".into(), lossy(text));
            }
        }
        Header::Post(post) => {
            if let Some(id) = post.post_id {
                line.insert("post_id".into(), id.into());
            }
        }
        _ => {}
    }
    if let Some(sequence) = header.sequence() {
        line.insert("sequence".into(), sequence.into());
    }
}

/// The new location of an item, from a redirection.
pub(crate) fn redirected<'h>(header: &'h Header<'_>) -> Option<&'h Key<'h>> {
    let is_redirected = header.state().is_some_and(|state| state.stream == StreamState::REDIRECTED);
    header.key().filter(|_| is_redirected)
}

/// A state as an object, with its parts by name.
pub(crate) fn state_json(state: &State<'_>) -> Json {
    let mut parts = Map::new();
    parts.insert("stream".into(), state.stream.to_string().into());
    parts.insert("data".into(), state.data.to_string().into());
    parts.insert("code".into(), state.code.to_string().into());
    if !state.text.is_empty() {
        parts.insert("text".into(), lossy(state.text));
    }
    parts.into()
}

/// Fields of a field list and elements of an element list by name; a map's entries, each with its action and key; a
/// nested message; anything else as its outline for people.
fn carried(line: &mut Map<String, Json>, container: &Container<'_>, dictionary: &Dictionary, depth: usize) {
    match container {
        _ if depth >= DEPTH_LIMIT => {
            line.insert("fault".into(), format!("deeper than {DEPTH_LIMIT} containers").into());
        }
        Container::NoData => {}
        Container::FieldList(list) => {
            line.insert("fields".into(), fields(list, dictionary).into());
        }
        Container::ElementList(list) => {
            let elements = list
                .iter()
                .map_while(Result::ok)
                .map(|element| (String::from_utf8_lossy(element.name).into_owned(), element_json(&element)));
            line.insert("elements".into(), elements.collect::<Map<_, _>>().into());
        }
        Container::Map(map) => {
            if let Some(summary) = map.head().summary
                && let Ok(list) = FieldList::parse(summary)
            {
                line.insert("summary".into(), fields(&list, dictionary).into());
            }
            let sets = map.sets().unwrap_or(SetDefinitions::NONE);
            let mut entries = Vec::new();
            for entry in map.iter().map_while(Result::ok) {
                let mut shown = Map::new();
                shown.insert("action".into(), entry.action.to_string().to_lowercase().into());
                let key = entry.key_value(map.head().key_type);
                shown.insert("key".into(), key.map_or(Json::Null, |key| value_json(&key)));
                if !entry.data.is_empty() {
                    match map.open(entry.data, &sets) {
                        Ok(within) => carried(&mut shown, &within, dictionary, depth + 1),
                        Err(fault) => note(&mut shown, fault),
                    }
                }
                entries.push(shown.into());
            }
            line.insert("entries".into(), Json::Array(entries));
        }
        Container::Message(message) => {
            let mut within = Map::new();
            describe_at(&mut within, message, dictionary, depth + 1);
            line.insert("message".into(), within.into());
        }
        other => {
            line.insert("data".into(), other.outline(dictionary).to_string().into());
        }
    }
}

fn fields(list: &FieldList<'_>, dictionary: &Dictionary) -> Map<String, Json> {
    list.iter().map_while(Result::ok).map(|field| field_json(&field, dictionary)).collect()
}

fn field_json(field: &Field<'_>, dictionary: &Dictionary) -> (String, Json) {
    let Some(definition) = dictionary.field(field.fid) else {
        return (field.fid.to_string(), value_json(&Value::Unknown(field.data)));
    };
    let value = match field.value(definition.data_type) {
        Ok(value @ Value::Enum(number)) => match dictionary.display(field.fid, number) {
            None => value_json(&value),
            display => {
                let (fid, definition) = (field.fid, Some(definition));
                NamedValue { fid, definition, value, display }.to_string().into()
            }
        },
        Ok(value) => value_json(&value),
        Err(fault) => format!("<{fault}>").into(),
    };
    (definition.name.to_string(), value)
}

fn element_json(element: &Element<'_>) -> Json {
    match Value::decode(element.data_type, element.data) {
        Ok(value) => value_json(&value),
        Err(fault) => format!("<{fault}>").into(),
    }
}

/// Numbers as numbers, blank as null, anything else as its display text.
fn value_json(value: &Value<'_>) -> Json {
    match value {
        Value::Blank => Json::Null,
        Value::Int(number) => (*number).into(),
        Value::UInt(number) => (*number).into(),
        Value::Enum(number) => (*number).into(),
        // A real is written as a decimal number, except infinities and the like.
        Value::Real(real) => serde_json::from_str(&real.to_string()).unwrap_or(Json::Null),
        Value::Buffer(bytes) => match str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(char::is_control) => text.into(),
            _ => value.to_string().into(),
        },
        _ => value.to_string().into(),
    }
}

fn note(line: &mut Map<String, Json>, fault: Malformed) {
    line.insert("fault".into(), fault.to_string().into());
}

/// Text from a peer, which may be any bytes.
pub(crate) fn lossy(text: &[u8]) -> Json {
    String::from_utf8_lossy(text).into()
}

#[cfg(test)]
mod tests {
    use tapeline_omm::rwf::{Domain, StatusHeader};

    use super::*;

    #[test]
    fn a_redirection_says_where_to() {
        let described = |stream| {
            let state = State { stream, ..State::OPEN_OK };
            let header = StatusHeader {
                state: Some(state),
                key: Some(Key::item(7, b"IBM.O")),
                ..StatusHeader::new(Domain::MARKET_PRICE, 3)
            };
            let mut bytes = [0; 64];
            let len = header.encode(&mut bytes).unwrap();
            let mut line = Map::new();
            describe(&mut line, &MessageView::parse(&bytes[..len]).unwrap(), Dictionary::builtin());
            line.remove("redirected")
        };
        let there = serde_json::json!({ "service": 7, "name": "IBM.O" });
        assert_eq!(described(StreamState::REDIRECTED), Some(there));
        assert_eq!(described(StreamState::CLOSED), None);
    }
}
