//! JSON to RWF: messages and their members.

mod containers;
mod decimal;
mod members;
mod parts;
mod scalars;
mod times;
mod values;

use super::Converter;
use super::fault::{Fault, JsonProblem, quote};
use super::names;
use super::scan::{IdPart, Incoming, Raw, Token};
use crate::Refused;
use crate::rwf::{
    AckHeader, CloseHeader, Conflation, DEPTH_LIMIT, DataType, Domain, ElementListEncoder, Flags,
    GenericHeader, Header, MessageClass, NakCode, PostHeader, Priority, RefreshHeader, RequestHeader,
    StatusHeader, UpdateHeader, UpdateType, Value, flags,
};
use members::MessageMembers;
use parts::OwnedKey;

/// Maximum bytes of RWF for each byte of text: the item `1,` of an array of DOUBLE is nine bytes.
const GROWTH: usize = 5;
/// Additional bytes for a whole message: its header contains bytes that the text omits.
const HEADER: usize = 128;

impl Converter<'_> {
    /// Returns the RWF bytes of a message, written into `room`. `room` grows to at most five times the text plus 128
    /// bytes.
    ///
    /// In the payload, `:ItemList` holds the names of a batch request, `:ViewData` the fields of a view, and
    /// `:StreamIdList` all ids of a Close with several ids; the first id is also the id of the message. `Elements` of a
    /// request follow these.
    ///
    /// # Errors
    ///
    /// Fails if the text is invalid. Drop the message and answer it with [`Pack::error`](super::Pack::error).
    pub fn read<'o>(&self, incoming: &Incoming<'_>, room: &'o mut Vec<u8>) -> Result<&'o [u8], Fault> {
        let raw = incoming.raw();
        let most = raw.text().len() * GROWTH + HEADER;
        if room.len() < most {
            room.resize(most, 0);
        }
        let mut reading = Reading { converter: self, part: incoming.part(), fault: None };
        match reading.message(raw, room, 0) {
            Ok(len) => Ok(room.get(..len).unwrap_or_default()),
            Err(refused) => {
                let (problem, offset) = reading
                    .fault
                    .unwrap_or_else(|| (JsonProblem::Refused(refused.to_string()), raw.offset()));
                Err(Fault { problem, offset, id: incoming.id() })
            }
        }
    }
}

/// A message during conversion to RWF.
///
/// Encoders take closures that return [`Refused`]. This struct stores the fault of the text, and any refusal propagates
/// to the top.
struct Reading<'r> {
    converter: &'r Converter<'r>,
    /// Position of a message in a message with several ids.
    part: Option<IdPart<'r>>,
    fault: Option<(JsonProblem, usize)>,
}

impl Reading<'_> {
    /// Stops reading. The first fault counts.
    #[cold]
    fn stop(&mut self, problem: JsonProblem, at: Raw<'_>) -> Refused {
        self.fault.get_or_insert((problem, at.offset()));
        Refused::Misplaced("what the text has")
    }

    fn missing(&mut self, key: &'static str, holder: Raw<'_>) -> Refused {
        self.stop(JsonProblem::Missing(key), holder)
    }

    /// Handles an unknown member.
    fn unknown(&mut self, key: &str, value: Raw<'_>) -> Result<(), Refused> {
        if self.converter.settings.catch_unknown_members {
            return Err(self.stop(JsonProblem::Key(quote(key)), value));
        }
        Ok(())
    }

    /// Returns the next level of nesting.
    fn deeper(&mut self, depth: usize, at: Raw<'_>) -> Result<usize, Refused> {
        if depth >= DEPTH_LIMIT {
            return Err(self.stop(JsonProblem::Syntax("containers are nested too deep"), at));
        }
        Ok(depth + 1)
    }

    /// Writes a message; returns its length.
    fn message(&mut self, raw: Raw<'_>, room: &mut [u8], depth: usize) -> Result<usize, Refused> {
        let is_top = depth == 0;
        let members = MessageMembers::of(self, "Message", raw)?;
        let class = MessageClass(self.code_or(
            "Type",
            members.r#type,
            MessageClass::WORDS,
            MessageClass::REQUEST.0,
        )?);
        let ids = members.id.ok_or_else(|| self.missing("ID", raw))?;
        let is_many = class == MessageClass::CLOSE && ids.token() == Token::Array;
        let first = match self.part {
            Some(part) if is_top => Some(part.id),
            _ if is_many => ids.items().next(),
            _ => Some(ids),
        };
        let stream_id = match first {
            Some(id) => self.integer("ID", id)?,
            None => return Err(self.stop(JsonProblem::value("ID", ids), ids)),
        };
        let domain = self.domain(members.domain)?;
        let mut key = self.key(members.key, domain, depth)?;
        if is_top && matches!(class, MessageClass::REQUEST | MessageClass::POST) {
            let service = self.converter.settings.default_service;
            key = key.map(|key| key.at_service(service, domain));
        }
        let start = Start { stream_id, domain, raw, members: &members, key: key.as_ref(), depth };
        match class {
            MessageClass::REQUEST => self.request(&start, room),
            MessageClass::CLOSE => self.close(&start, is_many.then_some(ids), room),
            MessageClass::REFRESH => self.refresh(&start, room),
            MessageClass::STATUS => self.status(&start, room),
            MessageClass::UPDATE => self.update(&start, room),
            MessageClass::ACK => self.ack(&start, room),
            MessageClass::GENERIC => self.generic(&start, room),
            MessageClass::POST => self.post(&start, room),
            _ => Err(self.stop(JsonProblem::value("Type", members.r#type.unwrap_or(raw)), raw)),
        }
    }

    fn domain(&mut self, raw: Option<Raw<'_>>) -> Result<Domain, Refused> {
        let Some(raw) = raw else { return Ok(Domain::MARKET_PRICE) };
        let Some(name) = raw.string() else { return Ok(Domain(self.integer("Domain", raw)?)) };
        let found = names::number(Domain::WORDS, &name);
        found.map(Domain).ok_or_else(|| self.stop(JsonProblem::value("Domain", raw), raw))
    }

    /// Writes the header, then the payload of the text.
    fn whole<'h>(
        &mut self,
        header: impl Into<Header<'h>>,
        start: &Start<'_, '_>,
        room: &mut [u8],
    ) -> Result<usize, Refused> {
        let header = header.into();
        header.encode_with(room, |room| match start.members.payload {
            Some((data_type, raw)) => self.container(data_type, raw, room, start.depth),
            None => Ok(0),
        })
    }

    fn request(&mut self, start: &Start<'_, '_>, room: &mut [u8]) -> Result<usize, Refused> {
        use flags::request as flag;
        let members = start.members;
        let Some(key) = start.key else { return Err(self.missing("Key", start.raw)) };
        let extended_header = self.optional_bytes("ExtHdr", members.ext_hdr)?;
        let mut header = RequestHeader::new(start.domain, start.stream_id, key.view());
        if let Some(raw) = members.priority {
            let (class, count) = self.pair("Priority", raw, "Class", "Count")?;
            header.priority = Some(Priority { class, count });
        }
        header.qos = self.optional_qos("Qos", members.qos.or(members.upper_qos))?;
        header.worst_qos = self.optional_qos("WorstQos", members.worst_qos)?;
        header.extended_header = extended_header.as_deref();
        header.flags = self.flags(&[
            ("Streaming", members.streaming, true, flag::STREAMING),
            ("KeyInUpdates", members.key_in_updates, true, flag::MSG_KEY_IN_UPDATES),
            ("ConfInfoInUpdates", members.conf_info_in_updates, false, flag::CONF_INFO_IN_UPDATES),
            ("Pause", members.pause, false, flag::PAUSE),
            ("Private", members.private, false, flag::PRIVATE_STREAM),
            ("Qualified", members.qualified, false, flag::QUALIFIED_STREAM),
        ])?;
        header.flags = header
            .flags
            .with(flag::NO_REFRESH, !self.boolean("Refresh", members.refresh, true)?)
            .with(flag::HAS_BATCH, key.names.is_some())
            .with(flag::HAS_VIEW, members.view.is_some());
        let is_list = members.payload.is_some_and(|(data_type, _)| data_type == DataType::ELEMENT_LIST);
        if key.names.is_none() && members.view.is_none() && !is_list {
            return self.whole(RequestHeader { container: start.container(), ..header }, start, room);
        }
        header.container = DataType::ELEMENT_LIST;
        header.encode_with(room, |room| {
            let mut list = ElementListEncoder::new(room)?;
            if let Some(names) = key.names {
                list.array(":ItemList", DataType::ASCII_STRING, 0, |array| {
                    names.items().try_for_each(|name| array.item(self.text("Name", name)?.as_bytes()))
                })?;
            }
            if let Some(view) = members.view {
                self.view(view, members.view_type, &mut list)?;
            }
            match members.payload {
                // The remaining elements: symbol list behaviours.
                Some((DataType::ELEMENT_LIST, raw)) => {
                    let depth = self.deeper(start.depth, raw)?;
                    if let Some((name, value)) =
                        raw.members().find(|(name, _)| names::REQUEST_MEMBERS.contains(&&**name))
                    {
                        return Err(self.stop(JsonProblem::Key(name.into_owned()), value));
                    }
                    self.each_element(raw, &mut list, depth)?;
                }
                Some((_, raw)) => return Err(self.stop(JsonProblem::kind("Elements", "OBJECT", raw), raw)),
                None => {}
            }
            Ok(list.finish())
        })
    }

    fn view(
        &mut self,
        view: Raw<'_>,
        view_type: Option<Raw<'_>>,
        list: &mut ElementListEncoder<'_>,
    ) -> Result<(), Refused> {
        if view.token() != Token::Array {
            return Err(self.stop(JsonProblem::kind("View", "ARRAY", view), view));
        }
        let is_names = match view_type.and_then(Raw::string).as_deref() {
            Some("NameList") => true,
            Some("FidList") | None => false,
            Some(_) => {
                let raw = view_type.unwrap_or(view);
                return Err(self.stop(JsonProblem::value("ViewType", raw), raw));
            }
        };
        if is_names {
            list.uint(":ViewType", 2)?;
            return list.array(":ViewData", DataType::ASCII_STRING, 0, |array| {
                view.items().try_for_each(|name| array.item(self.text("View", name)?.as_bytes()))
            });
        }
        list.array(":ViewData", DataType::INT, 0, |array| {
            view.items().try_for_each(|item| {
                let fid = match item.string() {
                    Some(name) => self.field(&name).map(|field| field.fid.0),
                    None => Some(self.integer("View", item)?),
                };
                match fid {
                    Some(fid) => array.value(&Value::Int(fid.into())),
                    None => Err(self.stop(JsonProblem::value("View", item), item)),
                }
            })
        })
    }

    /// Writes a Close. `ids` are all ids of a Close of several streams.
    fn close(
        &mut self,
        start: &Start<'_, '_>,
        ids: Option<Raw<'_>>,
        room: &mut [u8],
    ) -> Result<usize, Refused> {
        let extended_header = self.optional_bytes("ExtHdr", start.members.ext_hdr)?;
        let mut header = CloseHeader::new(start.domain, start.stream_id);
        header.extended_header = extended_header.as_deref();
        header.flags = self.flags(&[("Ack", start.members.ack, false, flags::close::ACK)])?;
        let Some(ids) = ids else { return header.encode(room) };
        header.container = DataType::ELEMENT_LIST;
        header.flags |= flags::close::HAS_BATCH;
        header.encode_with(room, |room| {
            let mut list = ElementListEncoder::new(room)?;
            list.array(":StreamIdList", DataType::INT, 0, |array| {
                ids.items().try_for_each(|id| {
                    let id: i32 = self.integer("ID", id)?;
                    array.value(&Value::Int(id.into()))
                })
            })?;
            Ok(list.finish())
        })
    }

    fn refresh(&mut self, start: &Start<'_, '_>, room: &mut [u8]) -> Result<usize, Refused> {
        use flags::refresh as flag;
        let members = start.members;
        let state = self.optional_state(members.state)?.unwrap_or_default();
        let permission_data = self.optional_bytes("PermData", members.perm_data)?;
        let extended_header = self.optional_bytes("ExtHdr", members.ext_hdr)?;
        let mut header = RefreshHeader::new(start.domain, start.stream_id, state.view(), start.container());
        header.key = start.key.map(OwnedKey::view);
        header.qos = self.optional_qos("Qos", members.qos.or(members.upper_qos))?;
        header.sequence = self.optional_integer("SeqNumber", members.seq_number)?;
        header.part = self.part(members.part_number)?;
        header.permission_data = permission_data.as_deref();
        header.extended_header = extended_header.as_deref();
        header.post_user_info = self.post_user_info(members.post_user_info)?;
        header.flags = self.flags(&[
            ("Solicited", members.solicited, true, flag::SOLICITED),
            ("Complete", members.complete, true, flag::REFRESH_COMPLETE),
            ("ClearCache", members.clear_cache, true, flag::CLEAR_CACHE),
            ("DoNotCache", members.do_not_cache, false, flag::DO_NOT_CACHE),
            ("Private", members.private, false, flag::PRIVATE_STREAM),
            ("Qualified", members.qualified, false, flag::QUALIFIED_STREAM),
        ])?;
        self.whole(header, start, room)
    }

    fn status(&mut self, start: &Start<'_, '_>, room: &mut [u8]) -> Result<usize, Refused> {
        use flags::status as flag;
        let members = start.members;
        let state = self.optional_state(members.state)?;
        let permission_data = self.optional_bytes("PermData", members.perm_data)?;
        let extended_header = self.optional_bytes("ExtHdr", members.ext_hdr)?;
        let header = StatusHeader {
            container: start.container(),
            state: state.as_ref().map(parts::ReadState::view),
            key: start.key.map(OwnedKey::view),
            permission_data: permission_data.as_deref(),
            extended_header: extended_header.as_deref(),
            post_user_info: self.post_user_info(members.post_user_info)?,
            flags: self.flags(&[
                ("ClearCache", members.clear_cache, false, flag::CLEAR_CACHE),
                ("Private", members.private, false, flag::PRIVATE_STREAM),
                ("Qualified", members.qualified, false, flag::QUALIFIED_STREAM),
            ])?,
            ..StatusHeader::new(start.domain, start.stream_id)
        };
        self.whole(header, start, room)
    }

    fn update(&mut self, start: &Start<'_, '_>, room: &mut [u8]) -> Result<usize, Refused> {
        use flags::update as flag;
        let members = start.members;
        let permission_data = self.optional_bytes("PermData", members.perm_data)?;
        let extended_header = self.optional_bytes("ExtHdr", members.ext_hdr)?;
        let update_type =
            UpdateType(self.code_or("UpdateType", members.update_type, UpdateType::WORDS, 0)?);
        let mut header = UpdateHeader::new(start.domain, start.stream_id, update_type, start.container());
        header.key = start.key.map(OwnedKey::view);
        header.sequence = self.optional_integer("SeqNumber", members.seq_number)?;
        if let Some(raw) = members.conflation_info {
            let (count, time_ms) = self.pair("ConflationInfo", raw, "Count", "Time")?;
            header.conflation = Some(Conflation { count, time_ms });
        }
        header.permission_data = permission_data.as_deref();
        header.extended_header = extended_header.as_deref();
        header.post_user_info = self.post_user_info(members.post_user_info)?;
        header.flags = self.flags(&[
            ("DoNotCache", members.do_not_cache, false, flag::DO_NOT_CACHE),
            ("DoNotConflate", members.do_not_conflate, false, flag::DO_NOT_CONFLATE),
            ("DoNotRipple", members.do_not_ripple, false, flag::DO_NOT_RIPPLE),
            ("Discardable", members.discardable, false, flag::DISCARDABLE),
        ])?;
        self.whole(header, start, room)
    }

    fn ack(&mut self, start: &Start<'_, '_>, room: &mut [u8]) -> Result<usize, Refused> {
        use flags::ack as flag;
        let members = start.members;
        let Some(ack_id) = members.ack_id else { return Err(self.missing("AckID", start.raw)) };
        let text = members.text.map(|raw| self.text("Text", raw)).transpose()?;
        let extended_header = self.optional_bytes("ExtHdr", members.ext_hdr)?;
        let mut header = AckHeader::new(start.domain, start.stream_id, self.integer("AckID", ack_id)?);
        header.container = start.container();
        let nak_code = members.nak_code.map(|raw| self.code("NakCode", raw, NakCode::WORDS));
        header.nak_code = nak_code.transpose()?.map(NakCode);
        header.text = text.as_deref().map(str::as_bytes);
        header.sequence = self.optional_integer("SeqNumber", members.seq_number)?;
        header.key = start.key.map(OwnedKey::view);
        header.extended_header = extended_header.as_deref();
        header.flags = self.flags(&[
            ("Private", members.private, false, flag::PRIVATE_STREAM),
            ("Qualified", members.qualified, false, flag::QUALIFIED_STREAM),
        ])?;
        self.whole(header, start, room)
    }

    fn generic(&mut self, start: &Start<'_, '_>, room: &mut [u8]) -> Result<usize, Refused> {
        use flags::generic as flag;
        let members = start.members;
        let permission_data = self.optional_bytes("PermData", members.perm_data)?;
        let extended_header = self.optional_bytes("ExtHdr", members.ext_hdr)?;
        let mut header = GenericHeader::new(start.domain, start.stream_id, start.container());
        header.key = start.key.map(OwnedKey::view);
        header.sequence = self.optional_integer("SeqNumber", members.seq_number)?;
        header.secondary_sequence = self.optional_integer("SecSeqNumber", members.sec_seq_number)?;
        header.part = self.part(members.part_number)?;
        header.permission_data = permission_data.as_deref();
        header.extended_header = extended_header.as_deref();
        header.flags = self.flags(&[
            ("Complete", members.complete, true, flag::MESSAGE_COMPLETE),
            ("ProviderDriven", members.provider_driven, false, flag::PROVIDER_DRIVEN),
        ])?;
        self.whole(header, start, room)
    }

    fn post(&mut self, start: &Start<'_, '_>, room: &mut [u8]) -> Result<usize, Refused> {
        use flags::post as flag;
        let members = start.members;
        let permission_data = self.optional_bytes("PermData", members.perm_data)?;
        let extended_header = self.optional_bytes("ExtHdr", members.ext_hdr)?;
        let user = self.post_user_info(members.post_user_info)?.unwrap_or_default();
        let mut header = PostHeader::new(start.domain, start.stream_id, user, start.container());
        header.key = start.key.map(OwnedKey::view);
        header.sequence = self.optional_integer("SeqNumber", members.seq_number)?;
        header.post_id = self.optional_integer("PostID", members.post_id)?;
        header.part = self.part(members.part_number)?;
        header.post_user_rights = self.part(members.post_user_rights)?;
        header.permission_data = permission_data.as_deref();
        header.extended_header = extended_header.as_deref();
        header.flags = self.flags(&[
            ("Ack", members.ack, false, flag::ACK),
            ("Complete", members.complete, true, flag::POST_COMPLETE),
        ])?;
        self.whole(header, start, room)
    }

    /// Returns flags. For each flag: its member's name, the member, the default, and the bit.
    fn flags(&mut self, flags: &[(&str, Option<Raw<'_>>, bool, Flags)]) -> Result<Flags, Refused> {
        flags.iter().try_fold(Flags::NONE, |all, (key, raw, assumed, flag)| {
            Ok(all.with(*flag, self.boolean(key, *raw, *assumed)?))
        })
    }
}

/// Input for the reader of a class.
struct Start<'m, 't> {
    stream_id: i32,
    domain: Domain,
    raw: Raw<'t>,
    members: &'m MessageMembers<'t>,
    key: Option<&'m OwnedKey<'t>>,
    depth: usize,
}

impl Start<'_, '_> {
    fn container(&self) -> DataType {
        self.members.payload.map_or(DataType::NO_DATA, |(data_type, _)| data_type)
    }
}
