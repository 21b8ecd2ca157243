package tapeline.interop;

import com.refinitiv.ema.access.EmaFactory;
import com.refinitiv.ema.access.ElementList;
import com.refinitiv.ema.access.MapEntry;
import com.refinitiv.ema.access.OmmArray;
import com.refinitiv.ema.access.OmmConsumer;
import com.refinitiv.ema.access.PostMsg;
import com.refinitiv.ema.access.RefreshMsg;
import com.refinitiv.ema.access.ReqMsg;
import com.refinitiv.ema.access.UpdateMsg;
import com.refinitiv.ema.rdm.DataDictionary;
import com.refinitiv.ema.rdm.EmaRdm;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** What {@link EmaConsumer} can do, each step with streams of its own. */
final class ConsumerSteps {
    private static final int ALL_FILTERS = 0x3f;
    private static final int BIG_BYTES = 1_000_000;
    /** 127.0.0.1 */
    private static final long POSTER_ADDRESS = 0x7f000001L;

    private final EmaConsumer session;
    private final OmmConsumer consumer;
    private final Line line;
    private final int items;
    private final int updates;

    ConsumerSteps(EmaConsumer session, Line line, int items, int updates) {
        this.session = session;
        this.consumer = session.consumer;
        this.line = line;
        this.items = items;
        this.updates = updates;
    }

    boolean take(String step) {
        return switch (step) {
            case "login" -> login();
            case "dictionary" -> dictionary();
            case "items" -> items();
            case "view" -> view();
            case "snapshot" -> snapshot();
            case "post" -> post();
            case "generic" -> generic();
            case "book" -> book();
            case "big" -> big();
            case "reconnect" -> reconnect();
            default -> throw new IllegalArgumentException(step);
        };
    }

    private boolean login() {
        Stream login = open(EmaFactory.createReqMsg().domainType(EmaRdm.MMT_LOGIN).name("interop"));
        Stream directory = new Stream() {
            @Override
            void onImage(RefreshMsg refresh) {
                for (MapEntry entry : refresh.payload().map()) {
                    texts.put(entry.key().data().toString(), mapActionAndText(entry));
                }
            }
        };
        register(EmaFactory.createReqMsg().domainType(EmaRdm.MMT_DIRECTORY).filter(ALL_FILTERS)
                .serviceName(session.service), directory);
        boolean came = session.await(() -> login.refreshes > 0 && directory.refreshes > 0);
        line.with("login", login.state).with("services", directory.texts.size());
        return came && login.open() && directory.texts.values().stream().anyMatch(each -> each.contains(session.service));
    }

    private static String mapActionAndText(MapEntry entry) {
        return entry.mapActionAsString() + " " + entry.load();
    }

    private boolean dictionary() {
        DataDictionary dictionary = EmaFactory.createDataDictionary();
        List<Stream> streams = new ArrayList<>();
        for (String name : List.of("RWFFld", "RWFEnum")) {
            Stream stream = new Stream() {
                @Override
                void onImage(RefreshMsg refresh) {
                    if (name.equals("RWFFld")) {
                        dictionary.decodeFieldDictionary(refresh.payload().series(), EmaRdm.DICTIONARY_NORMAL);
                    } else {
                        dictionary.decodeEnumTypeDictionary(refresh.payload().series(), EmaRdm.DICTIONARY_NORMAL);
                    }
                }
            };
            register(session.request(EmaRdm.MMT_DICTIONARY, name).filter(EmaRdm.DICTIONARY_NORMAL), stream);
            streams.add(stream);
        }
        boolean came = session.await(() -> streams.stream().allMatch(each -> each.complete));
        line.with("fields", dictionary.entries().size()).with("tables", dictionary.enumTables().size());
        return came && dictionary.hasEntry("BID") && dictionary.hasEnumType(3428, 1);
    }

    private boolean items() {
        List<Stream> streams = new ArrayList<>();
        for (int number = 0; number < items; number++) {
            Stream before = number < session.window ? null : streams.get(number - session.window);
            if (before != null && !session.await(() -> before.refreshes > 0)) {
                return false;
            }
            streams.add(open(session.price(session.item(number, "ITEM" + number))));
        }
        boolean came = session.await(() -> streams.stream().allMatch(each -> each.refreshes > 0 && each.updates >= updates));
        boolean all = streams.stream().allMatch(this::close);
        Stream first = streams.get(0);
        line.with("refreshes", streams.stream().filter(each -> each.refreshes > 0).count())
                .with("updates", streams.stream().mapToLong(each -> each.updates).sum())
                .with("first", first.fields);
        // One that nobody has is closed, and disturbs no other.
        Stream unknown = open(session.price(Published.UNKNOWN));
        boolean closed = session.await(() -> unknown.state != null && unknown.state.startsWith("Closed"));
        return came && all && closed && streams.stream().allMatch(Stream::open) && first.fields.containsKey("BID");
    }

    /** Where the library has no buffer for it, a close is tried again once it has sent some. */
    private boolean close(Stream stream) {
        return session.await(() -> {
            try {
                stream.close();
                return true;
            } catch (RuntimeException full) {
                return false;
            }
        });
    }

    private boolean view() {
        OmmArray fields = EmaFactory.createOmmArray().fixedWidth(2);
        fields.add(EmaFactory.createOmmArrayEntry().intValue(Published.BID));
        fields.add(EmaFactory.createOmmArrayEntry().intValue(Published.ASK));
        ElementList view = EmaFactory.createElementList();
        view.add(EmaFactory.createElementEntry().uintValue(EmaRdm.ENAME_VIEW_TYPE, 1));
        view.add(EmaFactory.createElementEntry().array(EmaRdm.ENAME_VIEW_DATA, fields));
        Stream stream = open(session.price(session.item(0, "VIEWED")).payload(view));
        boolean came = session.await(() -> stream.refreshes > 0 && stream.updates > 0);
        stream.close();
        line.with("fields", stream.fields);
        return came && stream.fields.keySet().equals(Set.of("BID", "ASK"));
    }

    private boolean snapshot() {
        Stream stream = open(session.price(session.item(0, "SNAPSHOT")).interestAfterRefresh(false));
        boolean came = session.await(() -> stream.refreshes > 0);
        line.with("state", stream.state).with("fields", stream.fields.size());
        return came && stream.state.startsWith("Non-streaming") && stream.updates == 0 && stream.fields.size() > 2;
    }

    private boolean post() {
        Stream item = open(session.price("POSTED"));
        Stream refused = open(session.price(Published.NAK));
        Stream login = open(EmaFactory.createReqMsg().domainType(EmaRdm.MMT_LOGIN).name("interop"));
        boolean ready = session.await(() -> item.refreshes > 0 && refused.refreshes > 0 && login.refreshes > 0);
        UpdateMsg inside = EmaFactory.createUpdateMsg().payload(Published.quote(1, Set.of()));
        // On the item's stream, with fields; on that of an item whose posts are refused; on the login's, a message.
        consumer.submit(message(1).serviceName(session.service).name("POSTED").payload(Published.quote(1, Set.of())), item.handle);
        consumer.submit(message(2).serviceName(session.service).name(Published.NAK).payload(Published.quote(2, Set.of())), refused.handle);
        consumer.submit(message(3).serviceName(session.service).name("POSTED").payload(inside), login.handle);
        boolean came = session.await(() -> item.acks.size() + refused.acks.size() + login.acks.size() == 3);
        item.close();
        refused.close();
        line.with("onStream", String.join(" ", item.acks)).with("refused", String.join(" ", refused.acks))
                .with("offStream", String.join(" ", login.acks));
        return ready && came && item.acks.equals(List.of("ack 1")) && refused.acks.equals(List.of("nak 2"))
                && login.acks.equals(List.of("ack 3"));
    }

    private static PostMsg message(long id) {
        return EmaFactory.createPostMsg().domainType(EmaRdm.MMT_MARKET_PRICE).postId(id).seqNum(id).solicitAck(true)
                .complete(true).publisherId(1, POSTER_ADDRESS);
    }

    private boolean generic() {
        Stream item = open(session.price("GENERIC"));
        boolean ready = session.await(() -> item.refreshes > 0);
        ElementList payload = EmaFactory.createElementList();
        payload.add(EmaFactory.createElementEntry().ascii("Question", "who is there"));
        consumer.submit(EmaFactory.createGenericMsg().domainType(EmaRdm.MMT_MARKET_PRICE).name("GENERIC").seqNum(7)
                .complete(true).payload(payload), item.handle);
        boolean came = session.await(() -> item.generic != null);
        item.close();
        line.with("answer", item.generic);
        return ready && came && item.generic.contains("who is there");
    }

    private boolean book() {
        Stream stream = open(session.request(EmaRdm.MMT_MARKET_BY_ORDER, "BOOK"));
        boolean came = session.await(() -> stream.complete && stream.updates > 0);
        stream.close();
        line.with("orders", stream.orders).with("bytes", stream.bytes).with("updates", stream.updates).with("order", stream.fields);
        return came && stream.orders > 0 && stream.fields.containsKey("ORDER_PRC");
    }

    private boolean big() {
        Stream stream = open(session.request(EmaRdm.MMT_MARKET_BY_ORDER, Published.BIG));
        boolean came = session.await(() -> stream.complete);
        stream.close();
        line.with("orders", stream.orders).with("bytes", stream.bytes);
        return came && stream.bytes >= BIG_BYTES;
    }

    /** Who started us kills the provider when it reads `ready`, and starts another one in its place. */
    private boolean reconnect() {
        Stream stream = open(session.price(session.item(0, "LASTING")));
        boolean ready = session.await(() -> stream.refreshes > 0);
        Line.event("ready").with("for", "reconnect").print();
        boolean lost = session.await(() -> stream.suspected);
        boolean back = session.await(() -> stream.refreshes > 1 && stream.open());
        stream.close();
        line.with("suspect", lost).with("refreshes", stream.refreshes);
        return ready && lost && back;
    }

    private Stream open(ReqMsg request) {
        Stream stream = new Stream();
        register(request, stream);
        return stream;
    }

    private void register(ReqMsg request, Stream stream) {
        stream.consumer = consumer;
        stream.handle = consumer.registerClient(request, stream);
    }
}
