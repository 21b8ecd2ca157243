//! A headless Chromium, driven over its DevTools port (chromedevtools.github.io/devtools-protocol).

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// A browser with one page; it ends with the test.
pub(crate) struct Chromium {
    child: Child,
    socket: WebSocket<TcpStream>,
    session: Value,
    next: u64,
    _profile: tempfile::TempDir,
}

/// The path of a Chromium: the one that `CHROMIUM` names, or one under a usual name. `None` without one, unless it
/// is required.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM").filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

impl Chromium {
    pub(crate) fn start(program: &PathBuf) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new(program)
            // Root cannot use the sandbox; the browser visits only this test's own page.
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--remote-debugging-port=0", "--window-size=1280,1400", "--force-prefers-reduced-motion"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let url = loop {
            let mut line = String::new();
            assert!(talk.read_line(&mut line).unwrap() > 0, "it ended: {said}");
            if let Some(url) = line.trim().strip_prefix("DevTools listening on ") {
                break url.to_owned();
            }
            said.push_str(&line);
        };
        // It keeps writing and must not block on a full pipe.
        std::thread::spawn(move || std::io::copy(&mut talk, &mut std::io::sink()));
        let address = url.trim_start_matches("ws://").split('/').next().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        let (socket, _) = tungstenite::client(url.as_str(), stream).unwrap();
        let mut chromium = Self { child, socket, session: Value::Null, next: 0, _profile: profile };
        let target = chromium.call("Target.createTarget", json!({ "url": "about:blank" }));
        let id = &target["targetId"];
        let session = chromium.call("Target.attachToTarget", json!({ "targetId": id, "flatten": true }));
        chromium.session = session["sessionId"].clone();
        chromium
    }

    pub(crate) fn open(&mut self, url: &str) {
        let opened = self.call("Page.navigate", json!({ "url": url }));
        assert!(opened["errorText"].is_null(), "{opened}");
    }

    /// Sets the window size of a phone or a desktop.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// The value of a JavaScript expression in the page; for a promise, its result.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let said = self.call("Runtime.evaluate", asked);
        assert!(said["exceptionDetails"].is_null(), "{expression}: {said}");
        said["result"]["value"].clone()
    }

    /// Waits until an expression is true and returns its value.
    pub(crate) fn wait_for(&mut self, expression: &str) -> Value {
        // A page that is still loading discards its promises: evaluate again then.
        let look = format!(
            "new Promise((done) => {{ const look = () => {{ let is; try {{ is = ({expression}); }} catch (error) {{}} \
             is ? done(is) : setTimeout(look, 20); }}; look(); }})"
        );
        loop {
            let asked = json!({ "expression": look, "awaitPromise": true, "returnByValue": true });
            match self.ask("Runtime.evaluate", &asked) {
                Ok(said) => return said["result"]["value"].clone(),
                Err(error) => {
                    assert!(error["message"].as_str().is_some_and(is_passing), "{expression}: {error}");
                }
            }
        }
    }

    /// Writes a screenshot of the page to the folder that `SCREENSHOTS` names.
    pub(crate) fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("SCREENSHOTS").map(PathBuf::from) else { return };
        let taken =
            self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        let bytes = data_encoding::BASE64.decode(taken["data"].as_str().unwrap().as_bytes()).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, &params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let mut said: Value = serde_json::from_str(&text).unwrap();
            // All other messages are events.
            if said["id"] == self.next {
                return if said["error"].is_null() {
                    Ok(said["result"].take())
                } else {
                    Err(said["error"].take())
                };
            }
        }
    }
}

/// Whether this error comes from a page that is being left.
fn is_passing(message: &str) -> bool {
    ["context was destroyed", "navigated", "Cannot find context"].iter().any(|part| message.contains(part))
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
