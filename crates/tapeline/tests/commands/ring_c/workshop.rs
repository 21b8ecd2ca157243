//! Shared parts of the tests of the C interface: the library as `make install-c` installs it, and the compilers.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

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

/// A language with its compiler.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Language {
    C,
    Cpp,
}

/// The requested sanitizers.
pub(crate) const SANITIZED: &str = "-fsanitize=address,undefined";

impl Language {
    fn compiler(self) -> Command {
        let (variable, usual) = match self {
            Self::C => ("CC", "cc"),
            Self::Cpp => ("CXX", "c++"),
        };
        Command::new(std::env::var_os(variable).unwrap_or_else(|| usual.into()))
    }

    /// Whether a compiler supports these flags; prints a note if not.
    pub(crate) fn can(self, flags: &[&str]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("probe"), folder.path().join("program"));
        std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let mut compiler = self.compiler();
        compiler.args(flags).args(self.dialect()).arg(&source).arg("-o").arg(&program);
        let can = compiler.output().is_ok_and(|output| output.status.success())
            && Command::new(&program).output().is_ok_and(|output| output.status.success());
        if !can {
            println!("skipped: no {self:?} compiler that can do {flags:?} here");
        }
        can
    }

    fn dialect(self) -> [&'static str; 3] {
        match self {
            Self::C => ["-std=c99", "-x", "c"],
            Self::Cpp => ["-std=c++17", "-x", "c++"],
        }
    }

    /// Builds a program of one file, with warnings denied, against the installed library.
    pub(crate) fn build(self, source: &str, flags: &[&str], program: &Path) {
        let (source, prefix) = (root().join("crates/ring-c").join(source), installed());
        let library = prefix.join("lib").display().to_string();
        let mut compiler = self.compiler();
        compiler.args(["-g", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]).args(flags);
        compiler.args(self.dialect()).arg(source).args(["-x", "none"]).arg("-o").arg(program);
        compiler.arg("-I").arg(prefix.join("include")).arg(format!("-L{library}"));
        passed(compiler.args(["-ltapeline_ring", &format!("-Wl,-rpath,{library}")]));
    }
}
