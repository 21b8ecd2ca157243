package tapeline.interop;

import com.refinitiv.ema.access.EmaFactory;
import com.refinitiv.ema.access.OmmConsumer;
import com.refinitiv.ema.access.OmmConsumerConfig;
import com.refinitiv.ema.access.ReqMsg;
import com.refinitiv.ema.rdm.EmaRdm;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;

/**
 * A consumer on LSEG's library that goes through steps, one after the other, on one connection.
 *
 * <p>Each step ends with a line {@code {"event":"step","step":NAME,"passed":…}}; what it saw comes with it. The exit
 * code is 0 if all passed, 1 if one did not, 2 for a wrong command line.
 */
final class EmaConsumer {
    private static final List<String> STEPS = List.of(
            "login", "dictionary", "items", "view", "snapshot", "post", "generic", "book", "big", "reconnect");
    private static final String USAGE = "EmaConsumer --server HOST:PORT [--transport tcp|tls|ws-rwf|ws-json|…]"
            + " [--compression none|zlib|lz4] [--service NAME] [--user NAME] [--login-password TEXT] [--dictionary FOLDER, else downloaded]"
            + " [--truststore JKS --password TEXT] [--items N] [--names FILE of items] [--updates N of each item] [--timeout SECONDS of a step]"
            + " STEP… of " + STEPS;

    /** Over JSON the library fails when its buffers are full, so that no more are asked for at once. */
    private static final int JSON_WINDOW = 100;

    private final Options options;
    private final long timeoutNanos;
    /** Items that may be without an answer. */
    final int window;
    final String service;
    final OmmConsumer consumer;

    public static void main(String[] arguments) {
        Options options = new Options(arguments, USAGE, Set.of(
                "server", "transport", "compression", "service", "user", "login-password", "dictionary", "truststore", "password",
                "items", "names", "updates", "timeout"));
        if (!STEPS.containsAll(options.words())) {
            System.err.println("usage: " + USAGE);
            System.exit(2);
        }
        boolean passed;
        try {
            passed = new EmaConsumer(options).run();
        } catch (RuntimeException failure) {
            Line.event("failed").with("text", failure.toString()).print();
            passed = false;
        }
        // The library's threads would otherwise keep the process.
        System.exit(passed ? 0 : 1);
    }

    private EmaConsumer(Options options) {
        this.options = options;
        timeoutNanos = options.number("timeout", 240) * 1_000_000_000L;
        window = options.transport().json() ? JSON_WINDOW : Integer.MAX_VALUE;
        service = options.text("service", "DIRECT_FEED");
        OmmConsumerConfig config = EmaFactory.createOmmConsumerConfig(EmaConfigFile.consumer(options))
                .operationModel(OmmConsumerConfig.OperationModel.USER_DISPATCH)
                .username(options.text("user", "interop"));
        if (options.has("login-password")) {
            config.password(options.text("login-password"));
        }
        if (options.has("truststore")) {
            config.tunnelingKeyStoreFile(options.text("truststore")).tunnelingKeyStorePasswd(options.text("password"))
                    .tunnelingSecurityProtocol("TLS");
        }
        consumer = EmaFactory.createOmmConsumer(config);
        Line.event("connected").print();
    }

    private boolean run() {
        boolean passed = true;
        for (String step : options.words()) {
            Line line = Line.event("step").with("step", step);
            long start = System.nanoTime();
            boolean good;
            try {
                good = new ConsumerSteps(this, line, options.number("items", 100), options.number("updates", 2)).take(step);
            } catch (RuntimeException failure) {
                line.with("text", failure.toString());
                good = false;
            }
            line.with("seconds", String.format("%.2f", (System.nanoTime() - start) / 1e9)).with("passed", good).print();
            passed &= good;
        }
        consumer.uninitialize();
        return passed;
    }

    ReqMsg request(int domain, String name) {
        return EmaFactory.createReqMsg().domainType(domain).serviceName(service).name(name);
    }

    ReqMsg price(String name) {
        return request(EmaRdm.MMT_MARKET_PRICE, name);
    }

    String item(int number, String otherwise) {
        return options.item(number, otherwise);
    }

    /** Handles what arrives until something is the case; false if the time is over before. */
    boolean await(BooleanSupplier condition) {
        long end = System.nanoTime() + timeoutNanos;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                return false;
            }
            consumer.dispatch(50_000);
        }
        return true;
    }
}
