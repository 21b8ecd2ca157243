//! Messages that somebody else has encoded, passed on.

use tapeline_nanos::Nanos;

use super::{Outbox, Provider, StreamHandle};
use crate::Refused;
use crate::role::Sent;
use crate::rwf::{AckHeader, Flags, Header, MessageView, flags};

impl Provider {
    /// Sends a message of the provider behind this one on a stream: a refresh, an update, a status, a generic message or the
    /// receipt of a post. What belongs to the stream is filled in, as by the methods for each of them.
    ///
    /// [`Sent::NotOpen`] also for what no provider sends, and for what cannot be read.
    pub fn pass_on(
        &mut self,
        now: Nanos,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        message: &[u8],
    ) -> Sent {
        let Ok(view) = MessageView::parse(message) else { return Sent::NotOpen };
        let Ok(header) = view.header() else { return Sent::NotOpen };
        let mut payload = |room: &mut [u8]| {
            let len = view.payload().len();
            room.get_mut(..len).ok_or(Refused::Full)?.copy_from_slice(view.payload());
            Ok(len)
        };
        let sent = match header {
            Header::Refresh(header) => self.refresh(out, stream, &header, &mut payload),
            Header::Status(header) => self.status(now, out, stream, &header),
            Header::Update(_) => Ok(self.update(out, stream, message)),
            Header::Generic(header) => self.generic(out, Some(stream), &header, &mut payload),
            Header::Ack(header) => match self.streams.get(stream).filter(|open| open.refusal.is_none()) {
                Some(open) => {
                    let flags = if open.is_private { flags::ack::PRIVATE_STREAM } else { Flags::NONE };
                    let (domain, stream_id) = (open.domain, open.id);
                    let ack = AckHeader { domain, stream_id, flags, key: None, ..header };
                    self.peer.owe(out, &mut |room| ack.encode(room))
                }
                None => Ok(Sent::NotOpen),
            },
            Header::Request(_) | Header::Close(_) | Header::Post(_) => Ok(Sent::NotOpen),
        };
        // Members that are too long: what was read here fits.
        sent.unwrap_or(Sent::TooLong)
    }
}
