//! `tapeline report`: combines run folders into one page, compares them, and checks gates.
//!
//! Nothing is measured here: only the files of finished runs are read.
//!
//! | file | owns |
//! |---|---|
//! | `loaded.rs` | the data of a run, from any source |
//! | `folder.rs` | run folders of Tapeline's programs |
//! | `guide.rs` | the files of other vendors' performance tools |
//! | `groups.rs` | groups of runs: median, spread, ratio |
//! | `gate.rs` | limits on regressions |
//! | `plots.rs` | the plots |
//! | `page.rs` | the page |
//! | `picture.rs` | drawings as PNG |

mod folder;
mod gate;
mod groups;
mod guide;
mod loaded;
mod page;
mod picture;
mod plots;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use tapeline_console::failure::Hinted;
use tapeline_console::paths::{self, FilePath};

use self::gate::Gate;
use self::groups::Groups;
use self::loaded::Loaded;

/// Make a report page from run folders: plots, comparison, regression gate.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline report runs/*                                  report.html, one row for each run\n  \
    tapeline report before=runs/a before=runs/b after=runs/c --gate p99=+10% --gate throughput=-5%\n  \
    tapeline report runs/* --svg plots --png plots\n  \
    tapeline report ours=runs/consumer theirs=eta/          a folder with ConsStats1.csv from LSEG's tools")]
pub struct Report {
    /// Run folders, or folders or files written by LSEG's performance tools (ConsStats1.csv, a latency file). Runs with the same
    /// NAME form one row, with median and spread. All rows are compared with the first
    #[arg(required = true, value_name = "[NAME=]PATH")]
    runs: Vec<String>,
    /// HTML page to write
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    to: FilePath,
    /// The page's title
    #[arg(long, value_name = "TEXT", default_value = "Runs")]
    title: String,
    /// How much worse than in the first row a figure may be, with the sign of the worse direction: p99=+10%,
    /// throughput=-5%. The figure is min, p50, p90, p99, p99.9, …, max or mean (latency), throughput, lost, cpu or
    /// memory. Exit status 1 if a row exceeds a limit. Can be given several times
    #[arg(long, value_name = "FIGURE=±N%")]
    gate: Vec<Gate>,
    /// Write each plot into this folder as SVG
    #[arg(long, value_name = "FOLDER")]
    svg: Option<FilePath>,
    /// Write each plot into this folder as PNG
    #[arg(long, value_name = "FOLDER")]
    png: Option<FilePath>,
}

impl Report {
    /// A page of run folders that a program has just written, each under its own name.
    pub fn of<'a>(runs: impl Iterator<Item = &'a Path>, title: &str, to: &Path) -> Self {
        Self {
            runs: runs.map(|path| paths::shown(path).to_string()).collect(),
            to: FilePath::of(to),
            title: title.to_owned(),
            gate: Vec::new(),
            svg: None,
            png: None,
        }
    }

    /// Runs the tool and returns the process's exit status.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let runs = self.runs.iter().map(|text| load(text)).collect::<anyhow::Result<Vec<Loaded>>>()?;
        let groups = Groups::of(runs);
        let plots = plots::all(&groups);
        let verdicts = gate::judge(&self.gate, &groups);
        let page = page::page(&self.title, &groups, &plots, &verdicts);
        write(&self.to, page.as_bytes())?;
        if let Some(folder) = &self.svg {
            make(folder)?;
            for plot in &plots {
                write(&folder.join(format!("{}.svg", plot.name)), plot.svg.as_bytes())?;
            }
        }
        if let Some(folder) = &self.png {
            make(folder)?;
            let painter = picture::Painter::new()?;
            for plot in &plots {
                write(&folder.join(format!("{}.png", plot.name)), &painter.png(&plot.svg)?)?;
            }
        }
        let count = groups.runs().count();
        anstream::eprintln!(
            "{}: {count} {}",
            paths::shown(&self.to),
            if count == 1 { "run" } else { "runs" }
        );
        for verdict in &verdicts {
            anstream::println!("{verdict}");
        }
        Ok(if verdicts.iter().all(|verdict| verdict.is_good) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Loads a run from its path or from `NAME=PATH`.
fn load(text: &str) -> anyhow::Result<Loaded> {
    let (group, path) = match text.split_once('=') {
        // A path may contain an equals sign.
        Some((name, path)) if !Path::new(text).exists() => (Some(name.to_owned()), Path::new(path)),
        _ => (None, Path::new(text)),
    };
    let what = || format!("cannot read {}", paths::shown(&path));
    let is_folder = std::fs::metadata(path).with_context(what)?.is_dir();
    let loaded = if !is_folder {
        guide::file(path)
    } else if path.join("run.json").is_file() {
        folder::load(path).map(Some)
    } else {
        guide::folder(path)
    };
    let loaded = loaded.with_context(what)?.ok_or_else(|| {
        let what = format!("{} is no run folder", paths::shown(&path));
        let hint = if is_empty(path) {
            "it is empty: its run may still be going on, or was cut off, as run.json is written when a run ends"
        } else {
            "a run folder has a run.json; a folder of other makers' tools has ConsStats1.csv or a latency file"
        };
        anyhow::Error::from(Hinted::new(what, hint))
    });
    let mut loaded = loaded?;
    if let Some(group) = group {
        loaded.group = group;
    }
    Ok(loaded)
}

/// Whether the path is an empty folder.
fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

fn make(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", paths::shown(folder)))
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", paths::shown(&path)))
}
