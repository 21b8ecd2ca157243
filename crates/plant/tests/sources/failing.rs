//! Several providers of one service.

use tapeline_omm::domain::ServicePart;
use tapeline_omm::domain::directory::ServiceState;
use tapeline_omm::rwf::{Domain, MessageClass, MessageView};
use tapeline_plant::demand::Demand;
use tapeline_plant::sources::{LinkId, Policy, Posts};

use super::world::{World, item, open, provided};

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
fn a_provider_that_is_not_there_is_named_once_until_it_comes() {
    let mut world = World::new(provided(1, Policy::First, Posts::Refuse));
    world.pass_time(30);
    let notes = |world: &mut World| -> Vec<String> {
        std::iter::from_fn(|| world.sources.next_note()).map(|note| note.to_string()).collect()
    };
    assert_eq!(notes(&mut world), ["P0 cannot be reached: refused; it is tried again and again"]);
    world.arrive(0);
    assert_eq!(notes(&mut world), ["P0 login", "service FEED is served by P0"]);
    world.kill(P0);
    world.pass_time(30);
    let said = notes(&mut world);
    assert_eq!(said.iter().filter(|note| note.contains("cannot be reached")).count(), 1, "{said:?}");
}

#[test]
fn the_plant_logs_out_when_it_ends() {
    let mut world = World::new(provided(2, Policy::First, Posts::Refuse));
    world.arrive(0);
    world.demand(open("IBM"));
    world.ticks();
    let said = world.end(P0);
    let [close] = &said[..] else { panic!("{said:?}") };
    let message = MessageView::parse(close).unwrap();
    assert_eq!((message.class(), message.domain()), (MessageClass::CLOSE, Domain::LOGIN));
    // What becomes of the items is said by the ring's end.
    assert_eq!(world.ticks(), [""; 0]);
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

/// A provider says that its service is up, or down, and stays.
fn say_up(world: &mut World, link: LinkId, is_up: bool) {
    let state = ServiceState { service_state: Some(is_up.into()), ..ServiceState::UP };
    world.change_service(link, ServicePart::State(state));
}

#[test]
fn a_service_that_is_back_brings_images_though_its_connection_stayed() {
    for policy in [Policy::First, Policy::Balance, Policy::Warm] {
        let mut world = World::new(provided(1, policy, Posts::Refuse));
        world.arrive(0);
        world.demand(open("IBM"));
        world.ticks();
        say_up(&mut world, P0, false);
        let ticks = world.ticks();
        assert!(
            ticks.contains(&"IBM STATUS OPEN SUSPECT \"The source is down\" (suspect)".to_owned()),
            "{ticks:?}"
        );
        world.heard(P0);
        say_up(&mut world, P0, true);
        assert_eq!(world.heard(P0), ["reissue"], "{policy:?}");
        assert_eq!(world.ticks(), ["up", "IBM REFRESH OPEN OK 1.00"], "{policy:?}");
        // It is told once: a directory that says nothing new asks for nothing.
        say_up(&mut world, P0, true);
        assert_eq!(world.heard(P0), [""; 0]);
    }
}

#[test]
fn who_stood_by_after_it_served_is_asked_for_images_when_it_serves_again() {
    let mut world = World::new(provided(2, Policy::Warm, Posts::Refuse));
    world.arrive(0);
    world.arrive(1);
    world.demand(open("IBM"));
    world.update(P1, "IBM", 150);
    say_up(&mut world, P0, false);
    say_up(&mut world, P0, true);
    world.update(P0, "IBM", 110);
    world.ticks();
    world.heard(P0);
    say_up(&mut world, P1, false);
    assert_eq!(world.heard(P0), ["reissue"]);
    assert_eq!(
        world.ticks(),
        ["IBM STATUS OPEN SUSPECT \"Another source takes over\" (suspect)", "IBM REFRESH OPEN OK 1.10"]
    );
}

/// What stood by and served a client that was behind goes on when another serves, so that it has the image to take over with.
#[test]
fn who_takes_over_is_not_held_back_for_who_served_before() {
    for policy in [Policy::First, Policy::Warm] {
        let mut world = World::new(provided(2, policy, Posts::Refuse));
        world.arrive(0);
        world.arrive(1);
        world.demand(open("IBM"));
        world.demand(Demand::Pause(item("IBM")));
        assert_eq!(world.heard(P0), ["open IBM", "reissue paused"]);
        let down = ServiceState { service_state: Some(0), ..ServiceState::default() };
        world.change_service(P0, ServicePart::State(down));
        assert_eq!(
            world.heard(P0).pop().unwrap(),
            if policy == Policy::Warm { "reissue" } else { "close IBM" }
        );
        assert_eq!(world.heard(P1), ["open IBM"], "{policy:?}");
        world.ticks();
        world.update(P1, "IBM", 107);
        assert_eq!(world.ticks(), ["IBM UPDATE 1.07"]);
        // Its client has caught up.
        world.demand(Demand::Resume(item("IBM")));
        assert_eq!(world.heard(P1), [""; 0]);
    }
}
