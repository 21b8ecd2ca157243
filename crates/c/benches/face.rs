//! The cost of the C interface: `cargo bench -p tapeline-c [-- --short]`.
//!
//! A publisher and a subscriber, separate processes on two cores, at full speed; both in Rust, or both in C
//! through the shared library, in turns. *In place*: written into the claim, read in place. *Copy*: copied in and
//! out.

use std::hint::black_box;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tapeline_measure::{cores, figures, pin};
use tapeline_ring::{Error, Name, Options, Poll, Publisher, Start, Subscriber};

const TURNS: usize = 7;
const WORKS: [(usize, u64); 3] = [(32, 40_000_000), (100, 30_000_000), (1500, 6_000_000)];
const HOW: [&str; 2] = ["in-place", "copy"];

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, name, messages, rest @ ..] = &arguments[..]
        && let (Ok(messages), Some(how)) = (messages.parse(), rest.last())
    {
        let copies = how == "copy";
        return match role.as_str() {
            "pub" => publish(&Name::new(name)?, messages, rest[0].parse()?, copies),
            _ => subscribe(&Name::new(name)?, messages, copies),
        };
    }
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    // `cargo test --benches` runs this without `--bench`: only show that it works.
    compare(if has("--short") || !has("--bench") { 100 } else { 1 })
}

#[expect(clippy::print_stdout, reason = "the bench's result")]
fn compare(scale: u64) -> Result<(), Failed> {
    let Some(c) = c_program()? else {
        println!("skipped: no C compiler here");
        return Ok(());
    };
    let rust = std::env::current_exe()?.display().to_string();
    println!("medians of {TURNS} turns (least, most), ring of 1 MiB, two processes");
    for (bytes, messages) in WORKS {
        for how in HOW {
            let (mut in_rust, mut in_c) = (Vec::new(), Vec::new());
            for turn in 0..TURNS {
                let mut pair = [(&rust, &mut in_rust), (&c, &mut in_c)];
                if turn % 2 == 1 {
                    pair.reverse();
                }
                for (program, rates) in pair {
                    rates.push(rate(program, messages / scale, bytes, how)?);
                }
            }
            in_rust.sort_by(f64::total_cmp);
            in_c.sort_by(f64::total_cmp);
            let told = |rates: &[f64]| {
                let [least, median, most] =
                    [0, TURNS / 2, TURNS - 1].map(|at| figures::quantity(rates[at], "msg/s", false));
                format!("{median} ({least}, {most})")
            };
            let ratio = in_c[TURNS / 2] / in_rust[TURNS / 2];
            println!(
                "{bytes:>5} B {how:<9} Rust {:<40} C {:<40} C ÷ Rust {ratio:.2}",
                told(&in_rust),
                told(&in_c)
            );
        }
    }
    Ok(())
}

/// Messages a second, from the subscriber's first frame to its last.
fn rate(program: &str, messages: u64, bytes: usize, how: &str) -> Result<f64, Failed> {
    let name = format!("bench-c-{}", std::process::id());
    let (messages_text, bytes) = (messages.to_string(), bytes.to_string());
    let cores = cores();
    let mut publisher = start_on(cores[0], program, &["pub", &name, &messages_text, &bytes, how])?;
    let subscriber = start_on(cores[cores.len() - 1], program, &["sub", &name, &messages_text, how])?;
    let output = subscriber.wait_with_output()?;
    let published = publisher.wait()?;
    if !output.status.success() || !published.success() {
        return Err(format!("{program}: publisher {published}, subscriber {}", output.status).into());
    }
    let ns: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok(messages as f64 * 1e9 / ns)
}

/// A child runs on the core of the thread that starts it.
fn start_on(core: usize, program: &str, arguments: &[&str]) -> Result<Child, Failed> {
    pin(core)?;
    Ok(Command::new(program).args(arguments).stdout(Stdio::piped()).spawn()?)
}

/// The C side, linked to the shared library that was built with this bench; `None` without a compiler.
fn c_program() -> Result<Option<String>, Failed> {
    let built = std::env::current_exe()?.parent().map(ToOwned::to_owned).unwrap_or_default();
    let root = env!("CARGO_MANIFEST_DIR");
    let prefix = built.join("c-library");
    let install =
        Command::new(format!("{root}/../../scripts/install-c")).arg(&prefix).env("BUILT", &built).output()?;
    if !install.status.success() {
        return Err(String::from_utf8_lossy(&install.stderr).into());
    }
    let (program, library) = (prefix.join("face"), prefix.join("lib").display().to_string());
    let compiled = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=c99", "-O2", "-o"])
        .arg(&program)
        .arg(format!("{root}/benches/face.c"))
        .arg(format!("-I{}", prefix.join("include").display()))
        .args([format!("-L{library}"), "-ltapeline".to_owned(), format!("-Wl,-rpath,{library}")])
        .status();
    Ok(compiled.is_ok_and(|status| status.success()).then(|| program.display().to_string()))
}

fn publish(name: &Name, messages: u64, bytes: usize, copies: bool) -> Result<(), Failed> {
    let mut publisher = Publisher::open(name, &Options::default())?;
    let mut message = vec![0; black_box(bytes)];
    while publisher.subscribers() == 0 {}
    for number in 0..messages {
        if copies {
            message[..8].copy_from_slice(&number.to_le_bytes());
            while publisher.publish(&message).is_err() {}
        } else {
            loop {
                let Ok(mut claim) = publisher.claim(message.len()) else { continue };
                claim[..8].copy_from_slice(&number.to_le_bytes());
                claim.commit();
                break;
            }
        }
    }
    Ok(publisher.close()?)
}

#[expect(clippy::print_stdout, reason = "told to the process that compares")]
fn subscribe(name: &Name, messages: u64, copies: bool) -> Result<(), Failed> {
    let mut subscriber = loop {
        match Subscriber::join(name, Start::Oldest) {
            Err(Error::NotFound { .. }) => {}
            joined => break joined?,
        }
    };
    let mut copy = vec![0; 65_536];
    let (mut frames, mut sum, mut start) = (0u64, 0u64, Instant::now());
    loop {
        match subscriber.next() {
            Poll::Frame(frame) => {
                if frames == 0 {
                    start = Instant::now();
                }
                frames += 1;
                let bytes = if copies {
                    let len = frame.copy_to(&mut copy);
                    black_box(&copy[..len])
                } else {
                    frame.bytes()
                };
                sum = sum.wrapping_add(bytes.first_chunk().map_or(0, |number| u64::from_le_bytes(*number)));
            }
            Poll::Empty => {}
            _ => break,
        }
    }
    println!("{}", start.elapsed().as_nanos());
    if (frames, sum) == (messages, messages * (messages - 1) / 2) {
        Ok(())
    } else {
        Err("frames are missing".into())
    }
}
