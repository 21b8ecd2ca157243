//! The simulated exchanges of a plant whose feeds have the key `simulate`.

use tapeline_console::log;
use tapeline_console::part::Part;

use super::config::SimulatedFeed;

/// Length of a session: a plant that runs for longer sees new sessions, as it does on real days.
const SESSION: &str = "6h";
/// Few enough stocks that the first quotes come within a second at 1,000 messages a second.
const SYMBOLS: &str = "50";
/// An exchange that ends within its first second this many times in a row is not started again.
const MOST_FAILURES: u32 = 3;

/// A simulated exchange in a process of its own, which ends with the plant.
pub(crate) struct SimulatedExchange {
    settings: SimulatedFeed,
    process: Option<Part>,
    /// Sessions begun; each has a name of its own, as on a real feed.
    sessions: u32,
    /// Whether the process has run for a second.
    is_settled: bool,
    failures: u32,
}

impl SimulatedExchange {
    /// Starts the first session.
    ///
    /// # Errors
    /// The process cannot be started.
    pub(crate) fn start(settings: SimulatedFeed) -> anyhow::Result<Self> {
        let mut exchange = Self { settings, process: None, sessions: 0, is_settled: false, failures: 0 };
        exchange.begin()?;
        Ok(exchange)
    }

    /// Starts the next session if the last one has ended. The plant's thread calls this about once a second.
    pub(crate) fn turn(&mut self) {
        let Some(process) = &mut self.process else { return };
        let Err(ended) = process.still_runs() else {
            self.is_settled = true;
            self.failures = 0;
            return;
        };
        self.process = None;
        self.failures += u32::from(!self.is_settled);
        let begun = if self.failures < MOST_FAILURES { self.begin() } else { Err(ended) };
        if let Err(error) = begun {
            log::warning(format_args!(
                "feed {}: no simulated exchange any more: {error:#}",
                self.settings.feed
            ));
        }
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        self.sessions = self.sessions.wrapping_add(1);
        self.is_settled = false;
        let SimulatedFeed { rate_hz, lines, .. } = &self.settings;
        let mut arguments: Vec<String> =
            ["feed", "simulate", "--duration", SESSION, "--symbols", SYMBOLS, "--format", "json"]
                .map(str::to_owned)
                .into();
        arguments.extend(["--rate".to_owned(), rate_hz.to_string()]);
        arguments.extend(["--session".to_owned(), format!("SIM{:07}", self.sessions % 10_000_000)]);
        for (option, line) in ["--to", "--also"].into_iter().zip(lines) {
            arguments.extend([option.to_owned(), line.to_string()]);
        }
        self.process = Some(Part::start("simulated exchange", &arguments)?);
        Ok(())
    }
}
