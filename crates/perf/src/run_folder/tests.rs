use tapeline_measure::{Clock, Environment, Evidence, Series};

use super::*;

fn sample_run() -> (Run, Recorder) {
    let mut recorder = Recorder::new();
    for ns in 1..=2_000 {
        recorder.record(ns);
    }
    let evidence = Evidence {
        sent: 2_000,
        received: 2_000,
        result: Some(recorder.percentiles()),
        ..Evidence::default()
    };
    let environment = Environment::read(&Clock::calibrate());
    let over = Duration::from_secs(2);
    let mut run = Run::new("demo", Nanos(1_580_389_200_000_000_000), over, evidence, Vec::new(), environment);
    run.throughput = Throughput::new(2_000, 70_000, over);
    run.settings = serde_json::json!({ "rate": 1_000 });
    run.hops.push(HopLatency {
        name: "wire→received".to_owned(),
        percentiles: recorder.percentiles(),
        clock_error_ns: 80,
    });
    (run, recorder)
}

#[test]
fn a_run_leaves_all_its_files() {
    let place = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(Some(&place.path().join("deep/run")), "demo").unwrap();
    let (run, recorder) = sample_run();
    folder.write_run(&run).unwrap();
    let start = Nanos(1_580_389_200_000_000_000);
    folder.write_latency(start, Duration::from_secs(2), &[("wire→received", &recorder)]).unwrap();
    let mut series = Series::by_second(start);
    series.record(start, 5);
    series.record(start + 3_000_000_000, 9);
    folder.write_stats(0, series.window_ns(), &series.finish()).unwrap();

    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text("run.json")).unwrap();
    assert_eq!(json["layout"], 1);
    assert_eq!(json["verdict"], "PASS");
    assert_eq!(json["started_utc"], "2020-01-30T13:00:00.000000000Z");
    assert_eq!(json["throughput"]["messages_per_second"], 1_000.0);
    assert_eq!(json["hops"][0]["latency_ns"]["max"], 2_000);
    assert_eq!(json["settings"]["rate"], 1_000);
    assert!(json["environment"]["kernel"].is_string());
    let summary = text("summary.txt");
    assert!(summary.starts_with("PASS: none of 2,000 messages lost"), "no styles in a file: {summary:?}");
    assert!(summary.contains("1.00 k msgs/s, 35.0 kB/s") && summary.contains("wire→received"), "{summary}");
    assert!(summary.trim_end().ends_with("deep/run"), "{summary}");
    let stats = "start_s,count,negatives,p50_ns,p99_ns,max_ns\n0,1,0,5,5,5\n3,1,0,9,9,9\n";
    assert_eq!(text("stats-0.csv"), stats);
    assert!(text("latency.hlog").contains("Tag=wire→received,"));
    assert!(text("latency.hgrm").contains("Total count    =         2000"));
}

#[test]
fn names_tell_time_and_kind_and_never_collide() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().join("runs");
    let mut names: Vec<_> = (0..20)
        .map(|_| RunFolder::invent(&base, "demo").unwrap().path().file_name().unwrap().to_owned())
        .collect();
    for name in &names {
        let name = name.to_str().unwrap();
        assert!(name.starts_with("20") && name.contains("Z-demo-") && !name.contains(':'), "{name}");
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 20);
}

#[test]
fn refuses_a_folder_with_something_in_it_and_says_where_it_cannot_write() {
    let place = tempfile::tempdir().unwrap();
    assert!(RunFolder::create(Some(place.path()), "demo").is_ok(), "an empty one is fine");
    let file = place.path().join("something");
    fs::write(&file, "here").unwrap();
    let error = RunFolder::create(Some(place.path()), "demo").unwrap_err();
    assert!(error.to_string().contains("is not empty"), "{error}");
    let error = RunFolder::create(Some(&file), "demo").unwrap_err();
    assert!(error.to_string().contains("cannot make the run folder"), "{error:#}");
    assert!(error.to_string().contains("something"), "{error:#}");

    let folder = RunFolder::create(Some(&place.path().join("gone")), "demo").unwrap();
    fs::remove_dir(folder.path()).unwrap();
    let error = folder.write_summary("text").unwrap_err();
    assert!(format!("{error:#}").contains("cannot write") && format!("{error:#}").contains("summary.txt"));
}
