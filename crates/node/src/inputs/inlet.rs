//! One feed of a plant: its messages from lines, a file or a stream, merged and with what is missing requested again.

use tapeline_feed::book;
use tapeline_feed::line::{self, Restart, Start};
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::{Channel, ChannelSettings, Refused, RingPublish, Sequencer};
use tapeline_wire::udp::{ReceiveOptions, UdpReceiver};

use super::feed_log::FeedLog;
use super::intake::Source;
use super::recorded::Recorded;
use super::recovery::Recovery;
use super::venue::VenueInput;
use crate::config::{Config, Feed, Receive};
use crate::events::Events;
use crate::{Error, Result};

/// Bytes reserved for each message that may wait for recovery. ITCH messages have 30 on average.
const WAITING_BYTES: usize = 48;

/// One feed with its sockets, or the file or the stream that takes their place.
pub(crate) struct Inlet {
    pub(crate) channel: Channel,
    pub(crate) source: Source,
    pub(crate) file: Option<Recorded>,
    pub(crate) stream: Option<VenueInput>,
    pub(crate) recovery: Option<Recovery>,
    pub(crate) log: FeedLog,
}

impl Inlet {
    /// Takes what comes from a file or a stream instead of lines; returns the number of messages.
    pub(crate) fn take_beside_lines(
        &mut self,
        clock: &Clock,
        to: &mut Sequencer<RingPublish>,
    ) -> Result<usize, Refused> {
        let played = match &mut self.file {
            Some(file) => file.play(&mut self.channel, clock, to)?,
            None => 0,
        };
        let received = match &mut self.stream {
            Some(stream) => stream.turn(&mut self.channel, clock, to)?,
            None => 0,
        };
        Ok(played + received)
    }

    /// Whether no more input is expected.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        self.file.as_ref().map_or_else(|| self.channel.is_over(now), |file| file.is_over)
    }

    /// Opens a feed's sockets, file or stream.
    ///
    /// # Errors
    /// What cannot be opened, with advice.
    pub(crate) fn open(feed: &Feed, number: u16, config: &Config, events: &Events) -> Result<Self> {
        let events = &events.with("feed", &feed.name);
        let receivers = Self::receivers(feed, events)?;
        let delay_ns = feed.reorder_time.as_nanos() as u64;
        let recovery =
            feed.recovery.as_ref().map(|recovery| Recovery::open(recovery, delay_ns, events)).transpose()?;
        let mut channel = Channel::new(ChannelSettings {
            number,
            lines: feed.lines.len(),
            stale_after_ns: feed.stale_after.as_nanos() as u64,
            midnight_before: feed.midnight_before,
            protocol: feed.protocol,
            midnight: feed.midnight,
            publish: config.publish,
            arbitration: Self::arbitration(feed),
            books: book::BookSettings::default(),
        });
        channel.name_items(&feed.suffix);
        if let Some(symbols) = &feed.symbols {
            channel.choose_symbols(symbols.clone());
        }
        if feed.market_by_order {
            channel.publish_orders(book::BookSettings::default().max_orders);
        }
        let open = |file| Recorded::open(file, feed, config.publish, &mut channel, events);
        let file = feed.file.as_ref().map(open).transpose()?;
        let follow = |stream| VenueInput::start(stream, feed, &mut channel, events);
        let stream = feed.stream.as_ref().map(follow).transpose()?;
        let source = match &config.receive {
            Receive::Thread(pool) if !receivers.is_empty() => {
                Source::thread(receivers, pool, config.spin, &feed.name, events)?
            }
            _ => Source::inline(receivers),
        };
        Ok(Self { channel, source, file, stream, recovery, log: FeedLog::new(feed, events) })
    }

    /// Opens the sockets of a feed's lines.
    fn receivers(feed: &Feed, events: &Events) -> Result<Vec<UdpReceiver>> {
        feed.lines
            .iter()
            .map(|line| {
                let options = ReceiveOptions {
                    interface: line.interface.clone(),
                    source: line.source,
                    receive_buffer: feed.receive_buffer,
                    ..ReceiveOptions::new(line.address)
                };
                let receiver = UdpReceiver::open(&options).map_err(|error| {
                    let hint = error.hint().unwrap_or_default();
                    let what =
                        format!("feed {}, line {}: cannot receive on {}", feed.name, line.name, line.address);
                    Error::hinted(what, hint).because(error)
                })?;
                if let Some(advice) = receiver.advice() {
                    let events = events.with("line", &line.name);
                    events.warning(format_args!("feed {}, line {}: {advice}", feed.name, line.name));
                }
                Ok(receiver)
            })
            .collect()
    }

    /// How a feed's lines are merged: how much waits for missing messages, and how long.
    fn arbitration(feed: &Feed) -> line::ArbiterSettings {
        let defaults = line::ArbiterSettings::default();
        line::ArbiterSettings {
            window_messages: feed.reorder_messages,
            window_bytes: match feed.recovery {
                Some(_) => defaults.window_bytes.max(WAITING_BYTES * feed.reorder_messages),
                None => defaults.window_bytes,
            },
            window_age_ns: feed.reorder_time.as_nanos() as u64,
            recovery_age_ns: feed.recovery.as_ref().map_or(0, |recovery| recovery.time.as_nanos() as u64),
            expire_on_packet: false,
            start: if feed.from_one { Start::FromOne } else { Start::First },
            restart: if feed.restart { defaults.restart } else { Restart::Ignore },
            ..defaults
        }
    }
}
