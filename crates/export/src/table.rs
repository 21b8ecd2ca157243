//! The tables and their columns.

/// The type of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of 64 bits.
    Whole,
    /// A price: 18 digits, nine of them after the point, unless doubles are requested.
    Price,
    /// A quantity: a whole number of 64 bits, unless doubles are requested.
    Size,
    /// A double.
    Double,
    /// A time: ns since 1970, UTC.
    Time,
    /// A boolean.
    Flag,
    /// Text with few different values: a symbol, a name.
    Symbol,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column's name. In kdb+ `name` is `sym`, as in its tick tables.
    pub name: &'static str,
    /// The type of the column's cells.
    pub kind: Kind,
}

impl Column {
    /// Returns the column's name in kdb+: an item's name is `sym`, and underscores are removed, because the underscore
    /// is a q operator.
    #[must_use]
    pub fn kdb_name(&self) -> String {
        match self.name {
            "name" => "sym".to_owned(),
            name => name.replace('_', ""),
        }
    }
}

/// A table. The first two columns of each are `time`, the time at which the plant published the tick, and `name`, the
/// item's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// Every tick, one row each.
    Ticks,
    /// Trades and broken trades: ticks that [have](tapeline_plant::RowKind) one.
    Trades,
    /// The best bid and ask, complete, after each tick that [changes](tapeline_plant::RowKind) either.
    Quotes,
    /// Entries of market by order messages: orders added, changed or deleted.
    Orders,
    /// States of auctions before they take place.
    Auctions,
    /// Every other field, one row each.
    Fields,
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

/// Prepends the columns that identify the tick.
macro_rules! columns {
    ($($name:literal $kind:ident),* $(,)?) => {
        const {
            &[
                column("time", Kind::Time),
                column("name", Kind::Symbol),
                column("sequence", Kind::Whole),
                column("service", Kind::Whole),
                $(column($name, Kind::$kind)),*
            ]
        }
    };
}

impl Table {
    /// All tables, in the order of a tick's rows.
    pub const ALL: [Self; 6] =
        [Self::Ticks, Self::Trades, Self::Quotes, Self::Orders, Self::Auctions, Self::Fields];

    /// Returns the table's name, which is also the name of its directory.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ticks => "ticks",
            Self::Trades => "trades",
            Self::Quotes => "quotes",
            Self::Orders => "orders",
            Self::Auctions => "auctions",
            Self::Fields => "fields",
        }
    }

    /// Returns the table's name in kdb+, where tables are named in the singular.
    #[must_use]
    pub const fn kdb_name(self) -> &'static str {
        match self {
            Self::Ticks => "tick",
            Self::Trades => "trade",
            Self::Quotes => "quote",
            Self::Orders => "order",
            Self::Auctions => "auction",
            Self::Fields => "field",
        }
    }

    /// Returns the table's columns.
    #[must_use]
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Ticks => columns![
                "channel" Whole, "item" Whole, "kind" Symbol, "domain" Symbol, "feed_sequence" Whole,
                "event_time" Time, "received_time" Time, "decoded_time" Time,
                "state" Symbol, "quality" Symbol, "gap" Flag, "reset" Flag, "end_of_session" Flag, "is_last" Flag,
                "text" Text, "bytes" Whole, "source" Bytes,
            ],
            Self::Trades => columns![
                "event_time" Time, "received_time" Time, "action" Symbol, "trade_id" Text, "side" Symbol,
                "conditions" Symbol, "price" Price, "size" Size, "volume" Size, "trades" Size,
                "trade_time_ns" Whole, "quality" Symbol,
            ],
            Self::Quotes => columns![
                "event_time" Time, "received_time" Time, "bid" Price, "bid_size" Size, "ask" Price, "ask_size" Size,
                "bid_source" Symbol, "ask_source" Symbol, "quote_time_ns" Whole, "quality" Symbol,
            ],
            Self::Orders => columns![
                "event_time" Time, "received_time" Time, "action" Symbol, "order_id" Text, "side" Symbol,
                "price" Price, "size" Size, "participant" Symbol, "priority_time_ns" Whole, "change_time_ns" Whole,
                "quality" Symbol,
            ],
            Self::Auctions => columns![
                "event_time" Time, "received_time" Time, "kind" Symbol, "side" Symbol, "paired" Size, "imbalance" Size,
                "reference_price" Price, "near_price" Price, "far_price" Price, "variation" Symbol, "due_time_ns" Whole,
                "extensions" Size, "imbalance_time_ns" Whole, "quality" Symbol,
            ],
            Self::Fields => columns![
                "action" Symbol, "entry" Text, "fid" Whole, "field" Symbol, "data_type" Symbol, "text" Text,
                "number" Double,
            ],
        }
    }
}
