//! `tapeline plant tally`: counts what a plant published, and rebuilds the books from it.

use std::cell::RefCell;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use tapeline_console::near::note_unknown;
use tapeline_console::{Format, Hinted, Stop, output};
use tapeline_feed::line::Sink;
use tapeline_feed::moldudp64::MoldSession;
use tapeline_omm::rwf::{Domain, MessageView};
use tapeline_perf::path::{Ending, Joined};
use tapeline_plant::Seq;
use tapeline_plant::tick::{Flags, Kind, POSTED, Tick};

use super::follow::{Follow, FollowArgs};
use crate::feed::{FeedTally, ItchReport};

/// Count the published ticks, rebuild the order books from them, and print both at the end.
///
/// Needs a plant with publish = "every-message", whose ticks carry the feed's own messages.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline plant tally --until-end-of-session\n  \
    tapeline plant tally --symbol AAPL --duration 10s --format json")]
pub(crate) struct TallyArgs {
    #[command(flatten)]
    follow: FollowArgs,
    /// The plant's feed to count, by its index in the configuration, from 0; required if there are several
    #[arg(long, value_name = "NUMBER")]
    feed: Option<u16>,
    /// Show the books of these stocks
    #[arg(long = "symbol", value_name = "SYMBOL", value_delimiter = ',')]
    symbols: Vec<String>,
    /// Price levels of a book to show
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    levels: usize,
    /// Busiest stocks to show in the table
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    top: usize,
    /// Print one line of JSON once the ring is joined, so that a script can start the feed
    #[arg(long)]
    announce: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct TallyReport {
    end: Ending,
    #[serde(flatten)]
    sequences: Sequences,
    #[serde(flatten)]
    itch: ItchReport,
}

/// Maximum number of gaps that are listed; more are only counted.
const MOST_RANGES: usize = 10_000;

/// The ticks received, counted by the plant's sequence (`seq`) and by the feed's own.
#[derive(Debug, Default, Serialize)]
struct Sequences {
    ticks: u64,
    first_seq: u64,
    last_seq: u64,
    /// Ticks whose sequences are missing between the first and the last.
    lost_ticks: u64,
    first_sequence: Option<u64>,
    next_sequence: Option<u64>,
    end_of_session_sequence: Option<u64>,
    /// Gaps in the feed's own sequence that show in the ticks.
    missing_ranges: Vec<(u64, u64)>,
    missing_messages: u64,
}

impl Sequences {
    /// Counts a tick of the plant's sequence.
    fn tick(&mut self, seq: Seq) {
        if seq.is_outside() {
            return;
        }
        let seq = seq.0;
        if self.ticks == 0 {
            self.first_seq = seq;
        } else {
            self.lost_ticks += seq.saturating_sub(self.last_seq + 1);
        }
        self.ticks += 1;
        self.last_seq = seq;
    }

    fn message(&mut self, sequence: u64) {
        self.first_sequence.get_or_insert(sequence);
        self.up_to(sequence);
        self.next_sequence = Some(sequence + 1);
    }

    /// All messages before `sequence` should have arrived.
    fn up_to(&mut self, sequence: u64) {
        if let Some(next) = self.next_sequence.filter(|next| *next < sequence) {
            self.missing_messages += sequence - next;
            if self.missing_ranges.len() < MOST_RANGES {
                self.missing_ranges.push((next, sequence - 1));
            }
            self.next_sequence = Some(sequence);
        }
    }
}

impl TallyArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let mut follow = Follow::join(&self.follow, "tally", stop)?;
        if self.announce {
            output::print_json_line(&Joined { joined: self.follow.ring.clone() })?;
        }
        follow.feed = self.feed;
        let seen = RefCell::new((Sequences::default(), FeedTally::new()));
        let end = follow.run(
            |tick, _| {
                let (sequences, tally) = &mut *seen.borrow_mut();
                sequences.tick(tick.header.seq);
                if self.is_of_feed(tick)? {
                    take(tick, sequences, tally)?;
                }
                Ok(())
            },
            |_, _| Ok(()),
        )?;
        let (sequences, tally) = seen.into_inner();
        let missing = sequences.lost_ticks.saturating_add(sequences.missing_messages);
        let report = TallyReport { end, sequences, itch: ItchReport::of(&tally, &self.symbols, self.levels) };
        match self.format {
            Format::Json => output::print_json_line(&report)?,
            Format::Table => report.print(&tally, self.top)?,
        }
        note_unknown(&self.symbols, &report.itch.names());
        Ok(end.exit_code(missing))
    }

    /// Whether a tick belongs to the tallied feed; an error if several feeds are possible.
    fn is_of_feed(&self, tick: &Tick<'_>) -> anyhow::Result<bool> {
        if tick.header.channel == POSTED {
            // A client posted this tick; it is in no feed's books.
            return Ok(false);
        }
        match self.feed {
            Some(feed) => Ok(feed == tick.header.channel),
            None if tick.header.channel != 0 => Err(Hinted::new(
                "this plant has several feeds, whose sequences and books cannot be put into one tally",
                "tally one of them, such as the first with --feed 0",
            )
            .into()),
            None => Ok(true),
        }
    }
}

/// Adds a tick of the feed to its sequences and its books.
fn take(tick: &Tick<'_>, sequences: &mut Sequences, tally: &mut FeedTally) -> anyhow::Result<()> {
    let feed_seq = tick.header.feed_seq;
    if tick.header.kind != Kind::Status {
        if tick.header.flags.contains(Flags::RESET) {
            // A blank image: it has no feed message.
            return Ok(());
        }
        if !tick.header.flags.contains(Flags::SOURCE) {
            if MessageView::parse(tick.body)?.domain() != Domain::MARKET_PRICE {
                // The effect of a message on orders or price levels; the message itself was in the tick before.
                return Ok(());
            }
            return Err(Hinted::new(
                "this plant publishes changes only, which is too little to rebuild books from",
                "set publish = \"every-message\" in the plant's configuration and start it again",
            )
            .into());
        }
        sequences.message(feed_seq);
        tally.message(tick.source);
    } else if tick.header.flags.contains(Flags::RESET) {
        // The books start empty; the session's name is in the status text.
        Sink::reset(&mut tally.summary, MoldSession::new("").into());
        sequences.next_sequence = None;
    } else if tick.header.flags.contains(Flags::GAP) || tick.header.flags.contains(Flags::END_OF_SESSION) {
        // The last message of a gap or of the session: all messages up to it should have arrived.
        sequences.up_to(feed_seq + 1);
        if tick.header.flags.contains(Flags::END_OF_SESSION) {
            sequences.end_of_session_sequence = Some(feed_seq + 1);
        }
    }
    Ok(())
}

impl TallyReport {
    fn print(&self, tally: &FeedTally, top: usize) -> anyhow::Result<()> {
        let mut parts = self.itch.tables(tally, top);
        let Sequences { ticks, first_seq, last_seq, lost_ticks, missing_messages, .. } = &self.sequences;
        parts.push(format!(
            "{ticks} ticks ({first_seq} to {last_seq}), {lost_ticks} lost; feed sequences {} to {}, {missing_messages} missing; \
             ended: {}",
            self.sequences.first_sequence.unwrap_or(0),
            self.sequences.next_sequence.unwrap_or(1).saturating_sub(1),
            self.end,
        ));
        output::print(&parts.join("\n\n"))
    }
}
