//! Every path that a user can give, in every notation and from every folder: it always names the same file.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::{certificates, stage};

/// Folders of the test. The configuration is in `etc`, its files are in `etc/files` and `var`; one name has a space.
const FOLDERS: [&str; 4] = ["etc", "etc/files", "var", "some where"];

/// The paths in the configuration, by key.
const NAMED: [(&str, &str); 17] = [
    ("FEED", "etc/files/day.pcap"),
    ("SYMBOLS", "var/symbols.txt"),
    ("SOUP_PASSWORD", "etc/files/soup.password"),
    ("JOURNAL", "var/journal"),
    ("CA", "etc/files/ca.pem"),
    ("PROVIDER_PASSWORD", "etc/files/provider.password"),
    ("CERT", "etc/files/server.pem"),
    ("KEY", "etc/files/server.key"),
    ("DICTIONARY", "var/fields"),
    ("ENUMS", "var/enums"),
    ("USERS", "etc/files/users.txt"),
    ("HEADERS", "etc/files/headers"),
    ("AUDIT", "var/audit.jsonl"),
    ("Q_SOCKET", "var/q.socket"),
    ("Q_LOGS", "var/q"),
    ("Q_USERS", "etc/files/users.txt"),
    ("CONFIG", "etc/plant.toml"),
];

/// All keys that name a file: ITCH from a file, with recovery over SoupBinTCP.
const PLANT: &str = r#"
[plant]
ring = "test-paths"
[[feed]]
name = "file"
protocol = "itch50-moldudp64"
file = FEED
symbols_file = SYMBOLS
[[feed]]
name = "line"
protocol = "itch50-moldudp64"
[feed.recovery]
kind = "soupbintcp"
servers = ["127.0.0.1:9"]
user = "user"
password_file = SOUP_PASSWORD
[[feed.line]]
address = "239.9.9.9:4999"
[[service]]
name = "ASKED"
id = 7
providers = ["one"]
[[service]]
name = "TOLD"
id = 8
[[provider]]
name = "one"
servers = ["localhost:14002"]
tls = true
ca = CA
password_file = PROVIDER_PASSWORD
[publishers]
port = 14003
cert = CERT
key = KEY
[journal]
folder = JOURNAL
[kdb]
port = 0
unix = Q_SOCKET
log_folder = Q_LOGS
[[kdb.table]]
name = "trade"
rows = "trades"
columns = ["time timespan", "sym symbol", "price float BID"]
[kdb.access]
users = Q_USERS
[[kdb.access.rule]]
[hub]
port = 14009
service = "FEEDS"
service_id = 9
cert = CERT
key = KEY
dictionary = DICTIONARY
enums = ENUMS
[hub.access]
login = "password"
users = USERS
audit = AUDIT
[otlp]
endpoint = "https://localhost/v1/metrics"
ca = CA
headers_file = HEADERS
"#;

struct Scene {
    root: tempfile::TempDir,
}

/// The notation of a path.
#[derive(Clone, Copy, Debug)]
enum Written {
    Relative,
    Absolute,
    Roundabout,
}

impl Written {
    const ALL: [Self; 3] = [Self::Relative, Self::Absolute, Self::Roundabout];

    /// A path in this notation, relative to `folder`.
    fn path(self, scene: &Scene, folder: &str, path: &str) -> String {
        let up = if folder.is_empty() { String::new() } else { "../".repeat(folder.split('/').count()) };
        let root = scene.root.path().display();
        match self {
            Self::Relative => match path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) {
                Some(below) => below.to_owned(),
                None => format!("{up}{path}"),
            },
            Self::Absolute => format!("{root}/{path}"),
            Self::Roundabout => format!("./{up}some where/../{path}"),
        }
    }
}

impl Scene {
    fn set() -> Self {
        let scene = Self { root: tempfile::tempdir().unwrap() };
        for folder in FOLDERS {
            std::fs::create_dir_all(scene.at(folder)).unwrap();
        }
        certificates::write(&scene.at("etc/files"));
        for (file, text) in [
            ("etc/files/day.pcap", ""),
            ("var/symbols.txt", "AAPL\n"),
            ("etc/files/soup.password", "soup\n"),
            ("etc/files/provider.password", "secret\n"),
            ("etc/files/headers", "Authorization: Bearer secret\n"),
            ("var/fields", "BID \"BID\" 22 NULL PRICE 17 REAL64 7\n"),
            ("var/enums", "!tag Type 2\n"),
        ] {
            std::fs::write(scene.at(file), text).unwrap();
        }
        let typed = scene.at("var/typed");
        std::fs::write(&typed, "correct horse\n").unwrap();
        let mut passwd = stage::tapeline(&["plant", "passwd", "alice", "--users", "etc/files/users.txt"]);
        let passwd = passwd.stdin(std::fs::File::open(typed).unwrap()).current_dir(scene.root.path());
        let output = passwd.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        scene
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Writes the configuration with paths in this notation.
    fn configure(&self, written: Written) {
        let mut text = PLANT.to_owned();
        for (key, path) in NAMED {
            let path = written.path(self, "etc", path);
            text = text.replace(&format!("= {key}\n"), &format!("= \"{path}\"\n"));
        }
        std::fs::write(self.at("etc/plant.toml"), text).unwrap();
    }

    fn check(&self, folder: &str, config: &str) -> Output {
        let mut check = stage::tapeline(&["plant", "check", config, "--format", "json"]);
        check.current_dir(self.at(folder)).output().unwrap()
    }
}

/// The output of a check, with normalized paths.
fn found(scene: &Scene, output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let root = scene.root.path().display().to_string();
    let found: Value = serde_json::from_str(&said).unwrap();
    let mut found = found.to_string().replace(&root, "ROOT").replace("/./", "/");
    for _ in 0..3 {
        for there_and_back in ["/etc/files/../..", "/some where/..", "/etc/.."] {
            found = found.replace(there_and_back, "");
        }
    }
    found
}

#[test]
fn a_configuration_names_the_same_files_however_it_is_written_and_wherever_it_is_read() {
    let scene = Scene::set();
    let mut all = Vec::new();
    for written in Written::ALL {
        scene.configure(written);
        for folder in ["", "etc", "etc/files", "some where"] {
            for named in Written::ALL {
                let config = named.path(&scene, folder, "etc/plant.toml");
                let output = scene.check(folder, &config);
                all.push((found(&scene, &output), format!("{written:?} in {config} from {folder:?}")));
            }
        }
    }
    let (first, _) = all[0].clone();
    for path in [
        "ROOT/var/journal",
        "ROOT/var/q",
        "ROOT/var/q.socket",
        "ROOT/var/audit.jsonl",
        "ROOT/etc/files/day.pcap",
    ] {
        assert!(first.contains(path), "{path}: {first}");
    }
    for (found, how) in all {
        assert_eq!(found, first, "{how}");
    }
}

#[test]
fn every_file_that_a_configuration_names_is_looked_for_where_it_says() {
    let scene = Scene::set();
    scene.configure(Written::Relative);
    for (key, path) in NAMED {
        let (there, aside) = (scene.at(path), scene.at("aside"));
        if !there.exists() {
            // The plant creates journal, logs, socket and audit file: the other test checks where.
            continue;
        }
        std::fs::rename(&there, &aside).unwrap();
        let output = scene.check("some where", "../etc/plant.toml");
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        assert!(!output.status.success() && said.contains(name), "{key}: {said}");
        std::fs::rename(&aside, &there).unwrap();
    }
    assert!(scene.check("some where", "../etc/plant.toml").status.success());
}

/// A command writes to the folder that its user named, in every notation, and nowhere else.
#[test]
fn a_run_folder_is_where_its_user_says() {
    let scene = Scene::set();
    let here = scene.at("some where");
    let beside: Vec<_> =
        std::fs::read_dir(scene.root.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let short = ["demo", "--rate", "5k", "--duration", "1s"];
    let absolute = scene.at("var/run").display().to_string();
    for (given, expected) in [
        (None, None),
        (Some("mine"), Some("some where/mine")),
        (Some("../var/../etc/run"), Some("etc/run")),
        (Some(absolute.as_str()), Some("var/run")),
    ] {
        let mut words = short.to_vec();
        words.extend(given.iter().flat_map(|given| ["--run-folder", given]));
        let output = stage::tapeline(&words).current_dir(&here).output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("PASS"), "{given:?}: {said}");
        let run = match expected {
            Some(path) => scene.at(path),
            None => {
                let runs: Vec<_> = std::fs::read_dir(here.join("runs")).unwrap().collect();
                assert_eq!(runs.len(), 1);
                runs[0].as_ref().unwrap().path()
            }
        };
        assert!(run.join("run.json").is_file() && !run.join("journal").exists(), "{given:?}: {said}");
        assert!(!run.join("runs").exists() && !run.join("some where").exists());
    }
    let now: Vec<_> =
        std::fs::read_dir(scene.root.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(beside, now);
    let mine: Vec<_> = std::fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(mine.len(), 2, "{mine:?}");
}
