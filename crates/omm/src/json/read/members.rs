//! Members of each kind of object, gathered in one pass in any order.

use super::super::fault::JsonProblem;
use super::super::names;
use super::super::scan::{Raw, Token};
use super::Reading;
use crate::Refused;
use crate::rwf::DataType;

macro_rules! members {
    ($($(#[$doc:meta])* $name:ident { $($field:ident = $key:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Default)]
        pub(super) struct $name<'t> {
            $(pub(super) $field: Option<Raw<'t>>,)*
            /// The only container that the object may hold.
            pub(super) payload: Option<(DataType, Raw<'t>)>,
        }

        impl<'t> $name<'t> {
            /// Gathers the members of an object, which is the value of the member `key`. Of duplicate members the last
            /// one counts. `null` counts as absent, except for a container, where it is an empty one.
            #[inline]
            pub(super) fn of(reading: &mut Reading<'_>, key: &str, raw: Raw<'t>) -> Result<Self, Refused> {
                let mut found = Self::default();
                found.gather(reading, key, raw)?;
                Ok(found)
            }

            // In place: otherwise each of up to forty members is copied one by one.
            #[inline(never)]
            fn gather(&mut self, reading: &mut Reading<'_>, key: &str, raw: Raw<'t>) -> Result<(), Refused> {
                if raw.token() != Token::Object {
                    return Err(reading.stop(JsonProblem::kind(key, "OBJECT", raw), raw));
                }
                for (key, value) in raw.members() {
                    match &*key {
                        $($key => self.$field = Some(value).filter(|value| !value.is_null()),)*
                        other => match names::number(names::CONTAINERS, other) {
                            Some(_) if self.payload.is_some() => {
                                return Err(reading.stop(JsonProblem::Key(other.to_owned()), value));
                            }
                            Some(data_type) => self.payload = Some((DataType(data_type), value)),
                            None => reading.unknown(other, value)?,
                        },
                    }
                }
                Ok(())
            }
        }
    )*};
}

members! {
    /// Members of a message of any class.
    MessageMembers {
        id = "ID",
        r#type = "Type",
        domain = "Domain",
        key = "Key",
        streaming = "Streaming",
        refresh = "Refresh",
        pause = "Pause",
        key_in_updates = "KeyInUpdates",
        conf_info_in_updates = "ConfInfoInUpdates",
        priority = "Priority",
        qos = "Qos",
        worst_qos = "WorstQos",
        view = "View",
        view_type = "ViewType",
        private = "Private",
        qualified = "Qualified",
        state = "State",
        solicited = "Solicited",
        complete = "Complete",
        clear_cache = "ClearCache",
        do_not_cache = "DoNotCache",
        do_not_conflate = "DoNotConflate",
        do_not_ripple = "DoNotRipple",
        discardable = "Discardable",
        update_type = "UpdateType",
        conflation_info = "ConflationInfo",
        seq_number = "SeqNumber",
        sec_seq_number = "SecSeqNumber",
        part_number = "PartNumber",
        perm_data = "PermData",
        ext_hdr = "ExtHdr",
        post_user_info = "PostUserInfo",
        post_id = "PostID",
        post_user_rights = "PostUserRights",
        ack = "Ack",
        ack_id = "AckID",
        nak_code = "NakCode",
        text = "Text",
        provider_driven = "ProviderDriven",
        // Spelling in examples of the specification.
        upper_qos = "QOS",
    }

    /// Members of a key, whose attributes are its container.
    KeyMembers {
        service = "Service",
        name = "Name",
        name_type = "NameType",
        filter = "Filter",
        identifier = "Identifier",
    }

    StateMembers {
        stream = "Stream",
        data = "Data",
        code = "Code",
        text = "Text",
    }

    QosMembers {
        timeliness = "Timeliness",
        rate = "Rate",
        dynamic = "Dynamic",
        time_info = "TimeInfo",
        rate_info = "RateInfo",
    }

    PostUserInfoMembers {
        address = "Address",
        user_id = "UserID",
    }

    /// Members of an element that is not a bare value, and of an array.
    TypedMembers {
        r#type = "Type",
        length = "Length",
        data = "Data",
    }

    /// Members of a map, a vector, a series and a filter list.
    EntriesMembers {
        key_type = "KeyType",
        key_fid = "KeyFieldID",
        count_hint = "CountHint",
        sorting = "SupportSorting",
        summary = "Summary",
        entries = "Entries",
    }

    /// Members of an entry of these containers, and of a summary.
    EntryMembers {
        action = "Action",
        key = "Key",
        index = "Index",
        id = "ID",
        perm_data = "PermData",
        // LSEG's converter accepts it in a filter list's entry, and uses the type of the container.
        data_type = "Type",
    }
}
