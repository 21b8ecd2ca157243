//! Which settings there are, and what each may be.

use super::tree::{Fault, Node};
use crate::near::nearest;

/// What a setting may be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// 0 or 1.
    Flag,
    /// A whole number from here to there.
    Number(u64, u64),
    /// A whole number, below zero for no limit.
    Limit,
    /// One of these, perhaps behind the name of its type and two colons.
    Code(&'static [&'static str]),
    /// A number, or a code.
    NumberOr(&'static [&'static str]),
    /// The name of an entry of this group.
    Of(Group),
    /// Names of such entries, with commas between.
    SomeOf(Group),
    /// Settings of its own.
    Block(&'static [Setting]),
}

/// One setting.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Whether there may be several.
    pub(super) many: bool,
}

const fn one(name: &'static str, kind: Kind) -> Setting {
    Setting { name, kind, many: false }
}

const fn many(name: &'static str, kind: Kind) -> Setting {
    Setting { name, kind, many: true }
}

/// A kind of entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Consumer,
    IProvider,
    NiProvider,
    Channel,
    Server,
    Directory,
    Dictionary,
    Logger,
}

pub(super) const GROUPS: [Group; 8] = [
    Group::Consumer,
    Group::IProvider,
    Group::NiProvider,
    Group::Channel,
    Group::Server,
    Group::Directory,
    Group::Dictionary,
    Group::Logger,
];

use Kind::{Block, Code, Flag, Limit, Number, NumberOr, Of, SomeOf, Text};

const U16: Kind = Number(0, 65_535);
const U32: Kind = Number(0, 4_294_967_295);
const U64: Kind = Number(0, u64::MAX);

/// What consumers and providers of either kind have.
macro_rules! with_session {
    ($($more:expr),* $(,)?) => {
        &[
            one("Name", Text), one("Logger", Of(Group::Logger)), one("CatchUnhandledException", Flag),
            one("DispatchTimeoutApiThread", Limit), one("ItemCountHint", U32), one("ServiceCountHint", U32),
            one("MaxDispatchCountApiThread", U32), one("MaxDispatchCountUserThread", U32), one("PipePort", Limit),
            one("RequestTimeout", U64), one("PostAckTimeout", U64), one("MaxOutstandingPosts", U32),
            one("LoginRequestTimeOut", U64), one("DirectoryRequestTimeOut", U64),
            one("DictionaryRequestTimeOut", U64), one("DefaultServiceID", U16), one("EnablePreferredHostOptions", Flag),
            one("XmlTraceToStdout", Flag), one("XmlTraceToFile", Flag), one("XmlTraceToMultipleFiles", Flag),
            one("XmlTraceFileName", Text), one("XmlTraceMaxFileSize", U64), one("XmlTraceHex", Flag),
            one("XmlTraceWrite", Flag), one("XmlTraceRead", Flag), one("XmlTracePing", Flag), one("XmlTraceDump", Flag),
            one("DateTimeFormat", Text), one("LoadBalancing", Flag), one("GlobalConfig", Text),
            one("ShouldInitializeCPUIDlib", Flag), one("EnumTypeFragmentSize", U32),
            one("FieldDictionaryFragmentSize", U32), one("MsgKeyInUpdates", Flag), one("ReconnectAttemptLimit", Limit),
            one("ReconnectMinDelay", Limit), one("ReconnectMaxDelay", Limit),
            $($more),*
        ]
    };
}

const CONSUMER: &[Setting] = with_session![
    one("Channel", Of(Group::Channel)),
    one("ChannelSet", SomeOf(Group::Channel)),
    one("SessionChannel", Text),
    one("Dictionary", Of(Group::Dictionary)),
    one("ObeyOpenWindow", U32),
    one("EnableRtt", Flag),
    one("ReissueTokenAttemptLimit", Limit),
    one("ReissueTokenAttemptInterval", Limit),
    one("TokenReissueRatio", Text),
    one("RestRequestTimeOut", U64),
    one("WarmStandbyChannelSet", Text),
];
const NI_PROVIDER: &[Setting] = with_session![
    one("Channel", Of(Group::Channel)),
    one("ChannelSet", SomeOf(Group::Channel)),
    one("Directory", Of(Group::Directory)),
    one("RefreshFirstRequired", Flag),
    one("MergeSourceDirectoryStreams", Flag),
    one("RecoverUserSubmitSourceDirectory", Flag),
    one("RemoveItemsOnDisconnect", Flag),
];
const I_PROVIDER: &[Setting] = with_session![
    one("Server", Of(Group::Server)),
    one("Directory", Of(Group::Directory)),
    one("RefreshFirstRequired", Flag),
    one("AcceptMessageWithoutAcceptingRequests", Flag),
    one("AcceptDirMessageWithoutMinFilters", Flag),
    one("AcceptMessageWithoutBeingLogin", Flag),
    one("AcceptMessageSameKeyButDiffStream", Flag),
    one("AcceptMessageThatChangesService", Flag),
    one("AcceptMessageWithoutQosInRange", Flag),
    one("EnforceAckIDValidation", Flag),
];

const COMPRESSIONS: Kind = Code(&["None", "ZLib", "LZ4"]);
const CHANNEL_TYPES: &[&str] =
    &["RSSL_SOCKET", "RSSL_HTTP", "RSSL_ENCRYPTED", "RSSL_RELIABLE_MCAST", "RSSL_WEBSOCKET"];

/// What both ends of a connection have.
macro_rules! with_transport {
    ($($more:expr),* $(,)?) => {
        &[
            one("Name", Text), one("Port", U16), one("CompressionType", COMPRESSIONS), one("CompressionThreshold", U32),
            one("GuaranteedOutputBuffers", Number(1, 4_294_967_295)), one("NumInputBuffers", Number(1, 4_294_967_295)),
            one("HighWaterMark", U32), one("SysSendBufSize", U32), one("SysRecvBufSize", U32), one("TcpNodelay", Flag),
            one("ConnectionPingTimeout", Number(1_000, 255_000)), one("InitializationTimeout", U32),
            one("InterfaceName", Text), one("DirectWrite", Flag), one("WsMaxMsgSize", U64), one("WsProtocols", Text),
            one("LibSslName", Text), one("LibCryptoName", Text), one("LibCurlName", Text),
            one("SecurityProtocol", Text), one("ServiceDiscoveryRetryCount", U32),
            $($more),*
        ]
    };
}

const CHANNEL: &[Setting] = with_transport![
    one("ChannelType", Code(CHANNEL_TYPES)),
    one("EncryptedProtocolType", Code(&["RSSL_SOCKET", "RSSL_HTTP", "RSSL_WEBSOCKET"])),
    one("Host", Text),
    one("ObjectName", Text),
    one("OpenSSLCAStore", Text),
    one("Location", Text),
    one("EnableSessionManagement", Flag),
    one("RecvAddress", Text),
    one("RecvPort", Text),
    one("SendAddress", Text),
    one("SendPort", Text),
    one("UnicastPort", Text),
    one("HsmInterface", Text),
    one("HsmMultAddress", Text),
    one("HsmPort", Text),
    one("HsmInterval", U32),
    one("DisconnectOnGap", Flag),
    one("PacketTTL", U32),
    one("NDATA", U32),
    one("NMISSING", U32),
    one("NRREQ", U32),
    one("PKTPOOLLIMITHIGH", U32),
    one("PKTPOOLLIMITLOW", U32),
    one("TDATA", U32),
    one("TBCHOLD", U32),
    one("TPPHOLD", U32),
    one("TRREQ", U32),
    one("TWAIT", U32),
    one("UserQLimit", U32),
    one("TunnelingType", Text),
    one("ProxyHost", Text),
    one("ProxyPort", Text),
];
const SERVER: &[Setting] = with_transport![
    one("ServerType", Code(&["RSSL_SOCKET", "RSSL_ENCRYPTED", "RSSL_WEBSOCKET"])),
    one("MaxFragmentSize", Number(256, 65_000)),
    one("ConnectionMinPingTimeout", Number(1_000, 255_000)),
    one("ServerCert", Text),
    one("ServerPrivateKey", Text),
    one("CipherSuite", Text),
    one("DHParams", Text),
    one("KeystoreFile", Text),
    one("KeystorePasswd", Text),
    one("KeystoreType", Text),
    one("KeyManagerAlgorithm", Text),
    one("TrustManagerAlgorithm", Text),
    one("SecurityProvider", Text),
    one("SharedSocket", Flag),
    one("ServerSharedSocket", Flag),
    one("MaxOutputBuffers", U32),
];

const DICTIONARY: &[Setting] = &[
    one("Name", Text),
    one("DictionaryType", Code(&["FileDictionary", "ChannelDictionary"])),
    one("RdmFieldDictionaryFileName", Text),
    one("EnumTypeDefFileName", Text),
    one("RdmFieldDictionaryItemName", Text),
    one("EnumTypeDefItemName", Text),
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

const DIRECTORY: &[Setting] = &[one("Name", Text), many("Service", Block(SERVICE))];
const SERVICE: &[Setting] = &[
    one("Name", Text),
    one("InfoFilter", Block(INFO)),
    one("StateFilter", Block(STATE)),
    one("LoadFilter", Block(&[one("OpenLimit", U64), one("OpenWindow", U64), one("LoadFactor", U64)])),
];
const INFO: &[Setting] = &[
    one("ServiceId", U16),
    one("Vendor", Text),
    one("IsSource", Flag),
    one("Capabilities", Block(&[many("CapabilitiesEntry", Text)])),
    one("DictionariesProvided", Block(&[many("DictionariesProvidedEntry", Of(Group::Dictionary))])),
    one("DictionariesUsed", Block(&[many("DictionariesUsedEntry", Of(Group::Dictionary))])),
    one("QoS", Block(&[many("QoSEntry", Block(QOS))])),
    one("SupportsQoSRange", Flag),
    one("ItemList", Text),
    one("SupportsOutOfBandSnapshots", Flag),
    one("AcceptingConsumerStatus", Flag),
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
        Code(&["Open", "NonStreaming", "ClosedRecover", "Closed", "Redirected", "ClosedRedirected"]),
    ),
    one("DataState", Code(&["NoChange", "Ok", "Suspect"])),
    one("StatusCode", Text),
    one("StatusText", Text),
];

impl Group {
    /// What an entry is called.
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
        }
    }

    /// What an entry may have.
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
        }
    }

    pub(super) fn group(self) -> String {
        format!("{}Group", self.name())
    }

    pub(super) fn list(self) -> String {
        format!("{}List", self.name())
    }

    /// The setting that names the entry to take where none is named.
    pub(super) fn default(self) -> String {
        format!("Default{}", self.name())
    }

    /// The entries of this kind in a file.
    pub(super) fn entries(self, root: &Node) -> impl Iterator<Item = &Node> {
        let (group, list, name) = (self.group(), self.list(), self.name());
        let groups = root.children.iter().filter(move |child| child.name == group);
        let lists = groups.flat_map(|group| &group.children).filter(move |child| child.name == list);
        lists.flat_map(|list| &list.children).filter(move |child| child.name == name)
    }

    /// The entry of this name.
    pub(super) fn entry<'n>(self, root: &'n Node, name: &str) -> Option<&'n Node> {
        self.entries(root).find(|entry| entry.text("Name") == Some(name))
    }

    /// Puts an entry, or the name of the default one, where EMA's files have it.
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

/// The block of this name, which is made if there is none.
fn place<'n>(parent: &'n mut Node, name: &str, line: usize) -> &'n mut Node {
    let at = parent.children.iter().position(|child| child.name == name).unwrap_or_else(|| {
        parent.children.push(Node::new(name, line));
        parent.children.len() - 1
    });
    &mut parent.children[at]
}

/// The group that an entry's name, or that of a default, belongs to.
pub(super) fn group_of(name: &str) -> Option<Group> {
    GROUPS.into_iter().find(|group| group.name() == name || group.default() == name)
}

/// Of a TOML file.
pub(super) fn no_such_group(child: &Node) -> Fault {
    let names: Vec<&str> = GROUPS.iter().map(|group| group.name()).collect();
    let hint = match nearest(&child.name, &names) {
        Some(near) => format!("there is {near}"),
        None => format!("there are {}", names.join(", ")),
    };
    Fault::new(child.line, format!("there is no group {}", child.name), hint)
}
