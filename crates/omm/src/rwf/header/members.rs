//! Members of each class in wire order (RWF chapter 2, the table of classes).

use super::super::{Cursor, DataType, Domain, Flags, Key, NakCode, Qos, State, UpdateType, Writer, flags};
use super::{
    AckHeader, CloseHeader, Conflation, GenericHeader, PostHeader, PostUserInfo, Priority, RefreshHeader,
    RequestHeader, Start, StatusHeader, UpdateHeader,
};
use crate::{Malformed, Refused};

impl<'a> RequestHeader<'a> {
    /// Returns a request for `key`, without flags or optional members.
    #[must_use]
    pub const fn new(domain: Domain, stream_id: i32, key: Key<'a>) -> Self {
        Self {
            domain,
            stream_id,
            flags: Flags::NONE,
            container: DataType::NO_DATA,
            priority: None,
            qos: None,
            worst_qos: None,
            key,
            extended_header: None,
        }
    }

    pub(super) const fn all_flags(&self) -> Flags {
        use flags::request as flag;
        self.flags
            .with(flag::HAS_EXTENDED_HEADER, self.extended_header.is_some())
            .with(flag::HAS_PRIORITY, self.priority.is_some())
            .with(flag::HAS_QOS, self.qos.is_some())
            .with(flag::HAS_WORST_QOS, self.qos.is_some() && self.worst_qos.is_some())
    }

    pub(super) fn write_members(&self, w: &mut Writer<'_>) -> Result<(), Refused> {
        if let Some(priority) = self.priority {
            w.u8(priority.class)?;
            w.u16ob(usize::from(priority.count), "priority count")?;
        }
        if let Some(qos) = self.qos {
            for qos in [Some(qos), self.worst_qos].into_iter().flatten() {
                let (bytes, len) = qos.encode();
                w.bytes(bytes.get(..len).unwrap_or_default())?;
            }
        }
        self.key.write(w)?;
        write_extended_header(w, self.extended_header)
    }

    pub(super) fn read_members(start: &Start, cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        use flags::request as flag;
        Ok(Self {
            domain: start.domain,
            stream_id: start.stream_id,
            flags: start.flags,
            container: start.container,
            priority: member(start, flag::HAS_PRIORITY, || {
                Ok(Priority { class: cursor.u8("priority class")?, count: cursor.u16ob("priority count")? })
            })?,
            qos: member(start, flag::HAS_QOS, || Qos::read(cursor))?,
            worst_qos: member(start, flag::HAS_WORST_QOS, || Qos::read(cursor))?,
            key: Key::read(cursor)?,
            extended_header: member(start, flag::HAS_EXTENDED_HEADER, || cursor.b8("extended header"))?,
        })
    }
}

impl<'a> RefreshHeader<'a> {
    /// Returns an image in `container` in the state `state`, without flags or optional members.
    #[must_use]
    pub const fn new(domain: Domain, stream_id: i32, state: State<'a>, container: DataType) -> Self {
        Self {
            domain,
            stream_id,
            flags: Flags::NONE,
            container,
            sequence: None,
            state,
            group_id: &[0, 0],
            permission_data: None,
            qos: None,
            key: None,
            extended_header: None,
            post_user_info: None,
            part: None,
        }
    }

    pub(super) const fn all_flags(&self) -> Flags {
        use flags::refresh as flag;
        self.flags
            .with(flag::HAS_EXTENDED_HEADER, self.extended_header.is_some())
            .with(flag::HAS_PERM_DATA, self.permission_data.is_some())
            .with(flag::HAS_MSG_KEY, self.key.is_some())
            .with(flag::HAS_SEQ_NUM, self.sequence.is_some())
            .with(flag::HAS_QOS, self.qos.is_some())
            .with(flag::HAS_POST_USER_INFO, self.post_user_info.is_some())
            .with(flag::HAS_PART_NUM, self.part.is_some())
    }

    pub(super) fn write_members(&self, w: &mut Writer<'_>) -> Result<(), Refused> {
        if let Some(sequence) = self.sequence {
            w.u32(sequence)?;
        }
        self.state.write(w)?;
        w.b8(if self.group_id.is_empty() { &[0, 0] } else { self.group_id }, "group id")?;
        if let Some(data) = self.permission_data {
            w.b15(data, "permission data")?;
        }
        if let Some(qos) = self.qos {
            let (bytes, len) = qos.encode();
            w.bytes(bytes.get(..len).unwrap_or_default())?;
        }
        if let Some(key) = self.key {
            key.write(w)?;
        }
        write_extended_header(w, self.extended_header)?;
        if let Some(info) = self.post_user_info {
            write_post_user_info(w, info)?;
        }
        write_part(w, self.part)
    }

    pub(super) fn read_members(start: &Start, cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        use flags::refresh as flag;
        Ok(Self {
            domain: start.domain,
            stream_id: start.stream_id,
            flags: start.flags,
            container: start.container,
            sequence: member(start, flag::HAS_SEQ_NUM, || cursor.u32("sequence number"))?,
            state: State::read(cursor)?,
            group_id: cursor.b8("group id")?,
            permission_data: member(start, flag::HAS_PERM_DATA, || cursor.b15("permission data"))?,
            qos: member(start, flag::HAS_QOS, || Qos::read(cursor))?,
            key: member(start, flag::HAS_MSG_KEY, || Key::read(cursor))?,
            extended_header: member(start, flag::HAS_EXTENDED_HEADER, || cursor.b8("extended header"))?,
            post_user_info: member(start, flag::HAS_POST_USER_INFO, || read_post_user_info(cursor))?,
            part: member(start, flag::HAS_PART_NUM, || cursor.u15("part number"))?,
        })
    }
}

impl<'a> StatusHeader<'a> {
    /// Returns a status without state, flags or optional members.
    #[must_use]
    pub const fn new(domain: Domain, stream_id: i32) -> Self {
        Self {
            domain,
            stream_id,
            flags: Flags::NONE,
            container: DataType::NO_DATA,
            state: None,
            group_id: None,
            permission_data: None,
            key: None,
            extended_header: None,
            post_user_info: None,
        }
    }

    pub(super) const fn all_flags(&self) -> Flags {
        use flags::status as flag;
        self.flags
            .with(flag::HAS_EXTENDED_HEADER, self.extended_header.is_some())
            .with(flag::HAS_PERM_DATA, self.permission_data.is_some())
            .with(flag::HAS_MSG_KEY, self.key.is_some())
            .with(flag::HAS_GROUP_ID, self.group_id.is_some())
            .with(flag::HAS_STATE, self.state.is_some())
            .with(flag::HAS_POST_USER_INFO, self.post_user_info.is_some())
    }

    pub(super) fn write_members(&self, w: &mut Writer<'_>) -> Result<(), Refused> {
        if let Some(state) = self.state {
            state.write(w)?;
        }
        if let Some(group_id) = self.group_id {
            w.b8(group_id, "group id")?;
        }
        if let Some(data) = self.permission_data {
            w.b15(data, "permission data")?;
        }
        if let Some(key) = self.key {
            key.write(w)?;
        }
        write_extended_header(w, self.extended_header)?;
        match self.post_user_info {
            Some(info) => write_post_user_info(w, info),
            None => Ok(()),
        }
    }

    pub(super) fn read_members(start: &Start, cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        use flags::status as flag;
        Ok(Self {
            domain: start.domain,
            stream_id: start.stream_id,
            flags: start.flags,
            container: start.container,
            state: member(start, flag::HAS_STATE, || State::read(cursor))?,
            group_id: member(start, flag::HAS_GROUP_ID, || cursor.b8("group id"))?,
            permission_data: member(start, flag::HAS_PERM_DATA, || cursor.b15("permission data"))?,
            key: member(start, flag::HAS_MSG_KEY, || Key::read(cursor))?,
            extended_header: member(start, flag::HAS_EXTENDED_HEADER, || cursor.b8("extended header"))?,
            post_user_info: member(start, flag::HAS_POST_USER_INFO, || read_post_user_info(cursor))?,
        })
    }
}

impl<'a> UpdateHeader<'a> {
    /// Returns an update in `container`, without flags or optional members.
    #[must_use]
    pub const fn new(domain: Domain, stream_id: i32, update_type: UpdateType, container: DataType) -> Self {
        Self {
            domain,
            stream_id,
            flags: Flags::NONE,
            container,
            update_type,
            sequence: None,
            conflation: None,
            permission_data: None,
            key: None,
            extended_header: None,
            post_user_info: None,
        }
    }

    pub(super) const fn all_flags(&self) -> Flags {
        use flags::update as flag;
        self.flags
            .with(flag::HAS_EXTENDED_HEADER, self.extended_header.is_some())
            .with(flag::HAS_PERM_DATA, self.permission_data.is_some())
            .with(flag::HAS_MSG_KEY, self.key.is_some())
            .with(flag::HAS_SEQ_NUM, self.sequence.is_some())
            .with(flag::HAS_CONF_INFO, self.conflation.is_some())
            .with(flag::HAS_POST_USER_INFO, self.post_user_info.is_some())
    }

    pub(super) fn write_members(&self, w: &mut Writer<'_>) -> Result<(), Refused> {
        w.u8(self.update_type.0)?;
        if let Some(sequence) = self.sequence {
            w.u32(sequence)?;
        }
        if let Some(conflation) = self.conflation {
            w.u15(usize::from(conflation.count), "conflation count")?;
            w.u16(conflation.time_ms)?;
        }
        if let Some(data) = self.permission_data {
            w.b15(data, "permission data")?;
        }
        if let Some(key) = self.key {
            key.write(w)?;
        }
        write_extended_header(w, self.extended_header)?;
        match self.post_user_info {
            Some(info) => write_post_user_info(w, info),
            None => Ok(()),
        }
    }

    pub(super) fn read_members(start: &Start, cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        use flags::update as flag;
        Ok(Self {
            domain: start.domain,
            stream_id: start.stream_id,
            flags: start.flags,
            container: start.container,
            update_type: UpdateType(cursor.u8("update type")?),
            sequence: member(start, flag::HAS_SEQ_NUM, || cursor.u32("sequence number"))?,
            conflation: member(start, flag::HAS_CONF_INFO, || {
                Ok(Conflation {
                    count: cursor.u15("conflation count")?,
                    time_ms: cursor.u16("conflation time")?,
                })
            })?,
            permission_data: member(start, flag::HAS_PERM_DATA, || cursor.b15("permission data"))?,
            key: member(start, flag::HAS_MSG_KEY, || Key::read(cursor))?,
            extended_header: member(start, flag::HAS_EXTENDED_HEADER, || cursor.b8("extended header"))?,
            post_user_info: member(start, flag::HAS_POST_USER_INFO, || read_post_user_info(cursor))?,
        })
    }
}

impl<'a> CloseHeader<'a> {
    /// Returns a close without flags or optional members.
    #[must_use]
    pub const fn new(domain: Domain, stream_id: i32) -> Self {
        Self { domain, stream_id, flags: Flags::NONE, container: DataType::NO_DATA, extended_header: None }
    }

    pub(super) const fn all_flags(&self) -> Flags {
        self.flags.with(flags::close::HAS_EXTENDED_HEADER, self.extended_header.is_some())
    }

    pub(super) fn write_members(&self, w: &mut Writer<'_>) -> Result<(), Refused> {
        write_extended_header(w, self.extended_header)
    }

    pub(super) fn read_members(start: &Start, cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            domain: start.domain,
            stream_id: start.stream_id,
            flags: start.flags,
            container: start.container,
            extended_header: member(start, flags::close::HAS_EXTENDED_HEADER, || {
                cursor.b8("extended header")
            })?,
        })
    }
}

impl<'a> AckHeader<'a> {
    /// Returns a positive acknowledgement of `ack_id`, without flags or optional members.
    #[must_use]
    pub const fn new(domain: Domain, stream_id: i32, ack_id: u32) -> Self {
        Self {
            domain,
            stream_id,
            flags: Flags::NONE,
            container: DataType::NO_DATA,
            ack_id,
            nak_code: None,
            text: None,
            sequence: None,
            key: None,
            extended_header: None,
        }
    }

    pub(super) const fn all_flags(&self) -> Flags {
        use flags::ack as flag;
        self.flags
            .with(flag::HAS_EXTENDED_HEADER, self.extended_header.is_some())
            .with(flag::HAS_TEXT, self.text.is_some())
            .with(flag::HAS_SEQ_NUM, self.sequence.is_some())
            .with(flag::HAS_MSG_KEY, self.key.is_some())
            .with(flag::HAS_NAK_CODE, self.nak_code.is_some())
    }

    pub(super) fn write_members(&self, w: &mut Writer<'_>) -> Result<(), Refused> {
        w.u32(self.ack_id)?;
        if let Some(code) = self.nak_code {
            w.u8(code.0)?;
        }
        if let Some(text) = self.text {
            w.b16(text, "ack text")?;
        }
        if let Some(sequence) = self.sequence {
            w.u32(sequence)?;
        }
        if let Some(key) = self.key {
            key.write(w)?;
        }
        write_extended_header(w, self.extended_header)
    }

    pub(super) fn read_members(start: &Start, cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        use flags::ack as flag;
        Ok(Self {
            domain: start.domain,
            stream_id: start.stream_id,
            flags: start.flags,
            container: start.container,
            ack_id: cursor.u32("ack id")?,
            nak_code: member(start, flag::HAS_NAK_CODE, || cursor.u8("nak code").map(NakCode))?,
            text: member(start, flag::HAS_TEXT, || cursor.b16("ack text"))?,
            sequence: member(start, flag::HAS_SEQ_NUM, || cursor.u32("sequence number"))?,
            key: member(start, flag::HAS_MSG_KEY, || Key::read(cursor))?,
            extended_header: member(start, flag::HAS_EXTENDED_HEADER, || cursor.b8("extended header"))?,
        })
    }
}

impl<'a> GenericHeader<'a> {
    /// Returns a generic message in `container`, without flags or optional members.
    #[must_use]
    pub const fn new(domain: Domain, stream_id: i32, container: DataType) -> Self {
        Self {
            domain,
            stream_id,
            flags: Flags::NONE,
            container,
            sequence: None,
            secondary_sequence: None,
            permission_data: None,
            key: None,
            extended_header: None,
            part: None,
        }
    }

    pub(super) const fn all_flags(&self) -> Flags {
        use flags::generic as flag;
        self.flags
            .with(flag::HAS_EXTENDED_HEADER, self.extended_header.is_some())
            .with(flag::HAS_PERM_DATA, self.permission_data.is_some())
            .with(flag::HAS_MSG_KEY, self.key.is_some())
            .with(flag::HAS_SEQ_NUM, self.sequence.is_some())
            .with(flag::HAS_SECONDARY_SEQ_NUM, self.secondary_sequence.is_some())
            .with(flag::HAS_PART_NUM, self.part.is_some())
    }

    pub(super) fn write_members(&self, w: &mut Writer<'_>) -> Result<(), Refused> {
        for sequence in [self.sequence, self.secondary_sequence].into_iter().flatten() {
            w.u32(sequence)?;
        }
        if let Some(data) = self.permission_data {
            w.b15(data, "permission data")?;
        }
        if let Some(key) = self.key {
            key.write(w)?;
        }
        write_extended_header(w, self.extended_header)?;
        write_part(w, self.part)
    }

    pub(super) fn read_members(start: &Start, cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        use flags::generic as flag;
        Ok(Self {
            domain: start.domain,
            stream_id: start.stream_id,
            flags: start.flags,
            container: start.container,
            sequence: member(start, flag::HAS_SEQ_NUM, || cursor.u32("sequence number"))?,
            secondary_sequence: member(start, flag::HAS_SECONDARY_SEQ_NUM, || {
                cursor.u32("secondary sequence number")
            })?,
            permission_data: member(start, flag::HAS_PERM_DATA, || cursor.b15("permission data"))?,
            key: member(start, flag::HAS_MSG_KEY, || Key::read(cursor))?,
            extended_header: member(start, flag::HAS_EXTENDED_HEADER, || cursor.b8("extended header"))?,
            part: member(start, flag::HAS_PART_NUM, || cursor.u15("part number"))?,
        })
    }
}

impl<'a> PostHeader<'a> {
    /// Returns a post in `container`, without flags or optional members.
    #[must_use]
    pub const fn new(domain: Domain, stream_id: i32, user: PostUserInfo, container: DataType) -> Self {
        Self {
            domain,
            stream_id,
            flags: Flags::NONE,
            container,
            post_user_info: user,
            sequence: None,
            post_id: None,
            permission_data: None,
            key: None,
            extended_header: None,
            part: None,
            post_user_rights: None,
        }
    }

    pub(super) const fn all_flags(&self) -> Flags {
        use flags::post as flag;
        self.flags
            .with(flag::HAS_EXTENDED_HEADER, self.extended_header.is_some())
            .with(flag::HAS_POST_ID, self.post_id.is_some())
            .with(flag::HAS_MSG_KEY, self.key.is_some())
            .with(flag::HAS_SEQ_NUM, self.sequence.is_some())
            .with(flag::HAS_PERM_DATA, self.permission_data.is_some())
            .with(flag::HAS_PART_NUM, self.part.is_some())
            .with(flag::HAS_POST_USER_RIGHTS, self.post_user_rights.is_some())
    }

    pub(super) fn write_members(&self, w: &mut Writer<'_>) -> Result<(), Refused> {
        write_post_user_info(w, self.post_user_info)?;
        for number in [self.sequence, self.post_id].into_iter().flatten() {
            w.u32(number)?;
        }
        if let Some(data) = self.permission_data {
            w.b15(data, "permission data")?;
        }
        if let Some(key) = self.key {
            key.write(w)?;
        }
        write_extended_header(w, self.extended_header)?;
        write_part(w, self.part)?;
        match self.post_user_rights {
            Some(rights) => w.u15(usize::from(rights), "post user rights"),
            None => Ok(()),
        }
    }

    pub(super) fn read_members(start: &Start, cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        use flags::post as flag;
        Ok(Self {
            domain: start.domain,
            stream_id: start.stream_id,
            flags: start.flags,
            container: start.container,
            post_user_info: read_post_user_info(cursor)?,
            sequence: member(start, flag::HAS_SEQ_NUM, || cursor.u32("sequence number"))?,
            post_id: member(start, flag::HAS_POST_ID, || cursor.u32("post id"))?,
            permission_data: member(start, flag::HAS_PERM_DATA, || cursor.b15("permission data"))?,
            key: member(start, flag::HAS_MSG_KEY, || Key::read(cursor))?,
            extended_header: member(start, flag::HAS_EXTENDED_HEADER, || cursor.b8("extended header"))?,
            part: member(start, flag::HAS_PART_NUM, || cursor.u15("part number"))?,
            post_user_rights: member(start, flag::HAS_POST_USER_RIGHTS, || cursor.u15("post user rights"))?,
        })
    }
}

fn write_extended_header(writer: &mut Writer<'_>, bytes: Option<&[u8]>) -> Result<(), Refused> {
    bytes.map_or(Ok(()), |bytes| writer.b8(bytes, "extended header"))
}

fn write_part(writer: &mut Writer<'_>, part: Option<u16>) -> Result<(), Refused> {
    part.map_or(Ok(()), |part| writer.u15(usize::from(part), "part number"))
}

/// Reads a member if `flag` is set.
fn member<T>(
    start: &Start,
    flag: Flags,
    read: impl FnOnce() -> Result<T, Malformed>,
) -> Result<Option<T>, Malformed> {
    if start.flags.has(flag) { read().map(Some) } else { Ok(None) }
}

fn read_post_user_info(cursor: &mut Cursor<'_>) -> Result<PostUserInfo, Malformed> {
    Ok(PostUserInfo { address: cursor.u32("post user address")?, user_id: cursor.u32("post user id")? })
}

fn write_post_user_info(writer: &mut Writer<'_>, info: PostUserInfo) -> Result<(), Refused> {
    writer.u32(info.address)?;
    Ok(writer.u32(info.user_id)?)
}
