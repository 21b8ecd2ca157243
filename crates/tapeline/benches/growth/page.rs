//! The figures as a page with drawings.

use std::fmt::{self, Write};

use tapeline_measure::figures::thousands;
use tapeline_perf::plot::{Chart, Point, Series};

use crate::fit::{caches, growth, median};
use crate::turns::spread;
use crate::{Drawing, Line};

pub(crate) fn page(drawings: &[Drawing], turns: usize, environment: &str) -> String {
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = write(&mut page, drawings, turns, environment);
    page
}

/// The lines of a drawing over its sizes.
pub(crate) fn chart(drawing: &Drawing) -> Chart {
    let point = |turns: &Vec<f64>| {
        let of = |choose: fn(f64, f64) -> f64| turns.iter().copied().reduce(choose);
        Some(Point { value: median(turns)?, least: of(f64::min)?, most: of(f64::max)? })
    };
    let series = drawing.lines.iter().enumerate().map(|(colour, line)| Series {
        name: line.name.to_owned(),
        points: line.figures.iter().map(point).collect(),
        colour,
        dashed: false,
    });
    Chart {
        title: drawing.title.to_owned(),
        x_title: drawing.x_title.to_owned(),
        y_title: drawing.y_title.to_owned(),
        scale: drawing.scale,
        categories: drawing.sizes.iter().map(|size| thousands(*size)).collect(),
        series: series.collect(),
        reference: None,
    }
}

fn write(page: &mut String, drawings: &[Drawing], turns: usize, environment: &str) -> fmt::Result {
    writeln!(
        page,
        "# Cost by size\n\n\
         Written by `make bench-growth DOC=1`: each point has the median of {turns} turns (the load: of three at most; memory: of one), and the bars reach from \
         the smallest to the largest. Another machine, or this one at another hour, has other figures. The sizes stand at equal steps in the drawings, \
         whatever their ratio: how a line grows is in the tables.\n\n\
         ```text\n{}\n```\n\n\
         *Power*: the power of the size that fits the line best, by least squares of the logarithms: 0 is a constant cost, 1 a cost that doubles with \
         the size. *Bends*: the sizes between which the line rises most beyond its rise before, if by more than 0.2 of that power and \
         if the turns of the two do not overlap; and what is there: memory that no longer fits into a cache, or what the bench knows of the line.",
        environment.trim_end()
    )?;
    let caches = caches();
    for drawing in drawings {
        let Drawing { name, title, x_title, y_title, what, sizes, lines, .. } = drawing;
        writeln!(page, "\n## {title}\n\n{what}\n\n![{title}: {y_title} by {x_title}]({name}.svg)\n")?;
        write!(page, "| {x_title} |")?;
        lines.iter().try_for_each(|line| write!(page, " {}, {y_title} |", line.name))?;
        writeln!(page, "\n|---:|{}", "---:|".repeat(lines.len()))?;
        for (place, size) in sizes.iter().enumerate() {
            write!(page, "| {} |", thousands(*size))?;
            let turns = |line: &Line| line.figures.get(place).cloned().unwrap_or_default();
            lines.iter().try_for_each(|line| write!(page, " {} |", spread(&turns(line), 1)))?;
            writeln!(page)?;
        }
        writeln!(page, "\n| line | power | bends |\n|---|---:|---|")?;
        for line in lines {
            let Some(growth) = growth(sizes, line, &caches) else { continue };
            let bends = growth.bend.map_or_else(
                || "no".to_owned(),
                |(from, why)| {
                    let to = sizes.get(from + 1).copied().unwrap_or_default();
                    let colon = if why.is_empty() { "" } else { ": " };
                    format!("{} to {}{colon}{why}", thousands(sizes[from]), thousands(to))
                },
            );
            writeln!(page, "| {} | {:.2} | {bends} |", line.name, growth.power)?;
        }
    }
    Ok(())
}
