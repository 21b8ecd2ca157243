package tapeline.interop;

import com.refinitiv.ema.access.AckMsg;
import com.refinitiv.ema.access.DataType;
import com.refinitiv.ema.access.FieldEntry;
import com.refinitiv.ema.access.FieldList;
import com.refinitiv.ema.access.GenericMsg;
import com.refinitiv.ema.access.MapEntry;
import com.refinitiv.ema.access.Msg;
import com.refinitiv.ema.access.OmmConsumer;
import com.refinitiv.ema.access.OmmConsumerClient;
import com.refinitiv.ema.access.OmmConsumerEvent;
import com.refinitiv.ema.access.OmmState;
import com.refinitiv.ema.access.Payload;
import com.refinitiv.ema.access.RefreshMsg;
import com.refinitiv.ema.access.StatusMsg;
import com.refinitiv.ema.access.UpdateMsg;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** One open stream of a consumer, and what came on it. */
class Stream implements OmmConsumerClient {
    private static final int SPELLED_OUT = 100;

    OmmConsumer consumer;
    long handle;

    int refreshes;
    /** The last part of an image is there. */
    boolean complete;
    long updates;
    long bytes;
    int orders;
    /** Fields with a value in orders that are not spelled out. */
    private int decoded;
    /** The last state, as the library writes it. */
    String state;
    boolean suspected;
    String generic;
    final List<String> acks = new ArrayList<>();
    /** Fields of the last message; of a map, those of one of its orders. */
    final Map<String, String> fields = new LinkedHashMap<>();
    /** For whoever reads another image. */
    final Map<String, String> texts = new LinkedHashMap<>();

    void close() {
        consumer.unregister(handle);
    }

    boolean open() {
        return state != null && state.startsWith("Open / Ok");
    }

    /** Something other than fields and orders. */
    void onImage(RefreshMsg refresh) {
        bytes += refresh.asHex().remaining();
        read(refresh.payload());
    }

    private void read(Payload payload) {
        switch (payload.dataType()) {
            case DataType.DataTypes.FIELD_LIST -> read(payload.fieldList());
            case DataType.DataTypes.MAP -> {
                for (MapEntry entry : payload.map()) {
                    orders++;
                    if (entry.loadType() == DataType.DataTypes.FIELD_LIST && !entry.fieldList().isEmpty()) {
                        // Text of each of many orders would take longer than all else.
                        if (orders <= SPELLED_OUT) {
                            read(entry.fieldList());
                        } else {
                            entry.fieldList().forEach(each -> decoded += each.load().code() == 0 ? 1 : 0);
                        }
                    }
                }
            }
            default -> { }
        }
    }

    private void read(FieldList list) {
        fields.clear();
        for (FieldEntry entry : list) {
            fields.put(entry.name(), entry.load().toString());
        }
    }

    private void note(OmmState now) {
        state = now.toString();
        suspected |= now.dataState() == OmmState.DataState.SUSPECT;
    }

    @Override
    public void onRefreshMsg(RefreshMsg refresh, OmmConsumerEvent event) {
        refreshes++;
        complete |= refresh.complete();
        note(refresh.state());
        onImage(refresh);
    }

    @Override
    public void onUpdateMsg(UpdateMsg update, OmmConsumerEvent event) {
        updates++;
        Map<String, String> before = new LinkedHashMap<>(fields);
        read(update.payload());
        before.forEach(fields::putIfAbsent);
    }

    @Override
    public void onStatusMsg(StatusMsg status, OmmConsumerEvent event) {
        if (status.hasState()) {
            note(status.state());
        }
    }

    @Override
    public void onAckMsg(AckMsg ack, OmmConsumerEvent event) {
        acks.add((ack.hasNackCode() ? "nak " : "ack ") + ack.ackId());
    }

    @Override
    public void onGenericMsg(GenericMsg message, OmmConsumerEvent event) {
        generic = message.payload().elementList().toString();
    }

    @Override
    public void onAllMsg(Msg message, OmmConsumerEvent event) {}
}
