//! `EmaConfig.xml` for one run of a tool on EMA C++: a single channel or server, under the names that the tools use.

use crate::program::Place;
use crate::way::Way;

pub(super) fn text(place: &Place, way: Way, port: u16) -> String {
    let carrier = if way.sub_protocol().is_some() { "RSSL_WEBSOCKET" } else { "RSSL_SOCKET" };
    let compression = match way.compression {
        "zlib" => "ZLib",
        "lz4" => "LZ4",
        _ => "None",
    };
    let value = |name: &str, value: &str| format!("<{name} value=\"{value}\"/>");
    let mut both = value("CompressionType", &format!("CompressionType::{compression}"))
        + &value("Port", &port.to_string())
        + &value("GuaranteedOutputBuffers", "5000");
    if let Some(protocol) = way.sub_protocol() {
        both += &value("WsProtocols", protocol);
    }
    let outside = if way.is_encrypted() { "RSSL_ENCRYPTED" } else { carrier };
    let channel = value("Name", "C")
        + &value("ChannelType", &format!("ChannelType::{outside}"))
        + &value("EncryptedProtocolType", &format!("EncryptedProtocolType::{carrier}"))
        + &value("OpenSSLCAStore", &place.certificate("ca.pem"))
        + &value("Host", "localhost")
        + &both;
    let server = value("Name", "S")
        + &value("ServerType", &format!("ServerType::{outside}"))
        + &value("ServerCert", &place.certificate("server.pem"))
        + &value("ServerPrivateKey", &place.certificate("server.key"))
        + &both;
    // Over JSON a client needs a dictionary before it can read one.
    let dictionary = if way.is_json() { "FileDictionary" } else { "ChannelDictionary" };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<EmaConfig>\n\
         <ConsumerGroup><ConsumerList><Consumer><Name value=\"Perf_Consumer_1\"/><Channel value=\"C\"/>\
         <Dictionary value=\"D\"/></Consumer></ConsumerList></ConsumerGroup>\n\
         <IProviderGroup><IProviderList><IProvider><Name value=\"Perf_Provider_1\"/><Server value=\"S\"/>\
         </IProvider></IProviderList></IProviderGroup>\n\
         <NiProviderGroup><NiProviderList><NiProvider><Name value=\"Perf_NIProvider_1\"/><Channel value=\"C\"/>\
         </NiProvider></NiProviderList></NiProviderGroup>\n\
         <ChannelGroup><ChannelList><Channel>{channel}</Channel></ChannelList></ChannelGroup>\n\
         <ServerGroup><ServerList><Server>{server}</Server></ServerList></ServerGroup>\n\
         <DictionaryGroup><DictionaryList><Dictionary><Name value=\"D\"/>\
         <DictionaryType value=\"DictionaryType::{dictionary}\"/>\
         <RdmFieldDictionaryFileName value=\"./RDMFieldDictionary\"/><EnumTypeDefFileName value=\"./enumtype.def\"/>\
         </Dictionary></DictionaryList></DictionaryGroup>\n</EmaConfig>\n"
    )
}
