//! Everything must also work without the time-stamp counter: the test starts itself again without it.

use std::process::Command;

use tapeline_measure::{Calibration, Clock, TickSource, monotonic_ns, tick_source, ticks, ticks_ordered};

const WITHOUT: &str = "TAPELINE_CLOCK";

#[test]
fn works_without_a_counter() {
    if std::env::var_os(WITHOUT).is_none() {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "works_without_a_counter", "--nocapture"])
            .env(WITHOUT, "system")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let before = monotonic_ns();
    let (first, second) = (ticks(), ticks_ordered());
    assert!(first.0 >= before && second >= first && monotonic_ns() >= second.0);
    assert_eq!(tick_source(), TickSource::System);

    let mut clock = Clock::calibrate();
    let khz = clock.calibration().ticks_khz();
    assert!(khz.abs_diff(1_000_000) <= 1, "a tick is a nanosecond: {khz}");
    let now = clock.now();
    assert!(!clock.recalibrate().jumped);
    assert!(clock.now() >= now);
    let words = clock.calibration().to_words();
    assert_eq!(Calibration::from_words(words), Some(clock.calibration()));
}
