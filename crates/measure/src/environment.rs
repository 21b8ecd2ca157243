//! The environment of a measurement.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::affinity::cores;
use crate::clock::Clock;
use crate::figures;
use crate::system_files::{SystemFiles, kibibytes, value_of};
use crate::tsc::{self, TickSource, tick_source};

/// The machine, its settings and the build, as far as they affect results. A value that could not be read is `None` or
/// an empty list; reading never fails.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// The processor's model name.
    pub cpu: Option<String>,
    /// Number of online cores.
    pub cores_online: usize,
    /// Cores that this process may use.
    pub cores_usable: Vec<usize>,
    /// Frequency governors in use, each once; empty if the host controls the frequency.
    pub governors: Vec<String>,
    /// Cores that the kernel keeps free of other work (`isolcpus`), in its notation.
    pub isolated_cores: Option<String>,
    /// Cores without a periodic tick (`nohz_full`), in the kernel's notation.
    pub tickless_cores: Option<String>,
    /// `true` if sibling hyper-threads are on.
    pub hyper_threads: Option<bool>,
    /// Kernel release and version.
    pub kernel: String,
    /// The hypervisor's name; `None` on bare metal.
    pub hypervisor: Option<String>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Source of stamps: `time-stamp counter` or `system clock`.
    pub tick_source: &'static str,
    /// `true` if the processor guarantees a time-stamp counter of constant rate.
    pub invariant_counter: bool,
    /// Rate of the tick counter in kHz, as calibrated.
    pub ticks_khz: u64,
    /// Bound on the error of stamps when the record was made, in nanoseconds.
    pub clock_error_ns: u64,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Available memory in bytes.
    pub memory_available_bytes: Option<u64>,
    /// The name and version of the operating system.
    pub system: Option<String>,
    /// How the program was built.
    pub build: Build,
}

/// How the program was built.
#[derive(Clone, Debug, Serialize)]
pub struct Build {
    /// Version of Tapeline.
    pub version: &'static str,
    /// The commit, if the build was given one (`TAPELINE_COMMIT`).
    pub commit: Option<&'static str>,
    /// The compiler's version line.
    pub compiler: &'static str,
    /// Profile and optimisation level.
    pub profile: &'static str,
    /// Extra compiler flags.
    pub flags: &'static str,
    /// Architecture compiled for.
    pub architecture: &'static str,
}

impl Build {
    /// Returns the build of this program.
    #[must_use]
    pub fn of_this_program() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("TAPELINE_COMMIT"),
            compiler: env!("TAPELINE_RUSTC"),
            profile: env!("TAPELINE_PROFILE"),
            flags: env!("TAPELINE_RUSTFLAGS"),
            architecture: std::env::consts::ARCH,
        }
    }
}

impl Environment {
    /// Reads `/proc` and `/sys`. Takes some milliseconds, so do not call it within a measurement.
    #[must_use]
    pub fn read(clock: &Clock) -> Self {
        let files = SystemFiles::of_this_machine();
        let info = files.text("proc/cpuinfo").unwrap_or_default();
        let memory = files.text("proc/meminfo").unwrap_or_default();
        let kernel = rustix::system::uname();
        let kernel =
            [kernel.sysname(), kernel.release(), kernel.version()].map(std::ffi::CStr::to_string_lossy);
        let named = |cores: Vec<usize>| (!cores.is_empty()).then(|| figures::list(&cores));
        let said = |line: String| (!line.is_empty()).then_some(line);
        Self {
            cpu: value_of(&info, "model name", ':').map(str::to_owned),
            cores_online: files.online().map_or(0, |online| online.len()).max(cores().len()),
            cores_usable: cores(),
            governors: governors(&files),
            isolated_cores: files.isolated().ok().and_then(named),
            tickless_cores: files.tickless().ok().and_then(named),
            hyper_threads: files.hyper_threads().ok(),
            kernel: kernel.join(" "),
            hypervisor: tsc::hypervisor(),
            clock_source: files.clock_source().ok().and_then(said),
            tick_source: match tick_source() {
                TickSource::Counter => "time-stamp counter",
                TickSource::System => "system clock",
            },
            invariant_counter: tsc::invariant(),
            ticks_khz: clock.calibration().ticks_khz(),
            clock_error_ns: clock.error_ns(),
            huge_pages: files.huge_pages().ok(),
            memory_bytes: kibibytes(&memory, "MemTotal"),
            memory_available_bytes: kibibytes(&memory, "MemAvailable"),
            system: files.text("etc/os-release").ok().and_then(|text| {
                value_of(&text, "PRETTY_NAME", '=').map(|name| name.trim_matches('"').to_owned())
            }),
            build: Build::of_this_program(),
        }
    }

    /// Returns the environment in a few lines for a summary.
    #[must_use]
    pub fn summary(&self) -> String {
        let unknown = || "unknown".to_owned();
        let place = match &self.hypervisor {
            Some(name) => format!("virtual ({name})"),
            None => "bare metal".to_owned(),
        };
        let governors =
            if self.governors.is_empty() { "set by the host".to_owned() } else { self.governors.join(", ") };
        let memory = self
            .memory_bytes
            .map_or_else(unknown, |bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)));
        format!(
            "machine   {}, {} cores (usable {}), {place}, {memory}\n\
             settings  governor {governors}, isolated cores {}, huge pages {}\n\
             kernel    {}\n\
             clock     {} at {:.3} MHz, kernel's source {}, error {}\n\
             build     {} {} ({}), {}",
            self.cpu.clone().unwrap_or_else(unknown),
            self.cores_online,
            figures::list(&self.cores_usable),
            self.isolated_cores.as_deref().unwrap_or("none"),
            self.huge_pages.as_deref().unwrap_or("unknown"),
            self.kernel,
            self.tick_source,
            self.ticks_khz as f64 / 1e3,
            self.clock_source.as_deref().unwrap_or("unknown"),
            figures::duration(self.clock_error_ns),
            self.build.version,
            self.build.commit.unwrap_or("(commit not named)"),
            self.build.profile,
            self.build.compiler,
        )
    }
}

fn governors(files: &SystemFiles) -> Vec<String> {
    let found = cores().into_iter().filter_map(|core| files.governor(core).ok());
    found.filter(|governor| !governor.is_empty()).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernel_s_notations() {
        assert_eq!(value_of("a : b\nmodel name\t: Z 9: x\n", "model name", ':'), Some("Z 9: x"));
        assert_eq!(kibibytes("MemTotal:       16 kB\n", "MemTotal"), Some(16_384));
    }

    #[test]
    fn describes_this_machine() {
        let environment = Environment::read(&Clock::calibrate());
        assert!(environment.cores_online >= 1 && !environment.cores_usable.is_empty());
        assert!(environment.kernel.contains("Linux"), "{}", environment.kernel);
        assert!(environment.ticks_khz > 100_000, "{}", environment.ticks_khz);
        assert!(environment.memory_bytes.is_some_and(|bytes| bytes > 0));
        assert!(environment.build.compiler.starts_with("rustc "), "{}", environment.build.compiler);
        assert_eq!(environment.summary().lines().count(), 5);
        let json = serde_json::to_value(&environment).unwrap();
        assert!(json["build"]["profile"].as_str().is_some_and(|profile| profile.contains("opt-level")));
    }
}
