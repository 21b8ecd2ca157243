//! The form of each member on the wire (RWF chapter 2, the table of classes).

use super::super::{Cursor, Key, NakCode, Qos, State, UpdateType, Writer};
use super::{Conflation, PostUserInfo, Priority};
use crate::{Malformed, Refused};

/// For each member: how it is read, and how it is written.
macro_rules! members {
    ($cursor:ident, $writer:ident, $value:ident;
     $($member:ident: $type:ty { $read:expr; $write:expr })*) => {
        impl<'a> Cursor<'a> {
            $(#[inline] pub(super) fn $member(&mut self) -> Result<$type, Malformed> {
                let $cursor = self;
                $read
            })*
        }

        impl<'a> Writer<'_> {
            $(#[inline] pub(super) fn $member(&mut self, $value: $type) -> Result<(), Refused> {
                let $writer = self;
                $write
            })*
        }
    };
}

members! {
    cursor, w, value;

    ack_id: u32 { cursor.u32("ack id"); Ok(w.u32(value)?) }
    post_id: u32 { cursor.u32("post id"); Ok(w.u32(value)?) }
    sequence: u32 { cursor.u32("sequence number"); Ok(w.u32(value)?) }
    secondary_sequence: u32 { cursor.u32("secondary sequence number"); Ok(w.u32(value)?) }
    part: u16 { cursor.u15("part number"); w.u15(usize::from(value), "part number") }
    post_user_rights: u16 { cursor.u15("post user rights"); w.u15(usize::from(value), "post user rights") }
    update_type: UpdateType { cursor.u8("update type").map(UpdateType); Ok(w.u8(value.0)?) }
    nak_code: NakCode { cursor.u8("nak code").map(NakCode); Ok(w.u8(value.0)?) }
    text: &'a [u8] { cursor.b16("ack text"); w.b16(value, "ack text") }
    extended_header: &'a [u8] { cursor.b8("extended header"); w.b8(value, "extended header") }
    permission_data: &'a [u8] { cursor.b15("permission data"); w.b15(value, "permission data") }
    group_id: &'a [u8] { cursor.b8("group id"); w.b8(value, "group id") }
    state: State<'a> { State::read(cursor); value.write(w) }
    key: Key<'a> { Key::read(cursor); value.write(w) }
    qos: Qos { Qos::read(cursor); value.write(w) }
    worst_qos: Qos { Qos::read(cursor); value.write(w) }
    priority: Priority {
        Ok(Priority { class: cursor.u8("priority class")?, count: cursor.u16ob("priority count")? });
        {
            w.u8(value.class)?;
            w.u16ob(usize::from(value.count), "priority count")
        }
    }
    conflation: Conflation {
        Ok(Conflation { count: cursor.u15("conflation count")?, time_ms: cursor.u16("conflation time")? });
        {
            w.u15(usize::from(value.count), "conflation count")?;
            Ok(w.u16(value.time_ms)?)
        }
    }
    post_user_info: PostUserInfo {
        Ok(PostUserInfo { address: cursor.u32("post user address")?, user_id: cursor.u32("post user id")? });
        {
            w.u32(value.address)?;
            Ok(w.u32(value.user_id)?)
        }
    }
}

impl Writer<'_> {
    /// Writes the group of an image, which is never empty.
    pub(super) fn group_of_image(&mut self, group_id: &[u8]) -> Result<(), Refused> {
        self.group_id(if group_id.is_empty() { &[0, 0] } else { group_id })
    }
}
