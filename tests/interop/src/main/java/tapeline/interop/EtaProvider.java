package tapeline.interop;

import com.refinitiv.eta.codec.Buffer;
import com.refinitiv.eta.codec.Codec;
import com.refinitiv.eta.codec.CodecFactory;
import com.refinitiv.eta.codec.CodecReturnCodes;
import com.refinitiv.eta.codec.DataStates;
import com.refinitiv.eta.codec.DataTypes;
import com.refinitiv.eta.codec.DecodeIterator;
import com.refinitiv.eta.codec.EncodeIterator;
import com.refinitiv.eta.codec.FieldEntry;
import com.refinitiv.eta.codec.FieldList;
import com.refinitiv.eta.codec.Msg;
import com.refinitiv.eta.codec.MsgClasses;
import com.refinitiv.eta.codec.Qos;
import com.refinitiv.eta.codec.QosRates;
import com.refinitiv.eta.codec.QosTimeliness;
import com.refinitiv.eta.codec.Real;
import com.refinitiv.eta.codec.RealHints;
import com.refinitiv.eta.codec.RefreshMsg;
import com.refinitiv.eta.codec.RequestMsg;
import com.refinitiv.eta.codec.State;
import com.refinitiv.eta.codec.StatusMsg;
import com.refinitiv.eta.codec.StreamStates;
import com.refinitiv.eta.codec.UpdateMsg;
import com.refinitiv.eta.rdm.Directory;
import com.refinitiv.eta.rdm.DomainTypes;
import com.refinitiv.eta.rdm.InstrumentNameTypes;
import com.refinitiv.eta.rdm.UpdateEventTypes;
import com.refinitiv.eta.valueadd.domainrep.rdm.directory.DirectoryMsgFactory;
import com.refinitiv.eta.valueadd.domainrep.rdm.directory.DirectoryMsgType;
import com.refinitiv.eta.valueadd.domainrep.rdm.directory.DirectoryRefresh;
import com.refinitiv.eta.valueadd.domainrep.rdm.directory.Service;
import com.refinitiv.eta.valueadd.reactor.ReactorCallbackReturnCodes;
import com.refinitiv.eta.valueadd.reactor.ReactorChannel;
import com.refinitiv.eta.valueadd.reactor.ReactorFactory;
import com.refinitiv.eta.valueadd.reactor.ReactorMsgEvent;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** A provider on ETA's reactor, for what EMA's cannot: batches, answered as one, their items opened on the ids after. */
final class EtaProvider extends EtaServer {
    private static final String USAGE = "EtaProvider --port N --dictionary FOLDER [--service NAME]"
            + " [--compression none|zlib|lz4] [--keystore JKS --password TEXT]";
    private static final int UPDATES = 2;
    private static final String ITEM_LIST = ":ItemList";

    public static void main(String[] arguments) throws IOException {
        new EtaProvider(new Options(arguments, USAGE, OPTIONS)).serve();
    }

    private EtaProvider(Options options) throws IOException {
        super(options);
    }

    @Override
    void onDown(ReactorChannel channel, String text) {
        Line.event("gone").with("text", text).print();
    }

    @Override
    public int defaultMsgCallback(ReactorMsgEvent event) {
        ReactorChannel channel = event.reactorChannel();
        Msg message = event.msg();
        if (message == null) {
            Line.event("unreadable").with("text", event.errorInfo().toString()).print();
        } else if (message.msgClass() == MsgClasses.REQUEST) {
            switch (message.domainType()) {
                case DomainTypes.LOGIN -> answerLogin(channel, message.streamId(), message.msgKey().name().toString());
                case DomainTypes.SOURCE -> answerDirectory(channel, message.streamId());
                case DomainTypes.MARKET_PRICE -> open(channel, (RequestMsg) message);
                default -> { }
            }
        }
        return ReactorCallbackReturnCodes.SUCCESS;
    }

    private void answerDirectory(ReactorChannel channel, int stream) {
        var message = DirectoryMsgFactory.createMsg();
        message.rdmMsgType(DirectoryMsgType.REFRESH);
        DirectoryRefresh refresh = (DirectoryRefresh) message;
        refresh.streamId(stream);
        refresh.applySolicited();
        refresh.applyClearCache();
        refresh.filter(Directory.ServiceFilterFlags.INFO | Directory.ServiceFilterFlags.STATE);
        refresh.state().streamState(StreamStates.OPEN);
        refresh.state().dataState(DataStates.OK);
        Service service = DirectoryMsgFactory.createService();
        service.serviceId(SERVICE_ID);
        service.action(com.refinitiv.eta.codec.MapEntryActions.ADD);
        service.applyHasInfo();
        service.info().serviceName().data(options.text("service", "DIRECT_FEED"));
        service.info().capabilitiesList().add((long) DomainTypes.MARKET_PRICE);
        service.applyHasState();
        service.state().serviceState(1);
        service.state().applyHasAcceptingRequests();
        service.state().acceptingRequests(1);
        refresh.serviceList().add(service);
        must(channel.submit(refresh, ReactorFactory.createReactorSubmitOptions(), error));
    }

    private void open(ReactorChannel channel, RequestMsg request) {
        if (request.checkPause()) {
            Line.event("pause").print();
        }
        if (request.checkNoRefresh()) {
            return;
        }
        boolean streaming = request.checkStreaming();
        if (!request.checkHasBatch()) {
            answer(channel, request.streamId(), request.msgKey().name().toString(), streaming);
            return;
        }
        List<String> names = names(channel, request);
        int stream = request.streamId();
        StatusMsg status = (StatusMsg) message(MsgClasses.STATUS, stream);
        status.applyHasState();
        state(status.state(), StreamStates.CLOSED, names.size() + " items of a batch processed");
        status.containerType(DataTypes.NO_DATA);
        submit(channel, status);
        for (String name : names) {
            answer(channel, ++stream, name, streaming);
        }
        Line.event("batch").with("items", names.size()).print();
    }

    private List<String> names(ReactorChannel channel, RequestMsg request) {
        List<String> names = new ArrayList<>();
        DecodeIterator iterator = CodecFactory.createDecodeIterator();
        iterator.setBufferAndRWFVersion(request.encodedDataBody(), channel.majorVersion(), channel.minorVersion());
        var list = CodecFactory.createElementList();
        var element = CodecFactory.createElementEntry();
        var array = CodecFactory.createArray();
        var entry = CodecFactory.createArrayEntry();
        Buffer name = CodecFactory.createBuffer();
        must(list.decode(iterator, null));
        while (element.decode(iterator) != CodecReturnCodes.END_OF_CONTAINER) {
            if (element.name().toString().equals(ITEM_LIST)) {
                must(array.decode(iterator));
                while (entry.decode(iterator) != CodecReturnCodes.END_OF_CONTAINER) {
                    name.decode(iterator);
                    names.add(name.toString());
                }
            }
        }
        return names;
    }

    private void answer(ReactorChannel channel, int stream, String name, boolean streaming) {
        RefreshMsg refresh = (RefreshMsg) message(MsgClasses.REFRESH, stream);
        refresh.applyHasMsgKey();
        refresh.msgKey().applyHasServiceId();
        refresh.msgKey().serviceId(SERVICE_ID);
        refresh.msgKey().applyHasNameType();
        refresh.msgKey().nameType(InstrumentNameTypes.RIC);
        refresh.msgKey().applyHasName();
        refresh.msgKey().name().data(name);
        refresh.applySolicited();
        refresh.applyRefreshComplete();
        refresh.applyClearCache();
        refresh.applyHasQos();
        Qos qos = refresh.qos();
        qos.timeliness(QosTimeliness.REALTIME);
        qos.rate(QosRates.TICK_BY_TICK);
        state(refresh.state(), streaming ? StreamStates.OPEN : StreamStates.NON_STREAMING, "All is well");
        refresh.encodedDataBody(quote(channel, 0));
        submit(channel, refresh);
        for (int turn = 1; streaming && turn <= UPDATES; turn++) {
            UpdateMsg update = (UpdateMsg) message(MsgClasses.UPDATE, stream);
            update.updateType(UpdateEventTypes.UNSPECIFIED);
            update.encodedDataBody(quote(channel, turn));
            submit(channel, update);
        }
    }

    private static Buffer quote(ReactorChannel channel, int turn) {
        Buffer buffer = CodecFactory.createBuffer();
        buffer.data(ByteBuffer.allocate(100));
        EncodeIterator iterator = CodecFactory.createEncodeIterator();
        iterator.setBufferAndRWFVersion(buffer, Codec.majorVersion(), Codec.minorVersion());
        FieldList list = CodecFactory.createFieldList();
        list.applyHasStandardData();
        list.encodeInit(iterator, null, 0);
        FieldEntry field = CodecFactory.createFieldEntry();
        Real real = CodecFactory.createReal();
        for (int id : new int[] {Published.BID, Published.ASK}) {
            field.clear();
            field.fieldId(id);
            field.dataType(DataTypes.REAL);
            real.value((id == Published.BID ? 3990 : 4000) + turn, RealHints.EXPONENT_2);
            field.encode(iterator, real);
        }
        list.encodeComplete(iterator, true);
        return buffer;
    }

    private static Msg message(int messageClass, int stream) {
        Msg message = CodecFactory.createMsg();
        message.clear();
        message.msgClass(messageClass);
        message.domainType(DomainTypes.MARKET_PRICE);
        message.streamId(stream);
        message.containerType(DataTypes.FIELD_LIST);
        return message;
    }

    private static void state(State state, int stream, String text) {
        state.streamState(stream);
        state.dataState(DataStates.OK);
        state.text().data(text);
    }

    private void submit(ReactorChannel channel, Msg message) {
        must(channel.submit(message, ReactorFactory.createReactorSubmitOptions(), error));
    }
}
