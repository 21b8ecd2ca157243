//! Dictionaries in transfer to a peer, in parts, as space allows.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Outbox;
use crate::Dictionary;
use crate::domain::{DictionaryKind, DictionaryRequest};

/// Maximum number of dictionaries in transfer at the same time. A peer requests two.
const MOST_DOWNLOADS: usize = 16;

/// One dictionary in transfer.
#[derive(Debug)]
pub(super) struct DictionaryTransfer {
    kind: DictionaryKind,
    /// The request, without its name.
    request: DictionaryRequest<'static>,
    dictionary: Arc<Dictionary>,
    from: usize,
}

#[derive(Debug, Default)]
pub(super) struct Downloads(VecDeque<DictionaryTransfer>);

/// Result of sending the next part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is in transfer, or there is no space.
    Waits,
    /// A part of a stream's dictionary was sent; `is_last` marks the last one.
    Sent { stream_id: i32, is_last: bool },
    /// The dictionary has an entry that no message can hold.
    Failed { stream_id: i32 },
}

impl Downloads {
    /// Starts a transfer, or restarts it. `false`: too many are active.
    pub(super) fn begin(
        &mut self,
        kind: DictionaryKind,
        request: &DictionaryRequest<'_>,
        dictionary: &Arc<Dictionary>,
    ) -> bool {
        self.cancel(request.stream_id);
        if self.0.len() == MOST_DOWNLOADS {
            return false;
        }
        let (request, dictionary) = (request.kept(kind), Arc::clone(dictionary));
        self.0.push_back(DictionaryTransfer { kind, request, dictionary, from: 0 });
        true
    }

    /// Cancels the transfer to this stream.
    pub(super) fn cancel(&mut self, stream_id: i32) {
        self.0.retain(|download| download.request.stream_id != stream_id);
    }

    /// Sends the next part of at most `most` bytes.
    pub(super) fn go_on(&mut self, most: usize, out: &mut dyn Outbox) -> Progress {
        let size = most.min(out.most());
        let Some(download) = self.0.front_mut() else { return Progress::Waits };
        let Some(room) = out.claim(size) else { return Progress::Waits };
        let room = room.get_mut(..size).unwrap_or_default();
        let stream_id = download.request.stream_id;
        match download.request.encode_part(download.kind, &download.dictionary, download.from, room) {
            Ok(part) => {
                out.commit(part.len);
                download.from = part.next;
                if part.is_last {
                    self.0.pop_front();
                }
                Progress::Sent { stream_id, is_last: part.is_last }
            }
            Err(_) => {
                self.0.pop_front();
                Progress::Failed { stream_id }
            }
        }
    }
}
