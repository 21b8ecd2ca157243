package tapeline.interop;

import com.refinitiv.ema.access.ComplexType;
import com.refinitiv.ema.access.EmaFactory;
import com.refinitiv.ema.access.GenericMsg;
import com.refinitiv.ema.access.Msg;
import com.refinitiv.ema.access.OmmNiProviderConfig;
import com.refinitiv.ema.access.OmmProvider;
import com.refinitiv.ema.access.OmmProviderClient;
import com.refinitiv.ema.access.OmmProviderEvent;
import com.refinitiv.ema.access.OmmState;
import com.refinitiv.ema.access.PostMsg;
import com.refinitiv.ema.access.RefreshMsg;
import com.refinitiv.ema.access.ReqMsg;
import com.refinitiv.ema.access.StatusMsg;
import com.refinitiv.ema.rdm.EmaRdm;
import java.util.Set;
import java.util.function.BooleanSupplier;

/**
 * A non-interactive provider on LSEG's library: publishes some items, a book and a megabyte, withdraws them and leaves.
 *
 * <p>With {@code --reconnect 1} it first waits to be thrown out and publishes again when it is back. With {@code --lasting 1}
 * it goes on with updates, and publishes all again whenever it comes back, until it is killed. The exit code is 0
 * if all could be said, 1 if not (such as a login that was refused).
 */
final class EmaNiProvider implements OmmProviderClient {
    private static final String USAGE = "EmaNiProvider --server HOST:PORT --dictionary FOLDER [--transport …]"
            + " [--compression none|zlib|lz4] [--service NAME] [--user NAME] [--truststore JKS --password TEXT]"
            + " [--items N] [--updates N of each item] [--reconnect 1] [--lasting 1] [--timeout SECONDS]";
    /** Handles are ours to choose. */
    private static final long BOOK = 1_000_001;
    private static final long BIG = 1_000_002;

    private final Options options;
    private final String service;
    private final int items;
    private final OmmProvider provider;
    private final long login;
    private boolean up;
    private boolean lost;
    private boolean back;
    private int logins;

    public static void main(String[] arguments) {
        Options options = new Options(arguments, USAGE, Set.of(
                "server", "dictionary", "transport", "compression", "service", "user", "truststore", "password", "items",
                "updates", "reconnect", "lasting", "timeout"));
        boolean passed;
        try {
            passed = new EmaNiProvider(options).run();
        } catch (RuntimeException failure) {
            Line.event("failed").with("text", failure.toString()).print();
            passed = false;
        }
        System.exit(passed ? 0 : 1);
    }

    private EmaNiProvider(Options options) {
        this.options = options;
        service = options.text("service", "DIRECT_FEED");
        items = options.number("items", 100);
        OmmNiProviderConfig config = EmaFactory.createOmmNiProviderConfig(EmaConfigFile.niProvider(options))
                .operationModel(OmmNiProviderConfig.OperationModel.USER_DISPATCH)
                .username(options.text("user", "interop"));
        if (options.has("truststore")) {
            config.tunnelingKeyStoreFile(options.text("truststore")).tunnelingKeyStorePasswd(options.text("password"))
                    .tunnelingSecurityProtocol("TLS");
        }
        provider = EmaFactory.createOmmProvider(config, this);
        login = provider.registerClient(EmaFactory.createReqMsg().domainType(EmaRdm.MMT_LOGIN), this);
        Line.event("connected").print();
    }

    private boolean run() {
        if (!await(() -> up, "not logged in")) {
            return false;
        }
        publish();
        if (options.has("lasting")) {
            Line.event("publishing").print();
            lastForever();
        }
        if (options.has("reconnect")) {
            Line.event("ready").with("for", "reconnect").print();
            if (!await(() -> lost, "not thrown out") || !await(() -> back, "not back")) {
                return false;
            }
            publish();
        }
        int updates = options.number("updates", 2);
        for (int turn = 1; turn <= updates; turn++) {
            for (int number = 0; number < items; number++) {
                update(number, EmaRdm.MMT_MARKET_PRICE, Published.quote(turn, Set.of()));
            }
            update(BOOK, EmaRdm.MMT_MARKET_BY_ORDER, Published.change(turn));
            provider.dispatch(0);
        }
        for (int number = 0; number < items; number++) {
            withdraw(number, EmaRdm.MMT_MARKET_PRICE, "ITEM" + number);
        }
        Line.event("published").with("refreshes", items + 2).with("updates", (long) updates * (items + 1))
                .with("statuses", items).print();
        boolean taken = taken();
        provider.uninitialize();
        return taken;
    }

    /** Updates of everything ten times a second. */
    private void lastForever() {
        for (int turn = 1; ; turn++) {
            long end = System.nanoTime() + 100_000_000L;
            while (System.nanoTime() < end) {
                provider.dispatch(10_000);
            }
            if (back) {
                lost = false;
                back = false;
                publish();
            }
            if (!up) {
                continue;
            }
            for (int number = 0; number < items; number++) {
                update(number, EmaRdm.MMT_MARKET_PRICE, Published.quote(turn, Set.of()));
            }
            update(BOOK, EmaRdm.MMT_MARKET_BY_ORDER, Published.change(turn));
        }
    }

    /**
     * The library throws away what it has not written when it ends. An answer to a login that is said once more comes
     * after all of it.
     */
    private boolean taken() {
        int before = logins;
        provider.reissue(EmaFactory.createReqMsg().domainType(EmaRdm.MMT_LOGIN)
                .name(options.text("user", "interop")).initialImage(true), login);
        return await(() -> logins > before, "no answer to the login's reissue");
    }

    private void publish() {
        for (int number = 0; number < items; number++) {
            refresh(number, EmaRdm.MMT_MARKET_PRICE, "ITEM" + number, Published.image(0, Set.of()));
        }
        refresh(BOOK, EmaRdm.MMT_MARKET_BY_ORDER, "BOOK", Published.book(false));
        refresh(BIG, EmaRdm.MMT_MARKET_BY_ORDER, Published.BIG, Published.book(true));
    }

    private void refresh(long handle, int domain, String name, ComplexType payload) {
        provider.submit(EmaFactory.createRefreshMsg().domainType(domain).serviceName(service).name(name).complete(true)
                .state(OmmState.StreamState.OPEN, OmmState.DataState.OK, OmmState.StatusCode.NONE, "published")
                .payload(payload), handle);
    }

    private void update(long handle, int domain, ComplexType payload) {
        provider.submit(EmaFactory.createUpdateMsg().domainType(domain).payload(payload), handle);
    }

    private void withdraw(long handle, int domain, String name) {
        provider.submit(EmaFactory.createStatusMsg().domainType(domain).serviceName(service).name(name)
                .state(OmmState.StreamState.CLOSED, OmmState.DataState.SUSPECT, OmmState.StatusCode.NONE, "withdrawn"), handle);
    }

    private boolean await(BooleanSupplier condition, String otherwise) {
        long end = System.nanoTime() + options.number("timeout", 240) * 1_000_000_000L;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                Line.event("failed").with("text", otherwise).print();
                return false;
            }
            provider.dispatch(50_000);
        }
        return true;
    }

    private void note(OmmState state) {
        up = state.streamState() == OmmState.StreamState.OPEN && state.dataState() == OmmState.DataState.OK;
        lost |= !up;
        Line.event("login").with("state", state.toString()).print();
    }

    @Override
    public void onRefreshMsg(RefreshMsg refresh, OmmProviderEvent event) {
        logins++;
        note(refresh.state());
    }

    @Override
    public void onStatusMsg(StatusMsg status, OmmProviderEvent event) {
        if (status.hasState()) {
            note(status.state());
            // "channel up": an answer to the login may be one of before, told late.
            back |= lost && up;
        }
    }

    @Override
    public void onGenericMsg(GenericMsg message, OmmProviderEvent event) {}

    @Override
    public void onPostMsg(PostMsg post, OmmProviderEvent event) {}

    @Override
    public void onReqMsg(ReqMsg request, OmmProviderEvent event) {}

    @Override
    public void onReissue(ReqMsg request, OmmProviderEvent event) {}

    @Override
    public void onClose(ReqMsg request, OmmProviderEvent event) {}

    @Override
    public void onAllMsg(Msg message, OmmProviderEvent event) {}
}
