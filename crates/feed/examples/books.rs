//! Builds the books of a NASDAQ ITCH 5.0 file and prints the best prices at its end: `cargo run --example books -- day.itch`

#![allow(clippy::print_stdout, reason = "a program")]

use std::fs::File;

use anyhow::{Context, bail};
use tapeline_feed::book::{BookSettings, Books, Quote};
use tapeline_feed::capture::{self, Recording};
use tapeline_feed::itch;

fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).context("expected a file of ITCH messages")?;
    let Recording::Messages(mut file) = capture::open(File::open(&path).with_context(|| path.clone())?)?
    else {
        bail!("this file has packets or records, not bare ITCH messages");
    };
    let mut books = Books::new(BookSettings::default());
    while let Some(message) = file.next()? {
        let _changed = books.apply(&itch::decode(message)?);
    }
    let shown = |quote: Option<Quote>| {
        quote.map_or("-".to_owned(), |quote| format!("{} × {}", quote.shares, quote.price))
    };
    for (_, book) in books.iter() {
        let top = book.top();
        println!("{} {} {}", book.name(), shown(top.bid), shown(top.ask));
    }
    Ok(())
}
