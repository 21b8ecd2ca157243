use super::super::cases;
use super::*;

/// A folder without settings.
const NOWHERE: &str = "/nowhere/at/all";

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn line(words: &[OsString]) -> String {
    words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
}

fn translated(text: &str) -> String {
    line(&translate(&words(text), Path::new(NOWHERE)).unwrap().arguments)
}

fn refused(text: &str) -> (String, String) {
    let error = translate(&words(text), Path::new(NOWHERE)).unwrap_err();
    (error.to_string(), error.hint().to_owned())
}

#[test]
fn the_guides_command_lines_are_ours() {
    for [guide, ours] in cases(
        "
            EmaCppConsPerf -itemCount 100000 => tapeline omm consumer --item-count=100000 --api-dispatch
            /opt/bin/EmaCppConsPerf -h adshost -p 14002 -serviceName TEST_FEED -postingRate 10000 -postingLatencyRate 10
                => tapeline omm consumer --service-name=TEST_FEED --posting-rate=10000 --posting-latency-rate=10 --api-dispatch --server=adshost:14002
            EmaCppNIProvPerf -h adhhost -p 14003 -serviceName TEST_FEED
                => tapeline omm ni-provider --service-name=TEST_FEED --api-dispatch --server=adhhost:14003
            NIProvPerf -h ::1 => tapeline omm ni-provider --server=[::1]:14003
            ConsPerf -p 15000 => tapeline omm consumer --server=localhost:15000
            ProvPerf -p 15000 -if 0.0.0.0 -updateRate 0 -latencyUpdateRate all
                => tapeline omm provider --port=15000 --bind=0.0.0.0 --update-rate=0 --latency-update-rate=all
            tapeline omm consumer -threads 0,-1 -mainThread -1 => tapeline omm consumer --threads=0,-1 --main-thread=-1
            tapeline omm consumer -uname joe -snapshot => tapeline omm consumer --user=joe --snapshot
            EmaCppConsPerf -useServiceId 1 -useUserDispatch 1 => tapeline omm consumer --use-service-id
            EmaCppConsPerf -useServiceId 0 => tapeline omm consumer --api-dispatch
            EmaCppConsPerf --busy-read => tapeline omm consumer --busy-read
            EmaCppConsPerf -useUserDispatch 0 => tapeline omm consumer --api-dispatch
            EmaCppIProvPerf -useUserDispatch 0 => tapeline omm provider --api-dispatch
            NIProvPerf -useUserDispatch 1 => tapeline omm ni-provider
            tapeline omm provider --use-user-dispatch=0 => tapeline omm provider --api-dispatch
            EmaCppConsPerf -apiThreads 2,3 => tapeline omm consumer --api-threads=2,3 --threads=-1,-1
            EmaCppConsPerf -threads 0 -useUserDispatch 0 -apiThreads 2
                => tapeline omm consumer --threads=0 --api-dispatch --api-threads=2
            EmaCppConsPerf -websocket rssl.json.v2 => tapeline omm consumer --api-dispatch --websocket=rssl.json.v2
            ConsPerf -connType websocket => tapeline omm consumer --websocket=rssl.rwf
            ConsPerf -connType encrypted -encryptedConnType websocket -pl tr_json2,rssl.rwf -castore ca.pem
                => tapeline omm consumer --ca=ca.pem --tls --websocket=tr_json2,rssl.rwf
            ProvPerf -connType encrypted -cert a.pem -keyfile b.pem -pl rssl.rwf
                => tapeline omm provider --cert=a.pem --key=b.pem --websocket=rssl.rwf
            ConsPerf -if eth0 -connType encrypted -spTLSv1.2 -spTLSv1.3
                => tapeline omm consumer --interface=eth0 --tls-version=1.2 --tls-version=1.3 --tls
            ProvPerf -connType websocket => tapeline omm provider
            ConsPerf -tcpDelay -outputBufs 9 -reactor -watchlist
                => tapeline omm consumer --tcp-nodelay=false --guaranteed-output-buffers=9
            ProvPerf -directWrite => tapeline omm provider --high-water-mark=0
            ConsPerf -? => tapeline omm consumer --help
            tapeline omm consumer -h => tapeline omm consumer --help
            tapeline omm consumer -h -p 1 => tapeline omm consumer --help --server=localhost:1
            tapeline omm provider -h => tapeline omm provider -h
            TransportPerf --help => tapeline omm transport --help
            TransportPerf -h => tapeline omm transport --help
            TransportPerf -appType client -h feed -p 15000 -msgRate 5000 -latencyMsgRate all -threads 0,-1 -reflectMsgs
                => tapeline omm transport --app-type=client --host=feed --port=15000 --msg-rate=5000 --latency-msg-rate=all --threads=0,-1 --reflect-msgs
            tapeline omm transport client -connType websocket -pl rssl.rwf -if ::1 -compressionType lz4 -outputBufs 7
                => tapeline omm transport client --conn-type=websocket --pl=rssl.rwf --bind=::1 --compression=lz4 --guaranteed-output-buffers=7
            tapeline omm consumer --use-user-dispatch 1 --item-count 5 => tapeline omm consumer --item-count 5
            // Another command, or Tapeline's own spelling: unchanged.
            tapeline omm watch -itemCount 1 => tapeline omm watch -itemCount 1
            tapeline omm consumer --item-count 5 -V => tapeline omm consumer --item-count 5 -V
            tapeline stat => tapeline stat
            tapeline => tapeline
        ",
    ) {
        assert_eq!(translated(&guide), ours, "{guide}");
    }
}

/// Every word of the table, with a value, maps to an option of the command line; none is skipped.
#[test]
fn every_word_is_an_option_of_its_tool() {
    let sample = |option: &str| match option {
        "threads" | "main-thread" => "-1",
        "summary-file" | "stats-file" | "latency-file" | "msg-file" | "item-file" | "ca" | "key" | "cert" => {
            "f"
        }
        "service-name" | "user" | "host" => "A",
        "app-type" => "client",
        "conn-type" | "encrypted-conn-type" => "websocket",
        "pl" => "rssl.rwf",
        "compression" => "zlib",
        "compression-level" => "9",
        "bind" | "interface" => "127.0.0.1",
        "max-fragment-size" => "6144",
        _ => "1000",
    };
    for tool in Tool::ALL {
        // Help requests are not errors and cannot be parsed.
        for word in tool.words().filter(|word| word.name != "help") {
            let value = match word.means {
                Means::Same => sample(&kebab(word.name)),
                Means::Value(option) => sample(option),
                Means::Host => "host",
                Means::Port => "14009",
                Means::ConnectionType => "socket",
                Means::EncryptedType => "websocket",
                Means::Protocols => "rssl.rwf",
                Means::OneOrZero(_) | Means::Dispatch | Means::ApiThreads => "1",
                Means::ConfigName => "Name --config x.xml",
                Means::KeyFile | Means::KeyPassword | Means::Idle(true, _) => "f",
                Means::Refused(..) | Means::Flag(_) | Means::Always | Means::Idle(false, _) => "",
            };
            // Companion options that some options require.
            let beside = match word.name {
                "castore" if tool != Tool::Transport => "-connType encrypted",
                "encryptedConnType" if tool == Tool::Transport => "-connType encrypted",
                "cert" => "-keyfile f",
                "keyfile" if matches!(tool, Tool::Provider | Tool::Transport) => "-cert f",
                "pl" if has_host(tool) => "-connType websocket",
                _ => "",
            };
            let text = format!("tapeline omm {} -{} {value} {beside}", tool.command(), word.name);
            let result = translate(&words(&text), Path::new(NOWHERE));
            if let Means::Refused(_, why, hint) = word.means {
                let spelled = ["-".to_owned() + word.name, "--".to_owned() + &kebab(word.name)];
                for spelled in spelled {
                    let text = format!("tapeline omm {} {spelled} 1", tool.command());
                    assert_eq!(refused(&text), (format!("{spelled} cannot be: {why}"), hint.to_owned()));
                }
                continue;
            }
            let ours = result.unwrap_or_else(|error| panic!("{text}: {error}")).arguments;
            let parsed = line::options(tool).try_get_matches_from(&ours[2..]);
            assert!(parsed.is_ok(), "{text} is {}: {}", line(&ours), parsed.unwrap_err());
            // The value must be included.
            let option = match word.means {
                Means::Same => kebab(word.name),
                Means::Value(option) => option.to_owned(),
                _ => continue,
            };
            assert!(line(&ours).contains(&format!("--{option}={value}")), "{text}: {}", line(&ours));
        }
    }
}

#[test]
fn what_cannot_be_is_said() {
    let said = |text: &str| {
        let (what, hint) = refused(text);
        if hint.is_empty() { what } else { format!("{what} ({hint})") }
    };
    for [text, expected] in cases(
        "
            ConsPerf -itemCuont 5 => -itemCuont is no option of consumer (there is -itemCount)
            ConsPerf -bananas 5 => -bananas is no option of consumer (-? shows the options)
            ProvPerf -itemCount 5 => -itemCount is no option of provider (-? shows the options)
            ConsPerf -itemCount => -itemCount has no value (a value comes behind it)
            EmaCppConsPerf -useServiceId yes => -useServiceId is 'yes'; expected 1 or 0
            ConsPerf -connType http => -connType http cannot be: RSSL is not tunnelled through HTTP (take websocket)
            ConsPerf -connType encrypted -encryptedConnType http
                => -encryptedConnType http cannot be: RSSL is not tunnelled through HTTP (take websocket)
            ConsPerf -connType tcp => -connType is 'tcp'; expected socket, websocket or encrypted
            NIProvPerf -connType reliableMCast => -connType reliableMCast cannot be: there is no multicast to hubs (take socket)
            EmaCppConsPerf -websocket foo => -websocket has 'foo'; expected rssl.rwf, tr_json2 or rssl.json.v2
            ProvPerf -pl rssl.rwf,tr_json => -pl has 'tr_json'; expected rssl.rwf, tr_json2 or rssl.json.v2 (there is tr_json2)
            ConsPerf -pl rssl.rwf
                => -pl rssl.rwf is of WebSockets, and -connType is socket (say -connType websocket, or leave -pl out)
            ProvPerf -connType encrypted => -connType encrypted needs a certificate and a key (name them with -cert and -keyfile)
            EmaCppConsPerf -consumerName A
                => -consumerName A is of EmaConfig.xml, which is not in this folder (--config names another file)
        ",
    ) {
        assert_eq!(said(&text), expected, "{text}");
    }
}

/// Options of LSEG's Java tools (RTSDK 3.9.1) that the C tools do not have.
#[test]
fn the_options_of_java_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let both = "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n";
    for (name, text) in [
        ("both.pem", both.as_bytes()),
        ("key.pem", b"-----BEGIN PRIVATE KEY-----\n"),
        ("ca.pem", b"-----BEGIN CERTIFICATE-----\n"),
        ("locked.pem", b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n"),
        ("keys.jks", b"\xFE\xED\xFE\xED\x00\x00\x00\x02"),
        ("keys.p12", b"\x30\x82\x0A\x00"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let said = |text: &str| match translate(&words(text), folder.path()) {
        Ok(Translated { arguments, notes, .. }) => {
            let mut said = line(&arguments[2..]);
            notes.iter().for_each(|note| said.push_str(&format!(" ({note})")));
            said
        }
        Err(error) => error.to_string(),
    };
    for [java, ours] in cases(
        "
            ConsPerf -primeJVM => consumer (-primeJVM changes nothing: there is no virtual machine to warm up)
            ConsPerf -primeJVM true -snapshot
                => consumer --snapshot (-primeJVM changes nothing: there is no virtual machine to warm up)
            ConsPerf -downcastDecoding
                => consumer (-downcastDecoding changes nothing: fields are decoded by their types, in one way)
            ConsPerf -connType encrypted -encryptedConnectionType websocket -keyfile ca.pem
                => consumer --ca=ca.pem --tls --websocket=rssl.rwf
            NIProvPerf -connType encrypted -encryptedConnectionType socket -keyfile ca.pem -keypasswd x
                => ni-provider --ca=ca.pem --tls (-keypasswd changes nothing: ca.pem is not under a password)
            ConsPerf -keyfile ca.pem => consumer (-keyfile changes nothing: the connection is not encrypted)
            ConsPerf -keypasswd x => consumer (-keypasswd changes nothing: there is no -keyfile)
            ConsPerf -connType encrypted -encryptedConnectionType http
                => -encryptedConnectionType http cannot be: RSSL is not tunnelled through HTTP
            ProvPerf -c socket => provider
            ProvPerf -c encrypted -keyfile both.pem => provider --cert=both.pem --key=both.pem
            ProvPerf -c encrypted -cert ca.pem -keyfile key.pem => provider --cert=ca.pem --key=key.pem
            ProvPerf -c encrypted => -c encrypted needs a certificate and a key
            ProvPerf -c encrypted -keyfile keys.jks -keypasswd x => -keyfile keys.jks is a key store of Java's; PEM is expected
            ProvPerf -c encrypted -keyfile keys.p12 -keypasswd x => -keyfile keys.p12 is a key store of Java's; PEM is expected
            ProvPerf -c encrypted -cert ca.pem -keyfile locked.pem -keypasswd x
                => -keyfile locked.pem has a key under a password, which is not opened here
            ConsPerf -busyRead => consumer --busy-read
            ConsPerf -snapshot true -tcpDelay false -itemCount 5 => consumer --snapshot --item-count=5
            ConsPerf -snapshot -snapshot false => consumer
            ConsPerf -useServiceId -useUserDispatch => consumer --use-service-id
            ConsPerf -useServiceId true -useUserDispatch false => consumer --use-service-id --api-dispatch
            NIProvPerf -useServiceId -maxFragmentSize 6144 => ni-provider --max-fragment-size=6144
            ConsPerf -help => consumer --help
            TransportPerf -appType client -connType encrypted -keyfile ca.pem
                => transport --app-type=client --conn-type=encrypted --ca=ca.pem
            TransportPerf -connType encrypted -keyfile both.pem => transport --conn-type=encrypted --cert=both.pem --key=both.pem
            TransportPerf -proxy => -proxy cannot be: connections are not made through a proxy
            TransportPerf -krbfile x => -krbfile cannot be: connections are not made through a proxy
            TransportPerf -prr 5 => -prr cannot be: there is no multicast to hubs
        ",
    ) {
        assert_eq!(said(&java), ours, "{java}");
    }
}

/// As in LSEG's C tools, whichever spelling is used.
#[test]
fn the_last_of_an_option_given_twice_counts() {
    for [given, ours] in cases(
        "
            provider -updateRate 1000 -updateRate 2000 => --update-rate=2000
            provider --update-rate 1000 -updateRate 2000 => --update-rate=2000
            provider --update-rate=1000 -updateRate 2000 -runTime 5 => --update-rate=2000 --run-time=5
            provider -updateRate 1000 --update-rate 2000 => --update-rate 2000
            provider -updateRate 1 --update-rate 2 -updateRate 3 => --update-rate=3
            provider -threads 0,1 -threads -1 => --threads=-1
            provider --threads -1,-1 -threads 0 => --threads=0
            provider -p 1 --port 2 => --port 2
            provider --port 2 -p 1 => --port=1
            provider -outputBufs 5 --output-bufs 6 => --output-bufs 6
            provider --guaranteed-output-buffers 6 -outputBufs 5 => --guaranteed-output-buffers=5
            provider -preEnc -preEnc => --pre-enc
            provider --pre-enc -preEnc => --pre-enc
            provider -directWrite -highWaterMark 500 => --high-water-mark=0
            provider -highWaterMark 500 -directWrite => --high-water-mark=0
            transport -directWrite -highWaterMark 500 => --direct-write
            consumer -snapshot -snapshot => --snapshot
            consumer -useServiceId 1 -useServiceId 0 =>
            consumer --use-service-id -useServiceId 0 =>
            consumer -useUserDispatch 0 -useUserDispatch 1 =>
            consumer -useUserDispatch 1 --api-dispatch => --api-dispatch
            consumer --api-dispatch -useUserDispatch 0 => --api-dispatch
            consumer -h a -h b => --server=b:14002
            consumer -h a -p 7 --server b:8 => --server b:8
            consumer --server a:7 -h b => --server=b:7
            consumer --server=[::1]:7 -p 8 => --server=[::1]:8
            consumer -connType websocket -connType socket =>
            consumer --tls -connType encrypted => --tls
            consumer -connType websocket --websocket json => --websocket json
            consumer -websocket tr_json2 --websocket rwf => --websocket rwf
            consumer --websocket rwf -websocket tr_json2 => --websocket=tr_json2
            consumer --config x -consumerName A --config-name B => --config x --config-name=B
            consumer --config x --config-name B -consumerName A => --config x --config-name=A
            // Both versions can be enabled.
            consumer -spTLSv1.2 -spTLSv1.3 => --tls-version=1.2 --tls-version=1.3
            // In Tapeline's spelling alone, the command line reports a repeated option.
            provider --update-rate 1 --update-rate 2 => --update-rate 1 --update-rate 2
        ",
    ) {
        let (tool, _) = given.split_once(' ').unwrap();
        let ours = format!("tapeline omm {tool} {ours}");
        assert_eq!(translated(&format!("tapeline omm {given}")), ours.trim_end(), "{given}");
    }
}

#[test]
fn settings_of_the_folder_count_for_a_name_and_for_links_of_ema() {
    let folder = tempfile::tempdir().unwrap();
    let config = |text: &str| std::fs::write(folder.path().join(EMA_CONFIG), text).unwrap();
    let translated = |text: &str| line(&translate(&words(text), folder.path()).unwrap().arguments);
    assert_eq!(translated("EmaCppConsPerf"), "tapeline omm consumer --api-dispatch");
    config(
        "<Name value=\"Perf_Consumer_1\"/><Name value=\"Perf_Consumer_WSRWF_1\"/><Name value=\"Mine\"/><Name value=\"Perf_Provider_1\"/>",
    );
    for [text, ours] in cases(
        "
            EmaCppConsPerf => tapeline omm consumer --config=EmaConfig.xml --config-name=Perf_Consumer_1 --api-dispatch
            EmaCppConsPerf -websocket rssl.rwf
                => tapeline omm consumer --config=EmaConfig.xml --config-name=Perf_Consumer_WSRWF_1 --api-dispatch --websocket=rssl.rwf
            EmaCppConsPerf -consumerName Mine => tapeline omm consumer --config=EmaConfig.xml --config-name=Mine --api-dispatch
            EmaCppIProvPerf -providerName Perf_Provider
                => tapeline omm provider --config=EmaConfig.xml --config-name=Perf_Provider_1 --api-dispatch
            EmaCppNIProvPerf => tapeline omm ni-provider --config=EmaConfig.xml --api-dispatch
            // Missing from the file: its reader reports that, and lists the available names.
            EmaCppNIProvPerf -providerName X => tapeline omm ni-provider --config=EmaConfig.xml --config-name=X --api-dispatch
            tapeline omm consumer -consumerName Mine --config a.toml => tapeline omm consumer --config a.toml --config-name=Mine
            // ETA's tools have no such file.
            ConsPerf => tapeline omm consumer
            tapeline omm consumer -itemCount 5 => tapeline omm consumer --item-count=5
        ",
    ) {
        assert_eq!(translated(&text), ours, "{text}");
    }
}
