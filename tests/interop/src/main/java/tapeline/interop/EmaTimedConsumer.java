package tapeline.interop;

import com.refinitiv.ema.access.EmaFactory;
import com.refinitiv.ema.access.FieldEntry;
import com.refinitiv.ema.access.Msg;
import com.refinitiv.ema.access.OmmConsumer;
import com.refinitiv.ema.access.OmmConsumerClient;
import com.refinitiv.ema.access.OmmConsumerConfig;
import com.refinitiv.ema.access.OmmConsumerEvent;
import com.refinitiv.ema.access.OmmState;
import com.refinitiv.ema.access.RefreshMsg;
import com.refinitiv.ema.access.StatusMsg;
import com.refinitiv.ema.access.UpdateMsg;
import com.refinitiv.ema.rdm.EmaRdm;
import java.util.Set;

/**
 * A consumer on LSEG's library that counts what a performance tool sends, and takes its times: TIM_TRK_1 is the monotonic clock in
 * microseconds, which {@link System#nanoTime} reads too. Ends when its server does.
 */
final class EmaTimedConsumer implements OmmConsumerClient {
    private static final String USAGE = "EmaTimedConsumer --server HOST:PORT [--service NAME] [--items N] [--dictionary FOLDER, else downloaded]"
            + " [--standby HOST:PORT of a server that stands by] [--standby-mode LOGIN_BASED|SERVICE_BASED]"
            + " [--timeout SECONDS until the server ends, or both]";
    private static final int TIM_TRK_1 = 3902;

    private int images;
    /** Of one server, or of both. */
    private int wanted;
    private long updates;
    private long fields;
    private long timed;
    private long sum;
    private long least = Long.MAX_VALUE;
    private boolean ended;

    public static void main(String[] arguments) {
        Options options = new Options(arguments, USAGE, Set.of(
                "server", "service", "items", "dictionary", "standby", "standby-mode", "timeout"));
        boolean passed = new EmaTimedConsumer().run(options);
        // The library's threads would otherwise keep the process.
        System.exit(passed ? 0 : 1);
    }

    private boolean run(Options options) {
        OmmConsumer consumer = EmaFactory.createOmmConsumer(
                EmaFactory.createOmmConsumerConfig(EmaConfigFile.consumer(options))
                        .operationModel(OmmConsumerConfig.OperationModel.USER_DISPATCH).username("interop"));
        int items = options.number("items", 100);
        wanted = options.has("standby") ? 2 * items : items;
        for (int number = 1; number <= items; number++) {
            consumer.registerClient(EmaFactory.createReqMsg().domainType(EmaRdm.MMT_MARKET_PRICE)
                    .serviceName(options.text("service", "DIRECT_FEED")).name("RDT" + number), this);
        }
        long end = System.nanoTime() + options.number("timeout", 240) * 1_000_000_000L;
        boolean told = false;
        while (!ended && System.nanoTime() < end) {
            consumer.dispatch(50_000);
            if (!told && images == items) {
                told = true;
                Line.event("images").with("images", images).print();
            }
        }
        Line.event("end").with("images", images).with("updates", updates).with("fields", fields).with("timed", timed)
                .with("mean_us", timed == 0 ? 0 : sum / timed).with("least_us", least).with("ended", ended).print();
        return ended && images >= wanted;
    }

    @Override
    public void onRefreshMsg(RefreshMsg refresh, OmmConsumerEvent event) {
        if (refresh.state().dataState() == OmmState.DataState.OK) {
            images++;
        }
    }

    @Override
    public void onUpdateMsg(UpdateMsg update, OmmConsumerEvent event) {
        updates++;
        long sent = -1;
        for (FieldEntry entry : update.payload().fieldList()) {
            fields++;
            if (entry.fieldId() == TIM_TRK_1) {
                sent = entry.uintValue();
            } else {
                entry.load();
            }
        }
        if (sent >= 0) {
            long took = System.nanoTime() / 1_000 - sent;
            timed++;
            sum += took;
            least = Math.min(least, took);
        }
    }

    @Override
    public void onStatusMsg(StatusMsg status, OmmConsumerEvent event) {
        // Between two servers items are in doubt, too: only what comes behind the last images is the end.
        ended |= status.hasState() && status.state().dataState() == OmmState.DataState.SUSPECT && images >= wanted;
    }

    @Override
    public void onGenericMsg(com.refinitiv.ema.access.GenericMsg generic, OmmConsumerEvent event) {}

    @Override
    public void onAckMsg(com.refinitiv.ema.access.AckMsg ack, OmmConsumerEvent event) {}

    @Override
    public void onAllMsg(Msg message, OmmConsumerEvent event) {}
}
