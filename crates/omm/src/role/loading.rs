//! Both dictionaries from the wire, in whatever order their parts come.

use super::{Outbox, Sent};
use crate::dictionary::{Download, DownloadError};
use crate::domain::{DictionaryKind, DictionaryRequest};
use crate::rwf::{Header, MessageView, StreamState, flags};
use crate::{Dictionary, State};

/// Why there is no dictionary from the wire.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadFailed<'a> {
    /// A part is not as it should be.
    #[error("the dictionary cannot be read: {0}")]
    Unreadable(DownloadError),
    /// Enumerations that came before the fields are complete are kept up to a limit.
    #[error("more than {0} bytes of enumerations came before the fields were complete")]
    TooMuch(usize),
    /// The provider closed the stream.
    #[error("the provider closed the dictionary's stream: {0}")]
    Closed(State<'a>),
}

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loaded {
    /// There is more to come.
    More,
    /// Both are there.
    All,
    /// The provider wants to be asked again later.
    Again,
}

/// Dictionaries that are on their way: the fields on one stream, the enumerations on the next.
#[derive(Debug, Default)]
pub(super) struct Loading {
    download: Download,
    /// Fields, enumerations.
    is_complete: [bool; 2],
    /// Enumerations that came before the fields were complete.
    early: Vec<Box<[u8]>>,
    early_len: usize,
    /// How many of the two requests are sent.
    asked: usize,
    /// The stream of the fields.
    fields_stream: i32,
}

/// Bytes of enumerations that are kept until the fields are complete. The standard dictionary's have half a million.
const MOST_EARLY: usize = 16 << 20;

impl Loading {
    /// Asks for both, on these streams, unless they were asked for. Whether there was room.
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

    /// Takes a message on one of the streams.
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
            // They belong to fields, which have to be there.
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

    /// The dictionary.
    pub(super) fn finish(self) -> Dictionary {
        self.download.finish()
    }
}
