//! Provides the build data for the environment record: compiler, profile, flags, and the commit if the build
//! names one.

use std::env;
use std::process::Command;

fn main() {
    // The commit is given by the environment: a build that queried git itself would be redone at every commit.
    println!("cargo::rerun-if-env-changed=TAPELINE_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");

    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    println!("cargo::rustc-env=TAPELINE_RUSTC={}", version.trim());

    let optimisation = env::var("OPT_LEVEL").unwrap_or_default();
    let profile = env::var("PROFILE").unwrap_or_default();
    println!("cargo::rustc-env=TAPELINE_PROFILE={profile}, opt-level {optimisation}");

    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    println!("cargo::rustc-env=TAPELINE_RUSTFLAGS={}", flags.replace('\u{1f}', " "));
}
