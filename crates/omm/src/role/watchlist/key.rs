//! Identity of a stream: requests with the same key share it.

use crate::Qos;
use crate::rwf::{DataType, Domain, NameType};

/// Identity of a stream: one stream serves all requests that are equal in these members.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct StreamKey {
    /// Place in the table of services.
    pub(crate) service: u32,
    pub(crate) domain: Domain,
    pub(crate) name_type: Option<NameType>,
    pub(crate) is_streaming: bool,
    pub(crate) is_private: bool,
    pub(crate) key_in_updates: bool,
    pub(crate) qos: Option<Qos>,
    pub(crate) worst_qos: Option<Qos>,
    pub(crate) name: Box<[u8]>,
    /// Members that few requests have.
    pub(crate) more: Option<Box<More>>,
}

/// Members of a key that requests for prices do not have.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct More {
    pub(crate) filter: Option<u32>,
    pub(crate) identifier: Option<i32>,
    pub(crate) attributes: Option<(DataType, Box<[u8]>)>,
    /// Part of the payload, but also of the identity.
    pub(crate) data_streams: Option<u64>,
}

impl StreamKey {
    /// Returns `true` if other items may join the stream.
    pub(crate) const fn is_shareable(&self) -> bool {
        self.is_streaming && !self.is_private
    }

    /// Returns `true` if the key has more than a batch can express.
    pub(crate) const fn is_special(&self) -> bool {
        self.is_private || self.more.is_some()
    }

    /// Returns `true` if a request of `other` differs from a request of this only in the name.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let of = |key: &Self| {
            (
                key.service,
                key.domain,
                key.name_type,
                key.is_streaming,
                key.key_in_updates,
                key.qos,
                key.worst_qos,
            )
        };
        of(self) == of(other) && !other.is_special()
    }
}
