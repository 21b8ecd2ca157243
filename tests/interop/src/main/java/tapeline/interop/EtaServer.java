package tapeline.interop;

import com.refinitiv.eta.codec.Buffer;
import com.refinitiv.eta.codec.Codec;
import com.refinitiv.eta.codec.CodecFactory;
import com.refinitiv.eta.codec.DataStates;
import com.refinitiv.eta.codec.StateCodes;
import com.refinitiv.eta.codec.StreamStates;
import com.refinitiv.eta.rdm.Login;
import com.refinitiv.eta.transport.BindOptions;
import com.refinitiv.eta.transport.CompressionTypes;
import com.refinitiv.eta.transport.ConnectionTypes;
import com.refinitiv.eta.transport.Server;
import com.refinitiv.eta.transport.Transport;
import com.refinitiv.eta.transport.TransportFactory;
import com.refinitiv.eta.valueadd.domainrep.rdm.login.LoginMsgFactory;
import com.refinitiv.eta.valueadd.domainrep.rdm.login.LoginMsgType;
import com.refinitiv.eta.valueadd.domainrep.rdm.login.LoginRefresh;
import com.refinitiv.eta.valueadd.domainrep.rdm.login.LoginStatus;
import com.refinitiv.eta.valueadd.reactor.ReactorAcceptOptions;
import com.refinitiv.eta.valueadd.reactor.ReactorChannel;
import com.refinitiv.eta.valueadd.reactor.ReactorFactory;
import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.util.Set;

/** A port on LSEG's transport that takes RSSL and WebSocket clients, and their logins but for one user. */
abstract class EtaServer extends EtaSession {
    static final Set<String> OPTIONS = Set.of("port", "dictionary", "service", "compression", "keystore", "password");
    static final String DENIED = "denied";
    static final int SERVICE_ID = 1;
    /** Requests, reissues and closes of many items. */
    private static final int ANY_BATCH = 7;

    final Options options;
    private final Server server;

    EtaServer(Options options) throws IOException {
        super(options, SERVICE_ID);
        this.options = options;
        BindOptions bind = TransportFactory.createBindOptions();
        bind.serviceName(options.text("port"));
        bind.majorVersion(RWF_MAJOR);
        bind.minorVersion(RWF_MINOR);
        bind.protocolType(Codec.protocolType());
        bind.guaranteedOutputBuffers(500);
        bind.wSocketOpts().protocols("rssl.rwf, tr_json2, rssl.json.v2");
        bind.compressionType(switch (options.text("compression", "none")) {
            case "zlib" -> CompressionTypes.ZLIB;
            case "lz4" -> CompressionTypes.LZ4;
            default -> CompressionTypes.NONE;
        });
        if (options.has("keystore")) {
            bind.connectionType(ConnectionTypes.ENCRYPTED);
            bind.encryptionOptions().keystoreFile(options.text("keystore"));
            bind.encryptionOptions().keystorePasswd(options.text("password"));
        }
        server = Transport.bind(bind, error.error());
        if (server == null) {
            throw new IllegalStateException(error.error().text());
        }
        server.selectableChannel().register(selector, SelectionKey.OP_ACCEPT, server);
    }

    final void serve() throws IOException {
        Line.event("listening").with("port", options.text("port")).print();
        while (true) {
            turn(1000);
        }
    }

    @Override
    final void onAcceptable(SelectionKey key) {
        ReactorAcceptOptions accept = ReactorFactory.createReactorAcceptOptions();
        accept.websocketAcceptOptions().sendPingMessage(true);
        if (reactor.accept(server, accept, called(ReactorFactory.createProviderRole()), error) < 0) {
            Line.event("refused").with("text", error.toString()).print();
        }
    }

    final void answerLogin(ReactorChannel channel, int stream, String user) {
        var message = LoginMsgFactory.createMsg();
        boolean denied = user.equals(DENIED);
        Buffer text = CodecFactory.createBuffer();
        text.data(denied ? "not you" : "Welcome");
        if (denied) {
            message.rdmMsgType(LoginMsgType.STATUS);
            LoginStatus status = (LoginStatus) message;
            status.applyHasState();
            status.state().streamState(StreamStates.CLOSED);
            status.state().dataState(DataStates.SUSPECT);
            status.state().code(StateCodes.NOT_ENTITLED);
            status.state().text(text);
        } else {
            message.rdmMsgType(LoginMsgType.REFRESH);
            LoginRefresh refresh = (LoginRefresh) message;
            refresh.applySolicited();
            refresh.applyHasUserName();
            refresh.userName().data(user);
            refresh.applyHasUserNameType();
            refresh.userNameType(Login.UserIdTypes.NAME);
            refresh.state().streamState(StreamStates.OPEN);
            refresh.state().dataState(DataStates.OK);
            refresh.state().text(text);
            refresh.applyHasFeatures();
            refresh.features().applyHasSupportPost();
            refresh.features().supportOMMPost(1);
            refresh.features().applyHasSupportBatchRequests();
            refresh.features().supportBatchRequests(ANY_BATCH);
            refresh.features().applyHasSupportOptimizedPauseResume();
            refresh.features().supportOptimizedPauseResume(1);
        }
        message.streamId(stream);
        must(channel.submit(message, ReactorFactory.createReactorSubmitOptions(), error));
        Line.event("login").with("user", user).with("accepted", !denied).print();
    }
}
