//! `tapeline ring rm`: remove rings.

use std::process::ExitCode;

use clap::Args;
use tapeline_console::failure::Hinted;
use tapeline_perf::ring::failures;
use tapeline_ring::{Entry, Error, Name, inspect, list, remove};

/// Remove rings
#[derive(Debug, Args)]
#[command(after_help = "\
A ring with a live publisher is refused without --force. A process that has the ring open can still read \
the backlog; the memory is freed when the last such process closes the ring.

Examples:
  tapeline ring rm smem
  tapeline ring rm --names a,b     several
  tapeline ring rm --dead          all without a live publisher or subscriber
  tapeline ring rm --force smem    even with a live publisher, or if it is not a readable ring")]
pub(crate) struct Remove {
    /// Names of rings
    #[arg(value_name = "NAME", value_parser = failures::name)]
    rings: Vec<Name>,

    /// Names of rings, comma-separated
    #[arg(long, visible_alias = "name", alias = "ring", value_name = "NAME", num_args = 1.., value_delimiter = ',', value_parser = failures::name)]
    names: Vec<Name>,

    /// Remove all rings without a live publisher or a live subscriber
    #[arg(long)]
    dead: bool,

    /// Remove a ring even if it has a live publisher or cannot be read
    #[arg(long)]
    force: bool,
}

impl Remove {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let mut names: Vec<Name> = self.rings.into_iter().chain(self.names).collect();
        if names.is_empty() && !self.dead {
            return Err(
                Hinted::new("no ring was named", "name rings, or give --dead; `ring ls` lists them").into()
            );
        }
        if self.dead {
            let dead =
                list().map_err(failures::with_hint)?.into_iter().filter(is_dead).map(|entry| entry.name);
            names.extend(dead.collect::<Vec<_>>());
        }
        // Try each ring; report the first failure at the end.
        let mut failure = None;
        for name in names {
            match remove_one(&name, self.force) {
                Ok(readers) => anstream::eprintln!("removed {name}{readers}"),
                Err(error) => {
                    let error = with_hint(error);
                    match &failure {
                        None => failure = Some(error),
                        Some(_) => anstream::eprintln!("error: {error}"),
                    }
                }
            }
        }
        failure.map_or(Ok(ExitCode::SUCCESS), Err)
    }
}

fn with_hint(error: Error) -> anyhow::Error {
    match error {
        Error::PublisherAlive { pid, .. } => {
            let hint = format!("end process {pid} first, or remove it anyway with --force");
            Hinted::new(error.to_string(), hint).into()
        }
        other => failures::with_hint(other),
    }
}

/// Removes a ring; the returned text says how many subscribers still have it open.
fn remove_one(name: &Name, force: bool) -> Result<String, Error> {
    let readers = inspect(name).map_or(0, |ring| ring.subscribers.iter().filter(|s| s.alive).count());
    remove(name, force)?;
    Ok(if readers > 0 { format!(", which {readers} still have open") } else { String::new() })
}

/// Whether no live process has the ring open. A ring that cannot be read is left alone: it may belong to another
/// user.
fn is_dead(entry: &Entry) -> bool {
    let Ok(ring) = &entry.ring else { return false };
    !ring.publisher.alive && ring.subscribers.iter().all(|subscriber| !subscriber.alive)
}
