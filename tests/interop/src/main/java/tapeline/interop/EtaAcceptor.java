package tapeline.interop;

import com.refinitiv.eta.codec.Buffer;
import com.refinitiv.eta.codec.CodecFactory;
import com.refinitiv.eta.codec.CodecReturnCodes;
import com.refinitiv.eta.codec.DataTypes;
import com.refinitiv.eta.codec.DecodeIterator;
import com.refinitiv.eta.codec.FieldEntry;
import com.refinitiv.eta.codec.FieldList;
import com.refinitiv.eta.codec.Map;
import com.refinitiv.eta.codec.MapEntry;
import com.refinitiv.eta.codec.Msg;
import com.refinitiv.eta.codec.MsgClasses;
import com.refinitiv.eta.rdm.DomainTypes;
import com.refinitiv.eta.valueadd.reactor.ReactorCallbackReturnCodes;
import com.refinitiv.eta.valueadd.reactor.ReactorChannel;
import com.refinitiv.eta.valueadd.reactor.ReactorMsgEvent;
import java.io.IOException;
import java.util.HashMap;

/**
 * What non-interactive providers publish to, on LSEG's transport and codec: takes logins (but for the user {@link #DENIED}),
 * the directory and every item, and says what it got when the provider leaves.
 */
final class EtaAcceptor extends EtaServer {
    private static final String USAGE = "EtaAcceptor --port N --dictionary FOLDER [--compression none|zlib|lz4]"
            + " [--keystore JKS --password TEXT]";

    /** One provider. */
    private static final class Publisher {
        String user = "";
        int services;
        int refreshes;
        int updates;
        int statuses;
        int orders;
        int fields;
        int malformed;
        /** Of a payload, in RWF. */
        int largest;
        boolean said;
    }

    private final java.util.Map<ReactorChannel, Publisher> publishers = new HashMap<>();
    private final DecodeIterator iterator = CodecFactory.createDecodeIterator();

    public static void main(String[] arguments) throws IOException {
        new EtaAcceptor(new Options(arguments, USAGE, OPTIONS)).serve();
    }

    private EtaAcceptor(Options options) throws IOException {
        super(options);
    }

    @Override
    void onDown(ReactorChannel channel, String text) {
        leave(channel, text);
    }

    private void leave(ReactorChannel channel, String text) {
        Publisher publisher = publishers.get(channel);
        if (publisher == null || publisher.said) {
            return;
        }
        publisher.said = true;
        Line.event("gone").with("user", publisher.user).with("services", publisher.services)
                .with("refreshes", publisher.refreshes).with("updates", publisher.updates)
                .with("statuses", publisher.statuses).with("orders", publisher.orders).with("fields", publisher.fields)
                .with("malformed", publisher.malformed).with("largest", publisher.largest).with("text", text).print();
    }

    @Override
    public int defaultMsgCallback(ReactorMsgEvent event) {
        ReactorChannel channel = event.reactorChannel();
        Msg message = event.msg();
        if (message == null) {
            Line.event("unreadable").with("text", event.errorInfo().toString()).print();
            return ReactorCallbackReturnCodes.SUCCESS;
        }
        Publisher publisher = publishers.computeIfAbsent(channel, each -> new Publisher());
        switch (message.msgClass()) {
            case MsgClasses.REQUEST -> {
                if (message.domainType() == DomainTypes.LOGIN) {
                    publisher.user = message.msgKey().name().toString();
                    answerLogin(channel, message.streamId(), publisher.user);
                }
            }
            case MsgClasses.CLOSE -> {
                if (message.domainType() == DomainTypes.LOGIN) {
                    leave(channel, "logged out");
                    publishers.remove(channel);
                }
            }
            case MsgClasses.REFRESH -> {
                take(channel, publisher, message);
            }
            case MsgClasses.UPDATE -> {
                publisher.updates++;
                read(channel, publisher, message);
            }
            case MsgClasses.STATUS -> publisher.statuses++;
            default -> { }
        }
        return ReactorCallbackReturnCodes.SUCCESS;
    }

    private void take(ReactorChannel channel, Publisher publisher, Msg message) {
        if (message.domainType() == DomainTypes.SOURCE) {
            publisher.services = services(channel, message);
            Line.event("directory").with("services", publisher.services).print();
            return;
        }
        publisher.refreshes++;
        publisher.largest = Math.max(publisher.largest, message.encodedDataBody().length());
        read(channel, publisher, message);
    }

    private int services(ReactorChannel channel, Msg message) {
        Map map = CodecFactory.createMap();
        MapEntry entry = CodecFactory.createMapEntry();
        begin(channel, message.encodedDataBody());
        int services = 0;
        if (map.decode(iterator) >= 0) {
            var id = CodecFactory.createUInt();
            while (entry.decode(iterator, id) == CodecReturnCodes.SUCCESS) {
                services++;
            }
        }
        return services;
    }

    private void begin(ReactorChannel channel, Buffer buffer) {
        iterator.clear();
        iterator.setBufferAndRWFVersion(buffer, channel.majorVersion(), channel.minorVersion());
    }

    private void read(ReactorChannel channel, Publisher publisher, Msg message) {
        begin(channel, message.encodedDataBody());
        switch (message.containerType()) {
            case DataTypes.FIELD_LIST -> fields(publisher);
            case DataTypes.MAP -> {
                Map map = CodecFactory.createMap();
                MapEntry entry = CodecFactory.createMapEntry();
                Buffer key = CodecFactory.createBuffer();
                if (map.decode(iterator) < 0) {
                    publisher.malformed++;
                    return;
                }
                int code;
                while ((code = entry.decode(iterator, key)) != CodecReturnCodes.END_OF_CONTAINER) {
                    if (code < 0) {
                        publisher.malformed++;
                        return;
                    }
                    publisher.orders++;
                    if (map.containerType() == DataTypes.FIELD_LIST && entry.encodedData().length() > 0) {
                        fields(publisher);
                    }
                }
            }
            default -> publisher.malformed++;
        }
    }

    private void fields(Publisher publisher) {
        FieldList list = CodecFactory.createFieldList();
        FieldEntry entry = CodecFactory.createFieldEntry();
        if (list.decode(iterator, null) < 0) {
            publisher.malformed++;
            return;
        }
        int code;
        while ((code = entry.decode(iterator)) != CodecReturnCodes.END_OF_CONTAINER) {
            if (code < 0) {
                publisher.malformed++;
                return;
            }
            publisher.fields++;
        }
    }
}
