//! Named codes of one byte: data types, domains, states and similar.
//!
//! Each code is a newtype over its number, not an enumeration: a peer may send a number that is not in the table, and
//! the number must be preserved when it is read and written.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $type:ident { $($(#[$item:meta])* $name:ident = $number:literal $text:literal,)* })*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $type(pub u8);

        impl $type {
            $($(#[$item])* #[doc = concat!("`", $text, "`.")] pub const $name: Self = Self($number);)*

            /// Returns the code's name, if it has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($text),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => fmt::Display::fmt(&self.0, f),
                }
            }
        }
    )*};
}

codes! {
    /// Message class (RWF chapter 2).
    MessageClass {
        REQUEST = 1 "REQUEST",
        REFRESH = 2 "REFRESH",
        STATUS = 3 "STATUS",
        UPDATE = 4 "UPDATE",
        CLOSE = 5 "CLOSE",
        ACK = 6 "ACK",
        GENERIC = 7 "GENERIC",
        POST = 8 "POST",
    }

    /// Domain: kind of item that a message is about. 128–255 are for users.
    Domain {
        LOGIN = 1 "Login",
        SOURCE = 4 "Source",
        DICTIONARY = 5 "Dictionary",
        MARKET_PRICE = 6 "MarketPrice",
        MARKET_BY_ORDER = 7 "MarketByOrder",
        MARKET_BY_PRICE = 8 "MarketByPrice",
        MARKET_MAKER = 9 "MarketMaker",
        SYMBOL_LIST = 10 "SymbolList",
        SERVICE_PROVIDER_STATUS = 11 "ServiceProviderStatus",
        HISTORY = 12 "History",
        HEADLINE = 13 "Headline",
        STORY = 14 "Story",
        REPLAY_HEADLINE = 15 "ReplayHeadline",
        REPLAY_STORY = 16 "ReplayStory",
        TRANSACTION = 17 "Transaction",
        YIELD_CURVE = 22 "YieldCurve",
        CONTRIBUTION = 27 "Contribution",
        PROVIDER_ADMIN = 29 "ProviderAdmin",
        ANALYTICS = 30 "Analytics",
        REFERENCE = 31 "Reference",
        NEWS_TEXT_ANALYTICS = 33 "NewsTextAnalytics",
        ECONOMIC_INDICATOR = 34 "EconomicIndicator",
        POLL = 35 "Poll",
        FORECAST = 36 "Forecast",
        MARKET_BY_TIME = 37 "MarketByTime",
        SYSTEM = 127 "System",
    }

    /// Data type (RWF chapter 3): primitives below 64, set types 64–84, containers from 128.
    DataType {
        UNKNOWN = 0 "UNKNOWN",
        INT = 3 "INT",
        UINT = 4 "UINT",
        FLOAT = 5 "FLOAT",
        DOUBLE = 6 "DOUBLE",
        REAL = 8 "REAL",
        DATE = 9 "DATE",
        TIME = 10 "TIME",
        DATETIME = 11 "DATETIME",
        QOS = 12 "QOS",
        STATE = 13 "STATE",
        ENUM = 14 "ENUM",
        ARRAY = 15 "ARRAY",
        BUFFER = 16 "BUFFER",
        ASCII_STRING = 17 "ASCII_STRING",
        UTF8_STRING = 18 "UTF8_STRING",
        RMTES_STRING = 19 "RMTES_STRING",
        INT_1 = 64 "INT_1",
        UINT_1 = 65 "UINT_1",
        INT_2 = 66 "INT_2",
        UINT_2 = 67 "UINT_2",
        INT_4 = 68 "INT_4",
        UINT_4 = 69 "UINT_4",
        INT_8 = 70 "INT_8",
        UINT_8 = 71 "UINT_8",
        FLOAT_4 = 72 "FLOAT_4",
        DOUBLE_8 = 73 "DOUBLE_8",
        REAL_4RB = 74 "REAL_4RB",
        REAL_8RB = 75 "REAL_8RB",
        DATE_4 = 76 "DATE_4",
        TIME_3 = 77 "TIME_3",
        TIME_5 = 78 "TIME_5",
        DATETIME_7 = 79 "DATETIME_7",
        DATETIME_9 = 80 "DATETIME_9",
        DATETIME_11 = 81 "DATETIME_11",
        DATETIME_12 = 82 "DATETIME_12",
        TIME_7 = 83 "TIME_7",
        TIME_8 = 84 "TIME_8",
        NO_DATA = 128 "NO_DATA",
        OPAQUE = 130 "OPAQUE",
        XML = 131 "XML",
        FIELD_LIST = 132 "FIELD_LIST",
        ELEMENT_LIST = 133 "ELEMENT_LIST",
        ANSI_PAGE = 134 "ANSI_PAGE",
        FILTER_LIST = 135 "FILTER_LIST",
        VECTOR = 136 "VECTOR",
        MAP = 137 "MAP",
        SERIES = 138 "SERIES",
        MSG = 141 "MSG",
        JSON = 142 "JSON",
    }

    /// Action on an entry of a map. Four bits on the wire.
    MapAction {
        UPDATE = 1 "UPDATE",
        ADD = 2 "ADD",
        DELETE = 3 "DELETE",
    }

    /// Action on an entry of a filter list. Four bits on the wire.
    FilterAction {
        UPDATE = 1 "UPDATE",
        SET = 2 "SET",
        CLEAR = 3 "CLEAR",
    }

    /// Action on an entry of a vector. Four bits on the wire.
    VectorAction {
        UPDATE = 1 "UPDATE",
        SET = 2 "SET",
        CLEAR = 3 "CLEAR",
        INSERT = 4 "INSERT",
        DELETE = 5 "DELETE",
    }

    /// Stream state: whether the stream is open. Five bits on the wire.
    StreamState {
        UNSPECIFIED = 0 "UNSPECIFIED",
        OPEN = 1 "OPEN",
        NON_STREAMING = 2 "NON_STREAMING",
        CLOSED_RECOVER = 3 "CLOSED_RECOVER",
        CLOSED = 4 "CLOSED",
        REDIRECTED = 5 "REDIRECTED",
    }

    /// Data state: whether the data can be trusted. Three bits on the wire.
    DataState {
        NO_CHANGE = 0 "NO_CHANGE",
        OK = 1 "OK",
        SUSPECT = 2 "SUSPECT",
    }

    /// State code: reason for a state.
    StateCode {
        NONE = 0 "NONE",
        NOT_FOUND = 1 "NOT_FOUND",
        TIMEOUT = 2 "TIMEOUT",
        NOT_ENTITLED = 3 "NOT_ENTITLED",
        INVALID_ARGUMENT = 4 "INVALID_ARGUMENT",
        USAGE_ERROR = 5 "USAGE_ERROR",
        PREEMPTED = 6 "PREEMPTED",
        JIT_CONFLATION_STARTED = 7 "JIT_CONFLATION_STARTED",
        REALTIME_RESUMED = 8 "REALTIME_RESUMED",
        FAILOVER_STARTED = 9 "FAILOVER_STARTED",
        FAILOVER_COMPLETED = 10 "FAILOVER_COMPLETED",
        GAP_DETECTED = 11 "GAP_DETECTED",
        NO_RESOURCES = 12 "NO_RESOURCES",
        TOO_MANY_ITEMS = 13 "TOO_MANY_ITEMS",
        ALREADY_OPEN = 14 "ALREADY_OPEN",
        SOURCE_UNKNOWN = 15 "SOURCE_UNKNOWN",
        NOT_OPEN = 16 "NOT_OPEN",
        NON_UPDATING_ITEM = 19 "NON_UPDATING_ITEM",
        UNSUPPORTED_VIEW_TYPE = 20 "UNSUPPORTED_VIEW_TYPE",
        INVALID_VIEW = 21 "INVALID_VIEW",
        FULL_VIEW_PROVIDED = 22 "FULL_VIEW_PROVIDED",
        UNABLE_TO_REQUEST_AS_BATCH = 23 "UNABLE_TO_REQUEST_AS_BATCH",
        NO_BATCH_VIEW_SUPPORT_IN_REQ = 26 "NO_BATCH_VIEW_SUPPORT_IN_REQ",
        EXCEEDED_MAX_MOUNTS_PER_USER = 27 "EXCEEDED_MAX_MOUNTS_PER_USER",
        ERROR = 28 "ERROR",
        DACS_DOWN = 29 "DACS_DOWN",
        USER_UNKNOWN_TO_PERM_SYS = 30 "USER_UNKNOWN_TO_PERM_SYS",
        DACS_MAX_LOGINS_REACHED = 31 "DACS_MAX_LOGINS_REACHED",
        DACS_USER_ACCESS_TO_APP_DENIED = 32 "DACS_USER_ACCESS_TO_APP_DENIED",
        GAP_FILL = 34 "GAP_FILL",
        APP_AUTHORIZATION_FAILED = 35 "APP_AUTHORIZATION_FAILED",
    }

    /// Nak code: reason why a post was refused.
    NakCode {
        NONE = 0 "NONE",
        ACCESS_DENIED = 1 "ACCESS_DENIED",
        DENIED_BY_SRC = 2 "DENIED_BY_SRC",
        SOURCE_DOWN = 3 "SOURCE_DOWN",
        SOURCE_UNKNOWN = 4 "SOURCE_UNKNOWN",
        NO_RESOURCES = 5 "NO_RESOURCES",
        NO_RESPONSE = 6 "NO_RESPONSE",
        GATEWAY_DOWN = 7 "GATEWAY_DOWN",
        SYMBOL_UNKNOWN = 10 "SYMBOL_UNKNOWN",
        NOT_OPEN = 11 "NOT_OPEN",
        INVALID_CONTENT = 12 "INVALID_CONTENT",
    }

    /// Update type: subject of an update.
    UpdateType {
        UNSPECIFIED = 0 "UNSPECIFIED",
        QUOTE = 1 "QUOTE",
        TRADE = 2 "TRADE",
        NEWS_ALERT = 3 "NEWS_ALERT",
        VOLUME_ALERT = 4 "VOLUME_ALERT",
        ORDER_INDICATION = 5 "ORDER_INDICATION",
        CLOSING_RUN = 6 "CLOSING_RUN",
        CORRECTION = 7 "CORRECTION",
        MARKET_DIGEST = 8 "MARKET_DIGEST",
        QUOTES_TRADE = 9 "QUOTES_TRADE",
        MULTIPLE = 10 "MULTIPLE",
        VERIFY = 11 "VERIFY",
    }

    /// Name type of a key. In the login domain 1 is a user name, 2 an e-mail address, 3 a token, 4 a cookie, 5 an
    /// authentication token.
    NameType {
        UNSPECIFIED = 0 "UNSPECIFIED",
        RIC = 1 "RIC",
        CONTRIBUTOR = 2 "CONTRIBUTOR",
    }

    /// Timeliness: age of the data of a stream. Three bits on the wire.
    Timeliness {
        UNSPECIFIED = 0 "UNSPECIFIED",
        REALTIME = 1 "REALTIME",
        DELAYED_UNKNOWN = 2 "DELAYED_UNKNOWN",
        DELAYED = 3 "DELAYED",
    }

    /// Rate: conflation of a stream's changes. Four bits on the wire.
    Rate {
        UNSPECIFIED = 0 "UNSPECIFIED",
        TICK_BY_TICK = 1 "TICK_BY_TICK",
        JIT_CONFLATED = 2 "JIT_CONFLATED",
        TIME_CONFLATED = 3 "TIME_CONFLATED",
    }
}

impl DataType {
    /// Returns the type for its one-byte form in message headers and containers, which is the type minus 128.
    #[inline]
    #[must_use]
    pub const fn from_container_byte(byte: u8) -> Self {
        Self(byte.wrapping_add(128))
    }

    /// Returns the one-byte form of the type in message headers and containers, which is the type minus 128.
    #[inline]
    #[must_use]
    pub const fn container_byte(self) -> u8 {
        self.0.wrapping_sub(128)
    }

    /// Returns `true` for a container (128 and above), `false` for a primitive.
    #[inline]
    #[must_use]
    pub const fn is_container(self) -> bool {
        self.0 >= 128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(StateCode::NOT_FOUND.to_string(), "NOT_FOUND");
        assert_eq!(StateCode(127).to_string(), "127");
        assert_eq!(Domain(200).name(), None);
    }

    #[test]
    fn container_bytes() {
        assert_eq!(DataType::FIELD_LIST.container_byte(), 4);
        assert_eq!(DataType::from_container_byte(13), DataType::MSG);
        for byte in 0..=255 {
            assert_eq!(DataType::from_container_byte(byte).container_byte(), byte);
        }
    }
}
