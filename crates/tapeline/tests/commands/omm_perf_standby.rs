//! `tapeline omm consumer` and two `tapeline omm provider` of a warm standby, as processes.
use crate::perf_peer;
use crate::stage;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Stdio};

use perf_peer::{Provider, Tool};
use serde_json::Value;

const CONFIG: &str = r#"<EmaConfig>
<ConsumerGroup><ConsumerList>
    <Consumer><Name value="A"/><WarmStandbyChannelSet value="W"/></Consumer>
</ConsumerList></ConsumerGroup>
<WarmStandbyGroup><WarmStandbyList>
    <WarmStandbyChannel><Name value="W"/><StartingActiveServer value="S1"/><StandbyServerSet value="S2"/>
        <WarmStandbyMode value="WarmStandbyMode::SERVICE_BASED"/></WarmStandbyChannel>
</WarmStandbyList></WarmStandbyGroup>
<WarmStandbyServerInfoGroup><WarmStandbyServerInfoList>
    <WarmStandbyServerInfo><Name value="S1"/><Channel value="C1"/></WarmStandbyServerInfo>
    <WarmStandbyServerInfo><Name value="S2"/><Channel value="C2"/></WarmStandbyServerInfo>
</WarmStandbyServerInfoList></WarmStandbyServerInfoGroup>
<ChannelGroup><ChannelList>
    <Channel><Name value="C1"/><Host value="127.0.0.1"/><Port value="FIRST"/></Channel>
    <Channel><Name value="C2"/><Host value="127.0.0.1"/><Port value="SECOND"/></Channel>
</ChannelList></ChannelGroup>
</EmaConfig>
"#;

struct Consumer {
    child: Child,
    talk: BufReader<ChildStderr>,
    folder: tempfile::TempDir,
}

impl Consumer {
    /// A consumer of five items at these ports, by options or by configuration.
    fn start([first, second]: [u16; 2], is_configured: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = CONFIG.replace("FIRST", &first.to_string()).replace("SECOND", &second.to_string());
        std::fs::write(folder.path().join("EmaConfig.xml"), config).unwrap();
        let usual = ["omm", "consumer", "--item-count", "5", "--steady-state-time", "600"];
        let mut command =
            stage::tapeline(&[&usual[..], &["--no-display-stats", "--run-folder", "run"]].concat());
        if is_configured {
            command.args(["--config", "EmaConfig.xml"]);
        } else {
            let server = |port: u16| format!("127.0.0.1:{port}");
            command.args(["--server", &server(first), "--standby", &server(second)]);
        }
        let piped = command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let talk = BufReader::new(child.stderr.take().unwrap());
        Self { child, talk, folder }
    }

    /// Waits for a line with this text on standard error.
    fn says(&mut self, what: &str) -> String {
        let mut all = String::new();
        loop {
            let before = all.len();
            assert!(self.talk.read_line(&mut all).unwrap() > 0, "it ended without '{what}': {all}");
            if all[before..].contains(what) {
                return all[before..].to_owned();
            }
        }
    }

    /// The counts in its record, after it has ended.
    fn counts(mut self) -> Value {
        self.says("was lost");
        self.child.wait().unwrap();
        let record = std::fs::read_to_string(self.folder.path().join("run/run.json")).unwrap();
        let record: Value = serde_json::from_str(&record).unwrap();
        record["counts"].clone()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_run_goes_on_when_the_active_provider_is_killed() {
    for is_configured in [false, true] {
        // The first provider sends no updates, so all updates are the second's.
        let quiet = ["--update-rate", "0", "--latency-update-rate", "0", "--run-time", "86400"];
        let first = Provider::start(&quiet);
        let other = ["omm", "provider", "--port", "0", "--run-time", "86400", "--write-stats-interval", "1"];
        let mut second =
            Tool::start(&[&other[..], &["--update-rate", "1000", "--run-folder", "run"]].concat());
        let ports = [first.port, second.port()];
        let mut consumer = Consumer::start(ports, is_configured);
        let said = consumer.says("stands by");
        assert!(
            said.contains(&format!("127.0.0.1:{} is active, 127.0.0.1:{} stands by", ports[0], ports[1]))
        );
        drop(first);
        let said = consumer.says("is active now");
        assert!(said.contains(&format!("127.0.0.1:{} is active now", ports[1])), "{said}");
        consumer.says("every item has its image again");
        let rate = |line: String| -> Option<u64> {
            line.split_once("UpdRate:")?.1.split(',').next()?.trim().parse().ok()
        };
        while rate(second.line("")).is_none_or(|rate| rate == 0) {}
        // The provider ends after all its messages are sent.
        let status = second.end();
        // 130: stopped before its run time was over; other failures have another status.
        assert_eq!(status.code(), Some(130), "{status}");
        let (counts, sent) = (consumer.counts(), second.record("run")["counts"].clone());
        assert_eq!(counts["updates"], sent["updates"]);
        assert!(counts["updates"].as_u64().unwrap() > 0);
        assert_eq!([&counts["images"], &sent["images"]], [10, 5], "images without data are none");
        assert_eq!([&counts["standby_switches"], &counts["standby_resumed"]], [1, 1]);
        assert_eq!([&counts["standby_updates"], &counts["requests"]], [0, 5]);
        assert!(counts["standby_standstill_seconds"].as_f64().unwrap() > 0.0);
    }
}
