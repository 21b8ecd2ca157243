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
    Block(&'static [Setting]),
}

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

/// Lists settings, each line with those of one kind: [`one`], [`idle`] or [`many`].
macro_rules! settings {
    ($($how:ident $kind:expr => $($name:literal)*;)*) => { &[$($($how($name, $kind),)*)*] };
}

/// Adds the settings that consumers and both kinds of provider share.
macro_rules! with_session {
    ($($more:tt)*) => {
        settings! {
            one Text => "Name";
            one Flag => "JsonExpandedEnumFields" "CatchUnknownJsonFids" "CatchUnknownJsonKeys";
            one U16 => "DefaultServiceID";
            idle Flag => "CloseChannelFromConverterFailure" "SendJsonConvError" "CatchUnhandledException"
                "ShouldInitializeCPUIDlib" "XmlTraceToStdout" "XmlTraceToFile" "XmlTraceToMultipleFiles"
                "XmlTraceHex" "XmlTraceWrite" "XmlTraceRead" "XmlTracePing" "XmlTracePingOnly" "XmlTraceDump"
                "LoadBalancing" "MsgKeyInUpdates" "EnablePreferredHostOptions" "PHFallBackWithInWSBGroup"
                "RestEnableLog" "RestVerboseMode";
            idle U32 => "OutputBufferSize" "JsonTokenIncrementSize" "ServiceCountHint" "MaxDispatchCountApiThread"
                "MaxDispatchCountUserThread" "EnumTypeFragmentSize"
                "FieldDictionaryFragmentSize" "PHDetectionTimeInterval";
            idle Of(Group::Logger) => "Logger";
            idle Limit => "DispatchTimeoutApiThread" "MaxEventsInPool" "PipePort";
            idle Text => "XmlTraceFileName" "DateTimeFormat" "GlobalConfig" "PHDetectionTimeSchedule"
                "PreferredChannelName" "PreferredWSBChannelName" "RestProxyHostName" "RestProxyPort"
                "RestLogFileName";
            idle U64 => "XmlTraceMaxFileSize";
            $($more)*
        }
    };
}

const CONSUMER: &[Setting] = with_session! {
    one Of(Group::Channel) => "Channel";
    one SomeOf(Group::Channel) => "ChannelSet";
    one Of(Group::Dictionary) => "Dictionary";
    one Limit => "ReconnectAttemptLimit" "ReconnectMinDelay" "ReconnectMaxDelay";
    one U64 => "RequestTimeout" "PostAckTimeout" "LoginRequestTimeOut" "DirectoryRequestTimeOut"
        "DictionaryRequestTimeOut";
    one U32 => "ItemCountHint" "MaxOutstandingPosts" "ObeyOpenWindow";
    idle Text => "SessionChannel" "TokenReissueRatio";
    idle SomeOf(Group::Session) => "SessionChannelSet";
    idle Flag => "SessionEnhancedItemRecovery";
    one SomeOf(Group::WarmStandby) => "WarmStandbyChannelSet";
    one Flag => "EnableRtt";
    idle U64 => "UpdateTypeFilter" "NegativeUpdateTypeFilter" "RestRequestTimeOut";
    idle Limit => "ReissueTokenAttemptLimit" "ReissueTokenAttemptInterval";
};
const NI_PROVIDER: &[Setting] = with_session! {
    one Of(Group::Channel) => "Channel";
    one SomeOf(Group::Channel) => "ChannelSet";
    one Of(Group::Directory) => "Directory";
    one Limit => "ReconnectAttemptLimit" "ReconnectMinDelay" "ReconnectMaxDelay";
    one U64 => "LoginRequestTimeOut";
    idle U64 => "RequestTimeout" "PostAckTimeout" "DirectoryRequestTimeOut" "DictionaryRequestTimeOut";
    idle U32 => "ItemCountHint" "MaxOutstandingPosts";
    idle Flag => "RefreshFirstRequired" "MergeSourceDirectoryStreams" "RecoverUserSubmitSourceDirectory"
        "RemoveItemsOnDisconnect";
};
const I_PROVIDER: &[Setting] = with_session! {
    one Of(Group::Server) => "Server";
    one Of(Group::Directory) => "Directory";
    idle U64 => "RequestTimeout" "PostAckTimeout" "LoginRequestTimeOut" "DirectoryRequestTimeOut"
        "DictionaryRequestTimeOut";
    idle U32 => "ItemCountHint" "MaxOutstandingPosts";
    idle Limit => "ReconnectAttemptLimit" "ReconnectMinDelay" "ReconnectMaxDelay";
    idle Flag => "RefreshFirstRequired" "AcceptMessageWithoutAcceptingRequests"
        "AcceptDirMessageWithoutMinFilters" "AcceptMessageWithoutBeingLogin"
        "AcceptMessageSameKeyButDiffStream" "AcceptMessageThatChangesService"
        "AcceptMessageWithoutQosInRange" "EnforceAckIDValidation";
};

const COMPRESSIONS: Kind = Code(&["None", "ZLib", "LZ4"]);
const CHANNEL_TYPES: &[&str] =
    &["RSSL_SOCKET", "RSSL_HTTP", "RSSL_ENCRYPTED", "RSSL_RELIABLE_MCAST", "RSSL_WEBSOCKET"];

/// Adds the settings that both ends of a connection share.
macro_rules! with_transport {
    ($($more:tt)*) => {
        settings! {
            one Text => "Name" "WsProtocols";
            one U16 => "Port";
            one COMPRESSIONS => "CompressionType";
            one U32 => "CompressionThreshold" "HighWaterMark" "SysSendBufSize" "SysRecvBufSize"
                "InitializationTimeout";
            one Number(1, 4_294_967_295) => "GuaranteedOutputBuffers" "NumInputBuffers";
            one Flag => "TcpNodelay";
            one Number(1_000, 255_000) => "ConnectionPingTimeout";
            idle Flag => "DirectWrite";
            idle U64 => "WsMaxMsgSize";
            idle Text => "LibSslName" "LibCryptoName" "LibCurlName" "SecurityProtocol";
            idle U32 => "ServiceDiscoveryRetryCount";
            $($more)*
        }
    };
}

const CHANNEL: &[Setting] = with_transport! {
    one Text => "InterfaceName" "Host" "OpenSSLCAStore";
    one Code(CHANNEL_TYPES) => "ChannelType";
    one Code(&["RSSL_SOCKET", "RSSL_HTTP", "RSSL_WEBSOCKET"]) => "EncryptedProtocolType";
    idle Text => "ObjectName" "Location" "RecvAddress" "RecvPort" "SendAddress" "SendPort" "UnicastPort"
        "HsmInterface" "HsmMultAddress" "HsmPort" "tcpControlPort" "TunnelingType" "ProxyHost" "ProxyPort";
    one Flag => "EnableSessionManagement";
    idle U32 => "HsmInterval" "PacketTTL" "NDATA" "ndata" "NMISSING" "nmissing" "NRREQ" "nrreq"
        "PKTPOOLLIMITHIGH" "pktPoolLimitHigh" "PKTPOOLLIMITLOW" "pktPoolLimitLow" "TDATA" "tdata" "TBCHOLD"
        "tbchold" "TPPHOLD" "tpphold" "TRREQ" "trreq" "TWAIT" "twait" "UserQLimit" "userQLimit"
        "ProxyConnectionTimeout";
    idle Flag => "DisconnectOnGap";
};
const SERVER: &[Setting] = with_transport! {
    one Text => "InterfaceName" "ServerCert" "ServerPrivateKey";
    one Code(&["RSSL_SOCKET", "RSSL_ENCRYPTED", "RSSL_WEBSOCKET"]) => "ServerType";
    one Number(256, 65_000) => "MaxFragmentSize";
    one Number(1_000, 255_000) => "ConnectionMinPingTimeout";
    idle Text => "CipherSuite" "DHParams" "DhParams" "KeystoreFile" "KeystorePasswd" "KeystoreType"
        "KeyManagerAlgorithm" "TrustManagerAlgorithm" "SecurityProvider";
    idle Flag => "SharedSocket" "ServerSharedSocket";
    idle U32 => "MaxOutputBuffers";
};

const DICTIONARY: &[Setting] = settings! {
    one Text => "Name";
    one Code(&["FileDictionary", "ChannelDictionary"]) => "DictionaryType";
    one Text => "RdmFieldDictionaryFileName" "EnumTypeDefFileName";
    idle Text => "RdmFieldDictionaryItemName" "EnumTypeDefItemName" "DictionaryID";
};
const LOGGER: &[Setting] = settings! {
    one Text => "Name" "FileName";
    one Code(&["File", "Stdout"]) => "LoggerType";
    one Code(&["NoLogMsg", "Error", "Warning", "Success", "Verbose"]) => "LoggerSeverity";
    one U32 => "NumberOfLogFiles" "MaxLogFileSize" "MaxFileSize" "MaxFileNumber";
    one Flag => "IncludeDateInLoggerOutput";
};

const WARM_STANDBY: &[Setting] = &[
    one("Name", Text),
    one("StartingActiveServer", Of(Group::WarmStandbyServer)),
    one("StandbyServerSet", SomeOf(Group::WarmStandbyServer)),
    one("WarmStandbyMode", Code(&["LOGIN_BASED", "SERVICE_BASED"])),
];
const WARM_STANDBY_SERVER: &[Setting] =
    &[one("Name", Text), one("Channel", Of(Group::Channel)), one("PerServiceNameSet", Text)];
const SESSION: &[Setting] = settings! {
    idle Text => "Name" "PHDetectionTimeSchedule" "PreferredChannelName" "PreferredWSBChannelName";
    idle SomeOf(Group::Channel) => "ChannelSet";
    idle SomeOf(Group::WarmStandby) => "WarmStandbyChannelSet";
    idle Limit => "ReconnectAttemptLimit" "ReconnectMinDelay" "ReconnectMaxDelay";
    idle Flag => "EnablePreferredHostOptions" "PHFallBackWithInWSBGroup";
    idle U32 => "PHDetectionTimeInterval";
};
/// The settings of [`GLOBAL`].
pub(super) const GLOBAL_SETTINGS: &[Setting] = settings! {
    idle Limit => "WorkerEventPoolLimit" "ReactorChannelEventPoolLimit" "ReactorMsgEventPoolLimit"
        "TunnelStreamMsgEventPoolLimit" "TunnelStreamStatusEventPoolLimit" "JsonConverterPoolsSize"
        "WatchlistObjectsPoolLimit" "SocketProtocolPoolLimit";
};

const DIRECTORY: &[Setting] = &[one("Name", Text), many("Service", Block(SERVICE))];
const SERVICE: &[Setting] = &[
    one("Name", Text),
    one("InfoFilter", Block(INFO)),
    idle("StateFilter", Block(STATE)),
    idle("LoadFilter", Block(&[one("OpenLimit", U64), one("OpenWindow", U64), one("LoadFactor", U64)])),
];
const INFO: &[Setting] = settings! {
    one U16 => "ServiceId";
    one Text => "Vendor";
    idle Block(&[many("CapabilitiesEntry", Text)]) => "Capabilities";
    idle Block(&[many("DictionariesProvidedEntry", Of(Group::Dictionary))]) => "DictionariesProvided";
    idle Block(&[many("DictionariesUsedEntry", Of(Group::Dictionary))]) => "DictionariesUsed";
    idle Block(&[many("QoSEntry", Block(QOS))]) => "QoS";
    idle Text => "ItemList";
    idle Flag => "IsSource" "SupportsQoSRange" "SupportsOutOfBandSnapshots" "AcceptingConsumerStatus";
};
const QOS: &[Setting] = &[
    one("Timeliness", NumberOr(&["RealTime", "InexactDelayed"])),
    one("Rate", NumberOr(&["TickByTick", "JustInTimeConflated"])),
];
const STATE: &[Setting] =
    &[one("ServiceState", Flag), one("AcceptingRequests", Flag), one("Status", Block(STATUS))];
const STATUS: &[Setting] = settings! {
    one Code(&["Open", "NonStreaming", "CloseRecover", "Close", "CloseRedirected", "ClosedRecover", "Closed",
        "Redirected", "ClosedRedirected"]) => "StreamState";
    one Code(&["NoChange", "Ok", "Suspect"]) => "DataState";
    one Text => "StatusCode" "StatusText";
};

impl Group {
    /// Returns the element name of an entry, and the settings that it may have.
    const fn entry_form(self) -> (&'static str, &'static [Setting]) {
        match self {
            Self::Consumer => ("Consumer", CONSUMER),
            Self::IProvider => ("IProvider", I_PROVIDER),
            Self::NiProvider => ("NiProvider", NI_PROVIDER),
            Self::Channel => ("Channel", CHANNEL),
            Self::Server => ("Server", SERVER),
            Self::Directory => ("Directory", DIRECTORY),
            Self::Dictionary => ("Dictionary", DICTIONARY),
            Self::Logger => ("Logger", LOGGER),
            Self::WarmStandby => ("WarmStandbyChannel", WARM_STANDBY),
            Self::WarmStandbyServer => ("WarmStandbyServerInfo", WARM_STANDBY_SERVER),
            Self::Session => ("SessionChannelInfo", SESSION),
        }
    }

    /// Returns the element name of an entry.
    pub(super) const fn name(self) -> &'static str {
        self.entry_form().0
    }

    pub(super) const fn settings(self) -> &'static [Setting] {
        self.entry_form().1
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
