//! The traffic of both providers: contents of updates and images, and the times in them.

use tapeline_console::failure::Hinted;
use tapeline_measure::monotonic_ns;
use tapeline_omm::domain::directory::Info;
use tapeline_omm::rwf::{DataType, Domain, RefreshHeader, UpdateHeader, UpdateType, flags};
use tapeline_omm::{Dictionary, Fid, Qos, Refused, State};

use super::bursts::Due;
use super::messages::{DomainMessages, Messages, Payload};
use super::options::{PublishingArgs, RunArgs};
use super::stamp::{Stamp, Unit};
use super::tally::Tally;

/// A provider's traffic settings and message contents, for both kinds of provider.
pub(super) struct Publishing {
    /// The plan's own publishing options, for what both providers share.
    pub(super) args: PublishingArgs,
    pub(super) tick_rate: u64,
    pub(super) unit: Unit,
    pub(super) prices: Contents,
    pub(super) books: Option<Contents>,
}

/// The messages of one domain.
pub(super) struct Contents {
    pub(super) messages: DomainMessages,
    /// Complete updates, encoded in advance, in the order of the payloads; empty if they are encoded each time.
    pub(super) updates: Vec<Box<[u8]>>,
}

impl Publishing {
    /// Loads the messages.
    pub(super) fn new(args: &PublishingArgs, run: &RunArgs, dictionary: &Dictionary) -> anyhow::Result<Self> {
        let Messages { market_price, market_by_order } =
            Messages::load(args.msg_file.as_deref(), dictionary)?;
        let contents = |domain, messages| Contents::new(domain, messages, args.pre_enc);
        Ok(Self {
            args: args.clone(),
            tick_rate: run.pace.tick_rate,
            unit: run.unit(),
            prices: contents(Domain::MARKET_PRICE, market_price)?,
            books: market_by_order.map(|books| contents(Domain::MARKET_BY_ORDER, books)).transpose()?,
        })
    }

    /// Refuses a size of packed messages that exceeds the largest frame.
    pub(super) fn check_pack(&self, max_fragment_size: u16) -> Result<(), Hinted> {
        let Some(bytes) = self.args.pack_buffer_size.filter(|bytes| *bytes > max_fragment_size) else {
            return Ok(());
        };
        let what = format!(
            "--pack-buffer-size is {bytes}, more than the largest frame, which is {max_fragment_size}"
        );
        Err(Hinted::of_options(what, "make it smaller, or raise --max-fragment-size of whoever listens"))
    }

    /// The messages of books or of prices.
    #[inline]
    pub(super) fn contents(&self, is_book: bool) -> &Contents {
        match &self.books {
            Some(books) if is_book => books,
            _ => &self.prices,
        }
    }

    /// Whether a domain is that of books; `None` if there are no messages for the domain.
    pub(super) fn is_book(&self, domain: Domain) -> Option<bool> {
        match domain {
            Domain::MARKET_PRICE => Some(false),
            Domain::MARKET_BY_ORDER => self.books.as_ref().map(|_| true),
            _ => None,
        }
    }

    /// The provided service, with its domains.
    pub(super) fn info(&self, name: String, vendor: Option<String>) -> Info {
        let books = self.books.as_ref().map(|_| Domain::MARKET_BY_ORDER);
        let names = || vec!["RWFFld".to_owned(), "RWFEnum".to_owned()];
        Info {
            name: Some(name),
            vendor,
            is_source: Some(1),
            capabilities: Some([Domain::DICTIONARY, Domain::MARKET_PRICE].into_iter().chain(books).collect()),
            dictionaries_provided: Some(names()),
            dictionaries_used: Some(names()),
            qos: Some(vec![Qos::REALTIME_TICK]),
            ..Info::default()
        }
    }

    /// The stamp of a due message, taken now; `None` if it carries no time.
    #[inline]
    pub(super) fn stamp(&self, field: Fid, due: Due) -> Option<Stamp> {
        due.is_stamped.then(|| Stamp {
            field,
            sent: self.unit.wire_of(monotonic_ns()),
            due: (!self.args.no_due).then(|| self.unit.wire_of(due.at.0)),
        })
    }

    /// Encodes a payload, and measures the time if enabled; copies one encoded in advance if it carries no time.
    #[inline]
    pub(super) fn encode(
        &self,
        payload: &Payload,
        stamp: Option<Stamp>,
        room: &mut [u8],
        tally: &mut Tally,
    ) -> Result<usize, Refused> {
        if self.args.pre_enc && stamp.is_none() {
            let bytes = payload.encoded();
            room.get_mut(..bytes.len()).ok_or(Refused::Full)?.copy_from_slice(bytes);
            return Ok(bytes.len());
        }
        if !self.args.measure_encode {
            return payload.encode(room, stamp);
        }
        let begun = monotonic_ns();
        let len = payload.encode(room, stamp)?;
        tally.encoding.record(monotonic_ns().wrapping_sub(begun).cast_signed());
        Ok(len)
    }

    pub(super) fn image_header(&self, domain: Domain, payload: &Payload) -> RefreshHeader<'static> {
        let state = State { text: b"Item Refresh Completed", ..State::OPEN_OK };
        RefreshHeader {
            flags: flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE,
            qos: Some(Qos::REALTIME_TICK),
            ..RefreshHeader::new(domain, 0, state, payload.container())
        }
    }
}

impl Contents {
    /// Update number `turn`: its payload, and its complete encoding if made in advance.
    #[inline]
    pub(super) fn update(&self, turn: u32) -> Option<(&Payload, Option<&[u8]>)> {
        let turn = turn as usize;
        Some((self.messages.updates.get(turn)?, self.updates.get(turn).map(|bytes| &**bytes)))
    }

    fn new(domain: Domain, messages: DomainMessages, encodes: bool) -> anyhow::Result<Self> {
        let whole = |payload: &Payload| -> anyhow::Result<Box<[u8]>> {
            let header = UpdateHeader::new(domain, 0, update_type(payload), payload.container());
            let mut bytes = vec![0; 64];
            let len = header.encode(&mut bytes)?;
            bytes.truncate(len);
            bytes.extend_from_slice(payload.encoded());
            Ok(bytes.into())
        };
        let updates = match encodes {
            true => messages.updates.iter().map(whole).collect::<anyhow::Result<_>>()?,
            false => Vec::new(),
        };
        Ok(Self { messages, updates })
    }
}

/// The index after `turn` in a cycle of `of`.
#[inline]
pub(super) fn after(turn: u32, of: usize) -> u32 {
    if (turn as usize) + 1 < of { turn + 1 } else { 0 }
}

/// The update type for prices or a book.
#[inline]
pub(super) fn update_type(payload: &Payload) -> UpdateType {
    if payload.container() == DataType::FIELD_LIST { UpdateType::QUOTE } else { UpdateType::UNSPECIFIED }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::omm::options::{ProviderArgs, StampRate, of};

    #[test]
    fn options_are_what_is_sent_and_how() {
        let publishing = |line: &str| {
            let args = of::<ProviderArgs>(line);
            Publishing::new(&args.publishing, &args.run, Dictionary::builtin()).unwrap()
        };
        let sizes =
            |publishing: &Publishing| (publishing.args.refresh_burst_size, publishing.args.max_pack_count);
        let usual = publishing("");
        assert_eq!((sizes(&usual), usual.prices.updates.len()), ((10, 1), 0));
        let other = publishing("--refresh-burst-size 7 --max-pack-count 3 --pre-enc");
        assert_eq!(sizes(&other), (7, 3));
        assert_eq!(other.prices.updates.len(), other.prices.messages.updates.len());
        assert_eq!(publishing("--update-rate 0").args.stamped_updates(), StampRate::PerSecond(0));
    }
}
