//! `[otlp]`: the metrics of `/metrics`, pushed to a collector of OpenTelemetry on a thread of its own (OTLP/HTTP with JSON and
//! gzip: opentelemetry.io, "OTLP Specification" 1.x and `opentelemetry/proto/metrics/v1/metrics.proto`).
//!
//! Whatever the collector does, the plant goes on: one request at a time, with a time limit. A push that fails is not
//! repeated: the next one has newer numbers, and counters lose nothing by it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tapeline_measure::{Clock, Nanos};
use tapeline_wire::tls::Tls;
use tapeline_wire::web_client::{
    HttpAnswer, LONGEST_HEADERS, Url, WebError, WebHeaders, WebLimits, post_json,
};

use crate::error::Context;
use crate::events::{Event, Events, Severity};
use crate::readers::counting::LatestSnapshot;
use crate::readers::web::metrics::{Metric, MetricEntry, MetricKind, MetricValue, Number, each_metric};
use crate::stat::snapshot::Snapshot;

/// Where and how often metrics are pushed.
#[derive(Clone, Debug)]
pub struct OtlpConfig {
    /// Where the collector takes metrics: `http://127.0.0.1:4318/v1/metrics`.
    pub endpoint: Url,
    /// How often.
    pub every: Duration,
    /// Trusted certificates, if the endpoint asks for TLS.
    pub tls: Option<Tls>,
    /// A file of headers for each push, such as the one with the collector's key. It is read again each time, so that a
    /// key can change while the plant runs.
    pub headers: Option<PathBuf>,
}

/// Limits of a push: the collector has so long to connect, and again to answer.
const LIMITS: WebLimits = WebLimits { answer_time: Duration::from_secs(5), longest: 64 << 10 };
/// The most of a collector's own words that an event has, in bytes.
const LONGEST_WORDS: usize = 300;
/// Numbers since the start of the plant (`AGGREGATION_TEMPORALITY_CUMULATIVE`).
const CUMULATIVE: u8 = 2;

/// The thread that pushes. Dropping this asks the thread to end, and does not wait for a collector that is slow.
#[derive(Debug)]
pub(crate) struct Otlp {
    _ends: Sender<()>,
}

impl Otlp {
    /// Starts the thread.
    pub(crate) fn start(
        config: OtlpConfig,
        latest: &Arc<LatestSnapshot>,
        events: &Events,
    ) -> crate::Result<Self> {
        let (ends, ended) = channel();
        let (latest, events, clock) = (Arc::clone(latest), events.clone(), Clock::calibrate());
        let run = move || {
            let mut is_well = true;
            while ended.recv_timeout(config.every) == Err(RecvTimeoutError::Timeout) {
                let snapshot = latest.read();
                // The plant is starting.
                if snapshot.layout.is_empty() {
                    continue;
                }
                let document = document(&snapshot, clock.now()).to_string();
                report(&config.endpoint, push(&config, document.as_bytes()), &mut is_well, &events);
            }
        };
        let thread = std::thread::Builder::new().name("otlp".to_owned()).spawn(run);
        thread.context("cannot start the thread that pushes metrics")?;
        Ok(Self { _ends: ends })
    }
}

fn push(config: &OtlpConfig, document: &[u8]) -> Result<(), String> {
    let headers = config.headers.as_deref().map(read_headers).transpose()?.unwrap_or_default();
    outcome(post_json(&config.endpoint, config.tls.as_ref(), &LIMITS, &headers, document))
}

/// Reads a file of headers, one `Name: value` a line.
///
/// # Errors
/// The file cannot be read, or a line is not a header; the message repeats nothing of the file.
pub fn read_headers(path: &Path) -> Result<WebHeaders, String> {
    let mut text = String::new();
    // A byte more than is allowed, whatever the file is.
    let read = File::open(path)
        .and_then(|file| file.take(LONGEST_HEADERS as u64 + 1).read_to_string(&mut text))
        .map_err(|cause| format!("cannot read {}: {cause}", path.display()));
    read.and_then(|_| WebHeaders::parse(&text).map_err(|fault| format!("{}: {fault}", path.display())))
}

/// Why a push failed.
fn outcome(pushed: Result<HttpAnswer, WebError>) -> Result<(), String> {
    let answer = pushed.map_err(|error| error.to_string())?;
    let mut words =
        String::from_utf8_lossy(&answer.body).replace(|character: char| character.is_control(), " ");
    if words.len() > LONGEST_WORDS {
        words.truncate(words.floor_char_boundary(LONGEST_WORDS));
    }
    if !(200..300).contains(&answer.status) {
        return Err(format!("it answers with status {}: {words}", answer.status));
    }
    // A collector may take only a part, and says so in an answer of status 200.
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    // In JSON, a 64-bit number is a text; some write a number.
    let refused = &said["partialSuccess"]["rejectedDataPoints"];
    let count = refused.as_u64().or_else(|| refused.as_str()?.parse().ok()).unwrap_or(0);
    if count > 0 {
        return Err(format!("it refuses {count} of the values: {words}"));
    }
    Ok(())
}

/// Reports a change: pushes fail, or succeed again.
fn report(endpoint: &Url, outcome: Result<(), String>, is_well: &mut bool, events: &Events) {
    let was_well = std::mem::replace(is_well, outcome.is_ok());
    match outcome {
        Ok(()) if !was_well => {
            events.report(&Event::new(Severity::Note, format_args!("{endpoint} takes metrics again")));
        }
        Err(why) if was_well => {
            let text = format!("cannot push metrics to {endpoint}: {why}");
            let hint = "the plant tries again each time, and reports when it succeeds; /metrics of [hub.web] has the same numbers";
            events.report(&Event { hint: Some(hint.to_owned()), ..Event::new(Severity::Warning, text) });
        }
        _ => {}
    }
}

/// All metrics as an `ExportMetricsServiceRequest`.
fn document(plant: &Snapshot, now: Nanos) -> Value {
    let mut pushing = Pushing { metrics: Vec::new(), points: Vec::new(), of: None, plant, now };
    each_metric(plant, now, &mut |metric, entry| match entry {
        MetricEntry::Metric => pushing.begin(Some(metric)),
        MetricEntry::Value(value) => pushing.add(&value),
    });
    pushing.begin(None);
    let (name, version) = ("tapeline", env!("CARGO_PKG_VERSION"));
    let of = [
        ("service.name", name),
        ("service.namespace", &plant.plant),
        ("service.instance.id", &plant.ring),
        ("service.version", version),
    ];
    json!({ "resourceMetrics": [{
        "resource": { "attributes": attributes(&of) },
        "scopeMetrics": [{ "scope": { "name": name, "version": version }, "metrics": pushing.metrics }],
    }] })
}

fn attributes(labels: &[(&str, &str)]) -> Vec<Value> {
    let attribute = |(key, value): &(&str, &str)| json!({ "key": key, "value": { "stringValue": value } });
    labels.iter().map(attribute).collect()
}

/// The metrics so far, and the points of the one that is being collected.
struct Pushing<'p> {
    metrics: Vec<Value>,
    points: Vec<Map<String, Value>>,
    of: Option<&'static Metric>,
    plant: &'p Snapshot,
    now: Nanos,
}

impl Pushing<'_> {
    /// Ends a metric, which is left out if it has no values, and begins the next.
    fn begin(&mut self, next: Option<&'static Metric>) {
        let points = std::mem::take(&mut self.points);
        let Some(metric) = std::mem::replace(&mut self.of, next).filter(|_| !points.is_empty()) else {
            return;
        };
        let (kind, data) = match metric.kind() {
            MetricKind::Gauge => ("gauge", json!({ "dataPoints": points })),
            MetricKind::Summary => ("summary", json!({ "dataPoints": points })),
            MetricKind::Counter => {
                let cumulative = json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true });
                ("sum", cumulative)
            }
        };
        self.metrics.push(json!({ "name": metric.name, "description": metric.help, kind: data }));
    }

    fn add(&mut self, value: &MetricValue<'_>) {
        if self.of.is_some_and(|metric| metric.kind() == MetricKind::Summary) {
            return self.add_of_summary(value);
        }
        // JSON has no NaN.
        let number = match value.number {
            // A signed number of 64 bits, which is a text (protobuf.dev, "ProtoJSON format"): with a larger one the collector refuses all.
            Number::Whole(number) => ("asInt", json!(number.min(i64::MAX.unsigned_abs()).to_string())),
            Number::Real(number) if number.is_finite() => ("asDouble", json!(number)),
            Number::Real(_) => return,
        };
        let mut point = self.point(value.labels);
        point.insert(number.0.to_owned(), number.1);
        self.points.push(point);
    }

    /// The values of a summary are one point: the last, which its count ends.
    fn add_of_summary(&mut self, value: &MetricValue<'_>) {
        let (quantile, labels) = match value.labels {
            [labels @ .., ("quantile", quantile)] => (quantile.parse::<f64>().ok(), labels),
            labels => (None, labels),
        };
        if self.points.last().is_none_or(|point| point.contains_key("count")) {
            let mut point = self.point(labels);
            point.insert("quantileValues".to_owned(), json!([]));
            self.points.push(point);
        }
        let Some(point) = self.points.last_mut() else { return };
        match (value.suffix, quantile, value.number) {
            (_, Some(quantile), Number::Real(number)) if number.is_finite() => {
                if let Some(Value::Array(values)) = point.get_mut("quantileValues") {
                    values.push(json!({ "quantile": quantile, "value": number }));
                }
            }
            ("_sum", _, Number::Real(number)) => _ = point.insert("sum".to_owned(), json!(number)),
            ("_count", _, number) => _ = point.insert("count".to_owned(), json!(number.to_string())),
            _ => {}
        }
    }

    /// A point without its number.
    fn point(&self, labels: &[(&str, &str)]) -> Map<String, Value> {
        let mut point = Map::new();
        point.insert("attributes".to_owned(), attributes(labels).into());
        point.insert("startTimeUnixNano".to_owned(), json!(self.plant.started_ns.to_string()));
        point.insert("timeUnixNano".to_owned(), json!(self.now.0.to_string()));
        point
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::sync::Mutex;

    use flate2::read::GzDecoder;

    use super::*;
    use crate::stat::snapshot::{FeedSnapshot, Hop, Hub, Journal, LAYOUT, Latency};

    fn plant() -> Snapshot {
        let hop = |hop: &str| Hop {
            hop: hop.to_owned(),
            now: Latency { samples: 2, p50_ns: Some(2_500), ..Latency::default() },
            all: Latency { samples: 9, sum_ns: 18_000, ..Latency::default() },
        };
        Snapshot {
            layout: LAYOUT.to_owned(),
            plant: "P \"1\"".to_owned(),
            ring: "r".to_owned(),
            started_ns: 5,
            ticks: u64::MAX,
            feeds: vec![FeedSnapshot { name: "itch".to_owned(), messages: 7, ..FeedSnapshot::default() }],
            journal: Some(Journal::default()),
            hub: Some(Hub { latency: vec![hop("a"), hop("b")], ..Hub::default() }),
            ..Snapshot::default()
        }
    }

    #[test]
    fn every_metric_with_values_is_in_the_document() {
        let document = document(&plant(), Nanos(9));
        let resource = &document["resourceMetrics"][0];
        assert_eq!(resource["resource"]["attributes"][1]["value"]["stringValue"], "P \"1\"");
        let metrics = resource["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let metric = |name: &str| metrics.iter().find(|metric| metric["name"] == name);
        let ticks = &metric("tapeline_ticks_total").unwrap()["sum"];
        assert_eq!((&ticks["isMonotonic"], &ticks["aggregationTemporality"]), (&json!(true), &json!(2)));
        let point = json!({ "attributes": [], "startTimeUnixNano": "5", "timeUnixNano": "9", "asInt": i64::MAX.to_string() });
        assert_eq!(ticks["dataPoints"], json!([point]));
        let feed = &metric("tapeline_feed_messages_total").unwrap()["sum"]["dataPoints"][0];
        let label = json!([{ "key": "feed", "value": { "stringValue": "itch" } }]);
        assert_eq!((&feed["attributes"], &feed["asInt"]), (&label, &json!("7")));
        let latency =
            metric("tapeline_latency_seconds").unwrap()["summary"]["dataPoints"].as_array().unwrap();
        assert_eq!(latency.len(), 2);
        assert_eq!(latency[1]["attributes"][0]["value"]["stringValue"], "b");
        assert_eq!(latency[0]["quantileValues"], json!([{ "quantile": 0.5, "value": 2.5e-6 }]));
        assert_eq!((&latency[0]["count"], &latency[0]["sum"]), (&json!("9"), &json!(1.8e-5)));
        // A part that this plant does not have.
        assert!(metric("tapeline_kdb_up").is_none());
    }

    #[test]
    fn a_push_has_failed_also_if_a_part_was_refused() {
        let answer = |status, body: &str| {
            outcome(Ok(HttpAnswer { status, retry_after: None, body: body.as_bytes().to_vec() }))
        };
        assert_eq!(answer(200, "{}"), Ok(()));
        assert_eq!(answer(200, "{\"partialSuccess\":{}}"), Ok(()));
        for refused in ["3", "\"3\""] {
            let said = format!(
                "{{\"partialSuccess\":{{\"rejectedDataPoints\":{refused},\"errorMessage\":\"old\"}}}}"
            );
            assert!(answer(200, &said).unwrap_err().starts_with("it refuses 3 of the values: "), "{said}");
        }
        let long = format!("no\u{7}{}", "ä".repeat(1_000));
        let error = answer(400, &long).unwrap_err();
        assert!(error.starts_with("it answers with status 400: no ä") && error.len() < 350, "{error}");
    }

    /// Answers one request with this status; returns its head, and its body without the compression.
    fn collect(listener: &TcpListener, status: u16) -> (String, String) {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut request, mut room) = (Vec::new(), vec![0; 64 << 10]);
        let at = loop {
            if let Some(at) = request.windows(4).position(|end| end == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&request[..at]);
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
                if request.len() == at + 4 + length.parse::<usize>().unwrap() {
                    break at;
                }
            }
            let count = stream.read(&mut room).unwrap();
            request.extend_from_slice(&room[..count]);
        };
        write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
        let mut body = String::new();
        GzDecoder::new(&request[at + 4..]).read_to_string(&mut body).unwrap();
        (String::from_utf8_lossy(&request[..at]).into_owned(), body)
    }

    #[test]
    fn a_collector_that_fails_is_reported_once_and_so_is_its_return() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}/v1/metrics", listener.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("headers");
        std::fs::write(&keys, "Authorization: Bearer first\n").unwrap();
        let config = OtlpConfig {
            endpoint: Url::parse(&endpoint).unwrap(),
            every: Duration::from_millis(1),
            tls: None,
            headers: Some(keys.clone()),
        };
        let said = Arc::new(Mutex::new(Vec::new()));
        let says = Arc::clone(&said);
        let events = Events::new(move |event: &Event| says.lock().unwrap().push(event.to_string()));
        let latest = Arc::new(LatestSnapshot::default());
        latest.put(Arc::new(plant()));
        let otlp = Otlp::start(config, &latest, &events).unwrap();
        for status in [200, 503, 503, 200, 200] {
            let (head, body) = collect(&listener, status);
            assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
            assert!(head.contains("\r\nContent-Encoding: gzip\r\n"), "{head}");
            assert!(head.contains("\r\nAuthorization: Bearer first\r\n"), "{head}");
            let document: Value = serde_json::from_str(&body).unwrap();
            assert!(document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["gauge"].is_object());
        }
        // The key changes; and with the request after that, what came before has been reported.
        std::fs::write(&keys, "Authorization: Bearer second").unwrap();
        while !collect(&listener, 200).0.contains("\r\nAuthorization: Bearer second\r\n") {}
        drop(otlp);
        let said = said.lock().unwrap();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains(&format!("cannot push metrics to {endpoint}: it answers with status 503")));
        assert!(said[1].ends_with(&format!("Z note: {endpoint} takes metrics again")), "{said:?}");
    }

    #[test]
    fn headers_that_cannot_be_read_are_refused_without_their_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headers");
        assert!(read_headers(&path).unwrap_err().starts_with("cannot read "));
        std::fs::write(&path, "Authorization: Bearer s3-cret\n").unwrap();
        assert!(read_headers(&path).is_ok());
        for text in [&b"\nBearer s3-cret"[..], b"Host: s3-cret", b"s3-cret: \xff"] {
            std::fs::write(&path, text).unwrap();
            let why = read_headers(&path).unwrap_err();
            assert!(why.contains("headers") && !why.contains("s3-cret"), "{why}");
        }
    }
}
