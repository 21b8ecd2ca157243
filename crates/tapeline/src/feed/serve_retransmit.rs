//! `tapeline feed serve-retransmit`: answers retransmission requests, from captures or from a plant's ring.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use tapeline_console::failure::of_socket;
use tapeline_console::{Format, LogArgs, Stop, arguments, log, output};
use tapeline_feed::history::History;
use tapeline_feed::moldudp64::retransmit::{
    LONGEST_ANSWER, RetransmissionServer, ServerSettings, ServerStatistics,
};
use tapeline_measure::{Clock, figures};
use tapeline_wire::udp::{Batch, ReceiveOptions, UdpReceiver};

use super::past::{Past, PastArgs};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline feed serve-retransmit day.pcap.gz --listen 127.0.0.1:26479\n  \
    tapeline feed serve-retransmit lineA.pcap lineB.pcap --listen 10.0.0.5:26479 --rate-each 1MB\n  \
    tapeline feed serve-retransmit --ring tapeline --listen 10.0.0.5:26479   from a plant's ring")]
pub(crate) struct ServeRetransmit {
    #[command(flatten)]
    past: PastArgs,
    /// Local address to listen on; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address::<SocketAddrV4>)]
    listen: SocketAddrV4,
    /// Limit for one address, in bytes a second: the source address of a request can be forged
    #[arg(long, value_name = "SIZE", default_value = "4MB", value_parser = arguments::some_size)]
    rate_each: u64,
    /// Limit for all addresses together, in bytes a second
    #[arg(long, value_name = "SIZE", default_value = "40MB", value_parser = arguments::some_size)]
    rate_all: u64,
    /// End after this long [default: run until stopped]
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    duration: Option<Duration>,
    /// Output format of the ready message and the summary
    #[arg(long, default_value = "table")]
    format: Format,
    #[command(flatten)]
    log: LogArgs,
}

/// Requests taken from the socket at once. A valid request is short; a longer datagram is cut, and is still too long.
const BATCH_SLOTS: usize = 64;
const SLOT_BYTES: usize = 64;
/// Maximum length of one wait before the next check for a stop request.
const LOOK: Duration = Duration::from_millis(100);

/// Printed as a line of JSON when the server is ready.
#[derive(Debug, Serialize)]
pub(super) struct Ready {
    pub(super) ready: String,
    pub(super) session: Option<String>,
    pub(super) first_sequence: u64,
    pub(super) next_sequence: u64,
}

impl Ready {
    pub(super) fn of(address: impl ToString, history: &History) -> Self {
        Self {
            ready: address.to_string(),
            session: history.session().map(|session| session.to_string()),
            first_sequence: history.first(),
            next_sequence: history.next(),
        }
    }

    /// Prints it in `format`: JSON for a script that waits for the line, text for people.
    pub(super) fn say(&self, format: Format) -> anyhow::Result<()> {
        match format {
            Format::Json => output::print_json_line(self),
            Format::Table => {
                let session = self.session.as_deref().unwrap_or("(none yet)");
                let Self { ready, first_sequence: first, next_sequence: next, .. } = self;
                let last = next - 1;
                log::info(format_args!(
                    "serving messages {first} to {last} of session {session} at {ready}; Ctrl-C ends it"
                ));
                Ok(())
            }
        }
    }
}

impl ServeRetransmit {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        self.log.begin("serve-retransmit")?;
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let mut past = self.past.open(&stop)?;
        let options = ReceiveOptions { stamps: false, ..ReceiveOptions::new(self.listen) };
        let mut socket = UdpReceiver::open(&options).map_err(of_socket)?;
        Ready::of(socket.local_address(), past.history()).say(self.format)?;
        let mut server = RetransmissionServer::new(ServerSettings {
            requester_bytes_per_second: self.rate_each,
            bytes_per_second: self.rate_all,
            ..ServerSettings::default()
        });
        let unsent = self.serve(&mut socket, &mut past, &mut server, &stop)?;
        self.print(server.statistics(), unsent)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Answers requests until stopped; returns the number of answers that the socket did not take.
    fn serve(
        &self,
        socket: &mut UdpReceiver,
        past: &mut Past,
        server: &mut RetransmissionServer,
        stop: &Stop,
    ) -> anyhow::Result<u64> {
        let clock = Clock::calibrate();
        let begun = clock.now();
        let mut batch = Batch::new(BATCH_SLOTS, SLOT_BYTES);
        let mut buffer = vec![0; LONGEST_ANSWER];
        let mut unsent = 0;
        loop {
            let now = clock.now();
            let over = |limit: Duration| now.since(begun) >= limit.as_nanos() as i64;
            if stop.requested() || self.duration.is_some_and(over) {
                return Ok(unsent);
            }
            let there = socket.wait(past.patience(LOOK));
            past.follow()?;
            if !there || socket.receive(&mut batch).map_err(of_socket)? == 0 {
                continue;
            }
            for request in batch.iter() {
                let requester = request.source;
                let answer =
                    server.answer(*requester.ip(), request.bytes, past.history(), clock.now(), &mut buffer);
                // A failed send to one requester must not end the service for the others.
                if let Ok(answer) = answer
                    && !socket.send_to(answer, requester).unwrap_or(false)
                {
                    unsent += 1;
                }
            }
        }
    }

    fn print(&self, statistics: &ServerStatistics, unsent: u64) -> anyhow::Result<()> {
        let unanswered = statistics.unanswered_by_reason().filter(|(_, count)| *count > 0);
        let unanswered: BTreeMap<_, _> = unanswered.collect();
        let ServerStatistics { requests, answers, messages, bytes, .. } = *statistics;
        if self.format == Format::Json {
            return output::print_json_line(&json!({
                "requests": requests, "answers": answers, "messages": messages, "bytes": bytes,
                "unsent": unsent, "unanswered": unanswered,
            }));
        }
        let [answers, requests, messages, bytes] =
            [answers, requests, messages, bytes].map(figures::thousands);
        let mut text =
            format!("answered {answers} of {requests} requests with {messages} messages in {bytes} bytes");
        for (reason, count) in &unanswered {
            text.push_str(&format!("; {reason}: {}", figures::thousands(*count)));
        }
        if unsent > 0 {
            text.push_str(&format!("; not sent: {}", figures::thousands(unsent)));
        }
        output::print(&text)
    }
}
