//! Members that are objects: keys, states, qualities of service, users.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use super::super::fault::JsonProblem;
use super::super::names;
use super::super::scan::{Raw, Token};
use super::super::write::AUTHN_TOKEN;
use super::members::{KeyMembers, PostUserInfoMembers, QosMembers, StateMembers};
use super::{GROWTH, HEADER, Reading};
use crate::Refused;
use crate::rwf::{
    Attributes, DataState, DataType, Domain, Key, NameType, PostUserInfo, Qos, Rate, State, StateCode,
    StreamState, Timeliness,
};

/// Key that owns those of its parts that had to be created.
#[derive(Default)]
pub(super) struct OwnedKey<'t> {
    service_id: Option<u16>,
    name: Option<Cow<'t, str>>,
    /// Names of a batch, in place of one name.
    pub(super) names: Option<Raw<'t>>,
    name_type: Option<NameType>,
    filter: Option<u32>,
    identifier: Option<i32>,
    attributes: Option<(DataType, Vec<u8>)>,
}

impl OwnedKey<'_> {
    pub(super) fn view(&self) -> Key<'_> {
        let attributes = self.attributes.as_ref();
        Key {
            service_id: self.service_id,
            name: self.name.as_deref().map(str::as_bytes),
            name_type: self.name_type,
            filter: self.filter,
            identifier: self.identifier,
            attributes: attributes.map(|(container, data)| Attributes { container: *container, data }),
        }
    }

    /// Returns the key at `service`, if it names no service and its domain has services.
    pub(super) fn at_service(mut self, service: Option<u16>, domain: Domain) -> Self {
        if !matches!(domain, Domain::LOGIN | Domain::SOURCE) {
            self.service_id = self.service_id.or(service);
        }
        self
    }
}

/// State that owns its text if the text had to be created.
pub(super) struct ReadState<'t> {
    state: State<'static>,
    text: Cow<'t, str>,
}

impl ReadState<'_> {
    pub(super) fn view(&self) -> State<'_> {
        // Some servers end texts with zero characters.
        State { text: self.text.trim_end_matches('\0').as_bytes(), ..self.state }
    }

    pub(super) const fn without_text(&self) -> State<'static> {
        self.state
    }
}

impl Default for ReadState<'_> {
    fn default() -> Self {
        Self { state: State::OPEN_OK, text: Cow::Borrowed("") }
    }
}

impl Reading<'_> {
    pub(super) fn key<'t>(
        &mut self,
        raw: Option<Raw<'t>>,
        domain: Domain,
        depth: usize,
    ) -> Result<Option<OwnedKey<'t>>, Refused> {
        let Some(raw) = raw else { return Ok(None) };
        let members = KeyMembers::of(self, "Key", raw)?;
        let mut key = OwnedKey {
            service_id: members.service.map(|raw| self.service(raw)).transpose()?,
            filter: self.optional_integer("Filter", members.filter)?,
            identifier: self.optional_integer("Identifier", members.identifier)?,
            ..OwnedKey::default()
        };
        match members.name {
            Some(names) if names.token() == Token::Array => match self.part.filter(|_| depth == 0) {
                Some(part) => {
                    let name = names.items().nth(part.place);
                    let name = name.ok_or_else(|| self.stop(JsonProblem::value("Name", names), names))?;
                    key.name = Some(self.text("Name", name)?);
                }
                None => key.names = Some(names),
            },
            Some(name) => key.name = Some(self.text("Name", name)?),
            None => {}
        }
        let words = if domain == Domain::LOGIN { names::LOGIN_NAME_TYPES } else { NameType::WORDS };
        key.name_type = match members.name_type {
            Some(raw) => Some(NameType(self.code("NameType", raw, words)?)),
            None => key.name.is_some().then_some(NameType::RIC),
        };
        if domain == Domain::LOGIN && key.name_type == Some(AUTHN_TOKEN) && key.name.is_none() {
            // A name type is written only with a name; such logins have this name in RWF.
            key.name = Some(Cow::Borrowed("\0"));
        }
        if let Some((container, raw)) = members.payload {
            let mut data = vec![0; raw.text().len() * GROWTH + HEADER];
            let len = self.container(container, raw, &mut data, depth)?;
            data.truncate(len);
            key.attributes = Some((container, data));
        }
        Ok(Some(key))
    }

    fn service(&mut self, raw: Raw<'_>) -> Result<u16, Refused> {
        let Some(name) = raw.string() else { return self.integer("Service", raw) };
        self.converter.services.id(&name).ok_or_else(|| self.stop(JsonProblem::value("Service", raw), raw))
    }

    pub(super) fn optional_state<'t>(
        &mut self,
        raw: Option<Raw<'t>>,
    ) -> Result<Option<ReadState<'t>>, Refused> {
        raw.map(|raw| self.state("State", raw)).transpose()
    }

    pub(super) fn state<'t>(&mut self, key: &str, raw: Raw<'t>) -> Result<ReadState<'t>, Refused> {
        let members = StateMembers::of(self, key, raw)?;
        let stream = members.stream.ok_or_else(|| self.missing("Stream", raw))?;
        let data = members.data.ok_or_else(|| self.missing("Data", raw))?;
        let stream = self.code("Stream", stream, StreamState::WORDS)?;
        let stream = self.at_most(0x1F, "Stream", stream, raw)?;
        let data = self.code("Data", data, DataState::WORDS)?;
        let data = self.at_most(0x07, "Data", data, raw)?;
        let state = State {
            stream: StreamState(stream),
            data: DataState(data),
            code: StateCode(self.code_or("Code", members.code, StateCode::WORDS, 0)?),
            text: b"",
        };
        let text = members.text.map_or(Ok(Cow::Borrowed("")), |text| self.text("Text", text))?;
        Ok(ReadState { state, text })
    }

    pub(super) fn optional_qos(&mut self, key: &str, raw: Option<Raw<'_>>) -> Result<Option<Qos>, Refused> {
        raw.map(|raw| self.qos(key, raw)).transpose()
    }

    pub(super) fn qos(&mut self, key: &str, raw: Raw<'_>) -> Result<Qos, Refused> {
        let members = QosMembers::of(self, key, raw)?;
        let timeliness = members.timeliness.ok_or_else(|| self.missing("Timeliness", raw))?;
        let rate = members.rate.ok_or_else(|| self.missing("Rate", raw))?;
        let timeliness = self.code("Timeliness", timeliness, Timeliness::WORDS)?;
        let timeliness = self.at_most(0x07, "Timeliness", timeliness, raw)?;
        let rate = self.code("Rate", rate, Rate::WORDS)?;
        let rate = self.at_most(0x0F, "Rate", rate, raw)?;
        Ok(Qos {
            timeliness: Timeliness(timeliness),
            rate: Rate(rate),
            dynamic: self.boolean("Dynamic", members.dynamic, false)?,
            time_info: self.optional_integer("TimeInfo", members.time_info)?.unwrap_or(0),
            rate_info: self.optional_integer("RateInfo", members.rate_info)?.unwrap_or(0),
        })
    }

    pub(super) fn post_user_info(&mut self, raw: Option<Raw<'_>>) -> Result<Option<PostUserInfo>, Refused> {
        let Some(raw) = raw else { return Ok(None) };
        let members = PostUserInfoMembers::of(self, "PostUserInfo", raw)?;
        let address = members.address.ok_or_else(|| self.missing("Address", raw))?;
        let user_id = members.user_id.ok_or_else(|| self.missing("UserID", raw))?;
        let address = match address.string() {
            Some(text) => match text.parse::<Ipv4Addr>() {
                Ok(text) => text.to_bits(),
                Err(_) => return Err(self.stop(JsonProblem::value("Address", address), address)),
            },
            None => self.integer("Address", address)?,
        };
        Ok(Some(PostUserInfo { address, user_id: self.integer("UserID", user_id)? }))
    }
}
