//! Prints the ticks in a plant's journal from a sequence on: `cargo run --example journal -- FOLDER 1`

#![allow(clippy::print_stdout, reason = "a program")]

use anyhow::{Context, bail};
use tapeline_journal::{Directory, From, Next, Reader};
use tapeline_plant::tick::Tick;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, from] = arguments.as_slice() else { bail!("expected FOLDER SEQUENCE") };
    let mut reader = Reader::open(Directory::open(folder.as_ref())?)?;
    reader.seek(From::Seq(from.parse().context("a sequence is a number")?))?;
    loop {
        match reader.next()? {
            Next::Record(record) => {
                let tick = Tick::parse(record.body)?;
                println!("{} {:?} {}", record.seq, tick.header.kind, tick.name);
            }
            Next::Missing { from, to } => println!("{from} to {to} are missing"),
            Next::End => return Ok(()),
        }
    }
}
