//! Dictionaries for the consumer.

use std::sync::Arc;

use super::{Outbox, Provider, StreamHandle};
use crate::Dictionary;
use crate::dictionary::Verbosity;
use crate::domain::{DictionaryKind, DictionaryRequest};
use crate::role::Sent;
use crate::role::downloads::Progress;
use crate::rwf::{Flags, StateCode, StreamState, flags};

impl Provider {
    /// Answers a dictionary request. Parts without space are sent by later ticks.
    ///
    /// A name other than those of the two dictionaries is refused as not found.
    pub fn dictionary(
        &mut self,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        dictionary: &Arc<Dictionary>,
    ) -> Sent {
        let Some(open) = self.streams.get(stream).filter(|open| open.refusal.is_none()) else {
            return Sent::NotOpen;
        };
        let at = (open.domain, open.id);
        let Some(kind) = DictionaryKind::named(open.name()) else {
            self.streams.close(stream);
            let text = "There is no such dictionary";
            self.peer.refuse(out, at, StreamState::CLOSED, StateCode::NOT_FOUND, text);
            return Sent::Queued;
        };
        let request = DictionaryRequest {
            stream_id: open.id,
            flags: if open.is_streaming { flags::request::STREAMING } else { Flags::NONE },
            service_id: open.service_id,
            name: open.name(),
            verbosity: open.filter.map_or(Verbosity::NORMAL, Verbosity),
        };
        if self.downloads.begin(kind, &request, dictionary) {
            self.go_on_with_downloads(out);
        } else {
            self.streams.close(stream);
            let text = "Too many dictionaries are asked for at once";
            self.peer.refuse(out, at, StreamState::CLOSED_RECOVER, StateCode::NO_RESOURCES, text);
        }
        Sent::Queued
    }

    /// Sends parts while there is space.
    pub(super) fn go_on_with_downloads(&mut self, out: &mut dyn Outbox) {
        while self.peer.settle(out) {
            match self.downloads.go_on(self.settings.dictionary_part_bytes, out) {
                Progress::Waits => return,
                Progress::Sent { stream_id, is_last } => {
                    let Some(handle) = self.streams.find(stream_id) else { continue };
                    let Some(stream) = self.streams.get_mut(handle) else { continue };
                    stream.has_image = true;
                    stream.is_awaited &= !is_last;
                    if is_last && !stream.is_streaming {
                        self.streams.close(handle);
                    }
                }
                Progress::Failed { stream_id } => {
                    let Some(closed) =
                        self.streams.find(stream_id).and_then(|handle| self.streams.close(handle))
                    else {
                        continue;
                    };
                    let text = "The dictionary has an entry that is too long to be sent";
                    let at = (closed.domain, closed.id);
                    self.peer.refuse(out, at, StreamState::CLOSED, StateCode::ERROR, text);
                }
            }
        }
    }
}
