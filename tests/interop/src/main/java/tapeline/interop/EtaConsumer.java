package tapeline.interop;

import com.refinitiv.eta.codec.Buffer;
import com.refinitiv.eta.codec.Codec;
import com.refinitiv.eta.codec.CodecFactory;
import com.refinitiv.eta.codec.DataTypes;
import com.refinitiv.eta.codec.EncodeIterator;
import com.refinitiv.eta.codec.Msg;
import com.refinitiv.eta.codec.MsgClasses;
import com.refinitiv.eta.codec.RefreshMsg;
import com.refinitiv.eta.codec.RequestMsg;
import com.refinitiv.eta.codec.StatusMsg;
import com.refinitiv.eta.codec.StreamStates;
import com.refinitiv.eta.rdm.DomainTypes;
import com.refinitiv.eta.rdm.ElementNames;
import com.refinitiv.eta.rdm.InstrumentNameTypes;
import com.refinitiv.eta.transport.CompressionTypes;
import com.refinitiv.eta.transport.ConnectOptions;
import com.refinitiv.eta.valueadd.reactor.ConsumerRole;
import com.refinitiv.eta.valueadd.reactor.ReactorCallbackReturnCodes;
import com.refinitiv.eta.valueadd.reactor.ReactorChannel;
import com.refinitiv.eta.valueadd.reactor.ReactorConnectInfo;
import com.refinitiv.eta.valueadd.reactor.ReactorConnectOptions;
import com.refinitiv.eta.valueadd.reactor.ReactorFactory;
import com.refinitiv.eta.valueadd.reactor.ReactorMsgEvent;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;

/**
 * A consumer on ETA's reactor, for what EMA never sends: a batch as one message, and a pause.
 *
 * <p>Steps and exit codes as {@link EmaConsumer} has them.
 */
final class EtaConsumer extends EtaSession {
    private static final List<String> STEPS = List.of("batch", "reissue", "pause");
    private static final String USAGE = "EtaConsumer --server HOST:PORT --dictionary FOLDER [--transport …]"
            + " [--compression none|zlib|lz4] [--truststore JKS --password TEXT] [--items N] [--names FILE of items]"
            + " [--updates N of each item] [--timeout SECONDS] STEP… of " + STEPS;
    /** Logins, directories and dictionaries have the ids before. */
    private static final int FIRST_STREAM = 10;
    /** Their names fit into a message that need not be fragmented. */
    private static final int LARGEST_BATCH = 500;

    /** What came on one stream. */
    private static final class Seen {
        int refreshes;
        int updates;
        boolean closed;
        String text = "";
    }

    private final Options options;
    private final Map<Integer, Seen> streams = new HashMap<>();
    private ReactorChannel channel;
    private String failure;
    private int service = -1;
    private int next = FIRST_STREAM;

    public static void main(String[] arguments) throws IOException {
        Options options = new Options(arguments, USAGE, Set.of(
                "server", "dictionary", "transport", "compression", "truststore", "password", "items", "names",
                "updates", "timeout"));
        if (!STEPS.containsAll(options.words())) {
            System.err.println("usage: " + USAGE);
            System.exit(2);
        }
        System.exit(new EtaConsumer(options).run() ? 0 : 1);
    }

    private EtaConsumer(Options options) throws IOException {
        super(options, 1);
        this.options = options;
        Transport transport = options.transport();
        String[] address = options.text("server").split(":");
        ReactorConnectInfo info = ReactorFactory.createReactorConnectInfo();
        ConnectOptions connect = info.connectOptions();
        connect.connectionType(transport.connectionType());
        connect.unifiedNetworkInfo().address(address[0]);
        connect.unifiedNetworkInfo().serviceName(address[1]);
        connect.majorVersion(RWF_MAJOR);
        connect.minorVersion(RWF_MINOR);
        connect.compressionType(switch (options.text("compression", "none")) {
            case "zlib" -> CompressionTypes.ZLIB;
            case "lz4" -> CompressionTypes.LZ4;
            default -> CompressionTypes.NONE;
        });
        if (transport.subProtocol != null) {
            connect.wSocketOpts().protocols(transport.subProtocol);
        }
        if (transport.encrypted) {
            connect.encryptionOptions().connectionType(transport.connectionTypeInside());
            connect.encryptionOptions().KeystoreFile(options.text("truststore"));
            connect.encryptionOptions().KeystorePasswd(options.text("password"));
        }
        ReactorConnectOptions reactorConnect = ReactorFactory.createReactorConnectOptions();
        reactorConnect.connectionList().add(info);
        ConsumerRole role = called(ReactorFactory.createConsumerRole());
        role.initDefaultRDMLoginRequest();
        role.initDefaultRDMDirectoryRequest();
        must(reactor.connect(reactorConnect, role, error));
    }

    private boolean run() throws IOException {
        if (!await(() -> channel != null && service >= 0)) {
            Line.event("failed").with("text", failure == null ? "no login or directory" : failure).print();
            return false;
        }
        Line.event("connected").print();
        boolean passed = true;
        for (String step : options.words()) {
            Line line = Line.event("step").with("step", step);
            boolean good = switch (step) {
                case "batch" -> batch(line);
                case "reissue" -> reissue(line);
                default -> pause(line);
            };
            line.with("passed", good).print();
            passed &= good;
        }
        channel.close(error);
        reactor.shutdown(error);
        return passed;
    }

    private boolean batch(Line line) throws IOException {
        int items = Math.min(options.number("items", 100), LARGEST_BATCH);
        int updates = options.number("updates", 1);
        int stream = next;
        next += items + 1;
        RequestMsg request = request(stream, null);
        request.applyHasBatch();
        request.containerType(DataTypes.ELEMENT_LIST);
        request.encodedDataBody(itemList(items));
        submit(request);
        List<Integer> ids = IntStream.rangeClosed(stream + 1, stream + items).boxed().toList();
        boolean came = await(() -> seen(stream).closed && ids.stream().allMatch(id -> seen(id).refreshes > 0 && seen(id).updates >= updates));
        ids.forEach(this::close);
        line.with("answer", seen(stream).text).with("refreshes", ids.stream().filter(id -> seen(id).refreshes > 0).count());
        return came;
    }

    private boolean reissue(Line line) throws IOException {
        int stream = next++;
        submit(request(stream, options.item(0, "REISSUED")));
        boolean came = await(() -> seen(stream).refreshes == 1);
        submit(request(stream, options.item(0, "REISSUED")));
        boolean again = await(() -> seen(stream).refreshes == 2);
        close(stream);
        line.with("refreshes", seen(stream).refreshes);
        return came && again;
    }

    private boolean pause(Line line) throws IOException {
        int stream = next++;
        submit(request(stream, options.item(0, "PAUSED")));
        boolean came = await(() -> seen(stream).refreshes == 1);
        RequestMsg pause = request(stream, options.item(0, "PAUSED"));
        pause.applyPause();
        pause.applyNoRefresh();
        submit(pause);
        submit(request(stream, options.item(0, "PAUSED")));
        boolean again = await(() -> seen(stream).refreshes == 2);
        close(stream);
        line.with("refreshes", seen(stream).refreshes);
        return came && again;
    }

    private RequestMsg request(int stream, String name) {
        RequestMsg request = (RequestMsg) CodecFactory.createMsg();
        request.clear();
        request.msgClass(MsgClasses.REQUEST);
        request.domainType(DomainTypes.MARKET_PRICE);
        request.streamId(stream);
        request.containerType(DataTypes.NO_DATA);
        request.applyStreaming();
        request.msgKey().applyHasServiceId();
        request.msgKey().serviceId(service);
        if (name != null) {
            request.msgKey().applyHasName();
            request.msgKey().name().data(name);
            request.msgKey().applyHasNameType();
            request.msgKey().nameType(InstrumentNameTypes.RIC);
        }
        return request;
    }

    private Buffer itemList(int items) {
        Buffer buffer = CodecFactory.createBuffer();
        buffer.data(ByteBuffer.allocate(64 + 16 * items));
        EncodeIterator iterator = CodecFactory.createEncodeIterator();
        iterator.setBufferAndRWFVersion(buffer, Codec.majorVersion(), Codec.minorVersion());
        var list = CodecFactory.createElementList();
        list.applyHasStandardData();
        list.encodeInit(iterator, null, 0);
        var element = CodecFactory.createElementEntry();
        element.name(ElementNames.BATCH_ITEM_LIST);
        element.dataType(DataTypes.ARRAY);
        element.encodeInit(iterator, 0);
        var array = CodecFactory.createArray();
        array.primitiveType(DataTypes.ASCII_STRING);
        array.encodeInit(iterator);
        Buffer name = CodecFactory.createBuffer();
        for (int number = 0; number < items; number++) {
            name.data(options.item(number, "BATCH" + number));
            CodecFactory.createArrayEntry().encode(iterator, name);
        }
        array.encodeComplete(iterator, true);
        element.encodeComplete(iterator, true);
        if (list.encodeComplete(iterator, true) < 0) {
            throw new IllegalStateException("no room for the item list");
        }
        return buffer;
    }

    private void close(int stream) {
        Msg close = CodecFactory.createMsg();
        close.clear();
        close.msgClass(MsgClasses.CLOSE);
        close.domainType(DomainTypes.MARKET_PRICE);
        close.streamId(stream);
        close.containerType(DataTypes.NO_DATA);
        submit(close);
    }

    private void submit(Msg message) {
        must(channel.submit(message, ReactorFactory.createReactorSubmitOptions(), error));
    }

    private Seen seen(int stream) {
        return streams.computeIfAbsent(stream, each -> new Seen());
    }

    private boolean await(BooleanSupplier condition) throws IOException {
        long end = System.nanoTime() + options.number("timeout", 240) * 1_000_000_000L;
        while (!condition.getAsBoolean()) {
            if (failure != null || System.nanoTime() > end) {
                return false;
            }
            turn(50);
        }
        return true;
    }

    @Override
    void onUp(ReactorChannel ready) {
        channel = ready;
    }

    @Override
    void onDown(ReactorChannel gone, String text) {
        failure = "connection lost: " + text;
    }

    @Override
    public int defaultMsgCallback(ReactorMsgEvent event) {
        Msg message = event.msg();
        if (message == null) {
            failure = event.errorInfo().toString();
        } else if (message.domainType() == DomainTypes.SOURCE && message.msgClass() == MsgClasses.REFRESH) {
            // All peers of these tests give their one service this id.
            service = 1;
        } else if (message.domainType() == DomainTypes.MARKET_PRICE) {
            note(seen(message.streamId()), message);
        }
        return ReactorCallbackReturnCodes.SUCCESS;
    }

    private static void note(Seen seen, Msg message) {
        switch (message.msgClass()) {
            case MsgClasses.REFRESH -> {
                seen.refreshes++;
                seen.text = ((RefreshMsg) message).state().toString();
            }
            case MsgClasses.UPDATE -> seen.updates++;
            case MsgClasses.STATUS -> {
                StatusMsg status = (StatusMsg) message;
                if (status.checkHasState()) {
                    seen.closed |= status.state().streamState() == StreamStates.CLOSED;
                    seen.text = status.state().toString();
                }
            }
            default -> { }
        }
    }
}
