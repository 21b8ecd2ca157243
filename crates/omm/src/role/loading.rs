//! Download of both dictionaries; their parts may arrive in any order.

use super::{Outbox, Sent};
use crate::dictionary::{Download, DownloadError};
use crate::domain::{DictionaryKind, DictionaryRequest};
use crate::rwf::{Header, MessageView, StreamState, flags};
use crate::{Dictionary, State};

/// Reason why a download failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadFailed<'a> {
    /// A part is invalid.
    #[error("the dictionary cannot be read: {0}")]
    Unreadable(DownloadError),
    /// Too many bytes of enumerations arrived before the fields were complete.
    #[error("more than {0} bytes of enumerations came before the fields were complete")]
    TooMuch(usize),
    /// The provider closed the stream.
    #[error("the provider closed the dictionary's stream: {0}")]
    Closed(State<'a>),
}

/// Progress of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loaded {
    /// More parts will arrive.
    More,
    /// Both dictionaries are complete.
    All,
    /// The provider wants another request later.
    Again,
}

/// Download of both dictionaries: the fields on one stream, the enumerations on the next.
#[derive(Debug, Default)]
pub(super) struct Loading {
    download: Download,
    /// Fields, enumerations.
    is_complete: [bool; 2],
    /// Enumerations that arrived before the fields were complete.
    early: Vec<Box<[u8]>>,
    early_len: usize,
    /// Number of requests sent, of two.
    asked: usize,
    /// Stream of the fields.
    fields_stream: i32,
}

/// Maximum bytes of enumerations that are stored until the fields are complete. Those of the standard dictionary have
/// half a million.
const MOST_EARLY: usize = 16 << 20;

impl Loading {
    /// Requests both dictionaries on these streams, unless they were requested. Returns `true` if there was space.
    pub(super) fn ask(&mut self, streams: [i32; 2], service: u16, out: &mut dyn Outbox) -> bool {
        self.fields_stream = streams[0];
        let kinds = [DictionaryKind::Fields, DictionaryKind::Enumerations];
        for (kind, id) in kinds.into_iter().zip(streams).skip(self.asked) {
            let request = DictionaryRequest::new(id, service, kind);
            if out.encode(&mut |room| request.encode(room)) == Ok(Sent::Full) {
                return false;
            }
            self.asked += 1;
        }
        true
    }

    /// Processes a message on one of the streams.
    pub(super) fn message<'a>(
        &mut self,
        message: &MessageView<'a>,
        header: &Header<'a>,
    ) -> Result<Loaded, DownloadFailed<'a>> {
        let Some(state) = header.state() else { return Ok(Loaded::More) };
        match state.stream {
            StreamState::CLOSED | StreamState::REDIRECTED => return Err(DownloadFailed::Closed(state)),
            StreamState::CLOSED_RECOVER => return Ok(Loaded::Again),
            _ => {}
        }
        let Header::Refresh(refresh) = header else { return Ok(Loaded::More) };
        let is_complete = refresh.flags.has(flags::refresh::REFRESH_COMPLETE);
        self.take(message.stream_id() == self.fields_stream, is_complete, message.payload())?;
        Ok(if self.is_complete == [true; 2] { Loaded::All } else { Loaded::More })
    }

    fn take(
        &mut self,
        is_fields: bool,
        is_complete: bool,
        payload: &[u8],
    ) -> Result<(), DownloadFailed<'static>> {
        let [fields, enumerations] = &mut self.is_complete;
        if is_fields {
            self.download.fields(payload).map_err(DownloadFailed::Unreadable)?;
            *fields |= is_complete;
        } else {
            *enumerations |= is_complete;
            // Enumerations belong to fields, which must exist first.
            self.early_len += payload.len() + size_of::<Box<[u8]>>();
            if self.early_len > MOST_EARLY {
                return Err(DownloadFailed::TooMuch(MOST_EARLY));
            }
            self.early.push(payload.into());
        }
        if *fields {
            for payload in std::mem::take(&mut self.early) {
                self.download.enumerations(&payload).map_err(DownloadFailed::Unreadable)?;
            }
        }
        Ok(())
    }

    /// Returns the dictionary.
    pub(super) fn finish(self) -> Dictionary {
        self.download.finish()
    }
}
