package tapeline.interop;

import java.util.Arrays;

/** What lies under the messages. WebSocket carries RWF or JSON; each of the three exists inside TLS too. */
enum Transport {
    TCP("tcp", false, null),
    WS_RWF("ws-rwf", false, "rssl.rwf"),
    WS_JSON("ws-json", false, "tr_json2"),
    WS_JSON_V2("ws-json-v2", false, "rssl.json.v2"),
    TLS("tls", true, null),
    TLS_WS_RWF("tls-ws-rwf", true, "rssl.rwf"),
    TLS_WS_JSON("tls-ws-json", true, "tr_json2");

    private final String title;
    final boolean encrypted;
    /** The WebSocket sub-protocol; null without WebSocket. */
    final String subProtocol;

    Transport(String title, boolean encrypted, String subProtocol) {
        this.title = title;
        this.encrypted = encrypted;
        this.subProtocol = subProtocol;
    }

    static Transport named(String title) {
        return Arrays.stream(values()).filter(each -> each.title.equals(title)).findFirst().orElseThrow(
                () -> new IllegalArgumentException("no transport " + title));
    }

    boolean json() {
        return subProtocol != null && !subProtocol.equals("rssl.rwf");
    }

    /** As `EmaConfig.xml` has it. */
    String channelType() {
        return encrypted ? "RSSL_ENCRYPTED" : underEncryption();
    }

    String underEncryption() {
        return subProtocol == null ? "RSSL_SOCKET" : "RSSL_WEBSOCKET";
    }

    int connectionType() {
        return encrypted ? com.refinitiv.eta.transport.ConnectionTypes.ENCRYPTED : connectionTypeInside();
    }

    int connectionTypeInside() {
        return subProtocol == null
                ? com.refinitiv.eta.transport.ConnectionTypes.SOCKET
                : com.refinitiv.eta.transport.ConnectionTypes.WEBSOCKET;
    }
}
