//! RWF to JSON: messages and their members.

mod containers;
mod fields;
mod values;

use super::Converter;
use super::fault::WriteError;
use super::names::{self, Names};
use super::short;
use super::text::JsonText;
use crate::domain::item::{RequestPayload, View};
use crate::rwf::{
    AckHeader, CloseHeader, Container, DEPTH_LIMIT, DataState, DataType, Domain, FieldList, Flags,
    GenericHeader, Header, Key, MessageClass, MessageView, NakCode, NameType, PostHeader, PostUserInfo, Qos,
    Rate, RefreshHeader, RequestHeader, State, StateCode, StatusHeader, StreamState, Timeliness,
    UpdateHeader, UpdateType, flags,
};

impl Converter<'_> {
    /// Appends the text of a message, one object, to `out`. Returns the number of its fields that were omitted because
    /// they are not in the dictionary. Members with the protocol's default value are omitted.
    ///
    /// Allocates only to grow `out` (bench `json`).
    ///
    /// # Errors
    ///
    /// Fails if the bytes are malformed RWF, containers are nested too deep, or the text is longer than the settings
    /// allow; `out` is then unchanged.
    pub fn write(&self, message: &MessageView<'_>, out: &mut Vec<u8>) -> Result<usize, WriteError> {
        let mut text = JsonText::new(out);
        let start = text.len();
        self.append(message, &mut text).inspect_err(|_| text.truncate(start))
    }

    pub(super) fn append(
        &self,
        message: &MessageView<'_>,
        out: &mut JsonText<'_>,
    ) -> Result<usize, WriteError> {
        let end = out.len().saturating_add(self.settings.most_text);
        let mut writing = Writing { converter: self, out, end, left_out: 0 };
        writing.message(message, 0)?;
        writing.bounded()?;
        Ok(writing.left_out)
    }
}

/// A message during conversion to text.
struct Writing<'w, 'o> {
    converter: &'w Converter<'w>,
    out: &'w mut JsonText<'o>,
    /// Maximum length of the text in `out`.
    end: usize,
    /// Number of fields that are not in the dictionary.
    left_out: usize,
}

impl Writing<'_, '_> {
    /// Fails if the text is too long. Called for each entry, so that the cost of a message is bounded.
    fn bounded(&self) -> Result<(), WriteError> {
        let most = self.converter.settings.most_text;
        if self.out.len() > self.end { Err(WriteError::TooLong(most)) } else { Ok(()) }
    }

    fn message(&mut self, message: &MessageView<'_>, depth: usize) -> Result<(), WriteError> {
        if let Some(update_type) = message.update_type()
            && message.flags() == Flags::NONE
            && message.domain() == Domain::MARKET_PRICE
            && message.container() == DataType::FIELD_LIST
            && depth < DEPTH_LIMIT
            && self.plain_update(message, update_type, depth)?
        {
            return Ok(());
        }
        let header = message.header();
        // By reference: a header is large.
        let header = header.as_ref().map_err(|malformed| *malformed)?;
        // The payload of these two classes becomes members.
        let payload = match header {
            Header::Request(_) | Header::Close(_) => RequestPayload::read(message)?,
            _ => RequestPayload::default(),
        };
        self.out.raw(b"{\"ID\":");
        match payload.streams {
            // A batch of streams has the ids of its streams, not its own.
            Some(streams) if payload.items.is_none() => self.numbers(streams.iter().flatten()),
            _ => self.out.signed(header.stream_id().into()),
        }
        self.out.raw(b",\"Type\":");
        self.out.code(MessageClass::WORDS, header.class().0);
        if header.domain() != Domain::MARKET_PRICE {
            self.out.key("Domain");
            match header.domain().name() {
                Some(name) => self.out.utf8(name.as_bytes()),
                None => self.out.unsigned(header.domain().0.into()),
            }
        }
        match header {
            Header::Request(header) => {
                self.request(header, &payload, depth)?;
                self.request_payload(message, depth)?;
            }
            Header::Refresh(header) => self.refresh(header, depth)?,
            Header::Status(header) => self.status(header, depth)?,
            Header::Update(header) => self.update(header, depth)?,
            Header::Close(header) => self.close(header),
            Header::Ack(header) => self.ack(header, depth)?,
            Header::Generic(header) => self.generic(header, depth)?,
            Header::Post(header) => self.post(header, depth)?,
        }
        if !matches!(header, Header::Request(_) | Header::Close(_)) {
            self.payload(&message.open()?, message.container(), depth)?;
        }
        self.out.end(b'}');
        Ok(())
    }

    /// Writes an update of fields with no more than a type, as nearly all messages are, without its header's other members.
    /// Returns `false`, and writes nothing, if its id is long or its type has no name.
    fn plain_update(
        &mut self,
        message: &MessageView<'_>,
        update_type: UpdateType,
        depth: usize,
    ) -> Result<bool, WriteError> {
        let fields = FieldList::parse(message.payload())?.iter();
        let head = |room: &mut _| short::update_head(message.stream_id(), update_type, room);
        let is_written = self.fields_after(head, fields, depth + 1)?;
        if is_written {
            self.out.end(b'}');
        }
        Ok(is_written)
    }

    fn request(
        &mut self,
        header: &RequestHeader<'_>,
        payload: &RequestPayload<'_>,
        depth: usize,
    ) -> Result<(), WriteError> {
        use flags::request as flag;
        self.pair(
            "Priority",
            header.priority.map(|priority| ("Class", priority.class, "Count", priority.count)),
        );
        self.flag("Streaming", header.flags.has(flag::STREAMING), true);
        self.flag("KeyInUpdates", header.flags.has(flag::MSG_KEY_IN_UPDATES), true);
        self.flag("ConfInfoInUpdates", header.flags.has(flag::CONF_INFO_IN_UPDATES), false);
        self.flag("Refresh", !header.flags.has(flag::NO_REFRESH), true);
        self.flag("Pause", header.flags.has(flag::PAUSE), false);
        self.flag("Private", header.flags.has(flag::PRIVATE_STREAM), false);
        self.flag("Qualified", header.flags.has(flag::QUALIFIED_STREAM), false);
        self.bytes("ExtHdr", header.extended_header);
        self.qos("Qos", header.qos);
        self.qos("WorstQos", header.worst_qos);
        self.key(Some(&header.key), header.domain, payload, depth)?;
        match payload.view {
            Some(View::Fids(fids)) => {
                self.text("ViewType", Some(b"FidList"));
                self.out.key("View");
                self.numbers(fids.iter().flatten());
            }
            Some(View::Names(names)) => {
                self.text("ViewType", Some(b"NameList"));
                self.texts("View", names.iter().flatten());
            }
            None => {}
        }
        Ok(())
    }

    /// Writes the parts of a request's payload that are not members of their own.
    fn request_payload(&mut self, message: &MessageView<'_>, depth: usize) -> Result<(), WriteError> {
        let container = message.open()?;
        let Container::ElementList(list) = &container else {
            return self.payload(&container, message.container(), depth);
        };
        let is_member = |name: &[u8]| names::REQUEST_MEMBERS.iter().any(|member| member.as_bytes() == name);
        let mut others =
            list.iter().filter(|element| !matches!(element, Ok(element) if is_member(element.name)));
        if others.clone().next().is_none() {
            return Ok(());
        }
        if depth >= DEPTH_LIMIT {
            return Err(WriteError::TooDeep(DEPTH_LIMIT));
        }
        self.out.key("Elements");
        self.each_element(&mut others, depth + 1)
    }

    fn refresh(&mut self, header: &RefreshHeader<'_>, depth: usize) -> Result<(), WriteError> {
        use flags::refresh as flag;
        self.key(header.key.as_ref(), header.domain, &RequestPayload::default(), depth)?;
        self.state(Some(header.state));
        self.qos("Qos", header.qos);
        self.flag("Solicited", header.flags.has(flag::SOLICITED), true);
        self.flag("Complete", header.flags.has(flag::REFRESH_COMPLETE), true);
        self.flag("ClearCache", header.flags.has(flag::CLEAR_CACHE), true);
        self.flag("DoNotCache", header.flags.has(flag::DO_NOT_CACHE), false);
        self.flag("Private", header.flags.has(flag::PRIVATE_STREAM), false);
        self.flag("Qualified", header.flags.has(flag::QUALIFIED_STREAM), false);
        self.unsigned("SeqNumber", header.sequence);
        self.unsigned("PartNumber", header.part);
        self.post_user_info(header.post_user_info);
        self.bytes("PermData", header.permission_data);
        self.bytes("ExtHdr", header.extended_header);
        Ok(())
    }

    fn status(&mut self, header: &StatusHeader<'_>, depth: usize) -> Result<(), WriteError> {
        use flags::status as flag;
        self.key(header.key.as_ref(), header.domain, &RequestPayload::default(), depth)?;
        self.state(header.state);
        self.flag("ClearCache", header.flags.has(flag::CLEAR_CACHE), false);
        self.flag("Private", header.flags.has(flag::PRIVATE_STREAM), false);
        self.flag("Qualified", header.flags.has(flag::QUALIFIED_STREAM), false);
        self.post_user_info(header.post_user_info);
        self.bytes("PermData", header.permission_data);
        self.bytes("ExtHdr", header.extended_header);
        Ok(())
    }

    fn update(&mut self, header: &UpdateHeader<'_>, depth: usize) -> Result<(), WriteError> {
        use flags::update as flag;
        self.out.raw(b",\"UpdateType\":");
        self.out.code(UpdateType::WORDS, header.update_type.0);
        // Nearly every update has none of the following.
        if header.flags != Flags::NONE {
            self.flag("DoNotCache", header.flags.has(flag::DO_NOT_CACHE), false);
            self.flag("DoNotConflate", header.flags.has(flag::DO_NOT_CONFLATE), false);
            self.flag("DoNotRipple", header.flags.has(flag::DO_NOT_RIPPLE), false);
            self.flag("Discardable", header.flags.has(flag::DISCARDABLE), false);
            self.key(header.key.as_ref(), header.domain, &RequestPayload::default(), depth)?;
            self.unsigned("SeqNumber", header.sequence);
            let conflation = header.conflation.map(|of| ("Count", of.count, "Time", of.time_ms));
            self.pair("ConflationInfo", conflation);
            self.post_user_info(header.post_user_info);
            self.bytes("PermData", header.permission_data);
            self.bytes("ExtHdr", header.extended_header);
        }
        Ok(())
    }

    fn close(&mut self, header: &CloseHeader<'_>) {
        self.flag("Ack", header.flags.has(flags::close::ACK), false);
        self.bytes("ExtHdr", header.extended_header);
    }

    fn ack(&mut self, header: &AckHeader<'_>, depth: usize) -> Result<(), WriteError> {
        use flags::ack as flag;
        self.unsigned("AckID", Some(header.ack_id));
        if let Some(code) = header.nak_code {
            self.code("NakCode", NakCode::WORDS, code.0);
        }
        self.text("Text", header.text);
        self.flag("Private", header.flags.has(flag::PRIVATE_STREAM), false);
        self.flag("Qualified", header.flags.has(flag::QUALIFIED_STREAM), false);
        self.unsigned("SeqNumber", header.sequence);
        self.key(header.key.as_ref(), header.domain, &RequestPayload::default(), depth)?;
        self.bytes("ExtHdr", header.extended_header);
        Ok(())
    }

    fn generic(&mut self, header: &GenericHeader<'_>, depth: usize) -> Result<(), WriteError> {
        use flags::generic as flag;
        self.key(header.key.as_ref(), header.domain, &RequestPayload::default(), depth)?;
        self.flag("Complete", header.flags.has(flag::MESSAGE_COMPLETE), true);
        self.flag("ProviderDriven", header.flags.has(flag::PROVIDER_DRIVEN), false);
        self.unsigned("SeqNumber", header.sequence);
        self.unsigned("SecSeqNumber", header.secondary_sequence);
        self.unsigned("PartNumber", header.part);
        self.bytes("PermData", header.permission_data);
        self.bytes("ExtHdr", header.extended_header);
        Ok(())
    }

    fn post(&mut self, header: &PostHeader<'_>, depth: usize) -> Result<(), WriteError> {
        use flags::post as flag;
        self.post_user_info(Some(header.post_user_info));
        self.unsigned("PostID", header.post_id);
        self.unsigned("SeqNumber", header.sequence);
        self.flag("Ack", header.flags.has(flag::ACK), false);
        self.flag("Complete", header.flags.has(flag::POST_COMPLETE), true);
        self.unsigned("PartNumber", header.part);
        self.unsigned("PostUserRights", header.post_user_rights);
        self.key(header.key.as_ref(), header.domain, &RequestPayload::default(), depth)?;
        self.bytes("PermData", header.permission_data);
        self.bytes("ExtHdr", header.extended_header);
        Ok(())
    }

    /// Writes the key, with the names of a batch in place of its name.
    fn key(
        &mut self,
        key: Option<&Key<'_>>,
        domain: Domain,
        payload: &RequestPayload<'_>,
        depth: usize,
    ) -> Result<(), WriteError> {
        let Some(key) = key else { return Ok(()) };
        self.out.key("Key");
        self.out.begin(b'{');
        if let Some(id) = key.service_id {
            self.out.key("Service");
            match self.converter.services.name(id) {
                Some(name) => self.out.utf8(name.as_bytes()),
                None => self.out.unsigned(id.into()),
            }
        }
        match (payload.items, key.name) {
            (Some(items), _) => self.texts("Name", items.iter().flatten()),
            // In RWF, this name marks a login with a token and without a name.
            (None, Some([0])) if key.name_type == Some(AUTHN_TOKEN) && domain == Domain::LOGIN => {}
            (None, name) => self.text("Name", name),
        }
        if let Some(name_type) = key.name_type.filter(|name_type| *name_type != NameType::RIC) {
            let names = if domain == Domain::LOGIN { names::LOGIN_NAME_TYPES } else { NameType::WORDS };
            self.code("NameType", names, name_type.0);
        }
        self.unsigned("Filter", key.filter);
        if let Some(identifier) = key.identifier {
            self.out.key("Identifier");
            self.out.signed(identifier.into());
        }
        if let Some(attributes) = key.attributes {
            self.payload(&attributes.open()?, attributes.container, depth)?;
        }
        self.out.end(b'}');
        Ok(())
    }

    fn state(&mut self, state: Option<State<'_>>) {
        if let Some(state) = state {
            self.out.key("State");
            self.state_object(&state);
        }
    }

    fn state_object(&mut self, state: &State<'_>) {
        self.out.begin(b'{');
        self.code("Stream", StreamState::WORDS, state.stream.0);
        self.code("Data", DataState::WORDS, state.data.0);
        if state.code != StateCode::NONE {
            self.code("Code", StateCode::WORDS, state.code.0);
        }
        self.text("Text", Some(state.text));
        self.out.end(b'}');
    }

    fn qos(&mut self, name: &str, qos: Option<Qos>) {
        if let Some(qos) = qos {
            self.out.key(name);
            self.qos_object(qos);
        }
    }

    fn qos_object(&mut self, qos: Qos) {
        self.out.begin(b'{');
        self.code("Timeliness", Timeliness::WORDS, qos.timeliness.0);
        self.code("Rate", Rate::WORDS, qos.rate.0);
        self.flag("Dynamic", qos.dynamic, false);
        self.unsigned("TimeInfo", (qos.timeliness.0 > 2).then_some(qos.time_info));
        self.unsigned("RateInfo", (qos.rate.0 > 2).then_some(qos.rate_info));
        self.out.end(b'}');
    }

    /// Writes an object of two numbers, with their names.
    fn pair(&mut self, name: &str, pair: Option<(&str, impl Into<u64>, &str, u16)>) {
        if let Some((first, a, second, b)) = pair {
            self.out.key(name);
            self.out.begin(b'{');
            self.unsigned(first, Some(a));
            self.unsigned(second, Some(b));
            self.out.end(b'}');
        }
    }

    fn post_user_info(&mut self, info: Option<PostUserInfo>) {
        if let Some(info) = info {
            self.out.key("PostUserInfo");
            self.out.begin(b'{');
            self.out.key("Address");
            self.out.address(info.address);
            self.unsigned("UserID", Some(info.user_id));
            self.out.end(b'}');
        }
    }

    /// Writes a flag that differs from its default.
    fn flag(&mut self, name: &str, value: bool, assumed: bool) {
        if value != assumed {
            self.out.key(name);
            self.out.boolean(value);
        }
    }

    fn unsigned(&mut self, name: &str, value: Option<impl Into<u64>>) {
        if let Some(value) = value {
            self.out.key(name);
            self.out.unsigned(value.into());
        }
    }

    fn bytes(&mut self, name: &str, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.out.key(name);
            self.out.base64(value);
        }
    }

    fn code(&mut self, name: &str, names: Names, number: u8) {
        self.out.key(name);
        self.out.code(names, number);
    }

    fn text(&mut self, name: &str, text: Option<&[u8]>) {
        if let Some(text) = text {
            self.out.key(name);
            self.out.utf8(text);
        }
    }

    fn numbers(&mut self, items: impl Iterator<Item = impl Into<i64>>) {
        self.out.begin(b'[');
        for item in items {
            self.out.separate();
            self.out.signed(item.into());
        }
        self.out.end(b']');
    }

    fn texts<'a>(&mut self, name: &str, items: impl Iterator<Item = &'a [u8]>) {
        self.out.key(name);
        self.out.begin(b'[');
        for item in items {
            self.out.separate();
            self.out.utf8(item);
        }
        self.out.end(b']');
    }
}

/// Name type of the login domain: authentication token.
pub(super) const AUTHN_TOKEN: NameType = NameType(5);
