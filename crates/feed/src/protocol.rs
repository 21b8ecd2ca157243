//! The protocols that a feed can speak: a transport and the messages in it.

use tapeline_nanos::Nanos;

use crate::book;
use crate::dbn;
use crate::framing::Framing;
use crate::iex;
use crate::line::Restart;
use crate::normalise::{Dbn, Iex, Itch, Normaliser};
use crate::symbols::{Filter, NumberFilter, Symbols};
use crate::venues::{CryptoVenue, VenueFeed, VenueSettings};

/// The protocol of a feed, from its datagrams to its messages.
///
/// To add a protocol, add a variant with its names, its [`Framing`] and its [`Normaliser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// NASDAQ TotalView-ITCH 5.0 in MoldUDP64.
    ItchMoldUdp64,
    /// IEX TOPS 1.6 in IEX-TP.
    IexTops,
    /// IEX DEEP 1.0 in IEX-TP.
    IexDeep,
    /// Databento's records, versions 1 to 3, from files.
    Dbn,
    /// Binance's public streams.
    Binance,
    /// Coinbase Exchange's public channels.
    Coinbase,
    /// Kraken's public channels, version 1.
    Kraken,
    /// BitMEX's public tables.
    Bitmex,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 8] = [
        Self::ItchMoldUdp64,
        Self::IexTops,
        Self::IexDeep,
        Self::Dbn,
        Self::Binance,
        Self::Coinbase,
        Self::Kraken,
        Self::Bitmex,
    ];

    /// Returns the name in configurations and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ItchMoldUdp64 => "itch50-moldudp64",
            Self::IexTops => "iex-tops-1.6",
            Self::IexDeep => "iex-deep-1.0",
            Self::Dbn => "dbn",
            Self::Binance => "binance",
            Self::Coinbase => "coinbase",
            Self::Kraken => "kraken",
            Self::Bitmex => "bitmex",
        }
    }

    /// Returns other spellings of the name.
    #[must_use]
    pub const fn other_names(self) -> &'static [&'static str] {
        match self {
            Self::ItchMoldUdp64 => &["nasdaq-itch-5.0"],
            Self::IexTops => &["tops16-iextp"],
            Self::IexDeep => &["deep10-iextp"],
            Self::Dbn | Self::Binance | Self::Coinbase | Self::Kraken | Self::Bitmex => &[],
        }
    }

    /// Returns the protocol of a name, in any of its spellings.
    ///
    /// # Errors
    /// [`UnknownProtocol`].
    pub fn named(name: &str) -> Result<Self, UnknownProtocol> {
        let is = |protocol: &Self| protocol.name() == name || protocol.other_names().contains(&name);
        Self::ALL.into_iter().find(is).ok_or(UnknownProtocol)
    }

    /// Returns the venue whose public streams the protocol is; `None` for any other protocol.
    #[must_use]
    pub const fn venue(self) -> Option<CryptoVenue> {
        match self {
            Self::Binance => Some(CryptoVenue::Binance),
            Self::Coinbase => Some(CryptoVenue::Coinbase),
            Self::Kraken => Some(CryptoVenue::Kraken),
            Self::Bitmex => Some(CryptoVenue::Bitmex),
            Self::ItchMoldUdp64 | Self::IexTops | Self::IexDeep | Self::Dbn => None,
        }
    }

    /// Returns the transport of datagrams; `None` for a protocol that exists in files only, or on connections.
    #[must_use]
    pub const fn framing(self) -> Option<Framing> {
        match self {
            Self::ItchMoldUdp64 => Some(Framing::MoldUdp64),
            Self::IexTops | Self::IexDeep => Some(Framing::IexTp),
            Self::Dbn | Self::Binance | Self::Coinbase | Self::Kraken | Self::Bitmex => None,
        }
    }

    /// Returns `true` if a book is right only after all messages of the session: a book of orders, or of price levels with one level per change.
    /// A complete quote stands for itself, and DBN's records state where a book begins, and venues send a snapshot of it.
    #[must_use]
    pub const fn builds_on_history(self) -> bool {
        match self {
            Self::ItchMoldUdp64 | Self::IexDeep => true,
            Self::IexTops | Self::Dbn | Self::Binance | Self::Coinbase | Self::Kraken | Self::Bitmex => false,
        }
    }

    /// Returns the handling of a line whose sequences go back within a session.
    #[must_use]
    pub const fn restart(self) -> Restart {
        match self {
            // Sequences count through the whole session, so only the contents show a reset.
            Self::ItchMoldUdp64
            | Self::Dbn
            | Self::Binance
            | Self::Coinbase
            | Self::Kraken
            | Self::Bitmex => Restart::Changed,
            // The published sample of DEEP restarts eleven times under one session.
            Self::IexTops | Self::IexDeep => Restart::Reset,
        }
    }

    /// Returns `true` if the messages are about single orders, so that orders can be published.
    #[must_use]
    pub const fn has_orders(self) -> bool {
        matches!(self, Self::ItchMoldUdp64)
    }

    /// Returns a filter of the messages by symbol.
    #[must_use]
    pub fn filter(self, symbols: Symbols) -> Filter {
        match self {
            Self::ItchMoldUdp64 => Filter::Itch(NumberFilter::new(symbols)),
            Self::IexTops | Self::IexDeep => Filter::Iex { symbols, passed_over: 0 },
            Self::Dbn => Filter::Dbn(dbn::DbnFilter::new(symbols)),
            Self::Binance | Self::Coinbase | Self::Kraken | Self::Bitmex => Filter::Subscribed,
        }
    }

    /// Returns a new normaliser of the messages. `midnight` is the start of the trading day, for
    /// protocols that count time from it.
    #[must_use]
    pub fn normaliser(self, books: book::BookSettings, midnight: Nanos) -> Normaliser {
        match self {
            Self::ItchMoldUdp64 => Normaliser::Itch(Itch::new(books, midnight)),
            Self::IexTops | Self::IexDeep => Normaliser::Iex(Iex::new(iex::IexSettings::default())),
            Self::Dbn => Normaliser::Dbn(Box::new(Dbn::new(dbn::DbnSettings::default()))),
            Self::Binance => of_venue(CryptoVenue::Binance),
            Self::Coinbase => of_venue(CryptoVenue::Coinbase),
            Self::Kraken => of_venue(CryptoVenue::Kraken),
            Self::Bitmex => of_venue(CryptoVenue::Bitmex),
        }
    }
}

/// Returns a venue's feed without symbols: those come with its settings.
fn of_venue(venue: CryptoVenue) -> Normaliser {
    Normaliser::Venue(Box::new(VenueFeed::new(VenueSettings::new(venue, []))))
}

/// The error for a name that no protocol has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no protocol has this name")]
pub struct UnknownProtocol;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_names_its_protocol_alone() {
        let mut names = Vec::new();
        for protocol in Protocol::ALL {
            for name in protocol.other_names().iter().chain([&protocol.name()]) {
                assert_eq!(Protocol::named(name), Ok(protocol));
                names.push(*name);
            }
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert_eq!(Protocol::named("itch"), Err(UnknownProtocol));
    }
}
