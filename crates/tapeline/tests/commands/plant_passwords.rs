//! Passwords over real TLS, as seen by a consumer.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use stage::{Place, Running, tapeline};

use crate::certificates;
use crate::stage;

#[test]
fn who_has_the_password_is_let_in_over_tls_and_who_has_not_is_told_so() {
    let place = Place::new(1);
    let folder = place.folder.path();
    certificates::write(folder);
    let users = folder.join("users.txt");
    let passwd = ["plant", "passwd", "alice", "--users", users.to_str().unwrap()];
    let mut passwd = tapeline(&passwd).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    passwd.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    assert!(passwd.wait().unwrap().success());

    let config = place.config("");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str(
        "[hub]\nport = 0\nunknown = \"wait\"\ncert = \"server.pem\"\nkey = \"server.key\"\n\
         [hub.access]\nlogin = \"password\"\nusers = \"users.txt\"\n",
    );
    std::fs::write(&config, text).unwrap();
    let mut plant = Running::start(&["plant", "--config", &config, "--format", "json"]);
    let ready = plant.says();
    let port = ready["hub"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
    let (server, ca) = (format!("localhost:{port}"), folder.join("ca.pem"));

    for way in [&[][..], &["--websocket", "json"], &["--websocket", "rwf"]] {
        for (password, is_right) in [("correct horse", true), ("wrong horse", false)] {
            let file = folder.join("password");
            std::fs::write(&file, password).unwrap();
            let fixed =
                ["omm", "watch", "--server", &server, "--service", "TAPELINE", "TAPE", "--tls", "--ca"];
            let of_user =
                [ca.to_str().unwrap(), "--user", "alice", "--password-file", file.to_str().unwrap()];
            let options = [&fixed[..], &of_user, &["--attempts", "1", "--format", "json"], way].concat();
            let mut consumer = Running::start(&options);
            let login = login(&mut consumer);
            if is_right {
                assert_eq!(login["stream"], json!("OPEN"), "{way:?} {login}");
                continue;
            }
            assert_eq!(
                (&login["stream"], &login["code"]),
                (&json!("CLOSED"), &json!("NOT_ENTITLED")),
                "{way:?}"
            );
            assert_eq!(login["text"], json!("The name or the password is wrong"), "{way:?}");
            while consumer.may_say().is_some() {}
            assert_eq!(consumer.child.wait().unwrap().code(), Some(1), "{way:?}");
        }
    }
}

/// The state of a consumer's login.
fn login(consumer: &mut Running) -> Value {
    loop {
        let mut said = consumer.says();
        if said["event"] == "login" {
            return said["state"].take();
        }
    }
}
