//! Shared parts of the tests of the C interface: the library as `make install-c` installs it, and the compilers.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tapeline_ring::Name;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A unique name; its segment is removed when the test ends.
pub(crate) struct OwnName(Name);

impl OwnName {
    pub(crate) fn new(what: &str) -> Self {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(Name::new(&format!("test-c-{what}-{}-{count}", std::process::id())).unwrap())
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Waits until another process has made the ring; panics if that process ends first.
    pub(crate) fn wait_for(&self, publisher: &mut Running) {
        while !self.0.path().exists() {
            if let Some(status) = publisher.0.try_wait().unwrap() {
                panic!("the publisher ended with {status} before its ring was there");
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for OwnName {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0.path());
    }
}

/// A process that ends with its test.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Self(child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}")))
    }

    /// Its output, after a successful end.
    pub(crate) fn end(mut self) -> String {
        let stdout = self.0.stdout.take();
        let stderr = self.0.stderr.take();
        let stderr = std::thread::spawn(move || std::io::read_to_string(stderr.unwrap()).unwrap());
        let stdout = std::io::read_to_string(stdout.unwrap()).unwrap();
        let status = self.0.wait().unwrap();
        let stderr = stderr.join().unwrap();
        assert!(status.success(), "{status}\n{stdout}{stderr}");
        stdout
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Where cargo put the library that this test was built with: next to the test.
pub(crate) fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// A folder of this process with the library as `make install-c` installs it, made once.
pub(crate) fn installed() -> &'static Path {
    static PREFIX: OnceLock<tempfile::TempDir> = OnceLock::new();
    let prefix = PREFIX.get_or_init(|| {
        let prefix = tempfile::tempdir().unwrap();
        let mut install = Command::new(root().join("scripts/install-c"));
        passed(install.arg(prefix.path()).env("BUILT", built()));
        prefix
    });
    prefix.path()
}

/// Runs a command to its end; panics with its standard error if it fails.
pub(crate) fn passed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    output
}

/// A language that programs are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Language {
    C,
    Cpp,
}

/// A compiler of a language, and its flags for sanitizers.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    language: Language,
    program: OsString,
    /// Empty if it has none here.
    pub(crate) sanitizers: &'static [&'static str],
}

/// The wanted sanitizers, and those that need no library of the compiler's.
const SANITIZERS: [&[&str]; 3] =
    [&["-fsanitize=address,undefined"], &["-fsanitize=undefined", "-fsanitize-trap=undefined"], &[]];

impl Language {
    pub(crate) const BOTH: [Self; 2] = [Self::C, Self::Cpp];

    /// The compilers that are here: those of CC and CXX, or else of GCC and Clang. With `TAPELINE_COMPILERS=all`, as `make c` sets it, none may
    /// be missing, nor its sanitizers.
    pub(crate) fn compilers(self) -> &'static [Compiler] {
        static FOUND: [OnceLock<Vec<Compiler>>; 2] = [const { OnceLock::new() }; 2];
        FOUND[self as usize].get_or_init(|| {
            let (variable, usual) = match self {
                Self::C => ("CC", ["gcc", "clang"]),
                Self::Cpp => ("CXX", ["g++", "clang++"]),
            };
            let named = std::env::var_os(variable).map(|program| vec![program]);
            let programs = named.unwrap_or_else(|| usual.map(OsString::from).into());
            let found: Vec<_> =
                programs.into_iter().filter_map(|program| Compiler::probed(self, program)).collect();
            let is_whole = found.len() == 2 && found.iter().all(|it| it.sanitizers == SANITIZERS[0]);
            let wants_all = std::env::var_os("TAPELINE_COMPILERS").is_some_and(|wanted| wanted == "all");
            assert!(is_whole || !wants_all, "only {found:?} of {usual:?}, each with {:?}", SANITIZERS[0]);
            if found.is_empty() {
                println!("skipped: no {self:?} compiler here");
            }
            found
        })
    }

    /// The ending of files of this language.
    pub(crate) const fn ending(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Cpp => "cpp",
        }
    }

    const fn dialect(self) -> [&'static str; 3] {
        match self {
            Self::C => ["-std=c99", "-x", "c"],
            Self::Cpp => ["-std=c++17", "-x", "c++"],
        }
    }
}

impl Compiler {
    /// The compiler, if it is here, with the first sanitizers that work.
    fn probed(language: Language, program: OsString) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (source, built) = (folder.path().join("probe"), folder.path().join("program"));
        std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let works = |flags: &&&[&str]| {
            let mut compiler = Command::new(&program);
            compiler.args(**flags).args(language.dialect()).arg(&source).arg("-o").arg(&built);
            compiler.output().is_ok_and(|output| output.status.success())
                && Command::new(&built).output().is_ok_and(|output| output.status.success())
        };
        let sanitizers = *SANITIZERS.iter().find(works)?;
        if sanitizers != SANITIZERS[0] {
            println!("{} has no {:?} here, only {sanitizers:?}", program.display(), SANITIZERS[0]);
        }
        Some(Self { language, program, sanitizers })
    }

    /// Builds a program of one file, with warnings denied, against the installed library.
    pub(crate) fn build(&self, source: &str, flags: &[&str], program: &Path) {
        let (source, prefix) = (root().join("crates/c").join(source), installed());
        let library = prefix.join("lib").display().to_string();
        let mut compiler = Command::new(&self.program);
        compiler.args(["-g", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]).args(flags);
        compiler.args(self.language.dialect()).arg(source).args(["-x", "none"]).arg("-o").arg(program);
        compiler.arg("-I").arg(prefix.join("include")).arg(format!("-L{library}"));
        passed(compiler.args(["-ltapeline", &format!("-Wl,-rpath,{library}")]));
    }
}

/// An example as a program with sanitizers, built once by each compiler.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    /// The compiler and the language, for messages.
    pub(crate) name: String,
    program: PathBuf,
}

impl Example {
    /// The example in both languages, built by all of their compilers.
    pub(crate) fn all(name: &'static str) -> Vec<Self> {
        Language::BOTH.into_iter().flat_map(|language| Self::of(language, name)).collect()
    }

    /// The example in a language, built by all of its compilers.
    pub(crate) fn of(language: Language, name: &'static str) -> Vec<Self> {
        type Built = HashMap<(Language, &'static str), Arc<OnceLock<Vec<Example>>>>;
        static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
        static BUILT: Mutex<Option<Built>> = Mutex::new(None);
        let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap()).path();
        // Tests wait for this example alone, while others build theirs.
        let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        let examples = Arc::clone(built.get_or_insert_default().entry((language, name)).or_default());
        drop(built);
        let build = |compiler: &Compiler| {
            let source = format!("examples/{name}.{}", language.ending());
            let of = compiler.program.to_string_lossy().replace('/', "-");
            let program = folder.join(format!("{name}-{of}"));
            compiler.build(&source, compiler.sanitizers, &program);
            Self { name: format!("{name} by {of}"), program }
        };
        let build_all = || language.compilers().iter().map(build).collect();
        examples.get_or_init(build_all).clone()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.command(arguments))
    }

    /// Runs it to its end. Returns the status, the standard output and the standard error.
    pub(crate) fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}
