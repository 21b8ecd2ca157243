//! `ring sweep` end to end, killed and resumed, and its refusals.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::ring::{json, ring, start, text, until};

fn arguments<'a>(folder: &'a Path, others: &[&'a str]) -> Vec<&'a str> {
    [&["sweep", "--short", "--seconds-per-run", "2ms", "--run-folder", folder.to_str().unwrap()], others]
        .concat()
}

/// The records of finished runs, with the time of each.
fn records(folder: &Path) -> Vec<(PathBuf, std::time::SystemTime)> {
    let Ok(cells) = fs::read_dir(folder.join("cells")) else { return Vec::new() };
    let runs = cells.flat_map(|cell| fs::read_dir(cell.unwrap().path()).unwrap());
    let mut found: Vec<_> = runs
        .map(|run| run.unwrap())
        .filter(|run| run.path().extension().is_some_and(|ending| ending == "json"))
        .map(|run| (run.path(), run.metadata().unwrap().modified().unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn a_short_sweep_makes_figures_and_a_report() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("sweep");
    let figures = json(&ring(&arguments(&folder, &["--format", "json"])));
    let figures = figures.as_array().unwrap();
    let plan: Value = serde_json::from_slice(&fs::read(folder.join("plan.json")).unwrap()).unwrap();
    assert_eq!(figures.len(), plan["cells"].as_array().unwrap().len());
    for figure in figures {
        assert_eq!((figure["lost"].as_u64(), figure["runs"].as_u64()), (Some(0), Some(1)), "{figure}");
        assert!(figure["messages_per_second"]["median"].as_f64().unwrap() > 0.0, "{figure}");
    }
    let csv = fs::read_to_string(folder.join("figures.csv")).unwrap();
    assert_eq!(csv.lines().count(), figures.len() + 1);
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns), "{csv}");

    let (markdown, html) =
        (fs::read_to_string(folder.join("report.md")), fs::read_to_string(folder.join("report.html")));
    let (markdown, html) = (markdown.unwrap(), html.unwrap());
    for heading in [
        "Throughput by message size",
        "Latency by rate",
        "A slow receiver",
        "Ring size",
        "Subscribers",
        "Jitter floor",
    ] {
        assert!(markdown.contains(heading) && html.contains(heading), "{heading}");
    }
    // Every plot that the Markdown references exists, and the page contains all of them and needs no other file.
    let shown: Vec<&str> =
        markdown.lines().filter_map(|line| line.split_once("](plots/")?.1.strip_suffix(')')).collect();
    assert!(shown.len() >= 10, "{shown:?}");
    for plot in &shown {
        let svg = fs::read_to_string(folder.join("plots").join(plot)).unwrap();
        assert!(svg.contains("class=\"mark\"") && html.contains(&svg), "{plot}");
    }
    assert!(!html.contains("src=") && !html.contains("href="));

    // The report can be made again from the records alone.
    fs::remove_file(folder.join("report.md")).unwrap();
    let again = ring(&["sweep", "--report-only", folder.to_str().unwrap()]);
    assert!(again.status.success(), "{again:?}");
    assert_eq!(fs::read_to_string(folder.join("report.md")).unwrap(), markdown);
}

#[test]
fn a_killed_sweep_goes_on_where_it_was() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("sweep");
    let few = ["--sections", "spin,slow-receiver", "--runs", "3"];
    let mut sweep = start(&arguments(&folder, &few));
    until(|| records(&folder).len() >= 3);
    sweep.0.kill().unwrap();
    sweep.0.wait().unwrap();
    let before = records(&folder);
    let plan: Value = serde_json::from_slice(&fs::read(folder.join("plan.json")).unwrap()).unwrap();
    let all = 3 * plan["cells"].as_array().unwrap().len();
    assert!(before.len() < all, "it was over before it was killed");

    let resumed = ring(&["sweep", "--resume", folder.to_str().unwrap()]);
    assert!(resumed.status.success(), "{resumed:?}");
    let after = records(&folder);
    assert_eq!(after.len(), all);
    assert!(before.iter().all(|record| after.contains(record)), "finished runs are not run again");
    let sessions: Value = serde_json::from_slice(&fs::read(folder.join("sessions.json")).unwrap()).unwrap();
    assert_eq!(sessions.as_array().unwrap().len(), 2);

    // A complete sweep is only reported.
    let complete = ring(&arguments(&folder, &few));
    assert!(complete.status.success() && text(&complete.stderr).contains("are done"), "{complete:?}");
    assert_eq!(records(&folder), after);
}

#[test]
fn a_run_that_was_cut_short_is_run_again() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("sweep");
    let one = ["--sections", "slow-receiver"];
    assert!(ring(&arguments(&folder, &one)).status.success());
    let (victim, _) = records(&folder)[0].clone();
    fs::write(&victim, "{\"cell\": ").unwrap();
    assert!(ring(&arguments(&folder, &one)).status.success());
    let mended: Value = serde_json::from_slice(&fs::read(&victim).unwrap()).unwrap();
    assert_eq!(mended["cell"]["section"], "slow-receiver");
}

#[test]
fn another_plan_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("sweep");
    assert!(ring(&arguments(&folder, &["--sections", "slow-receiver"])).status.success());
    for (others, difference) in [
        (&["--sections", "spin"][..], "sections: slow-receiver there, spin now"),
        (&["--sections", "slow-receiver", "--runs", "2"], "runs: 1 there, 2 now"),
        (&["--sections", "slow-receiver", "--cpus", "0"], "cpus: "),
    ] {
        let refused = ring(&arguments(&folder, others));
        let error = text(&refused.stderr);
        // On a machine with one core the last case is the same plan.
        if refused.status.success() && others.contains(&"--cpus") {
            continue;
        }
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains("a different plan") && error.contains(difference), "{error}");
        assert!(error.contains("hint: ") && error.contains("--resume"), "{error}");
    }
}

#[test]
fn what_cannot_be_swept_is_explained() {
    let place = tempfile::tempdir().unwrap();
    let nowhere = place.path().join("nothing");
    for option in ["--resume", "--report-only"] {
        let output = ring(&["sweep", option, nowhere.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("holds no sweep"), "{output:?}");
    }
    let core = ring(&arguments(&nowhere, &["--cpus", "8000"]));
    assert!(text(&core.stderr).contains("core 8000 is not available"), "{core:?}");
    assert!(!nowhere.exists(), "nothing is left behind");
    fs::create_dir(place.path().join("full")).unwrap();
    fs::write(place.path().join("full/file"), "").unwrap();
    let full = ring(&arguments(&place.path().join("full"), &[]));
    assert!(text(&full.stderr).contains("is not empty"), "{full:?}");
    for (arguments, said) in [
        (&["sweep", "--sections", "everything"][..], "slow-receiver"),
        (&["sweep", "--runs", "0"], "0"),
        (&["sweep", "--resume", "a", "--short"], "cannot be used with"),
    ] {
        let output = ring(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(said), "{output:?}");
    }
}
