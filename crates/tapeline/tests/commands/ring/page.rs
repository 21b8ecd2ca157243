//! The commands of `docs/ring-tools.md`.

use crate::pages;

use crate::ring::OwnName;

#[test]
fn every_command_of_the_page_works() {
    let blocks = pages::commands("ring-tools.md");
    assert!(blocks.len() >= 7, "{blocks:?}");
    let place = tempfile::tempdir().unwrap();
    let has_two_cores = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    for block in blocks {
        // A ring of this test's own, and an existing core. Dead rings of other tests must not be removed.
        let name = OwnName::new();
        let mut script =
            block.replace("smem", name.as_str()).replace("rm --dead", &format!("rm {}", name.as_str()));
        if !has_two_cores {
            script = script.replace("--cpu 1", "--cpu 0");
        }
        pages::run(&script, place.path());
    }
}
