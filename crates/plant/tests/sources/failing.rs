//! Several providers of one service.

use tapeline_plant::sources::{LinkId, Policy, Posts};

use super::world::{World, open, provided};

const P0: LinkId = LinkId(0);
const P1: LinkId = LinkId(1);

#[test]
fn the_next_one_takes_over() {
    let mut world = World::new(provided(2, Policy::First, Posts::Refuse));
    world.arrive(0);
    world.arrive(1);
    world.demand(open("IBM"));
    assert_eq!(world.heard(P0), ["open IBM"]);
    assert_eq!(world.heard(P1), [""; 0]);
    world.ticks();
    world.kill(P0);
    assert_eq!(world.heard(P1), ["open IBM"]);
    assert_eq!(
        world.ticks(),
        ["IBM STATUS OPEN SUSPECT \"The connection is lost.\" (suspect)", "IBM REFRESH OPEN OK 1.00"]
    );
    // It serves until it goes itself: nobody is moved back and forth.
    world.arrive(0);
    assert_eq!((world.heard(P0).len(), world.ticks().len()), (0, 0));
    world.update(P1, "IBM", 107);
    assert_eq!(world.ticks(), ["IBM UPDATE 1.07"]);
    world.kill(P1);
    assert_eq!(world.heard(P0), ["open IBM"]);
    assert_eq!(world.ticks().len(), 2);
}

#[test]
fn items_are_spread_and_moved() {
    let mut world = World::new(provided(2, Policy::Balance, Posts::Refuse));
    world.arrive(0);
    world.arrive(1);
    for name in ["A", "B", "C", "D"] {
        world.demand(open(name));
    }
    assert_eq!((world.heard(P0).len(), world.heard(P1).len()), (2, 2));
    world.ticks();
    world.kill(P1);
    assert_eq!(world.heard(P0).len(), 2);
    let ticks = world.ticks();
    assert_eq!(ticks.iter().filter(|tick| tick.contains("SUSPECT")).count(), 2, "{ticks:?}");
    assert_eq!(ticks.iter().filter(|tick| tick.contains("REFRESH OPEN OK")).count(), 2, "{ticks:?}");
    // Nobody is left; then one returns.
    world.kill(P0);
    assert!(world.ticks().contains(&"down".to_owned()));
    world.arrive(1);
    assert_eq!(world.heard(P1).len(), 4);
    assert_eq!(world.ticks().iter().filter(|tick| tick.contains("REFRESH OPEN OK")).count(), 4);
}

#[test]
fn a_warm_standby_needs_no_new_request() {
    let mut world = World::new(provided(2, Policy::Warm, Posts::Refuse));
    world.arrive(0);
    world.arrive(1);
    world.demand(open("IBM"));
    assert_eq!((world.heard(P0), world.heard(P1)), (vec!["open IBM".into()], vec!["open IBM".into()]));
    world.update(P1, "IBM", 150);
    assert_eq!(world.ticks(), ["FEED up", "IBM REFRESH OPEN OK 1.00"], "it is not its turn");
    world.kill(P0);
    assert_eq!(
        world.ticks(),
        ["IBM STATUS OPEN SUSPECT \"The connection is lost.\" (suspect)", "IBM REFRESH OPEN OK 1.50"]
    );
    assert_eq!(world.heard(P1), [""; 0]);
    world.update(P1, "IBM", 151);
    assert_eq!(world.ticks(), ["IBM UPDATE 1.51"]);
    world.arrive(0);
    assert_eq!(world.heard(P0), ["open IBM"]);
    assert_eq!(world.ticks(), [""; 0]);
    world.kill(P1);
    assert_eq!(
        world.ticks(),
        ["IBM STATUS OPEN SUSPECT \"The connection is lost.\" (suspect)", "IBM REFRESH OPEN OK 1.00"]
    );
}
