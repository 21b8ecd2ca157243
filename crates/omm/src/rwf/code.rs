//! Named codes of one byte: data types, domains, states and similar.
//!
//! Each code is a newtype over its number, not an enumeration: a peer may send a number that is not in the table, and
//! the number must be preserved when it is read and written.

use std::fmt;

/// Declares codes: each constant, its number, and its word in JSON, if it has one. The name of a code is that of its
/// constant (`constants`) or its word (`words`).
macro_rules! codes {
    ($names:ident; $($(#[$doc:meta])* $type:ident {
        $($(#[$item:meta])* $name:ident = $number:literal $($word:literal)?,)*
    })*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $type(pub u8);

        impl $type {
            $($(#[$item])* #[doc = concat!("`", name!($names $name $($word)?), "`.")] pub const $name: Self = Self($number);)*

            /// The words in JSON, and the codes that they stand for.
            pub(crate) const WORDS: &[(&str, u8)] = &[$($(($word, $number),)?)*];

            /// Returns the code's name, if it has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(name!($names $name $($word)?)),)*
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

/// The name of a code.
macro_rules! name {
    (constants $name:ident $($word:literal)?) => {
        stringify!($name)
    };
    (words $name:ident $word:literal) => {
        $word
    };
}

codes! {
    words;

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
}

codes! {
    constants;

    /// Message class (RWF chapter 2).
    MessageClass {
        // The most frequent first: words are searched in this order.
        UPDATE = 4 "Update",
        REFRESH = 2 "Refresh",
        REQUEST = 1 "Request",
        STATUS = 3 "Status",
        CLOSE = 5 "Close",
        ACK = 6 "Ack",
        GENERIC = 7 "Generic",
        POST = 8 "Post",
    }

    /// Data type (RWF chapter 3): primitives below 64, set types 64–84, containers from 128.
    DataType {
        UNKNOWN = 0,
        INT = 3 "Int",
        UINT = 4 "UInt",
        FLOAT = 5 "Float",
        DOUBLE = 6 "Double",
        REAL = 8 "Real",
        DATE = 9 "Date",
        TIME = 10 "Time",
        DATETIME = 11 "DateTime",
        QOS = 12 "Qos",
        STATE = 13 "State",
        ENUM = 14 "Enum",
        ARRAY = 15 "Array",
        BUFFER = 16 "Buffer",
        ASCII_STRING = 17 "AsciiString",
        UTF8_STRING = 18 "Utf8String",
        RMTES_STRING = 19 "RmtesString",
        INT_1 = 64,
        UINT_1 = 65,
        INT_2 = 66,
        UINT_2 = 67,
        INT_4 = 68,
        UINT_4 = 69,
        INT_8 = 70,
        UINT_8 = 71,
        FLOAT_4 = 72,
        DOUBLE_8 = 73,
        REAL_4RB = 74,
        REAL_8RB = 75,
        DATE_4 = 76,
        TIME_3 = 77,
        TIME_5 = 78,
        DATETIME_7 = 79,
        DATETIME_9 = 80,
        DATETIME_11 = 81,
        DATETIME_12 = 82,
        TIME_7 = 83,
        TIME_8 = 84,
        NO_DATA = 128 "NoData",
        OPAQUE = 130 "Opaque",
        XML = 131 "Xml",
        FIELD_LIST = 132 "FieldList",
        ELEMENT_LIST = 133 "ElementList",
        ANSI_PAGE = 134 "AnsiPage",
        FILTER_LIST = 135 "FilterList",
        VECTOR = 136 "Vector",
        MAP = 137 "Map",
        SERIES = 138 "Series",
        MSG = 141 "Msg",
        JSON = 142 "Json",
    }

    /// Action on an entry of a map. Four bits on the wire.
    MapAction {
        UPDATE = 1 "Update",
        ADD = 2 "Add",
        DELETE = 3 "Delete",
    }

    /// Action on an entry of a filter list. Four bits on the wire.
    FilterAction {
        UPDATE = 1 "Update",
        SET = 2 "Set",
        CLEAR = 3 "Clear",
    }

    /// Action on an entry of a vector. Four bits on the wire.
    VectorAction {
        UPDATE = 1 "Update",
        SET = 2 "Set",
        CLEAR = 3 "Clear",
        INSERT = 4 "Insert",
        DELETE = 5 "Delete",
    }

    /// Stream state: whether the stream is open. Five bits on the wire.
    StreamState {
        UNSPECIFIED = 0 "Unspecified",
        OPEN = 1 "Open",
        NON_STREAMING = 2 "NonStreaming",
        CLOSED_RECOVER = 3 "ClosedRecover",
        CLOSED = 4 "Closed",
        REDIRECTED = 5 "Redirected",
    }

    /// Data state: whether the data can be trusted. Three bits on the wire.
    DataState {
        NO_CHANGE = 0 "NoChange",
        OK = 1 "Ok",
        SUSPECT = 2 "Suspect",
    }

    /// State code: reason for a state.
    StateCode {
        NONE = 0 "None",
        NOT_FOUND = 1 "NotFound",
        TIMEOUT = 2 "Timeout",
        NOT_ENTITLED = 3 "NotEntitled",
        INVALID_ARGUMENT = 4 "InvalidArgument",
        USAGE_ERROR = 5 "UsageError",
        PREEMPTED = 6 "Preempted",
        JIT_CONFLATION_STARTED = 7 "JitConflationStarted",
        REALTIME_RESUMED = 8 "RealtimeResumed",
        FAILOVER_STARTED = 9 "FailoverStarted",
        FAILOVER_COMPLETED = 10 "FailoverCompleted",
        GAP_DETECTED = 11 "GapDetected",
        NO_RESOURCES = 12 "NoResources",
        TOO_MANY_ITEMS = 13 "TooManyItems",
        ALREADY_OPEN = 14 "AlreadyOpen",
        SOURCE_UNKNOWN = 15 "SourceUnknown",
        NOT_OPEN = 16 "NotOpen",
        NON_UPDATING_ITEM = 19 "NonUpdatingItem",
        UNSUPPORTED_VIEW_TYPE = 20 "UnsupportedViewType",
        INVALID_VIEW = 21 "InvalidView",
        FULL_VIEW_PROVIDED = 22 "FullViewProvided",
        UNABLE_TO_REQUEST_AS_BATCH = 23 "UnableToRequestAsBatch",
        NO_BATCH_VIEW_SUPPORT_IN_REQ = 26 "NoBatchViewSupportInReq",
        EXCEEDED_MAX_MOUNTS_PER_USER = 27 "ExceededMaxMountsPerUser",
        ERROR = 28 "Error",
        DACS_DOWN = 29 "DacsDown",
        USER_UNKNOWN_TO_PERM_SYS = 30 "UserUnknownToPermSys",
        DACS_MAX_LOGINS_REACHED = 31 "MaxLoginsReached",
        DACS_USER_ACCESS_TO_APP_DENIED = 32 "UserAccessToAppDenied",
        GAP_FILL = 34 "GapFill",
        APP_AUTHORIZATION_FAILED = 35 "AppAuthorizationFailed",
    }

    /// Nak code: reason why a post was refused.
    NakCode {
        NONE = 0 "None",
        ACCESS_DENIED = 1 "AccessDenied",
        DENIED_BY_SRC = 2 "DeniedBySrc",
        SOURCE_DOWN = 3 "SourceDown",
        SOURCE_UNKNOWN = 4 "SourceUnknown",
        NO_RESOURCES = 5 "NoResources",
        NO_RESPONSE = 6 "NoResponse",
        GATEWAY_DOWN = 7 "GatewayDown",
        SYMBOL_UNKNOWN = 10 "SymbolUnknown",
        NOT_OPEN = 11 "NotOpen",
        INVALID_CONTENT = 12 "InvalidContent",
    }

    /// Update type: subject of an update.
    UpdateType {
        UNSPECIFIED = 0 "Unspecified",
        QUOTE = 1 "Quote",
        TRADE = 2 "Trade",
        NEWS_ALERT = 3 "NewsAlert",
        VOLUME_ALERT = 4 "VolumeAlert",
        ORDER_INDICATION = 5 "OrderIndication",
        CLOSING_RUN = 6 "ClosingRun",
        CORRECTION = 7 "Correction",
        MARKET_DIGEST = 8 "MarketDigest",
        QUOTES_TRADE = 9 "QuotesTrade",
        MULTIPLE = 10 "Multiple",
        VERIFY = 11 "Verify",
    }

    /// Name type of a key. In the login domain 1 is a user name, 2 an e-mail address, 3 a token, 4 a cookie, 5 an
    /// authentication token.
    NameType {
        UNSPECIFIED = 0 "Unspecified",
        RIC = 1 "Ric",
        CONTRIBUTOR = 2 "Contributor",
    }

    /// Timeliness: age of the data of a stream. Three bits on the wire.
    Timeliness {
        UNSPECIFIED = 0 "Unspecified",
        REALTIME = 1 "Realtime",
        DELAYED_UNKNOWN = 2 "DelayedUnknown",
        DELAYED = 3 "Delayed",
    }

    /// Rate: conflation of a stream's changes. Four bits on the wire.
    Rate {
        UNSPECIFIED = 0 "Unspecified",
        TICK_BY_TICK = 1 "TickByTick",
        JIT_CONFLATED = 2 "JitConflated",
        TIME_CONFLATED = 3 "TimeConflated",
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
