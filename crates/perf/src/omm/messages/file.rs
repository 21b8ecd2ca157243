//! The message file: parsed, and each field checked against the dictionary.

use tapeline_client::xml::{Element, Fault};
use tapeline_console::near;
use tapeline_measure::figures;
use tapeline_omm::rwf::{
    DataType, MapAction, SetDefinitions, SetDefinitionsEncoder, SetEntry, encode_field_set,
};
use tapeline_omm::{Dictionary, Fid, Refused, Value};

use super::super::stamp;
use super::payload::{Content, LONGEST, Order, Orders, Payload};
use super::value::{Field, Kept};
use super::{DomainMessages, Messages};

/// The fields that carry times: the tools add them.
const RESERVED: [Fid; 4] = [stamp::UPDATE, stamp::POST, stamp::GENERIC, stamp::DUE];
/// Prefix of a type's name in the C headers.
const TYPE_PREFIX: &str = "RSSL_DT_";
/// The only set ID for field lists: LSEG's own encoder writes no other, and its decoder expects no other.
const SET: u16 = 0;
const PRICES: &str = "marketPriceMsgList";
const ORDERS: &str = "marketByOrderMsgList";

/// Notes on lines that are not refused.
pub(super) type Notes = Vec<(usize, String)>;

/// Parses a text, up to the first fault, which is the error: line, field and the expected value.
pub(super) fn parse(text: &str, dictionary: &Dictionary, notes: &mut Notes) -> Result<Messages, Fault> {
    let root = Element::parse(text)?;
    if root.name != "msgFormat" {
        return Err(root.fault(format!("the root element is {}; expected msgFormat", root.name), ""));
    }
    let mut reader = Reader { dictionary, notes };
    let (mut market_price, mut market_by_order) = (None, None);
    for list in &root.children {
        let (place, is_book) = match list.name.as_str() {
            PRICES => (&mut market_price, false),
            ORDERS => (&mut market_by_order, true),
            _ => return Err(list.unexpected("msgFormat", &[PRICES, ORDERS])),
        };
        if place.is_some() {
            return Err(list.fault(format!("there is a second {}", list.name), ""));
        }
        *place = Some(reader.domain(list, is_book)?);
    }
    let hint = "a file of messages has one, with a refreshMsg and one updateMsg or more";
    let market_price = market_price.ok_or_else(|| root.fault(format!("there is no {PRICES}"), hint))?;
    Ok(Messages { market_price, market_by_order })
}

struct Reader<'d> {
    dictionary: &'d Dictionary,
    notes: &'d mut Notes,
}

impl Reader<'_> {
    /// Reads the messages of one domain.
    fn domain(&mut self, list: &Element, is_book: bool) -> Result<DomainMessages, Fault> {
        let (mut refresh, mut updates, mut posts, mut generics) = (None, Vec::new(), Vec::new(), Vec::new());
        for message in &list.children {
            match message.name.as_str() {
                "refreshMsg" if refresh.is_some() => {
                    return Err(message.fault("there is a second refreshMsg; expected one", ""));
                }
                "refreshMsg" => refresh = Some(self.payload(message, message, is_book, true)?),
                "updateMsg" => updates.push(self.payload(message, message, is_book, false)?),
                "postMsg" => {
                    let update = message.only_child("updateMsg")?;
                    posts.push(self.payload(message, update, is_book, false)?);
                }
                "genMsg" => generics.push(self.payload(message, message, is_book, false)?),
                _ => {
                    let known = ["refreshMsg", "updateMsg", "postMsg", "genMsg"];
                    return Err(message.unexpected(&list.name, &known));
                }
            }
        }
        let missing = |what: &str| list.fault(format!("{} has no {what}", list.name), "");
        let refresh = refresh.ok_or_else(|| missing("refreshMsg"))?;
        if updates.is_empty() {
            return Err(missing("updateMsg"));
        }
        Ok(DomainMessages { refresh, updates, posts, generics })
    }

    /// Reads the payload of a message, which is in the `body` of `within`.
    fn payload(
        &mut self,
        message: &Element,
        within: &Element,
        is_book: bool,
        is_image: bool,
    ) -> Result<Payload, Fault> {
        let body = within.only_child("dataBody")?;
        let timed: Box<[Field]> = RESERVED
            .into_iter()
            .filter(|fid| is_image && self.dictionary.field(*fid).is_some())
            .map(|fid| Field { fid, value: Kept::Plain(Value::Blank) })
            .collect();
        let content = if is_book {
            Content::Orders(self.orders(body.only_child("map")?, timed)?)
        } else {
            let mut fields = self.fields(body.only_child("fieldList")?)?;
            fields.extend(timed);
            Content::Fields(fields.into())
        };
        Payload::new(content).map_err(|refused| {
            let what = match refused {
                Refused::Full => format!("this {} is longer than {LONGEST} bytes", message.name),
                refused => format!("this {} cannot be encoded: {refused}", message.name),
            };
            message.fault(what, "")
        })
    }

    fn fields(&mut self, list: &Element) -> Result<Vec<Field>, Fault> {
        list.children.iter().map(|entry| self.field(entry)).collect()
    }

    /// Reads one field: it must be in the dictionary, with the dictionary's type and a value of that type.
    fn field(&mut self, entry: &Element) -> Result<Field, Fault> {
        if entry.name != "fieldEntry" {
            return Err(entry.unexpected("fieldList", &["fieldEntry"]));
        }
        let (fid, data_type) = self.name_and_type(entry)?;
        let definition = self.dictionary.field(fid);
        let name = definition.map_or("", |definition| &*definition.name);
        let value = Kept::read(data_type, entry)
            .map_err(|what| entry.fault(format!("field {fid} ({name}): {what}"), ""))?;
        if let Kept::Plain(Value::Enum(number)) = value
            && let Some(table) = self.dictionary.enumeration(fid)
            && table.value(number).is_none()
        {
            let known: Vec<usize> = table.values().iter().map(|value| value.number.into()).collect();
            let what = format!(
                "field {fid} ({name}) is {number}, which its enumeration does not have; by the dictionary it has {}",
                figures::list(&known)
            );
            self.notes.push((entry.line, what));
        }
        let most = definition.map_or(0, |definition| usize::from(definition.data_len));
        if let Kept::Text(_, text) = &value
            && most > 0
            && text.len() > most
        {
            let what = format!(
                "field {fid} ({name}) has {} bytes; by the dictionary it has {most} at most, and caches may cut it",
                text.len()
            );
            self.notes.push((entry.line, what));
        }
        Ok(Field { fid, value })
    }

    /// The number and type of a field, with the element's own type: a set can use a fixed-size type.
    fn name_and_type(&self, entry: &Element) -> Result<(Fid, DataType), Fault> {
        let number = entry.required("fieldId")?;
        let fid = number.trim().parse().map(Fid).map_err(|_| {
            let what = format!("fieldId is '{number}'; expected a number from -32768 to 32767");
            entry.fault(what, "")
        })?;
        if RESERVED.contains(&fid) {
            let what = format!("field {fid} carries the times that the tools put in");
            return Err(entry.fault(what, "leave it out"));
        }
        let definition = self.dictionary.field(fid).ok_or_else(|| {
            let hint = "--dictionary names the file of another one, such as RDMFieldDictionary, and --enums its enumerations";
            entry.fault(format!("field {fid} is not in the dictionary"), hint)
        })?;
        let name = entry.required("dataType")?;
        let data_type = data_type(name).ok_or_else(|| {
            let known: Vec<_> = (1..128).filter_map(|number| DataType(number).name()).collect();
            let hint = near::nearest(name.strip_prefix(TYPE_PREFIX).unwrap_or(name), &known)
                .map(|near| format!("there is {TYPE_PREFIX}{near}"));
            let what = format!("field {fid} ({}): there is no type {name}", definition.name);
            entry.fault(what, hint.unwrap_or_default())
        })?;
        let known = definition.data_type;
        if data_type.base() != known {
            let what =
                format!("field {fid} ({}) is a {known} by the dictionary, and not a {name}", definition.name);
            return Err(entry.fault(what, format!("write {TYPE_PREFIX}{known}")));
        }
        Ok((fid, data_type))
    }

    /// The orders of a map; `summary` has the fields of its summary.
    fn orders(&mut self, map: &Element, summary: Box<[Field]>) -> Result<Orders, Fault> {
        let (mut sets, mut set, mut orders) = (None, Vec::new(), Vec::new());
        for entry in &map.children {
            match entry.name.as_str() {
                "fieldSetDefs" if sets.is_some() || !orders.is_empty() => {
                    return Err(entry.fault("fieldSetDefs come once, before every mapEntry", ""));
                }
                "fieldSetDefs" => {
                    set = self.set(entry.only_child("fieldSetDef")?)?;
                    let mut bytes = vec![0; LONGEST];
                    let len = define(&mut bytes, &set)
                        .map_err(|refused| entry.fault(format!("this set cannot be sent: {refused}"), ""))?;
                    bytes.truncate(len);
                    sets = Some(bytes.into());
                }
                "mapEntry" => orders.push(self.order(entry, sets.is_some().then_some(set.as_slice()))?),
                _ => return Err(entry.unexpected("map", &["fieldSetDefs", "mapEntry"])),
            }
        }
        Ok(Orders { sets, summary, orders: orders.into() })
    }

    fn set(&self, definition: &Element) -> Result<Vec<SetEntry<'static>>, Fault> {
        let id = definition.required("setId")?;
        if id.trim().parse() != Ok(SET) {
            let what = format!("setId is '{id}'; expected {SET}, the only set that LSEG's decoders read");
            return Err(definition.fault(what, ""));
        }
        let entry = |entry: &Element| {
            if entry.name != "fieldSetDefEntry" {
                return Err(entry.unexpected("fieldSetDef", &["fieldSetDefEntry"]));
            }
            let (fid, data_type) = self.name_and_type(entry)?;
            Ok(SetEntry::field(fid, data_type))
        };
        definition.children.iter().map(entry).collect()
    }

    /// Reads one entry of a map; `set` is the map's set, if it has one.
    fn order(&mut self, entry: &Element, set: Option<&[SetEntry<'_>]>) -> Result<Order, Fault> {
        const ACTIONS: [(&str, MapAction); 3] = [
            ("RSSL_MPEA_UPDATE_ENTRY", MapAction::UPDATE),
            ("RSSL_MPEA_ADD_ENTRY", MapAction::ADD),
            ("RSSL_MPEA_DELETE_ENTRY", MapAction::DELETE),
        ];
        let key = entry.required("key")?;
        let name = entry.required("action")?;
        let action = ACTIONS.iter().find(|(known, action)| name == *known || name == action.0.to_string());
        let (_, action) = action.ok_or_else(|| {
            let known = ACTIONS.map(|(name, _)| name);
            let hint = near::nearest(name, &known).map(|near| format!("there is {near}"));
            let what = format!("action is '{name}'; expected {}", known.join(", "));
            entry.fault(what, hint.unwrap_or_default())
        })?;
        let list = entry.only_child("fieldList")?;
        let fields = self.fields(list)?;
        let mut in_set = 0;
        if let Some(id) = list.attribute("setId") {
            let set = set.filter(|_| id.trim().parse() == Ok(SET)).ok_or_else(|| {
                let hint = "a fieldSetDef before the entries defines one";
                list.fault(format!("setId is '{id}'; this map has no such set"), hint)
            })?;
            in_set = set.len();
            for (at, wanted) in set.iter().enumerate() {
                let found = fields.get(at);
                if found.is_none_or(|field| SetEntry::field(field.fid, wanted.data_type) != *wanted) {
                    let what = format!("field {} of this list is not field {} of its set", at + 1, at + 1);
                    let line = list.children.get(at).unwrap_or(list);
                    return Err(line.fault(what, "its first fields are those of the set, in the same order"));
                }
                if let Some((field, line)) = found.zip(list.children.get(at))
                    && !fits(*wanted, field)
                {
                    let name = self.dictionary.field(field.fid).map_or("", |definition| &*definition.name);
                    let what = format!(
                        "field {} ({name}): its set has it as a {}, into which this value does not go",
                        field.fid, wanted.data_type
                    );
                    return Err(line.fault(what, ""));
                }
            }
        }
        Ok(Order { action: *action, key: key.as_bytes().into(), fields: fields.into(), in_set })
    }
}

/// Encodes the definition of a set; returns the number of bytes.
fn define(out: &mut [u8], set: &[SetEntry<'_>]) -> Result<usize, Refused> {
    let mut definitions = SetDefinitionsEncoder::new(out)?;
    definitions.set(SET, set)?;
    Ok(definitions.finish())
}

/// Whether a value can be encoded in the form that a set requires.
fn fits(wanted: SetEntry<'_>, field: &Field) -> bool {
    let (mut set, mut list) = ([0; 64], vec![0; LONGEST]);
    let len = define(&mut set, &[wanted]).unwrap_or(0);
    let definitions = set.get(..len).unwrap_or_default();
    let definition =
        SetDefinitions::parse(definitions, DataType::FIELD_LIST).ok().and_then(|sets| sets.get(SET));
    definition.is_some_and(|definition| {
        encode_field_set(&mut list, &definition, |values| values.value(field.value.value())).is_ok()
    })
}

/// A type by its name in the file or its number: a primitive type, or for sets a fixed-size type.
fn data_type(text: &str) -> Option<DataType> {
    if let Ok(number) = text.parse() {
        return Some(DataType(number)).filter(|data_type| data_type.name().is_some());
    }
    let bare = text.strip_prefix(TYPE_PREFIX)?;
    (1..128).map(DataType).find(|data_type| data_type.name() == Some(bare))
}
