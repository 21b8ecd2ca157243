//! Tapeline's RWF codec beside LSEG's C and Java libraries, taking turns on one core with the same messages.
//!
//! `make bench-peers-rwf` builds and runs it; README.md says what is measured and how.

mod java;
mod messages;
mod ours;
mod page;
mod theirs;

use std::path::PathBuf;

use clap::Parser;
use tapeline_measure::{Clock, Environment, cores, pin};

/// Tapeline's RWF codec beside LSEG's C and Java libraries
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Folder with LSEG's `codecbench`, its dictionaries and `MsgData.xml`
    #[arg(long, env = "RTSDK", value_name = "DIR")]
    rtsdk: Option<PathBuf>,
    /// Folder with the jars of ETA for Java
    #[arg(long, env = "ETA_JARS", value_name = "DIR")]
    eta_jars: Option<PathBuf>,
    /// Seconds for each task in each turn
    #[arg(long, default_value_t = 0.1)]
    seconds: f64,
    /// How often each does each task
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    turns: u16,
    /// The core; the last if not given
    #[arg(long)]
    core: Option<usize>,
    /// Only ours, one task so many times, without a clock: for tools that count instructions
    #[arg(long, value_names = ["TASK/FIELDS", "TIMES"], num_args = 2)]
    count: Vec<String>,
    /// Write the page there rather than to standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// What is measured, by the names of the other program.
const TASKS: [&str; 4] = ["walk", "decode", "convert", "encode"];
/// Ours alone: there is no such call in the other library.
const FIND: &str = "find";
const SIZES: [usize; 3] = [13, 23, 70];

/// Million messages a second in each turn.
#[derive(Default)]
struct Rates {
    ours: Vec<f64>,
    theirs: Vec<f64>,
    java: Vec<f64>,
}

/// Whose turn it is.
#[derive(Clone, Copy)]
enum Side {
    Ours,
    Theirs,
    Java,
}

/// One task on one message.
struct Row {
    task: &'static str,
    fields: usize,
    bytes: usize,
    rates: Rates,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let Some(folder) = arguments.rtsdk.filter(|folder| folder.join(theirs::PROGRAM).is_file()) else {
        eprintln!(
            "peers-rwf: left out: no {} in RTSDK=DIR; peers/rwf/README.md says how it is built",
            theirs::PROGRAM
        );
        return Ok(());
    };
    let messages = messages::Messages::read(&folder)?;
    if let [case, times] = &arguments.count[..] {
        return ours::count(&messages, case, times.parse()?);
    }
    let jars = arguments.eta_jars.filter(|folder| folder.is_dir());
    if jars.is_none() {
        eprintln!("peers-rwf: Java is left out: no ETA_JARS=DIR; peers/rwf/README.md says what that is");
    }
    let core = arguments.core.or_else(|| cores().last().copied());
    if let Some(core) = core {
        // The other program inherits it.
        pin(core)?;
    }
    let clock = Clock::calibrate();
    let environment = Environment::read(&clock);
    let mut rows = Vec::new();
    for fields in SIZES {
        let mut ours = ours::Ours::new(&messages, fields)?;
        let mut of_size: Vec<Row> = TASKS
            .into_iter()
            .chain([FIND])
            .map(|task| Row { task, fields, bytes: ours.bytes(), rates: Rates::default() })
            .collect();
        let mut java = match &jars {
            Some(jars) => Some(java::Java::start(jars, &folder, ours.message())?),
            None => None,
        };
        for turn in 0..arguments.turns {
            // Whoever comes later finds a warmer or a more throttled core: they take that in turns too.
            let mut order = [Side::Ours, Side::Theirs, Side::Java];
            order.rotate_left(usize::from(turn) % 3);
            for side in order {
                match side {
                    Side::Ours => {
                        for row in &mut of_size {
                            row.rates.ours.push(ours.rate(row.task, arguments.seconds, &clock)?);
                        }
                    }
                    Side::Java => {
                        let Some(java) = &mut java else { continue };
                        for row in of_size.iter_mut().filter(|row| row.task != FIND) {
                            row.rates.java.push(java.rate(row.task, arguments.seconds)?);
                        }
                    }
                    Side::Theirs => {
                        for figure in theirs::rates(&folder, arguments.seconds, fields)? {
                            anyhow::ensure!(
                                figure.bytes == ours.bytes(),
                                "the other program's message of {fields} fields has {} bytes, ours {}: not the same message",
                                figure.bytes,
                                ours.bytes()
                            );
                            if let Some(row) = of_size.iter_mut().find(|row| row.task == figure.task) {
                                row.rates.theirs.push(figure.millions_per_s);
                            }
                        }
                    }
                }
            }
        }
        rows.extend(of_size);
    }
    let page = page::page(&rows, arguments.turns, arguments.seconds, &environment.summary());
    match arguments.to {
        Some(file) => std::fs::write(file, page)?,
        None => print!("{page}"),
    }
    Ok(())
}
