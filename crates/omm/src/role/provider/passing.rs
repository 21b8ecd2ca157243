//! Forwarding of messages that another party has encoded.

use tapeline_nanos::Nanos;

use super::{Outbox, Provider, StreamHandle};
use crate::role::{Sent, copy_of};
use crate::rwf::{AckHeader, Flags, Header, MessageView, flags};

impl Provider {
    /// Forwards a message from the provider behind this one on a stream: a refresh, an update, a status, a generic
    /// message or the acknowledgement of a post. The members of the stream are filled in, as in the methods for each
    /// class.
    ///
    /// Returns [`Sent::NotOpen`] also for a class that no provider sends, and for a malformed message.
    pub fn pass_on(
        &mut self,
        now: Nanos,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        message: &[u8],
    ) -> Sent {
        let Ok(view) = MessageView::parse(message) else { return Sent::NotOpen };
        let Ok(header) = view.header() else { return Sent::NotOpen };
        let mut payload = copy_of(view.payload());
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
        // For a member that is too long. This does not happen: the member was read from a message.
        sent.unwrap_or(Sent::TooLong)
    }
}
