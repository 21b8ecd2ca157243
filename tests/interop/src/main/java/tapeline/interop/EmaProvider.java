package tapeline.interop;

import com.refinitiv.ema.access.AckMsg;
import com.refinitiv.ema.access.ComplexType;
import com.refinitiv.ema.access.ElementEntry;
import com.refinitiv.ema.access.ElementList;
import com.refinitiv.ema.access.EmaFactory;
import com.refinitiv.ema.access.GenericMsg;
import com.refinitiv.ema.access.OmmArrayEntry;
import com.refinitiv.ema.access.OmmIProviderConfig;
import com.refinitiv.ema.access.OmmProvider;
import com.refinitiv.ema.access.OmmProviderClient;
import com.refinitiv.ema.access.OmmProviderEvent;
import com.refinitiv.ema.access.OmmState;
import com.refinitiv.ema.access.PostMsg;
import com.refinitiv.ema.access.RefreshMsg;
import com.refinitiv.ema.access.ReqMsg;
import com.refinitiv.ema.access.UpdateMsg;
import com.refinitiv.ema.rdm.EmaRdm;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** An interactive provider on LSEG's library: has every item (see {@link Published} for the few special ones). */
final class EmaProvider implements OmmProviderClient {
    private static final String USAGE = "EmaProvider --port N --dictionary FOLDER [--service NAME] [--updates N of each item]"
            + " [--compression none|zlib|lz4] [--keystore JKS --password TEXT]";
    /** Updates between two looks at what consumers sent. */
    private static final int BURST = 50;
    private static final int REFUSED_BY_PERMISSION = 1;

    /** An item that somebody has open. */
    private static final class Item {
        final long handle;
        final long consumer;
        final String name;
        final int domain;
        final Set<Integer> view;
        int turn;
        boolean closed;

        Item(ReqMsg request, OmmProviderEvent event) {
            handle = event.handle();
            consumer = event.clientHandle();
            name = request.name();
            domain = request.domainType();
            view = EmaProvider.view(request);
        }
    }

    /** What one consumer did, said when it leaves. */
    private static final class Consumer {
        int requests;
        int closes;
        int posts;
        int generics;
        long updates;
    }

    private final int updatesOfEach;
    private final OmmProvider provider;
    private final Map<Long, Consumer> consumers = new HashMap<>();
    private final Map<Long, Item> items = new HashMap<>();
    /** Those with updates left, the next first. */
    private final ArrayDeque<Item> due = new ArrayDeque<>();

    public static void main(String[] arguments) {
        Options options = new Options(arguments, USAGE, Set.of(
                "port", "dictionary", "service", "updates", "compression", "keystore", "password"));
        try {
            new EmaProvider(options).run(options);
        } catch (RuntimeException failure) {
            Line.event("failed").with("text", failure.toString()).print();
            // The library's threads would otherwise keep the process.
            System.exit(1);
        }
    }

    private EmaProvider(Options options) {
        updatesOfEach = options.number("updates", 5);
        OmmIProviderConfig config = EmaFactory.createOmmIProviderConfig(EmaConfigFile.interactiveProvider(options))
                .operationModel(OmmIProviderConfig.OperationModel.USER_DISPATCH);
        if (options.has("keystore")) {
            config.keystoreFile(options.text("keystore")).keystorePasswd(options.text("password"));
        }
        provider = EmaFactory.createOmmProvider(config, this);
    }

    private void run(Options options) {
        Line.event("listening").with("port", options.text("port")).print();
        while (true) {
            provider.dispatch(due.isEmpty() ? 1_000_000 : 1_000);
            for (int sent = 0; sent < BURST && !due.isEmpty(); sent++) {
                update(due.poll());
            }
        }
    }

    private void update(Item item) {
        if (item.closed) {
            return;
        }
        item.turn++;
        ComplexType payload = item.domain == EmaRdm.MMT_MARKET_BY_ORDER
                ? Published.change(item.turn)
                : Published.quote(item.turn, item.view);
        UpdateMsg update = EmaFactory.createUpdateMsg().domainType(item.domain).payload(payload);
        provider.submit(update, item.handle);
        if (item.turn < updatesOfEach) {
            due.add(item);
        }
    }

    @Override
    public void onReqMsg(ReqMsg request, OmmProviderEvent event) {
        switch (request.domainType()) {
            case EmaRdm.MMT_LOGIN -> acceptLogin(request, event);
            case EmaRdm.MMT_MARKET_PRICE, EmaRdm.MMT_MARKET_BY_ORDER -> open(request, event);
            default -> refuse(request, event, "no such domain here");
        }
    }

    private void acceptLogin(ReqMsg request, OmmProviderEvent event) {
        consumers.put(event.clientHandle(), new Consumer());
        ElementList features = EmaFactory.createElementList();
        for (String feature : new String[] {"SingleOpen", "SupportOMMPost", "SupportViewRequests"}) {
            features.add(EmaFactory.createElementEntry().uintValue(feature, 1));
        }
        provider.submit(EmaFactory.createRefreshMsg().domainType(EmaRdm.MMT_LOGIN).name(request.name())
                .nameType(EmaRdm.USER_NAME).solicited(true).complete(true).attrib(features)
                .state(OmmState.StreamState.OPEN, OmmState.DataState.OK, OmmState.StatusCode.NONE, "Welcome"), event.handle());
        Line.event("login").with("user", request.name()).print();
    }

    private void open(ReqMsg request, OmmProviderEvent event) {
        Consumer consumer = consumers.get(event.clientHandle());
        consumer.requests++;
        if (!request.hasName() || request.name().equals(Published.UNKNOWN)) {
            refuse(request, event, request.hasName() ? "no such item" : "EMA has no way to answer a batch");
            return;
        }
        boolean streaming = request.interestAfterRefresh();
        Item item = new Item(request, event);
        answer(request, event.handle(), item.view, streaming);
        if (streaming) {
            items.put(item.handle, item);
            due.add(item);
        }
    }

    private void answer(ReqMsg request, long handle, Set<Integer> view, boolean streaming) {
        ComplexType payload = request.domainType() == EmaRdm.MMT_MARKET_BY_ORDER
                ? Published.book(request.name().equals(Published.BIG))
                : Published.image(0, view);
        int stream = streaming ? OmmState.StreamState.OPEN : OmmState.StreamState.NON_STREAMING;
        RefreshMsg refresh = EmaFactory.createRefreshMsg().domainType(request.domainType()).name(request.name())
                .serviceId(request.serviceId()).solicited(true).complete(true)
                .state(stream, OmmState.DataState.OK, OmmState.StatusCode.NONE, "All is well").payload(payload);
        provider.submit(refresh, handle);
    }

    private void refuse(ReqMsg request, OmmProviderEvent event, String text) {
        provider.submit(EmaFactory.createStatusMsg().domainType(request.domainType())
                .state(OmmState.StreamState.CLOSED, OmmState.DataState.SUSPECT, OmmState.StatusCode.NOT_FOUND, text),
                event.handle());
    }

    private static Set<Integer> view(ReqMsg request) {
        Set<Integer> view = new HashSet<>();
        if (request.hasView()) {
            for (ElementEntry entry : request.payload().elementList()) {
                if (entry.name().equals(EmaRdm.ENAME_VIEW_DATA)) {
                    for (OmmArrayEntry each : entry.array()) {
                        view.add((int) each.intValue());
                    }
                }
            }
        }
        return view;
    }

    @Override
    public void onReissue(ReqMsg request, OmmProviderEvent event) {
        if (request.domainType() != EmaRdm.MMT_LOGIN && request.initialImage()) {
            answer(request, event.handle(), view(request), true);
        }
    }

    @Override
    public void onClose(ReqMsg request, OmmProviderEvent event) {
        Consumer consumer = consumers.get(event.clientHandle());
        if (request.domainType() == EmaRdm.MMT_LOGIN) {
            // Who leaves need not close anything before.
            items.values().removeIf(item -> item.consumer == event.clientHandle() && (item.closed = true));
            consumers.remove(event.clientHandle());
            Line.event("gone").with("requests", consumer.requests).with("closes", consumer.closes)
                    .with("posts", consumer.posts).with("generics", consumer.generics).print();
            return;
        }
        Item item = items.remove(event.handle());
        if (item != null) {
            item.closed = true;
            consumer.closes++;
        }
    }

    @Override
    public void onPostMsg(PostMsg post, OmmProviderEvent event) {
        consumers.get(event.clientHandle()).posts++;
        if (!post.solicitAck()) {
            return;
        }
        AckMsg ack = EmaFactory.createAckMsg().domainType(post.domainType()).ackId(post.postId());
        if (post.hasSeqNum()) {
            ack.seqNum(post.seqNum());
        }
        // On an item's own stream a post need not name it.
        Item item = items.get(event.handle());
        String name = post.hasName() ? post.name() : item == null ? "" : item.name;
        if (name.equals(Published.NAK)) {
            ack.nackCode(REFUSED_BY_PERMISSION).text("not to this item");
        }
        provider.submit(ack, event.handle());
    }

    @Override
    public void onGenericMsg(GenericMsg generic, OmmProviderEvent event) {
        consumers.get(event.clientHandle()).generics++;
        GenericMsg answer = EmaFactory.createGenericMsg().domainType(generic.domainType()).complete(true)
                .seqNum(generic.hasSeqNum() ? generic.seqNum() : 1);
        if (generic.hasSeqNum()) {
            answer.secondarySeqNum(generic.seqNum());
        }
        ElementList echo = EmaFactory.createElementList();
        for (ElementEntry entry : generic.payload().elementList()) {
            echo.add(EmaFactory.createElementEntry().ascii(entry.name(), entry.load().toString()));
        }
        provider.submit(answer.payload(echo), event.handle());
    }

    @Override
    public void onRefreshMsg(RefreshMsg refresh, OmmProviderEvent event) {}

    @Override
    public void onStatusMsg(com.refinitiv.ema.access.StatusMsg status, OmmProviderEvent event) {}

    @Override
    public void onAllMsg(com.refinitiv.ema.access.Msg message, OmmProviderEvent event) {}
}
