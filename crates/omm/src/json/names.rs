//! Words of the protocol and their numbers.

use crate::rwf::DataType;

/// Words and their numbers.
pub(super) type Names = &'static [(&'static str, u8)];

/// Returns the word for a number.
pub(super) fn word(names: Names, number: u8) -> Option<&'static str> {
    names.iter().find(|(_, other)| *other == number).map(|(word, _)| *word)
}

/// Returns the number for a word.
pub(super) fn number(names: Names, word: &str) -> Option<u8> {
    names.iter().find(|(other, _)| *other == word).map(|(_, number)| *number)
}

pub(super) const CLASSES: Names = &[
    ("Update", 4),
    ("Refresh", 2),
    ("Request", 1),
    ("Status", 3),
    ("Close", 5),
    ("Ack", 6),
    ("Generic", 7),
    ("Post", 8),
];

pub(super) const STREAM_STATES: Names = &[
    ("Unspecified", 0),
    ("Open", 1),
    ("NonStreaming", 2),
    ("ClosedRecover", 3),
    ("Closed", 4),
    ("Redirected", 5),
];

pub(super) const DATA_STATES: Names = &[("NoChange", 0), ("Ok", 1), ("Suspect", 2)];

pub(super) const STATE_CODES: Names = &[
    ("None", 0),
    ("NotFound", 1),
    ("Timeout", 2),
    ("NotEntitled", 3),
    ("InvalidArgument", 4),
    ("UsageError", 5),
    ("Preempted", 6),
    ("JitConflationStarted", 7),
    ("RealtimeResumed", 8),
    ("FailoverStarted", 9),
    ("FailoverCompleted", 10),
    ("GapDetected", 11),
    ("NoResources", 12),
    ("TooManyItems", 13),
    ("AlreadyOpen", 14),
    ("SourceUnknown", 15),
    ("NotOpen", 16),
    ("NonUpdatingItem", 19),
    ("UnsupportedViewType", 20),
    ("InvalidView", 21),
    ("FullViewProvided", 22),
    ("UnableToRequestAsBatch", 23),
    ("NoBatchViewSupportInReq", 26),
    ("ExceededMaxMountsPerUser", 27),
    ("Error", 28),
    ("DacsDown", 29),
    ("UserUnknownToPermSys", 30),
    ("MaxLoginsReached", 31),
    ("UserAccessToAppDenied", 32),
    ("GapFill", 34),
    ("AppAuthorizationFailed", 35),
];

pub(super) const TIMELINESS: Names =
    &[("Unspecified", 0), ("Realtime", 1), ("DelayedUnknown", 2), ("Delayed", 3)];

pub(super) const RATES: Names =
    &[("Unspecified", 0), ("TickByTick", 1), ("JitConflated", 2), ("TimeConflated", 3)];

pub(super) const UPDATE_TYPES: Names = &[
    ("Unspecified", 0),
    ("Quote", 1),
    ("Trade", 2),
    ("NewsAlert", 3),
    ("VolumeAlert", 4),
    ("OrderIndication", 5),
    ("ClosingRun", 6),
    ("Correction", 7),
    ("MarketDigest", 8),
    ("QuotesTrade", 9),
    ("Multiple", 10),
    ("Verify", 11),
];

pub(super) const NAK_CODES: Names = &[
    ("None", 0),
    ("AccessDenied", 1),
    ("DeniedBySrc", 2),
    ("SourceDown", 3),
    ("SourceUnknown", 4),
    ("NoResources", 5),
    ("NoResponse", 6),
    ("GatewayDown", 7),
    ("SymbolUnknown", 10),
    ("NotOpen", 11),
    ("InvalidContent", 12),
];

pub(super) const NAME_TYPES: Names = &[("Unspecified", 0), ("Ric", 1), ("Contributor", 2)];

pub(super) const LOGIN_NAME_TYPES: Names =
    &[("Name", 1), ("EmailAddress", 2), ("Token", 3), ("Cookie", 4), ("AuthnToken", 5)];

pub(super) const MAP_ACTIONS: Names = &[("Update", 1), ("Add", 2), ("Delete", 3)];

pub(super) const VECTOR_ACTIONS: Names =
    &[("Update", 1), ("Set", 2), ("Clear", 3), ("Insert", 4), ("Delete", 5)];

pub(super) const FILTER_ACTIONS: Names = &[("Update", 1), ("Set", 2), ("Clear", 3)];

/// Elements of the payload of a Request or Close that become members of its object: `ID`, `View` and so on.
pub(super) const REQUEST_MEMBERS: [&str; 4] = [":ItemList", ":StreamIdList", ":ViewType", ":ViewData"];

/// Names of types in elements, arrays and keys of maps.
pub(super) const TYPES: Names = &[
    ("Int", DataType::INT.0),
    ("UInt", DataType::UINT.0),
    ("Float", DataType::FLOAT.0),
    ("Double", DataType::DOUBLE.0),
    ("Real", DataType::REAL.0),
    ("Date", DataType::DATE.0),
    ("Time", DataType::TIME.0),
    ("DateTime", DataType::DATETIME.0),
    ("Qos", DataType::QOS.0),
    ("State", DataType::STATE.0),
    ("Enum", DataType::ENUM.0),
    ("Array", DataType::ARRAY.0),
    ("Buffer", DataType::BUFFER.0),
    ("AsciiString", DataType::ASCII_STRING.0),
    ("Utf8String", DataType::UTF8_STRING.0),
    ("RmtesString", DataType::RMTES_STRING.0),
    ("NoData", DataType::NO_DATA.0),
    ("Opaque", DataType::OPAQUE.0),
    ("Xml", DataType::XML.0),
    ("FieldList", DataType::FIELD_LIST.0),
    ("ElementList", DataType::ELEMENT_LIST.0),
    ("AnsiPage", DataType::ANSI_PAGE.0),
    ("FilterList", DataType::FILTER_LIST.0),
    ("Vector", DataType::VECTOR.0),
    ("Map", DataType::MAP.0),
    ("Series", DataType::SERIES.0),
    ("Msg", DataType::MSG.0),
    ("Json", DataType::JSON.0),
];

/// Members that hold a container, and the type of the container.
pub(super) const CONTAINERS: Names = &[
    ("Fields", DataType::FIELD_LIST.0),
    ("Elements", DataType::ELEMENT_LIST.0),
    ("Map", DataType::MAP.0),
    ("FilterList", DataType::FILTER_LIST.0),
    ("Vector", DataType::VECTOR.0),
    ("Series", DataType::SERIES.0),
    ("Message", DataType::MSG.0),
    ("Opaque", DataType::OPAQUE.0),
    ("Xml", DataType::XML.0),
    ("Json", DataType::JSON.0),
    ("AnsiPage", DataType::ANSI_PAGE.0),
];
