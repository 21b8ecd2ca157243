//! One started process: its part of a case, and its talk with the session.
//!
//! It says `ready`, waits for a line, runs, says what came of it, and keeps its end of the queue until standard input ends.
//! It dies with the session.

use std::io::{self, Read, Write};
use std::sync::mpsc;
use std::thread;

use anyhow::Context;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use tapeline_measure::pin;

use crate::case::{Case, Received, Sent};
use crate::measuring::{self, Receiver, Sender};

/// What a process does in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// The daemon that a system needs.
    Driver,
    /// The sender, which makes what is shared.
    Sender,
    /// A receiver.
    Receiver,
    /// Both, as threads.
    Pair,
}

/// What a process says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// Everything is open.
    Ready,
    /// The sender has sent.
    Sent(Sent),
    /// A receiver has received.
    Received(Received),
    /// It could not.
    Failed(String),
}

/// A case and the part in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stage {
    pub(crate) case: Case,
    pub(crate) role: Role,
}

impl Stage {
    /// Runs what `peers role` was given.
    pub(crate) fn perform(text: &str) -> anyhow::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))
            .context("cannot tie this process to its parent")?;
        let stage: Self = serde_json::from_str(text).context("cannot read the case")?;
        let system = crate::systems::named(&stage.case.system).context("no such system in this build")?;
        match (system.run)(&stage) {
            Ok(()) => Ok(()),
            Err(error) => say(&Word::Failed(format!("{error:#}"))),
        }
    }

    /// The sender of a system of processes.
    pub(crate) fn send(&self, mut sender: impl Sender) -> anyhow::Result<()> {
        self.begin(0)?;
        say(&Word::Sent(measuring::send(&mut sender, &self.case)?))?;
        wait_for_end()
    }

    /// The receiver of a system of processes.
    pub(crate) fn receive(&self, mut receiver: impl Receiver) -> anyhow::Result<()> {
        self.begin(1)?;
        // On two cores several receivers share one.
        let yields = self.case.metric.receivers() > 1;
        say(&Word::Received(measuring::receive(&mut receiver, &self.case, yields)?))?;
        wait_for_end()
    }

    /// Both ends of a system of threads.
    pub(crate) fn pair(
        &self,
        mut sender: impl Sender,
        mut receiver: impl Receiver + Send,
    ) -> anyhow::Result<()> {
        let (sent, received) = thread::scope(|scope| {
            let (pinned, is_pinned) = mpsc::channel();
            let receiving = scope.spawn(move || {
                let pinning = pin(self.case.cores[1]);
                // Fails only when the sender is gone.
                let _ = pinned.send(());
                pinning?;
                measuring::receive(&mut receiver, &self.case, false)
            });
            // Before the own pin, which the thread would inherit.
            is_pinned.recv().context("the receiver's thread is gone")?;
            self.begin(0)?;
            let sent = measuring::send(&mut sender, &self.case)?;
            let received =
                receiving.join().map_err(|_| anyhow::anyhow!("the receiver's thread broke down"))??;
            anyhow::Ok((sent, received))
        })?;
        say(&Word::Sent(sent))?;
        say(&Word::Received(received))?;
        wait_for_end()
    }

    /// A daemon: it runs until the session ends it.
    pub(crate) fn serve(&self) -> anyhow::Result<()> {
        say(&Word::Ready)?;
        wait_for_end()
    }

    /// A measurement without a sender and a receiver of ours.
    pub(crate) fn tell(&self, received: Received) -> anyhow::Result<()> {
        say(&Word::Sent(Sent::default()))?;
        say(&Word::Received(received))?;
        wait_for_end()
    }

    /// Pins this thread to its core, says that everything is open, and waits for the word to go.
    pub(crate) fn begin(&self, end: usize) -> anyhow::Result<()> {
        pin(self.case.cores[end])?;
        say(&Word::Ready)?;
        let mut line = String::new();
        io::stdin().read_line(&mut line).context("cannot hear the session")?;
        anyhow::ensure!(!line.is_empty(), "the session has ended");
        Ok(())
    }
}

fn say(word: &Word) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(word)?)?;
    out.flush().context("the session does not listen")
}

fn wait_for_end() -> anyhow::Result<()> {
    io::stdin().read_to_end(&mut Vec::new()).context("cannot hear the session")?;
    Ok(())
}
