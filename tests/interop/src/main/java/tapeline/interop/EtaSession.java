package tapeline.interop;

import com.refinitiv.eta.codec.CodecFactory;
import com.refinitiv.eta.codec.DataDictionary;
import com.refinitiv.eta.valueadd.reactor.DefaultMsgCallback;
import com.refinitiv.eta.valueadd.reactor.Reactor;
import com.refinitiv.eta.valueadd.reactor.ReactorCallbackReturnCodes;
import com.refinitiv.eta.valueadd.reactor.ReactorChannel;
import com.refinitiv.eta.valueadd.reactor.ReactorChannelEvent;
import com.refinitiv.eta.valueadd.reactor.ReactorChannelEventCallback;
import com.refinitiv.eta.valueadd.reactor.ReactorChannelEventTypes;
import com.refinitiv.eta.valueadd.reactor.ReactorErrorInfo;
import com.refinitiv.eta.valueadd.reactor.ReactorFactory;
import com.refinitiv.eta.valueadd.reactor.ReactorJsonConverterOptions;
import com.refinitiv.eta.valueadd.reactor.ReactorReturnCodes;
import com.refinitiv.eta.valueadd.reactor.ReactorRole;
import java.io.IOException;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;

/** ETA's reactor (transport, codec, JSON converter) and the loop around it, for either end of a connection. */
abstract class EtaSession implements ReactorChannelEventCallback, DefaultMsgCallback {
    static final int RWF_MAJOR = 14;
    static final int RWF_MINOR = 1;

    final Selector selector;
    final Reactor reactor;
    final ReactorErrorInfo error = ReactorFactory.createReactorErrorInfo();

    /** Dictionary files are for the JSON converter, which cannot do without. */
    EtaSession(Options options, int defaultService) throws IOException {
        selector = Selector.open();
        reactor = ReactorFactory.createReactor(ReactorFactory.createReactorOptions(), error);
        must(reactor == null ? error.code() : 0);
        register(reactor.reactorChannel());
        ReactorJsonConverterOptions json = ReactorFactory.createReactorJsonConverterOptions();
        json.dataDictionary(dictionary(options.text("dictionary")));
        json.defaultServiceId(defaultService);
        // The peers of these tests name one service. Without this, what names any is dropped without a word.
        json.serviceNameToIdCallback((service, event) -> {
            service.serviceId(defaultService);
            return ReactorReturnCodes.SUCCESS;
        });
        json.jsonConversionEventCallback(event -> {
            Line.event("unreadable").with("text", event.error().text()).print();
            return ReactorCallbackReturnCodes.SUCCESS;
        });
        must(reactor.initJsonConverter(json, error));
    }

    private static DataDictionary dictionary(String folder) {
        DataDictionary dictionary = CodecFactory.createDataDictionary();
        var error = com.refinitiv.eta.transport.TransportFactory.createError();
        if (dictionary.loadFieldDictionary(folder + "/RDMFieldDictionary", error) < 0
                || dictionary.loadEnumTypeDictionary(folder + "/enumtype.def", error) < 0) {
            throw new IllegalStateException(error.text());
        }
        return dictionary;
    }

    final <Role extends ReactorRole> Role called(Role role) {
        role.channelEventCallback(this);
        role.defaultMsgCallback(this);
        return role;
    }

    final void must(int code) {
        if (code < 0) {
            throw new IllegalStateException(error.toString());
        }
    }

    /** Waits for something to read or accept, at most so long, and has it handled. */
    final void turn(int milliseconds) throws IOException {
        selector.select(milliseconds);
        for (SelectionKey key : selector.selectedKeys()) {
            if (key.isValid() && key.isAcceptable()) {
                onAcceptable(key);
            }
        }
        selector.selectedKeys().removeIf(key -> !key.isValid() || !(key.attachment() instanceof ReactorChannel));
        var dispatch = ReactorFactory.createReactorDispatchOptions();
        dispatch.maxMessages(1000);
        while (reactor.dispatchAll(selector.selectedKeys(), dispatch, error) > 0) { }
        selector.selectedKeys().clear();
    }

    void onAcceptable(SelectionKey key) {}

    void onUp(ReactorChannel channel) {}

    abstract void onDown(ReactorChannel channel, String text);

    @Override
    public int reactorChannelEventCallback(ReactorChannelEvent event) {
        ReactorChannel channel = event.reactorChannel();
        try {
            switch (event.eventType()) {
                case ReactorChannelEventTypes.CHANNEL_UP -> register(channel);
                case ReactorChannelEventTypes.CHANNEL_READY -> onUp(channel);
                case ReactorChannelEventTypes.FD_CHANGE -> {
                    cancel(channel.oldSelectableChannel());
                    register(channel);
                }
                case ReactorChannelEventTypes.CHANNEL_DOWN, ReactorChannelEventTypes.CHANNEL_DOWN_RECONNECTING -> {
                    cancel(channel.selectableChannel());
                    onDown(channel, event.errorInfo().error().text());
                    if (event.eventType() == ReactorChannelEventTypes.CHANNEL_DOWN) {
                        channel.close(error);
                    }
                }
                default -> { }
            }
        } catch (IOException failure) {
            throw new java.io.UncheckedIOException(failure);
        }
        return ReactorCallbackReturnCodes.SUCCESS;
    }

    private void register(ReactorChannel channel) throws IOException {
        channel.selectableChannel().register(selector, SelectionKey.OP_READ, channel);
    }

    private void cancel(SelectableChannel channel) {
        SelectionKey key = channel == null ? null : channel.keyFor(selector);
        if (key != null) {
            key.cancel();
        }
    }
}
