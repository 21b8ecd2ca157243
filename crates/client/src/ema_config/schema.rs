//! The known settings, and the permitted values of each.

use super::tree::{Fault, Node};
use crate::nearest;

/// The permitted values of a setting.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// 0 or 1.
    Flag,
    /// A whole number in this range, both ends included.
    Number(u64, u64),
    /// A whole number; below zero means no limit.
    Limit,
    /// One of these codes, with or without the name of its type and two colons before it.
    Code(&'static [&'static str]),
    /// A number, or a code.
    NumberOr(&'static [&'static str]),
    /// The name of an entry of this group.
    Of(Group),
    /// Names of entries of this group, separated by commas.
    SomeOf(Group),
    /// A block of settings.
    Block(&'static [Setting]),
}

/// One setting.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The setting may occur more than once.
    pub(super) many: bool,
    /// The setting has an effect in Tapeline. One that concerns only EMA is checked, and reported as without effect.
    pub(super) has_effect: bool,
}

const fn one(name: &'static str, kind: Kind) -> Setting {
    Setting { name, kind, many: false, has_effect: true }
}

const fn many(name: &'static str, kind: Kind) -> Setting {
    Setting { name, kind, many: true, has_effect: true }
}

/// Creates a setting without effect.
const fn idle(name: &'static str, kind: Kind) -> Setting {
    Setting { name, kind, many: false, has_effect: false }
}

/// A kind of entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// A consumer.
    Consumer,
    /// An interactive provider.
    IProvider,
    /// A non-interactive provider.
    NiProvider,
    /// The connection of a client.
    Channel,
    /// The listening side of a server.
    Server,
    /// The services of a provider.
    Directory,
    /// The source of the dictionary.
    Dictionary,
    /// The logging of EMA.
    Logger,
    /// A set of servers of which one is active.
    WarmStandby,
    /// One server of a warm standby.
    WarmStandbyServer,
    /// A channel of a session.
    Session,
}

pub(super) const GROUPS: [Group; 11] = [
    Group::Consumer,
    Group::IProvider,
    Group::NiProvider,
    Group::Channel,
    Group::Server,
    Group::Directory,
    Group::Dictionary,
    Group::Logger,
    Group::WarmStandby,
    Group::WarmStandbyServer,
    Group::Session,
];

/// The block of settings that belongs to no group.
pub(super) const GLOBAL: &str = "GlobalConfig";

use Kind::{Block, Code, Flag, Limit, Number, NumberOr, Of, SomeOf, Text};

const U16: Kind = Number(0, 65_535);
const U32: Kind = Number(0, 4_294_967_295);
const U64: Kind = Number(0, u64::MAX);

/// Adds the settings that consumers and both kinds of provider share.
macro_rules! with_session {
    ($($more:expr),* $(,)?) => {
        &[
            one("Name", Text), one("JsonExpandedEnumFields", Flag), one("CatchUnknownJsonFids", Flag),
            one("CatchUnknownJsonKeys", Flag), one("DefaultServiceID", U16),
            idle("CloseChannelFromConverterFailure", Flag), idle("SendJsonConvError", Flag),
            idle("OutputBufferSize", U32), idle("JsonTokenIncrementSize", U32),
            idle("Logger", Of(Group::Logger)), idle("CatchUnhandledException", Flag),
            idle("DispatchTimeoutApiThread", Limit), idle("ItemCountHint", U32), idle("ServiceCountHint", U32),
            idle("MaxDispatchCountApiThread", U32), idle("MaxDispatchCountUserThread", U32),
            idle("MaxEventsInPool", Limit), idle("PipePort", Limit), idle("ShouldInitializeCPUIDlib", Flag),
            idle("XmlTraceToStdout", Flag), idle("XmlTraceToFile", Flag), idle("XmlTraceToMultipleFiles", Flag),
            idle("XmlTraceFileName", Text), idle("XmlTraceMaxFileSize", U64), idle("XmlTraceHex", Flag),
            idle("XmlTraceWrite", Flag), idle("XmlTraceRead", Flag), idle("XmlTracePing", Flag),
            idle("XmlTracePingOnly", Flag), idle("XmlTraceDump", Flag), idle("DateTimeFormat", Text),
            idle("LoadBalancing", Flag), idle("GlobalConfig", Text), idle("MsgKeyInUpdates", Flag),
            idle("EnumTypeFragmentSize", U32), idle("FieldDictionaryFragmentSize", U32),
            idle("EnablePreferredHostOptions", Flag), idle("PHDetectionTimeSchedule", Text),
            idle("PHDetectionTimeInterval", U32), idle("PHFallBackWithInWSBGroup", Flag),
            idle("PreferredChannelName", Text), idle("PreferredWSBChannelName", Text),
            idle("RestProxyHostName", Text), idle("RestProxyPort", Text), idle("RestLogFileName", Text),
            idle("RestEnableLog", Flag), idle("RestVerboseMode", Flag),
            $($more),*
        ]
    };
}

const CONSUMER: &[Setting] = with_session![
    one("Channel", Of(Group::Channel)),
    one("ChannelSet", SomeOf(Group::Channel)),
    one("Dictionary", Of(Group::Dictionary)),
    one("ReconnectAttemptLimit", Limit),
    one("ReconnectMinDelay", Limit),
    one("ReconnectMaxDelay", Limit),
    one("RequestTimeout", U64),
    one("PostAckTimeout", U64),
    one("MaxOutstandingPosts", U32),
    one("LoginRequestTimeOut", U64),
    one("DirectoryRequestTimeOut", U64),
    one("DictionaryRequestTimeOut", U64),
    one("ObeyOpenWindow", U32),
    idle("SessionChannel", Text),
    idle("SessionChannelSet", SomeOf(Group::Session)),
    idle("SessionEnhancedItemRecovery", Flag),
    one("WarmStandbyChannelSet", SomeOf(Group::WarmStandby)),
    one("EnableRtt", Flag),
    idle("UpdateTypeFilter", U64),
    idle("NegativeUpdateTypeFilter", U64),
    idle("ReissueTokenAttemptLimit", Limit),
    idle("ReissueTokenAttemptInterval", Limit),
    idle("TokenReissueRatio", Text),
    idle("RestRequestTimeOut", U64),
];
const NI_PROVIDER: &[Setting] = with_session![
    one("Channel", Of(Group::Channel)),
    one("ChannelSet", SomeOf(Group::Channel)),
    one("Directory", Of(Group::Directory)),
    one("ReconnectAttemptLimit", Limit),
    one("ReconnectMinDelay", Limit),
    one("ReconnectMaxDelay", Limit),
    one("LoginRequestTimeOut", U64),
    idle("RequestTimeout", U64),
    idle("PostAckTimeout", U64),
    idle("MaxOutstandingPosts", U32),
    idle("DirectoryRequestTimeOut", U64),
    idle("DictionaryRequestTimeOut", U64),
    idle("RefreshFirstRequired", Flag),
    idle("MergeSourceDirectoryStreams", Flag),
    idle("RecoverUserSubmitSourceDirectory", Flag),
    idle("RemoveItemsOnDisconnect", Flag),
];
const I_PROVIDER: &[Setting] = with_session![
    one("Server", Of(Group::Server)),
    one("Directory", Of(Group::Directory)),
    idle("RequestTimeout", U64),
    idle("PostAckTimeout", U64),
    idle("MaxOutstandingPosts", U32),
    idle("LoginRequestTimeOut", U64),
    idle("DirectoryRequestTimeOut", U64),
    idle("DictionaryRequestTimeOut", U64),
    idle("ReconnectAttemptLimit", Limit),
    idle("ReconnectMinDelay", Limit),
    idle("ReconnectMaxDelay", Limit),
    idle("RefreshFirstRequired", Flag),
    idle("AcceptMessageWithoutAcceptingRequests", Flag),
    idle("AcceptDirMessageWithoutMinFilters", Flag),
    idle("AcceptMessageWithoutBeingLogin", Flag),
    idle("AcceptMessageSameKeyButDiffStream", Flag),
    idle("AcceptMessageThatChangesService", Flag),
    idle("AcceptMessageWithoutQosInRange", Flag),
    idle("EnforceAckIDValidation", Flag),
];

const COMPRESSIONS: Kind = Code(&["None", "ZLib", "LZ4"]);
const CHANNEL_TYPES: &[&str] =
    &["RSSL_SOCKET", "RSSL_HTTP", "RSSL_ENCRYPTED", "RSSL_RELIABLE_MCAST", "RSSL_WEBSOCKET"];

/// Adds the settings that both ends of a connection share.
macro_rules! with_transport {
    ($($more:expr),* $(,)?) => {
        &[
            one("Name", Text), one("Port", U16), one("CompressionType", COMPRESSIONS), one("CompressionThreshold", U32),
            one("GuaranteedOutputBuffers", Number(1, 4_294_967_295)), one("NumInputBuffers", Number(1, 4_294_967_295)),
            one("HighWaterMark", U32), one("SysSendBufSize", U32), one("SysRecvBufSize", U32), one("TcpNodelay", Flag),
            one("ConnectionPingTimeout", Number(1_000, 255_000)), one("InitializationTimeout", U32),
            idle("DirectWrite", Flag), idle("WsMaxMsgSize", U64), one("WsProtocols", Text),
            idle("LibSslName", Text), idle("LibCryptoName", Text), idle("LibCurlName", Text),
            idle("SecurityProtocol", Text), idle("ServiceDiscoveryRetryCount", U32),
            $($more),*
        ]
    };
}

const CHANNEL: &[Setting] = with_transport![
    one("InterfaceName", Text),
    one("ChannelType", Code(CHANNEL_TYPES)),
    one("EncryptedProtocolType", Code(&["RSSL_SOCKET", "RSSL_HTTP", "RSSL_WEBSOCKET"])),
    one("Host", Text),
    idle("ObjectName", Text),
    one("OpenSSLCAStore", Text),
    idle("Location", Text),
    one("EnableSessionManagement", Flag),
    idle("RecvAddress", Text),
    idle("RecvPort", Text),
    idle("SendAddress", Text),
    idle("SendPort", Text),
    idle("UnicastPort", Text),
    idle("HsmInterface", Text),
    idle("HsmMultAddress", Text),
    idle("HsmPort", Text),
    idle("HsmInterval", U32),
    idle("DisconnectOnGap", Flag),
    idle("PacketTTL", U32),
    idle("NDATA", U32),
    idle("ndata", U32),
    idle("NMISSING", U32),
    idle("nmissing", U32),
    idle("NRREQ", U32),
    idle("nrreq", U32),
    idle("PKTPOOLLIMITHIGH", U32),
    idle("pktPoolLimitHigh", U32),
    idle("PKTPOOLLIMITLOW", U32),
    idle("pktPoolLimitLow", U32),
    idle("TDATA", U32),
    idle("tdata", U32),
    idle("TBCHOLD", U32),
    idle("tbchold", U32),
    idle("TPPHOLD", U32),
    idle("tpphold", U32),
    idle("TRREQ", U32),
    idle("trreq", U32),
    idle("TWAIT", U32),
    idle("twait", U32),
    idle("UserQLimit", U32),
    idle("userQLimit", U32),
    idle("tcpControlPort", Text),
    idle("TunnelingType", Text),
    idle("ProxyHost", Text),
    idle("ProxyPort", Text),
    idle("ProxyConnectionTimeout", U32),
];
const SERVER: &[Setting] = with_transport![
    one("InterfaceName", Text),
    one("ServerType", Code(&["RSSL_SOCKET", "RSSL_ENCRYPTED", "RSSL_WEBSOCKET"])),
    one("MaxFragmentSize", Number(256, 65_000)),
    one("ConnectionMinPingTimeout", Number(1_000, 255_000)),
    one("ServerCert", Text),
    one("ServerPrivateKey", Text),
    idle("CipherSuite", Text),
    idle("DHParams", Text),
    idle("DhParams", Text),
    idle("KeystoreFile", Text),
    idle("KeystorePasswd", Text),
    idle("KeystoreType", Text),
    idle("KeyManagerAlgorithm", Text),
    idle("TrustManagerAlgorithm", Text),
    idle("SecurityProvider", Text),
    idle("SharedSocket", Flag),
    idle("ServerSharedSocket", Flag),
    idle("MaxOutputBuffers", U32),
];

const DICTIONARY: &[Setting] = &[
    one("Name", Text),
    one("DictionaryType", Code(&["FileDictionary", "ChannelDictionary"])),
    one("RdmFieldDictionaryFileName", Text),
    one("EnumTypeDefFileName", Text),
    idle("RdmFieldDictionaryItemName", Text),
    idle("EnumTypeDefItemName", Text),
    idle("DictionaryID", Text),
];
const LOGGER: &[Setting] = &[
    one("Name", Text),
    one("LoggerType", Code(&["File", "Stdout"])),
    one("LoggerSeverity", Code(&["NoLogMsg", "Error", "Warning", "Success", "Verbose"])),
    one("FileName", Text),
    one("NumberOfLogFiles", U32),
    one("MaxLogFileSize", U32),
    one("MaxFileSize", U32),
    one("MaxFileNumber", U32),
    one("IncludeDateInLoggerOutput", Flag),
];

const WARM_STANDBY: &[Setting] = &[
    one("Name", Text),
    one("StartingActiveServer", Of(Group::WarmStandbyServer)),
    one("StandbyServerSet", SomeOf(Group::WarmStandbyServer)),
    one("WarmStandbyMode", Code(&["LOGIN_BASED", "SERVICE_BASED"])),
];
const WARM_STANDBY_SERVER: &[Setting] =
    &[one("Name", Text), one("Channel", Of(Group::Channel)), one("PerServiceNameSet", Text)];
const SESSION: &[Setting] = &[
    idle("Name", Text),
    idle("ChannelSet", SomeOf(Group::Channel)),
    idle("WarmStandbyChannelSet", SomeOf(Group::WarmStandby)),
    idle("ReconnectAttemptLimit", Limit),
    idle("ReconnectMinDelay", Limit),
    idle("ReconnectMaxDelay", Limit),
    idle("EnablePreferredHostOptions", Flag),
    idle("PHDetectionTimeSchedule", Text),
    idle("PHDetectionTimeInterval", U32),
    idle("PHFallBackWithInWSBGroup", Flag),
    idle("PreferredChannelName", Text),
    idle("PreferredWSBChannelName", Text),
];
/// The settings of [`GLOBAL`].
pub(super) const GLOBAL_SETTINGS: &[Setting] = &[
    idle("WorkerEventPoolLimit", Limit),
    idle("ReactorChannelEventPoolLimit", Limit),
    idle("ReactorMsgEventPoolLimit", Limit),
    idle("TunnelStreamMsgEventPoolLimit", Limit),
    idle("TunnelStreamStatusEventPoolLimit", Limit),
    idle("JsonConverterPoolsSize", Limit),
    idle("WatchlistObjectsPoolLimit", Limit),
    idle("SocketProtocolPoolLimit", Limit),
];

const DIRECTORY: &[Setting] = &[one("Name", Text), many("Service", Block(SERVICE))];
const SERVICE: &[Setting] = &[
    one("Name", Text),
    one("InfoFilter", Block(INFO)),
    idle("StateFilter", Block(STATE)),
    idle("LoadFilter", Block(&[one("OpenLimit", U64), one("OpenWindow", U64), one("LoadFactor", U64)])),
];
const INFO: &[Setting] = &[
    one("ServiceId", U16),
    one("Vendor", Text),
    idle("IsSource", Flag),
    idle("Capabilities", Block(&[many("CapabilitiesEntry", Text)])),
    idle("DictionariesProvided", Block(&[many("DictionariesProvidedEntry", Of(Group::Dictionary))])),
    idle("DictionariesUsed", Block(&[many("DictionariesUsedEntry", Of(Group::Dictionary))])),
    idle("QoS", Block(&[many("QoSEntry", Block(QOS))])),
    idle("SupportsQoSRange", Flag),
    idle("ItemList", Text),
    idle("SupportsOutOfBandSnapshots", Flag),
    idle("AcceptingConsumerStatus", Flag),
];
const QOS: &[Setting] = &[
    one("Timeliness", NumberOr(&["RealTime", "InexactDelayed"])),
    one("Rate", NumberOr(&["TickByTick", "JustInTimeConflated"])),
];
const STATE: &[Setting] =
    &[one("ServiceState", Flag), one("AcceptingRequests", Flag), one("Status", Block(STATUS))];
const STATUS: &[Setting] = &[
    one(
        "StreamState",
        Code(&[
            "Open",
            "NonStreaming",
            "CloseRecover",
            "Close",
            "CloseRedirected",
            "ClosedRecover",
            "Closed",
            "Redirected",
            "ClosedRedirected",
        ]),
    ),
    one("DataState", Code(&["NoChange", "Ok", "Suspect"])),
    one("StatusCode", Text),
    one("StatusText", Text),
];

impl Group {
    /// Returns the element name of an entry.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Consumer => "Consumer",
            Self::IProvider => "IProvider",
            Self::NiProvider => "NiProvider",
            Self::Channel => "Channel",
            Self::Server => "Server",
            Self::Directory => "Directory",
            Self::Dictionary => "Dictionary",
            Self::Logger => "Logger",
            Self::WarmStandby => "WarmStandbyChannel",
            Self::WarmStandbyServer => "WarmStandbyServerInfo",
            Self::Session => "SessionChannelInfo",
        }
    }

    /// Returns the settings that an entry may have.
    pub(super) const fn settings(self) -> &'static [Setting] {
        match self {
            Self::Consumer => CONSUMER,
            Self::IProvider => I_PROVIDER,
            Self::NiProvider => NI_PROVIDER,
            Self::Channel => CHANNEL,
            Self::Server => SERVER,
            Self::Directory => DIRECTORY,
            Self::Dictionary => DICTIONARY,
            Self::Logger => LOGGER,
            Self::WarmStandby => WARM_STANDBY,
            Self::WarmStandbyServer => WARM_STANDBY_SERVER,
            Self::Session => SESSION,
        }
    }

    /// Returns the start of the names of its group and its list.
    const fn kind(self) -> &'static str {
        match self {
            Self::WarmStandby => "WarmStandby",
            Self::Session => "SessionChannel",
            _ => self.name(),
        }
    }

    pub(super) fn group(self) -> String {
        format!("{}Group", self.kind())
    }

    pub(super) fn list(self) -> String {
        format!("{}List", self.kind())
    }

    /// Returns the setting that names the default entry.
    pub(super) fn default(self) -> String {
        format!("Default{}", self.name())
    }

    /// Returns the entries of this kind in a file.
    pub(super) fn entries(self, root: &Node) -> impl Iterator<Item = &Node> {
        let (group, list, name) = (self.group(), self.list(), self.name());
        let groups = root.children.iter().filter(move |child| child.name == group);
        let lists = groups.flat_map(|group| &group.children).filter(move |child| child.name == list);
        lists.flat_map(|list| &list.children).filter(move |child| child.name == name)
    }

    /// Returns the first entry of this name.
    pub(super) fn entry<'n>(self, root: &'n Node, name: &str) -> Option<&'n Node> {
        self.entries(root).find(|entry| entry.text("Name") == Some(name))
    }

    /// Adds an entry, or the name of the default entry, at its place in an EMA file.
    pub(super) fn put(self, root: &mut Node, child: Node) {
        let group = place(root, &self.group(), child.line);
        if child.name == self.name() {
            let line = child.line;
            place(group, &self.list(), line).children.push(child);
        } else {
            group.children.push(child);
        }
    }
}

/// Returns the block of this name; creates it if necessary.
fn place<'n>(parent: &'n mut Node, name: &str, line: usize) -> &'n mut Node {
    let at = parent.children.iter().position(|child| child.name == name).unwrap_or_else(|| {
        parent.children.push(Node::new(name, line));
        parent.children.len() - 1
    });
    &mut parent.children[at]
}

/// Returns the group to which the name of an entry or of a default belongs.
pub(super) fn group_of(name: &str) -> Option<Group> {
    GROUPS.into_iter().find(|group| group.name() == name || group.default() == name)
}

/// Returns the fault that a TOML file names an unknown group.
pub(super) fn no_such_group(child: &Node) -> Fault {
    let names: Vec<&str> = GROUPS.iter().map(|group| group.name()).collect();
    let hint = match nearest(&child.name, &names) {
        Some(near) => format!("there is {near}"),
        None => format!("there are {}", names.join(", ")),
    };
    Fault::new(child.line, format!("there is no group {}", child.name), hint)
}
