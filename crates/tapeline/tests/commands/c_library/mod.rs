//! The C and C++ library: every call, the page's commands, and the examples on one ring with Rust programs. Plants and servers are in
//! `services.rs`.

mod services;
mod workshop;

use std::process::Command;

use workshop::{Example, Language, OwnName, Running, passed, root};

const TAPELINE: &str = env!("CARGO_BIN_EXE_tapeline");

const MESSAGES: &str = "200000";
const READ_ALL: &str = "read 200000, missing 0\n";

fn start_tapeline(arguments: &[&str]) -> Running {
    Running::start(Command::new(TAPELINE).arg("ring").args(arguments))
}

/// The example publishes, `tapeline ring sub` reads and checks.
fn to_rust(language: Language) {
    for example in Example::of(language, "ring") {
        let name = OwnName::new("to-rust");
        let mut publisher = example.start(&["pub", name.as_str(), MESSAGES, "1"]);
        name.wait_for(&mut publisher);
        let options = ["--from", "oldest", "--format", "json"];
        let summary = start_tapeline(&[&["sub", "--name", name.as_str()], &options[..]].concat()).end();
        assert_eq!(publisher.end(), format!("published {MESSAGES}\n"), "{}", example.name);
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        assert_eq!(
            (&summary["messages"], &summary["lost"]),
            (&MESSAGES.parse::<u64>().unwrap().into(), &0.into())
        );
    }
}

/// `tapeline ring pub` publishes, the example reads and checks.
fn from_rust(language: Language, how: &[&str], stamps: &[&str]) {
    for example in Example::of(language, "ring") {
        let name = OwnName::new("from-rust");
        let arguments = ["pub", "--name", name.as_str(), "--messages", MESSAGES, "--subscribers", "1"];
        let mut publisher = start_tapeline(&[&arguments[..], stamps].concat());
        name.wait_for(&mut publisher);
        let subscriber = example.start(&[&["sub", name.as_str()], how].concat());
        assert_eq!(subscriber.end(), READ_ALL, "{}", example.name);
        publisher.end();
    }
}

#[test]
fn c_to_rust() {
    to_rust(Language::C);
}

#[test]
fn cpp_to_rust() {
    to_rust(Language::Cpp);
}

#[test]
fn rust_to_c_in_place() {
    from_rust(Language::C, &[], &["--no-stamps"]);
}

#[test]
fn rust_to_c_by_copy() {
    from_rust(Language::C, &["copy"], &[]);
}

#[test]
fn rust_to_cpp() {
    from_rust(Language::Cpp, &[], &[]);
}

#[test]
fn c_to_cpp() {
    for (c, cpp) in Example::of(Language::C, "ring").iter().zip(&Example::of(Language::Cpp, "ring")) {
        let name = OwnName::new("c-to-cpp");
        let mut publisher = c.start(&["pub", name.as_str(), MESSAGES, "2"]);
        name.wait_for(&mut publisher);
        let subscribers = [cpp.start(&["sub", name.as_str()]), c.start(&["sub", name.as_str()])];
        for subscriber in subscribers {
            assert_eq!(subscriber.end(), READ_ALL);
        }
        publisher.end();
    }
}

#[test]
fn an_error_reaches_the_user_of_cpp_with_its_hint() {
    for cpp in Example::of(Language::Cpp, "ring") {
        let (status, _, said) = cpp.run(&["sub", "test-c-there-is-none"]);
        assert_eq!(status, Some(1));
        assert!(said.contains("there is no ring at") && said.contains("hint: start its publisher"), "{said}");
    }
}

/// Runs a self-checking program with the sanitizers of each compiler, and without. `argument` gives its argument.
fn every_call(language: Language, of: &str, mut argument: impl FnMut() -> String) {
    let source = format!("tests/{of}.{}", language.ending());
    for (at, compiler) in language.compilers().iter().enumerate() {
        // What only an unsanitized program does, one compiler shows.
        for flags in [&[][..], compiler.sanitizers].into_iter().skip(at.min(1)) {
            let folder = tempfile::tempdir().unwrap();
            let program = folder.path().join("api");
            compiler.build(&source, flags, &program);
            let ran = Running::start(Command::new(&program).arg(argument())).end();
            assert_eq!(ran, "ok\n", "{compiler:?} {flags:?}");
        }
    }
}

#[test]
fn every_call_of_rings() {
    for language in Language::BOTH {
        let mut names = Vec::new();
        every_call(language, "ring", || {
            names.push(OwnName::new("api"));
            names.last().map_or_else(String::new, |name| name.as_str().to_owned())
        });
    }
}

#[test]
fn every_call_of_services() {
    let folder = tempfile::tempdir().unwrap();
    for language in Language::BOTH {
        every_call(language, "services", || folder.path().display().to_string());
    }
}

/// Runs the commands of docs/c.md in one shell, with the built library and an empty home folder.
#[test]
fn the_page_tells_commands_that_work() {
    for tool in ["cc", "c++", "make", "pkg-config", "cmake"] {
        if Command::new(tool).arg("--version").output().is_err() {
            println!("skipped: no {tool} here");
            return;
        }
    }
    let page = std::fs::read_to_string(root().join("docs/c.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split_once("```"));
    // A failed command must not leave background commands waiting.
    let mut script = "set -eu; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n".to_owned();
    script.extend(blocks.map(|(block, _)| block));
    // Other tests, and users who follow the page now, may have rings with these names.
    for name in ["from-c", "from-rust", "from-static", "from-plant"] {
        script = script.replace(name, &format!("test-page-{}-{name}", std::process::id()));
    }
    let hub = crate::stage::Nobody::new();
    script = script.replace("14012", &hub.port.to_string());
    let home = tempfile::tempdir().unwrap();
    let clone = home.path().join("clone");
    std::fs::create_dir(&clone).unwrap();
    for entry in ["Cargo.toml", "Makefile", "scripts", "crates"] {
        std::os::unix::fs::symlink(root().join(entry), clone.join(entry)).unwrap();
    }
    let path = format!(
        "{}:{}",
        std::path::Path::new(TAPELINE).parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(&clone).env("HOME", home.path()).env("PATH", path);
    for (variable, value) in [("BUILT", Some(workshop::built())), ("RUSTUP_HOME", rustup_home())] {
        if let Some(value) = value {
            shell.env(variable, value);
        }
    }
    let said = String::from_utf8(passed(&mut shell).stdout).unwrap();
    assert_eq!(said.matches("read 1000000, missing 0").count(), 2, "{said}");
    assert!(said.contains("published 10\n"), "{said}");
    // The whole journal twice, by its reader and on the ring; and its tail.
    assert_eq!(said.matches("read 14").count(), 2, "{said}");
    assert_eq!(said.matches(", missing 0\n").count(), 5, "{said}");
    assert_eq!(said.matches("image TAPE").count() + said.matches("image SENA").count(), 2, "{said}");
}

/// rustup looks for its toolchains in HOME, which the test changes.
fn rustup_home() -> Option<std::path::PathBuf> {
    let home = std::env::var_os("HOME")?;
    Some(
        std::env::var_os("RUSTUP_HOME")
            .map_or_else(|| std::path::Path::new(&home).join(".rustup"), Into::into),
    )
}
