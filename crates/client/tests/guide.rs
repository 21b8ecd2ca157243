//! The page `docs/from-ema.md` shows the examples as they are.

use std::fs;
use std::path::Path;

#[test]
fn the_guide_shows_each_example_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/from-ema.md")).unwrap();
    let examples = fs::read_dir(root.join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for path in examples.chain([root.join("../node/examples/plant.rs")]) {
        let code = fs::read_to_string(&path).unwrap();
        let block = format!("\n```rust\n{code}```\n");
        assert!(page.contains(&block), "docs/from-ema.md does not show {} as it is", path.display());
        count += 1;
    }
    assert_eq!(page.matches("\n```rust\n").count(), count, "the page shows a program that is no example");
}
