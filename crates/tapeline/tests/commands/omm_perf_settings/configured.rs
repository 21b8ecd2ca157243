//! Settings of a file that has several entries.

use tapeline_omm::rwf::Domain;

use crate::omm_perf_settings::perf_peer::{Heard, Hub, Peer, Provider, Tool};

const CONFIG: &str = r#"
[[IProvider]]
Name = "First"
Directory = "One"
[[IProvider]]
Name = "Second"
Directory = "Two"
[[NiProvider]]
Name = "First"
Directory = "One"
[[NiProvider]]
Name = "Second"
Directory = "Two"
[[Directory]]
Name = "One"
Service = [{ Name = "ONE", InfoFilter = { ServiceId = 7 } }]
[[Directory]]
Name = "Two"
Service = [{ Name = "TWO", InfoFilter = { ServiceId = 8 } }]
"#;

#[test]
fn providers_take_the_entry_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, CONFIG).unwrap();
    let path = path.to_str().unwrap();
    for (more, service) in [(&[][..], (7, "ONE")), (&["--config-name", "Second"], (8, "TWO"))] {
        let expected = [(service.0, service.1.to_owned())];
        let told = [&["--config", path], more].concat();
        let provider = Provider::start(&told);
        assert_eq!(Peer::log_in(provider.port).services(), expected);

        let mut hub = Hub::open();
        let server = format!("localhost:{}", hub.port);
        let words = ["omm", "ni-provider", "--server", &server, "--item-count", "1"];
        let _publisher = Tool::start(&[&words[..], &told].concat());
        let is_directory = |heard: &Heard| heard.domain == Domain::SOURCE;
        hub.until(|hub| hub.heard(0).iter().any(is_directory));
        assert_eq!(hub.heard(0).iter().find(|heard| is_directory(heard)).unwrap().services(), expected);
    }
}
