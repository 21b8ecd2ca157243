package tapeline.interop;

import com.refinitiv.ema.access.EmaFactory;
import com.refinitiv.ema.access.FieldList;
import com.refinitiv.ema.access.Msg;
import com.refinitiv.ema.access.OmmIProviderConfig;
import com.refinitiv.ema.access.OmmProvider;
import com.refinitiv.ema.access.OmmProviderClient;
import com.refinitiv.ema.access.OmmProviderEvent;
import com.refinitiv.ema.access.OmmReal;
import com.refinitiv.ema.access.OmmState;
import com.refinitiv.ema.access.ReqMsg;
import com.refinitiv.ema.rdm.EmaRdm;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * A provider on LSEG's library that sends a number of updates to the items that one consumer has open, each with the time as LSEG's
 * performance tools have it: TIM_TRK_1, microseconds of the monotonic clock. It stays when it is done.
 */
final class EmaTimedProvider implements OmmProviderClient {
    private static final String USAGE = "EmaTimedProvider --port N --dictionary FOLDER [--service NAME] [--items N] [--updates N in all]";
    private static final int BID = 22;
    private static final int TIM_TRK_1 = 3902;
    /** Updates in a slice of a millisecond. */
    private static final int BURST = 10;

    private final OmmProvider provider;
    private final List<Long> open = new ArrayList<>();

    public static void main(String[] arguments) {
        new EmaTimedProvider(new Options(arguments, USAGE, Set.of("port", "dictionary", "service", "items", "updates")));
    }

    private EmaTimedProvider(Options options) {
        OmmIProviderConfig config = EmaFactory.createOmmIProviderConfig(EmaConfigFile.interactiveProvider(options))
                .operationModel(OmmIProviderConfig.OperationModel.USER_DISPATCH);
        provider = EmaFactory.createOmmProvider(config, this);
        Line.event("listening").with("port", options.text("port")).print();
        int items = options.number("items", 100);
        while (open.size() < items) {
            provider.dispatch(1_000_000);
        }
        int updates = options.number("updates", 10_000);
        for (int sent = 0; sent < updates; sent++) {
            FieldList fields = EmaFactory.createFieldList();
            fields.add(EmaFactory.createFieldEntry().uintValue(TIM_TRK_1, System.nanoTime() / 1_000));
            fields.add(EmaFactory.createFieldEntry().real(BID, sent, OmmReal.MagnitudeType.EXPONENT_NEG_2));
            provider.submit(EmaFactory.createUpdateMsg().domainType(EmaRdm.MMT_MARKET_PRICE).payload(fields),
                    open.get(sent % items));
            if (sent % BURST == BURST - 1) {
                provider.dispatch(1_000);
            }
        }
        Line.event("sent").with("updates", updates).print();
        while (true) {
            provider.dispatch(1_000_000);
        }
    }

    @Override
    public void onReqMsg(ReqMsg request, OmmProviderEvent event) {
        if (request.domainType() == EmaRdm.MMT_LOGIN) {
            provider.submit(EmaFactory.createRefreshMsg().domainType(EmaRdm.MMT_LOGIN).name(request.name())
                    .nameType(EmaRdm.USER_NAME).solicited(true).complete(true)
                    .state(OmmState.StreamState.OPEN, OmmState.DataState.OK, OmmState.StatusCode.NONE, "Welcome"), event.handle());
            return;
        }
        FieldList fields = EmaFactory.createFieldList();
        fields.add(EmaFactory.createFieldEntry().real(BID, 3991, OmmReal.MagnitudeType.EXPONENT_NEG_2));
        provider.submit(EmaFactory.createRefreshMsg().domainType(request.domainType()).name(request.name())
                .serviceId(request.serviceId()).solicited(true).complete(true)
                .state(OmmState.StreamState.OPEN, OmmState.DataState.OK, OmmState.StatusCode.NONE, "All is well")
                .payload(fields), event.handle());
        open.add(event.handle());
    }

    @Override
    public void onReissue(ReqMsg request, OmmProviderEvent event) {}

    @Override
    public void onClose(ReqMsg request, OmmProviderEvent event) {}

    @Override
    public void onPostMsg(com.refinitiv.ema.access.PostMsg post, OmmProviderEvent event) {}

    @Override
    public void onGenericMsg(com.refinitiv.ema.access.GenericMsg generic, OmmProviderEvent event) {}

    @Override
    public void onRefreshMsg(com.refinitiv.ema.access.RefreshMsg refresh, OmmProviderEvent event) {}

    @Override
    public void onStatusMsg(com.refinitiv.ema.access.StatusMsg status, OmmProviderEvent event) {}

    @Override
    public void onAllMsg(Msg message, OmmProviderEvent event) {}
}
