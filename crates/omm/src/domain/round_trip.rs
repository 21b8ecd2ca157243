//! Round trips: the provider sends its clock on the login stream, and the consumer returns it at once.

use super::elements::elements;
use crate::rwf::{Container, DataType, Domain, GenericHeader, MessageClass, MessageView, flags};
use crate::{Malformed, Refused};

elements! {
    /// Payload of a round trip.
    RoundTrip {
        /// Clock of the provider, in its own unit: nanoseconds in the vendor's library, and here.
        ticks "Ticks": u64,
        /// Last measured round trip, microseconds.
        latency_us "RoundTripLatency": u64,
        /// TCP segments that the provider retransmitted.
        tcp_retransmissions "TcpRetrans": u64,
    }
}

impl RoundTrip {
    /// Reads a message; `None` if it is not a round trip. A consumer answers with the same bytes.
    ///
    /// # Errors
    ///
    /// Fails if the payload is malformed.
    pub fn read(message: &MessageView<'_>) -> Result<Option<Self>, Malformed> {
        let is_round_trip = message.class() == MessageClass::GENERIC
            && message.domain() == Domain::LOGIN
            && message.flags().has(flags::generic::PROVIDER_DRIVEN);
        if !is_round_trip {
            return Ok(None);
        }
        match message.open()? {
            Container::ElementList(list) => {
                Self::read_elements(&list).map(|read| read.ticks.is_some().then_some(read))
            }
            _ => Ok(None),
        }
    }

    /// Writes the provider's message to the start of `out`; returns its length.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`].
    pub fn encode(&self, stream_id: i32, out: &mut [u8]) -> Result<usize, Refused> {
        let header = GenericHeader {
            flags: flags::generic::PROVIDER_DRIVEN,
            ..GenericHeader::new(Domain::LOGIN, stream_id, DataType::ELEMENT_LIST)
        };
        header.encode_with(out, |room| self.encode_in(room))
    }
}
