//! The hub by items and clients.

use tapeline_perf::plot::Scale;

use crate::floor::Floor;
use crate::{Drawing, Line, Measuring};

/// Updates of different content, where there are no more items.
const VARIED: u64 = 1_024;
/// Steps over the items, with no common divisor with their number.
const STEP: usize = 7_919;

/// What an update and an opening cost by the number of open items.
pub(crate) fn items(measuring: &Measuring) -> anyhow::Result<Drawing> {
    let sizes = measuring.sizes(&[100, 1_000, 10_000, 100_000, 500_000, 2_000_000], 2);
    let mut lines = ["update", "update, prepared", "open, image, close"].map(Line::new);
    for items in &sizes {
        let updates = (*items).max(VARIED) as usize;
        let mut floor = Floor::in_order(1, *items as usize, None, updates, |update| update * STEP);
        let opened = floor.connections.sent;
        // An image grows at its first update; what is measured is every later one.
        (0..updates).for_each(|update| floor.update(update));
        lines[0].figures.push(measuring.each(|turn| floor.update(turn)));
        let mut prepared = 0;
        lines[1].figures.push(measuring.each(|turn| {
            if prepared == 0 {
                prepared = floor.expect(turn);
            }
            prepared -= 1;
            floor.update(turn);
        }));
        floor.fold();
        let updated = floor.connections.sent;
        lines[2].figures.push(measuring.each(|turn| {
            let messages = floor.open_and_close(turn.wrapping_mul(STEP));
            floor.send(&messages);
        }));
        anyhow::ensure!(floor.hub.memory().items == *items as usize, "the hub has not all images");
        anyhow::ensure!(updated > opened && floor.connections.sent > updated, "the hub has sent nothing");
        let bytes = floor.hub.memory().bytes as u64;
        for line in &mut lines {
            line.bytes.push(bytes);
            line.memory = "the images";
        }
    }
    Ok(Drawing {
        name: "growth-items",
        title: "The hub by items",
        x_title: "items that a client has open",
        y_title: "ns",
        scale: Scale::Logarithmic,
        what: "One client has all items open, each with an image of 70 fields. An update has 13 fields and is of another item than those before it: it is encoded for the client \
               and folded into the image. *Prepared*: the hub's thread asks for the memory of the next items before it needs them. An opening is a request, its image and \
               its close.",
        sizes,
        lines: lines.into(),
    })
}

/// What an update costs for each client that has the item open.
pub(crate) fn clients(measuring: &Measuring) -> anyhow::Result<Drawing> {
    let sizes = measuring.sizes(&[1, 10, 100, 1_000, 5_000], 0);
    let mut lines = ["all fields", "a view of three fields"].map(Line::new);
    for (line, view) in lines.iter_mut().zip([None, Some(&[1, 6, 11][..])]) {
        for clients in &sizes {
            let mut floor = Floor::new(*clients as usize, 1, view, VARIED as usize);
            let whole = measuring.each(|turn| floor.update(turn));
            line.figures.push(whole.into_iter().map(|ns| ns / *clients as f64).collect());
        }
        line.bend = "what all clients share, one encoding and one fold, no longer counts";
    }
    Ok(Drawing {
        name: "growth-clients",
        title: "The hub by clients",
        x_title: "clients that have the item open",
        y_title: "ns for each client",
        scale: Scale::Logarithmic,
        what: "One item, updates of 13 fields, the time of an update divided by the clients that it goes to. Their connections take everything at once; \
               a socket's system call is not in it.",
        sizes,
        lines: lines.into(),
    })
}

/// The memory of images, sessions and orders by their number.
pub(crate) fn memory(measuring: &Measuring) -> anyhow::Result<Drawing> {
    let sizes = measuring.sizes(&[1_000, 10_000, 100_000, 1_000_000], 1);
    let mut lines = ["client with one item", "image of 70 fields", "order on the books"].map(Line::new);
    let mut kept = Vec::new();
    for count in &sizes {
        // A million would only take long. None is dropped before the last: it would leave its memory to the next.
        let clients = (*count <= 100_000).then(|| {
            let before = resident_bytes();
            kept.push(Floor::new(*count as usize, 1, None, 1));
            (resident_bytes() - before) / *count as f64
        });
        lines[0].figures.push(clients.into_iter().collect());
    }
    drop(kept);
    for count in &sizes {
        let floor = Floor::new(0, *count as usize, None, 1);
        lines[1].figures.push(vec![floor.hub.memory().bytes as f64 / *count as f64]);
        lines[2].figures.push(crate::books::bytes_of_an_order(*count));
    }
    lines[0].bend = "what the hub has anyway no longer counts";
    lines[2].bend = "the books' own memory (levels of 500 symbols) no longer counts";
    Ok(Drawing {
        name: "growth-memory",
        title: "Memory by clients, items and orders",
        x_title: "clients, items, orders",
        y_title: "bytes each",
        scale: Scale::Logarithmic,
        what: "A client's session in the hub, by what the process takes more, without its connection (a socket and its buffers); an image before its first update, as \
               the hub counts it (`tapeline stat` shows the same); an order, as the books count everything they hold.",
        sizes,
        lines: lines.into(),
    })
}

/// The memory that this process has now.
fn resident_bytes() -> f64 {
    let statistics = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = statistics.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as f64
}
