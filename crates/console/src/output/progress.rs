//! Progress on standard error.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use tapeline_measure::instant;

/// Work shorter than this shows no progress.
const WORTH_SHOWING: Duration = Duration::from_secs(2);
/// Redraws a second. Each costs a system call on a core that may be under measurement.
const REDRAWS_HZ: u8 = 4;

/// A progress line on standard error. It appears after two seconds of work (at once if the work is known to take
/// longer), never if standard error is not a terminal, and is erased at the end. It has no thread of its own: it
/// moves when [`set`](Self::set) is called.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    begun: Instant,
    shown: bool,
    /// Whether the elapsed time is the work done.
    is_timed: bool,
}

impl Progress {
    /// Progress of work with a known duration; [`set_elapsed`](Self::set_elapsed) moves it.
    pub fn over(what: &str, duration: Duration) -> Self {
        let style = "{prefix} [{bar:32}] {elapsed} of {msg}  ";
        let total = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let mut progress = Self::new(what, style, Some(total));
        progress.bar.set_message(format!("{:.0}s", duration.as_secs_f64()));
        progress.is_timed = true;
        if duration >= WORTH_SHOWING {
            progress.reveal();
        }
        progress
    }

    /// Progress towards a total of `units`, or else of work with a known duration, or else without an end;
    /// [`set`](Self::set) moves it in any case.
    pub fn towards(what: &str, units: &str, total: Option<u64>, duration: Option<Duration>) -> Self {
        match duration.filter(|_| total.is_none()) {
            Some(duration) => Self::over(what, duration),
            None => Self::counting(what, units, total),
        }
    }

    /// Progress of work in `units`, with a known total or `None`.
    pub fn counting(what: &str, units: &str, total: Option<u64>) -> Self {
        let style = match total {
            Some(_) => "{prefix} [{bar:32}] {human_pos} of {human_len} {msg}, {eta} left  ",
            None => "{prefix} {spinner} {human_pos} {msg}, {elapsed}  ",
        };
        let progress = Self::new(what, style, total);
        progress.bar.set_message(units.to_owned());
        progress
    }

    fn new(what: &str, style: &str, total: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what.to_owned());
        Self { bar, begun: instant(), shown: false, is_timed: false }
    }

    fn reveal(&mut self) {
        // indicatif hides the bar if standard error is not a terminal.
        self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS_HZ));
        self.shown = true;
    }

    /// Sets the amount of work done, of which only the elapsed time counts if the duration is known.
    pub fn set(&mut self, done: u64) {
        if self.is_timed {
            self.set_elapsed();
        } else {
            self.move_to(done);
        }
    }

    /// Sets the elapsed time as the amount of work done.
    pub fn set_elapsed(&mut self) {
        self.move_to(u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX));
    }

    fn move_to(&mut self, position: u64) {
        if !self.shown && self.begun.elapsed() >= WORTH_SHOWING {
            self.reveal();
        }
        self.bar.set_position(position);
    }

    /// Hides the line while other text is printed.
    pub fn apart(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
