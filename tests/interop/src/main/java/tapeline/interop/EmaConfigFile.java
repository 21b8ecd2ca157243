package tapeline.interop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** An `EmaConfig.xml` for one run, in a file of its own, gone with the process. */
final class EmaConfigFile {
    private static final int BUFFERS = 5000;
    /** Over JSON a client takes as many of the largest message's size, 61,440 bytes, at once. */
    private static final int JSON_BUFFERS = 200;

    private EmaConfigFile() {}

    static String consumer(Options options) {
        boolean stands = options.has("standby");
        return write("""
                <ConsumerGroup><DefaultConsumer value="C"/><ConsumerList><Consumer><Name value="C"/>
                  <%s/><Dictionary value="D"/><ItemCountHint value="20000"/>
                  <ReconnectMinDelay value="200"/><ReconnectMaxDelay value="1000"/><ReconnectAttemptLimit value="-1"/>
                </Consumer></ConsumerList></ConsumerGroup>
                %s%s%s""".formatted(
                stands ? "WarmStandbyChannelSet value=\"W\"" : "Channel value=\"Channel\"",
                stands ? standby(options) : "",
                channel(options),
                dictionary(options, options.has("dictionary"))));
    }

    /** Two servers: the one of the option `server` is active at first. */
    private static String standby(Options options) {
        return """
                <WarmStandbyGroup><WarmStandbyList><WarmStandbyChannel><Name value="W"/>
                  <StartingActiveServer value="First"/><StandbyServerSet value="Second"/>
                  <WarmStandbyMode value="WarmStandbyMode::%s"/>
                </WarmStandbyChannel></WarmStandbyList></WarmStandbyGroup>
                <WarmStandbyServerInfoGroup><WarmStandbyServerInfoList>
                  <WarmStandbyServerInfo><Name value="First"/><Channel value="Channel"/></WarmStandbyServerInfo>
                  <WarmStandbyServerInfo><Name value="Second"/><Channel value="Standby"/></WarmStandbyServerInfo>
                </WarmStandbyServerInfoList></WarmStandbyServerInfoGroup>
                """.formatted(options.text("standby-mode", "LOGIN_BASED"));
    }

    static String niProvider(Options options) {
        return write("""
                <NiProviderGroup><DefaultNiProvider value="N"/><NiProviderList><NiProvider><Name value="N"/>
                  <Channel value="Channel"/><Directory value="Directory"/>
                  <ReconnectMinDelay value="200"/><ReconnectMaxDelay value="1000"/><ReconnectAttemptLimit value="-1"/>
                </NiProvider></NiProviderList></NiProviderGroup>
                %s%s%s""".formatted(channel(options), directory(options), dictionary(options, true)));
    }

    static String interactiveProvider(Options options) {
        return write("""
                <IProviderGroup><DefaultIProvider value="P"/><IProviderList><IProvider><Name value="P"/>
                  <Server value="S"/><Directory value="Directory"/><ItemCountHint value="20000"/>
                </IProvider></IProviderList></IProviderGroup>
                <ServerGroup><ServerList><Server><Name value="S"/>
                  <ServerType value="ServerType::%s"/>
                  <Port value="%s"/>
                  <WsProtocols value="rssl.rwf, tr_json2, rssl.json.v2"/>
                  <CompressionType value="CompressionType::%s"/>
                  <GuaranteedOutputBuffers value="%d"/>
                </Server></ServerList></ServerGroup>
                %s%s""".formatted(
                options.has("keystore") ? "RSSL_ENCRYPTED" : "RSSL_SOCKET",
                options.text("port"),
                compression(options),
                BUFFERS,
                directory(options),
                dictionary(options, true)));
    }

    private static String channel(Options options) {
        String first = channel(options, "Channel", options.text("server"));
        String second = options.has("standby") ? channel(options, "Standby", options.text("standby")) : "";
        return "<ChannelGroup><ChannelList>\n" + first + second + "</ChannelList></ChannelGroup>\n";
    }

    private static String channel(Options options, String name, String at) {
        Transport transport = options.transport();
        String[] server = at.split(":");
        String encrypted = transport.encrypted
                ? "<EncryptedProtocolType value=\"EncryptedProtocolType::%s\"/>".formatted(transport.underEncryption())
                : "";
        String webSocket = transport.subProtocol == null
                ? ""
                : "<WsProtocols value=\"%s\"/>".formatted(transport.subProtocol);
        return """
                <Channel><Name value="%s"/>
                  <ChannelType value="ChannelType::%s"/>%s%s
                  <CompressionType value="CompressionType::%s"/>
                  <Host value="%s"/><Port value="%s"/>
                  <GuaranteedOutputBuffers value="%d"/>
                </Channel>
                """.formatted(
                name, transport.channelType(), encrypted, webSocket, compression(options), server[0], server[1],
                transport.json() ? JSON_BUFFERS : BUFFERS);
    }

    private static String compression(Options options) {
        return switch (options.text("compression", "none")) {
            case "none" -> "None";
            case "zlib" -> "ZLib";
            case "lz4" -> "LZ4";
            default -> throw new IllegalArgumentException("no compression " + options.text("compression"));
        };
    }

    private static String directory(Options options) {
        return """
                <DirectoryGroup><DefaultDirectory value="Directory"/><DirectoryList><Directory>
                  <Name value="Directory"/>
                  <Service><Name value="%s"/>
                    <InfoFilter><ServiceId value="1"/><Vendor value="Tapeline"/><IsSource value="1"/>
                      <Capabilities>
                        <CapabilitiesEntry value="MMT_DICTIONARY"/>
                        <CapabilitiesEntry value="MMT_MARKET_PRICE"/>
                        <CapabilitiesEntry value="MMT_MARKET_BY_ORDER"/>
                      </Capabilities>
                      <DictionariesProvided><DictionariesProvidedEntry value="D"/></DictionariesProvided>
                      <DictionariesUsed><DictionariesUsedEntry value="D"/></DictionariesUsed>
                      <QoS><QoSEntry><Timeliness value="Timeliness::RealTime"/><Rate value="Rate::TickByTick"/></QoSEntry></QoS>
                      <SupportsQoSRange value="0"/><ItemList value=""/><AcceptingConsumerStatus value="0"/>
                      <SupportsOutOfBandSnapshots value="1"/>
                    </InfoFilter>
                    <StateFilter><ServiceState value="1"/><AcceptingRequests value="1"/>
                      <Status><StreamState value="StreamState::Open"/><DataState value="DataState::Ok"/>
                        <StatusCode value="StatusCode::None"/><StatusText value=""/></Status>
                    </StateFilter>
                  </Service>
                </Directory></DirectoryList></DirectoryGroup>
                """.formatted(options.text("service", "DIRECT_FEED"));
    }

    /** From a folder, or from the connection. */
    private static String dictionary(Options options, boolean fromFolder) {
        String kind = fromFolder
                ? """
                <DictionaryType value="DictionaryType::FileDictionary"/>
                <RdmFieldDictionaryItemName value="RWFFld"/><EnumTypeDefItemName value="RWFEnum"/>
                <RdmFieldDictionaryFileName value="%1$s/RDMFieldDictionary"/>
                <EnumTypeDefFileName value="%1$s/enumtype.def"/>""".formatted(options.text("dictionary"))
                : "<DictionaryType value=\"DictionaryType::ChannelDictionary\"/>";
        return """
                <DictionaryGroup><DictionaryList><Dictionary><Name value="D"/>%s</Dictionary></DictionaryList></DictionaryGroup>
                """.formatted(kind);
    }

    private static String write(String inside) {
        try {
            Path path = Files.createTempFile("EmaConfig", ".xml");
            path.toFile().deleteOnExit();
            Files.writeString(path, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<EmaConfig>\n" + inside + "</EmaConfig>\n");
            return path.toString();
        } catch (IOException failure) {
            throw new java.io.UncheckedIOException(failure);
        }
    }
}
