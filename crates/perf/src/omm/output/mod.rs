//! The results: the guide's files and lines, and the run folder.

mod latencies;
mod record;
mod resources;
mod statistics;
mod summary;
mod transport;

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tapeline_console::failure::Hinted;
use tapeline_console::output::{Format, json, painted, percentile_table};
use tapeline_console::paths;
use tapeline_measure::{Verdict, floor_ns};

use self::record::Results;
pub(super) use self::record::{Cost, Second};
pub(super) use self::resources::{Resources, Sample};
pub(super) use self::statistics::IntervalEnd;
use super::collect::RunSettings;
use super::sums::{Figures, Sums};
use super::tally::{Tally, Terms};
use super::verdict::{self, Failure};
use crate::run_folder::RunFolder;

/// All output of a run: opened in advance, so that write errors are detected before the run begins.
pub(super) struct Output<'a> {
    run: &'a RunSettings<'a>,
    console: Box<dyn Write + 'a>,
    summary: Lines,
    threads: Vec<ThreadFiles>,
    folder: RunFolder,
    /// Requests and images of all threads so far.
    totals: (u64, u64),
}

/// The files of one thread.
struct ThreadFiles {
    statistics: Lines,
    latencies: Option<Lines>,
    /// Whether the console has shown its image retrieval time.
    images_said: bool,
}

impl<'a> Output<'a> {
    /// Opens all files, creates the run folder, and writes the inputs to the summary and the console. Existing files
    /// of the same names are replaced, as by the guide's tools; two files of the same name are refused.
    pub(super) fn open(run: &'a RunSettings<'a>, console: Box<dyn Write + 'a>) -> anyhow::Result<Self> {
        let latency_file = run.results.latency_file.as_deref();
        if latency_file == Some(run.stats_file) {
            let name = format!("{}1.csv", run.stats_file);
            let what = format!("--stats-file and --latency-file would both write {name}");
            return Err(Hinted::new(what, "give them different names").into());
        }
        let mut threads = Vec::new();
        for number in 1..=run.threads.threads.len() {
            let name = |base: &str| PathBuf::from(format!("{base}{number}.csv"));
            let statistics = Lines::create(&name(run.stats_file), "--stats-file")?;
            let latencies =
                latency_file.map(|base| Lines::create(&name(base), "--latency-file")).transpose()?;
            threads.push(ThreadFiles { statistics, latencies, images_said: false });
        }
        let summary = Lines::create(run.summary_file, "--summary-file")?;
        let folder = RunFolder::create(run.results.run_folder.as_deref(), &run.tool.kind())?;
        let mut output = Self { run, console, summary, threads, folder, totals: (0, 0) };
        output.begin()?;
        Ok(output)
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        let inputs = summary::inputs(&self.run.inputs);
        self.summary.write(|out| out.write_all(inputs.as_bytes()))?;
        for files in &mut self.threads {
            let header = statistics::header(self.run.tool);
            files.statistics.write(|out| writeln!(out, "{header}"))?;
            if let Some(latencies) = &mut files.latencies {
                let header = latencies::header(self.run.tool, self.run.unit);
                latencies.write(|out| writeln!(out, "{header}"))?;
            }
        }
        self.show(&inputs)
    }

    /// Shows text on the console, unless the console is reserved for the run's record.
    fn show(&mut self, text: &str) -> anyhow::Result<()> {
        if self.run.results.format == Format::Json {
            return Ok(());
        }
        self.print(text)
    }

    fn print(&mut self, text: &str) -> anyhow::Result<()> {
        let console = &mut self.console;
        console
            .write_all(text.as_bytes())
            .and_then(|()| console.flush())
            .context("cannot write to standard output")
    }

    /// Writes an interval of each thread that has not ended, with its seconds; shows image retrieval times once known.
    pub(super) fn interval(
        &mut self,
        intervals: &[Option<(u64, Tally)>],
        moment: &IntervalEnd,
        images: &[Option<f64>],
    ) -> anyhow::Result<()> {
        let tool = self.run.tool;
        let several = self.threads.len() > 1;
        let mut shown = String::new();
        for (thread, interval) in intervals.iter().enumerate() {
            if let Some((seconds, interval)) = interval {
                let moment = &IntervalEnd { seconds: *seconds, ..*moment };
                let row = statistics::row(tool, interval, moment);
                self.threads[thread].statistics.write(|out| writeln!(out, "{row}"))?;
                self.totals.0 += interval.counts.requests;
                self.totals.1 += interval.counts.images;
                let number = several.then_some(thread + 1);
                shown.push_str(&statistics::console(tool, number, interval, moment, self.totals));
            }
            if let (Some(seconds), false) = (images[thread], self.threads[thread].images_said) {
                self.threads[thread].images_said = true;
                let images = self.run.images.get(thread).copied().unwrap_or(0);
                let rate = if seconds > 0.0 { images as f64 / seconds } else { 0.0 };
                shown.push_str(&format!(
                    "  - Image retrieval time for {images} images: {seconds:.3}s ({rate:.0} images/s)\n"
                ));
            }
        }
        if self.run.results.no_display_stats { Ok(()) } else { self.show(&shown) }
    }

    /// Writes a thread's single times.
    pub(super) fn latencies(&mut self, thread: usize, tally: &Tally) -> anyhow::Result<()> {
        let (tool, unit) = (self.run.tool, self.run.unit);
        let file = self.threads.get_mut(thread).and_then(|files| files.latencies.as_mut());
        if let (Some(file), Some(kept)) = (file, &tally.kept)
            && !kept.is_empty()
        {
            file.write(|out| kept.iter().try_for_each(|timed| latencies::write_row(out, tool, unit, timed)))?;
        }
        Ok(())
    }

    /// Writes the results and ends the run. `failure`: why the run has no result.
    pub(super) fn end(
        mut self,
        terms: Terms,
        threads: &[&Sums],
        cost: Cost<'_>,
        failure: Option<&Failure>,
    ) -> anyhow::Result<Verdict> {
        let tool = self.run.tool;
        let all = Sums::together(tool, terms, threads);
        let each: Vec<Figures> = threads.iter().map(|sums| sums.figures(cost.seconds)).collect();
        let overall = all.figures_of_all(&each, cost.seconds);
        let mut evidence = verdict::evidence(self.run, terms, threads, cost.seconds);
        evidence.floor_p99_ns = (!cost.jitter.is_empty()).then(|| floor_ns(&cost.jitter, 0.99));
        let (verdict, mut why) = match failure {
            None => verdict::of(self.run, terms, &all, cost.seconds, evidence.clone()),
            Some(failure) => verdict::of_failure(&overall, failure),
        };
        if let (None, Some(cut)) = (failure, &cost.cut) {
            why.push_str(cut);
        }
        let theirs = summary::results(tool, self.run.rates, &each, &overall, cost.resources);
        let results = Results { verdict, why, evidence, figures: overall, sums: &all, threads };
        let record = results.record(self.run, &cost);
        let percentiles: Vec<(&str, _)> =
            record.hops.iter().map(|hop| (hop.name.as_str(), &hop.percentiles)).collect();
        let mut ours = String::from("\n");
        if !percentiles.is_empty() {
            ours.push_str(&format!("--- DISTRIBUTIONS ---\n\n{}\n\n", percentile_table(&percentiles)));
        }
        let unkept = all.tally.unkept;
        if unkept > 0 {
            ours.push_str(&format!("{unkept} single times found no place in the latency file\n\n"));
        }
        let folder = paths::shown(self.folder.path()).to_string();
        ours.push_str(&format!("{}: {}\n\nrun folder   {folder}\n", painted(verdict), results.why));
        let text = format!("{theirs}{ours}");
        let plain = anstream::adapter::strip_str(&text).to_string();
        self.summary.write(|out| out.write_all(plain.as_bytes()))?;
        let inputs = summary::inputs(&self.run.inputs);
        results.write(&self.folder, &record, &format!("{inputs}{plain}"))?;
        match self.run.results.format {
            Format::Table => self.print(&text)?,
            Format::Json => self.print(&format!("{}\n", json(&record)?))?,
        }
        Ok(verdict)
    }
}

/// A file of lines.
struct Lines {
    path: PathBuf,
    option: &'static str,
    out: BufWriter<File>,
}

impl Lines {
    fn create(path: &Path, option: &'static str) -> anyhow::Result<Self> {
        let file = File::create(path).map_err(|error| refused("make", path, option, error))?;
        Ok(Self { path: path.to_owned(), option, out: BufWriter::new(file) })
    }

    /// Writes and flushes, so that readers of the file see whole lines.
    fn write(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> anyhow::Result<()> {
        write(&mut self.out)
            .and_then(|()| self.out.flush())
            .map_err(|error| refused("write", &self.path, self.option, error))
    }
}

fn refused(what: &str, path: &Path, option: &str, error: io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        ErrorKind::NotFound => format!("make its folder first, or give another {option}"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("free some space, or give {option} on another disk")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            format!("give {option} with a place that you may write to")
        }
        _ => format!("give another {option}"),
    };
    anyhow::Error::new(error).context(Hinted::new(format!("cannot {what} {}", paths::shown(&path)), hint))
}
