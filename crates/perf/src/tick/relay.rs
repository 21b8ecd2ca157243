//! A bare relay: the best that a tickerplant could do on these sockets. It passes bytes on without reading them.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use tapeline_console::output;
use tapeline_console::paths::FilePath;
use tapeline_console::stop::Stop;
use tapeline_kdb::Hello;
use tapeline_wire::streams::{Ready, StreamId, StreamSettings, Streams};

/// Forward bytes to the first peer that connects, from all others.
#[derive(Debug, Args)]
pub struct Relay {
    /// Path, or @NAME, of a Unix-domain socket to listen on instead of TCP
    #[arg(long)]
    unix: Option<FilePath>,
    /// Forward nothing: a null sink
    #[arg(long)]
    null: bool,
    /// Poll without sleeping
    #[arg(long)]
    spins: bool,
    /// Pin the relay to this core
    #[arg(long)]
    cpu: Option<usize>,
}

/// The listening address.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Listening {
    pub(super) address: Option<SocketAddr>,
}

/// The longest sleep.
const NAP: Duration = Duration::from_millis(20);
/// Size of a read; a tickerplant's frame buffers are as large once they have grown.
const ROOM: usize = 64 << 10;
/// Maximum backlog in bytes, as for a tickerplant's subscriber.
const QUEUE: usize = 64 << 20;

impl Relay {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        super::pin(self.cpu)?;
        let mut streams = Streams::new(StreamSettings { max_connections: 16, queue_bytes: QUEUE })?;
        let address = match &self.unix {
            Some(path) => {
                streams.listen_local(path)?;
                None
            }
            None => Some(streams.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?),
        };
        output::print_json_line(&Listening { address })?;
        let nap = if self.spins { Duration::ZERO } else { NAP };
        let mut room = vec![0; ROOM];
        let mut to: Option<StreamId> = None;
        // Peers that have logged in.
        let mut greeted: Vec<StreamId> = Vec::new();
        while !stop.requested() {
            streams.wait(Some(nap))?;
            while let Some(ready) = streams.ready() {
                match ready {
                    Ready::Connected(_) => {}
                    Ready::Readable(id) => {
                        let count = streams.receive(id, &mut room);
                        let mut bytes = &room[..count];
                        if !greeted.contains(&id) {
                            let Ok(Some((hello, len))) = Hello::parse(bytes) else { continue };
                            streams.send(id, &[hello.capability.0]);
                            bytes = &bytes[len..];
                            greeted.push(id);
                            to.get_or_insert(id);
                        }
                        if let Some(to) = to.filter(|to| *to != id && !self.null && !bytes.is_empty()) {
                            streams.send(to, bytes);
                        }
                    }
                    Ready::Over(id) => {
                        greeted.retain(|other| *other != id);
                        to = to.filter(|to| *to != id);
                        streams.close(id);
                    }
                }
            }
            streams.flush();
        }
        Ok(ExitCode::SUCCESS)
    }
}
