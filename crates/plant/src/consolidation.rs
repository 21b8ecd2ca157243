//! The best bid and offer over several channels, as separate items.

use tapeline_feed::draft::{Draft, TradingStatus};
use tapeline_feed::nbbo::{Consolidated, MAX_VENUE_NAME, MAX_VENUES, Nbbo, Venue};
use tapeline_measure::Nanos;

use crate::tick::MAX_NAME_BYTES;
use crate::{ItemId, ItemSource, Items};

/// The service of symbols, which have their own numbers.
const NO_SERVICE: u16 = 0;
/// Nanoseconds of a day.
const DAY_NS: u64 = 86_400_000_000_000;

/// A participating channel, and the short name of its venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    /// The channel's number in the plant.
    pub channel: u16,
    /// The venue's name in BID_SRC and ASK_SRC; cut after six characters.
    pub venue: String,
}

/// The settings of a consolidation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsolidationSettings {
    /// The number in its ticks in place of a channel number.
    pub number: u16,
    /// The participating channels, in order of precedence for quotes of equal price, size and age; at most
    /// [`MAX_VENUES`].
    pub participants: Vec<Participant>,
    /// The suffix of a symbol in the name of its consolidated item, such as `.NBBO`.
    pub suffix: String,
    /// Maximum number of symbols.
    pub max_symbols: usize,
}

/// The counters of a consolidation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsolidationCounters {
    /// Ticks published.
    pub ticks: u64,
    /// Ticks whose bid was equal to the ask.
    pub locked: u64,
    /// Ticks whose bid was above the ask.
    pub crossed: u64,
    /// Changes that were not published because the service is full.
    pub items_refused: u64,
}

/// A consolidated symbol, independent of the channels' item names; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbol(u32);

/// The best bid and offer of all symbols over the participating channels.
#[derive(Debug)]
pub struct Consolidation {
    best: Consolidated,
    /// The venue of each channel.
    venues: Vec<Option<Venue>>,
    names: Vec<Box<str>>,
    number: u16,
    suffix: Box<str>,
    /// The symbols, in the order of appearance.
    symbols: Items,
    /// The consolidated item by the number of the symbol; `ItemId(0)` for none yet.
    items: Vec<ItemId>,
    pub(crate) counters: ConsolidationCounters,
}

/// A consolidated item, ready for publication.
pub(crate) struct Named {
    pub(crate) item: ItemId,
    /// `true` if the item was not published before.
    pub(crate) is_new: bool,
    name: [u8; MAX_NAME_BYTES],
    name_len: usize,
}

impl Named {
    pub(crate) fn name(&self) -> &str {
        // Two texts make a valid text.
        std::str::from_utf8(&self.name[..self.name_len]).unwrap_or_default()
    }
}

impl Consolidation {
    /// Creates a consolidation without quotes.
    #[must_use]
    pub fn new(settings: &ConsolidationSettings) -> Self {
        let participants = || settings.participants.iter().take(MAX_VENUES);
        let last = participants().map(|participant| participant.channel).max().unwrap_or(0);
        let mut venues = vec![None; usize::from(last) + 1];
        for (participant, number) in participants().zip(0..) {
            venues[usize::from(participant.channel)] = Some(Venue(number));
        }
        let cut = |name: &str| name[..name.floor_char_boundary(MAX_VENUE_NAME)].into();
        Self {
            best: Consolidated::new(participants().count(), settings.max_symbols),
            venues,
            names: participants().map(|participant| cut(&participant.venue)).collect(),
            number: settings.number,
            suffix: settings.suffix.as_str().into(),
            // Symbols are numbered from 1.
            symbols: Items::new(settings.max_symbols.saturating_sub(1)),
            items: Vec::new(),
            counters: ConsolidationCounters::default(),
        }
    }

    /// Returns the number in its ticks in place of a channel number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &ConsolidationCounters {
        &self.counters
    }

    /// Returns the best bid and offer of a symbol.
    #[must_use]
    pub fn best(&self, symbol: &str) -> Nbbo {
        self.best.best(self.symbols.find(NO_SERVICE, symbol).map_or(0, |symbol| symbol.0))
    }

    /// Returns the number of a channel's symbol, assigned if it is new; none if the channel does not participate, or the limit is reached.
    pub(crate) fn symbol(&mut self, channel: u16, name: &str) -> Symbol {
        if self.venue(channel).is_none() {
            return Symbol(0);
        }
        Symbol(self.symbols.id(NO_SERVICE, name).map_or(0, |symbol| symbol.0))
    }

    fn venue(&self, channel: u16) -> Option<Venue> {
        *self.venues.get(usize::from(channel))?
    }

    /// Handles a channel's draft of a symbol; returns the new best if it changed. A stock that is halted, or open for quotes only, does not
    /// participate; one without a status does.
    #[inline]
    pub(crate) fn show(&mut self, channel: u16, symbol: Symbol, draft: &Draft) -> Option<Nbbo> {
        let venue = self.venue(channel)?;
        if symbol == Symbol(0) || !(draft.changed.is_quote() || draft.changed.status) {
            return None;
        }
        let trades = matches!(draft.status, TradingStatus::NORMAL | TradingStatus::UNDEFINED);
        self.best.show(venue, symbol.0, draft.bid, draft.ask, trades)
    }

    /// Sets a channel's data to current or not; returns the symbols whose best changed.
    pub(crate) fn set_current(&mut self, channel: u16, is_current: bool) -> Vec<(Symbol, Nbbo)> {
        let mut changed = Vec::new();
        if let Some(venue) = self.venue(channel) {
            self.best.set_current(venue, is_current, |symbol, best| changed.push((Symbol(symbol), best)));
        }
        changed
    }

    /// Drops a channel's quotes; returns the symbols whose best changed.
    pub(crate) fn clear(&mut self, channel: u16) -> Vec<(Symbol, Nbbo)> {
        let mut changed = Vec::new();
        if let Some(venue) = self.venue(channel) {
            self.best.clear(venue, |symbol, best| changed.push((Symbol(symbol), best)));
        }
        changed
    }

    /// Returns the consolidated item of a symbol, named in its service if it is new, on behalf of the channel; `None` if the service has no place,
    /// or the name is too long.
    #[inline]
    pub(crate) fn named(
        &mut self,
        symbol: Symbol,
        (channel, service): (u16, u16),
        items: &mut Items,
    ) -> Option<Named> {
        let at = symbol.0 as usize;
        let mut named = Named { item: ItemId(0), is_new: false, name: [0; MAX_NAME_BYTES], name_len: 0 };
        for part in [self.symbols.name(ItemId(symbol.0))?, &self.suffix] {
            let end = named.name_len + part.len();
            named.name.get_mut(named.name_len..end)?.copy_from_slice(part.as_bytes());
            named.name_len = end;
        }
        named.item = match self.items.get(at) {
            Some(known) if *known != ItemId(0) => *known,
            _ => {
                let Ok(item) = items.id_by(ItemSource::Channel(channel), service, named.name()) else {
                    self.counters.items_refused += 1;
                    return None;
                };
                if self.items.len() <= at {
                    self.items.resize(at + 1, ItemId(0));
                }
                self.items[at] = item;
                named.is_new = true;
                item
            }
        };
        Some(named)
    }

    /// Writes the fields of a best bid and offer that `event` caused.
    pub(crate) fn encode(
        &self,
        best: &Nbbo,
        event: Nanos,
        fields: &mut tapeline_omm::FieldListEncoder<'_>,
    ) -> Result<(), tapeline_omm::Full> {
        best.encode(fields, event.0 % DAY_NS, |venue| {
            self.names.get(usize::from(venue.0)).map_or("", |name| name)
        })
    }
}
