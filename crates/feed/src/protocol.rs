//! The protocols that a feed can speak: a transport and the messages in it.

use tapeline_nanos::Nanos;

use crate::book;
use crate::dbn;
use crate::framing::Framing;
use crate::iex;
use crate::line::Restart;
use crate::normalise::{Dbn, Iex, Itch, Normaliser};
use crate::symbols::{Filter, NumberFilter, Symbols};

/// What a feed speaks, from its datagrams to its messages.
///
/// Another protocol is a variant here with its names, its [`Framing`] and its [`Normaliser`].
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
}

impl Protocol {
    /// Every protocol.
    pub const ALL: [Self; 4] = [Self::ItchMoldUdp64, Self::IexTops, Self::IexDeep, Self::Dbn];

    /// The name in configurations and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ItchMoldUdp64 => "itch50-moldudp64",
            Self::IexTops => "iex-tops-1.6",
            Self::IexDeep => "iex-deep-1.0",
            Self::Dbn => "dbn",
        }
    }

    /// Other spellings of the name.
    #[must_use]
    pub const fn other_names(self) -> &'static [&'static str] {
        match self {
            Self::ItchMoldUdp64 => &["nasdaq-itch-5.0"],
            Self::IexTops => &["tops16-iextp"],
            Self::IexDeep => &["deep10-iextp"],
            Self::Dbn => &[],
        }
    }

    /// The protocol of a name, in any of its spellings.
    ///
    /// # Errors
    /// [`UnknownProtocol`].
    pub fn named(name: &str) -> Result<Self, UnknownProtocol> {
        let is = |protocol: &Self| protocol.name() == name || protocol.other_names().contains(&name);
        Self::ALL.into_iter().find(is).ok_or(UnknownProtocol)
    }

    /// The transport; `None` for a protocol that is found in files only.
    #[must_use]
    pub const fn framing(self) -> Option<Framing> {
        match self {
            Self::ItchMoldUdp64 => Some(Framing::MoldUdp64),
            Self::IexTops | Self::IexDeep => Some(Framing::IexTp),
            Self::Dbn => None,
        }
    }

    /// Whether a book is right only for who has had all messages of the session: one of orders, and one of price levels of which each
    /// change tells one level. A quote that is told whole stands for itself; DBN's records say themselves where a book begins.
    #[must_use]
    pub const fn builds_on_history(self) -> bool {
        match self {
            Self::ItchMoldUdp64 | Self::IexDeep => true,
            Self::IexTops | Self::Dbn => false,
        }
    }

    /// What it means when a line goes back within a session.
    #[must_use]
    pub const fn restart(self) -> Restart {
        match self {
            // Sequences count through the whole session, so what begins again is what has to be seen in the content.
            Self::ItchMoldUdp64 | Self::Dbn => Restart::Changed,
            // The published sample of DEEP restarts eleven times under one session.
            Self::IexTops | Self::IexDeep => Restart::Reset,
        }
    }

    /// Whether its messages are about single orders, so that these can be published.
    #[must_use]
    pub const fn has_orders(self) -> bool {
        matches!(self, Self::ItchMoldUdp64)
    }

    /// A filter of its messages by symbol.
    #[must_use]
    pub fn filter(self, symbols: Symbols) -> Filter {
        match self {
            Self::ItchMoldUdp64 => Filter::Itch(NumberFilter::new(symbols)),
            Self::IexTops | Self::IexDeep => Filter::Iex { symbols, passed_over: 0 },
            Self::Dbn => Filter::Dbn(dbn::Filter::new(symbols)),
        }
    }

    /// A normaliser of its messages that has seen nothing. `midnight` is the instant at which the trading day began, for
    /// protocols that count time from it.
    #[must_use]
    pub fn normaliser(self, books: book::Settings, midnight: Nanos) -> Normaliser {
        match self {
            Self::ItchMoldUdp64 => Normaliser::Itch(Itch::new(books, midnight)),
            Self::IexTops | Self::IexDeep => Normaliser::Iex(Iex::new(iex::Settings::default())),
            Self::Dbn => Normaliser::Dbn(Box::new(Dbn::new(dbn::Settings::default()))),
        }
    }
}

/// A name that no protocol has.
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
