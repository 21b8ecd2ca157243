//! Books in C++, from checkouts that the project does not contain: each compiled with an adapter of ours (`cpp/`) into a
//! program of its own, which reads the same messages and prints its time and its best prices.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use tapeline_feed::simulate;

use crate::Size;
use crate::input::Input;

/// The environment's name for the folder with the checkouts.
pub(crate) const SOURCES: &str = "PEERS_SRC";

/// A repository's owner and name; its checkout is called by the name.
type Repository = (&'static str, &'static str);

/// A library with books.
struct Library {
    /// Its row on the page, its checkout and its adapter.
    name: &'static str,
    standard: &'static str,
    /// What has to be there, with the folder of each that its headers are in.
    needs: &'static [(Repository, &'static str)],
}

const LIBRARIES: &[Library] = &[
    Library {
        name: "CppTrader",
        standard: "c++20",
        needs: &[(("chronoxor", "CppTrader"), "include"), (("chronoxor", "CppCommon"), "include")],
    },
    Library {
        name: "book-project",
        standard: "c++20",
        needs: &[
            (("lillianqin", "book-project"), ""),
            (("tlx", "tlx"), ""),
            (("martinus", "unordered_dense"), "include"),
        ],
    },
];

/// What the libraries are called.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    LIBRARIES.iter().map(|library| library.name)
}

/// A compiled adapter.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Repositories with their commits, as far as they can be told.
    pub(crate) sources: String,
    path: PathBuf,
}

/// Compiles every library that is there; one line on standard error says how to get those that are not.
pub(crate) fn programs() -> anyhow::Result<Vec<Program>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("cpp");
    let sources = std::env::var_os(SOURCES).map(PathBuf::from);
    let out = folder()?;
    let mut programs = Vec::new();
    let (mut left_out, mut to_clone) = (Vec::new(), Vec::new());
    for library in LIBRARIES {
        let missing: Vec<_> = library
            .needs
            .iter()
            .filter(|((_, name), _)| !sources.as_ref().is_some_and(|sources| sources.join(name).is_dir()))
            .map(|((owner, name), _)| format!("https://github.com/{owner}/{name}"))
            .collect();
        let Some(sources) = sources.as_ref().filter(|_| missing.is_empty()) else {
            left_out.push(library.name);
            to_clone.extend(missing);
            continue;
        };
        let path = out.join(library.name);
        let mut compiler = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "g++".into()));
        compiler.args([
            &format!("-std={}", library.standard),
            "-O3",
            "-march=native",
            "-DNDEBUG",
            "-w",
            "-o",
        ]);
        compiler.arg(&path).arg("-I").arg(&here).arg("-I").arg(here.join("stubs"));
        for ((_, name), within) in library.needs {
            compiler.arg("-I").arg(sources.join(name).join(within));
        }
        compiler.arg(here.join(library.name).with_extension("cpp"));
        let status = compiler.status().context("no C++ compiler: install g++, or name one as CXX")?;
        ensure!(
            status.success(),
            "{}: its adapter does not compile; peers/itch/README.md names the commit and the packages that it wants",
            library.name
        );
        let named: Vec<_> = library
            .needs
            .iter()
            .map(|((owner, name), _)| match commit(&sources.join(name)) {
                Some(commit) => format!("{owner}/{name} at {commit}"),
                None => format!("{owner}/{name}"),
            })
            .collect();
        programs.push(Program { name: library.name, sources: named.join(", "), path });
    }
    if !left_out.is_empty() {
        eprintln!(
            "left out: {}; clone {} into a folder and name it as {SOURCES}=FOLDER",
            left_out.join(" and "),
            to_clone.join(", ")
        );
    }
    Ok(programs)
}

/// Where adapters and inputs are put: beside this program, in the build's own folder.
fn folder() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().context("a program is in a folder")?.join("peers-itch-cpp");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn commit(checkout: &Path) -> Option<String> {
    let output =
        Command::new("git").arg("-C").arg(checkout).args(["rev-parse", "--short=7", "HEAD"]).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}

/// An input as two files, for as long as this lives.
pub(crate) struct Files {
    before: PathBuf,
    file: PathBuf,
    symbols: u16,
    orders: usize,
    levels: usize,
    checksum: u64,
}

impl Files {
    pub(crate) fn write(input: &Input, size: &Size) -> anyhow::Result<Self> {
        let folder = folder()?;
        let files = Self {
            before: folder.join(format!("{}-before.itch", size.name)),
            file: folder.join(format!("{}.itch", size.name)),
            symbols: size.symbols,
            // Room for what comes between.
            orders: input.live_orders + input.live_orders / 4,
            levels: input.levels + input.levels / 2,
            checksum: input.checksum,
        };
        fs::write(&files.before, &input.before)?;
        fs::write(&files.file, &input.file)?;
        Ok(files)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What stays behind is in the build's folder, and written anew by the next run.
        let _ = (fs::remove_file(&self.before), fs::remove_file(&self.file));
    }
}

impl Program {
    /// One pass on the core that this thread is on; gives its time in ns. The best prices at the end have to be the exchange's.
    pub(crate) fn time(&self, files: &Files) -> anyhow::Result<i64> {
        let output = Command::new(&self.path)
            .args([&files.before, &files.file])
            .args([usize::from(files.symbols), files.orders, files.levels].map(|number| number.to_string()))
            // Huge pages for their tables as for ours: by glibc, where it has this.
            .env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
            .output()?;
        if !output.status.success() {
            bail!("{}: {}", self.name, String::from_utf8_lossy(&output.stderr).trim());
        }
        let printed = String::from_utf8(output.stdout)?;
        let (ns, tops) = printed
            .strip_prefix("ns ")
            .and_then(|rest| rest.split_once('\n'))
            .with_context(|| format!("{} prints no time", self.name))?;
        let tops: Vec<_> =
            tops.lines().map(top).collect::<Option<_>>().context("best prices that are no numbers")?;
        ensure!(tops.len() == usize::from(files.symbols), "{} has {} symbols", self.name, tops.len());
        ensure!(
            simulate::checksum(tops.into_iter()) == files.checksum,
            "{}: its best prices at the end are not the exchange's",
            self.name
        );
        Ok(ns.parse()?)
    }
}

type Best = Option<(u32, u64)>;

/// "locate bid shares ask shares", zeros for a side without orders.
fn top(line: &str) -> Option<(Best, Best)> {
    let mut numbers = line.split(' ').skip(1).map(str::parse::<u64>);
    let mut best = || {
        let (price, shares) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some((shares != 0).then_some((u32::try_from(price).ok()?, shares)))
    };
    Some((best()?, best()?))
}
