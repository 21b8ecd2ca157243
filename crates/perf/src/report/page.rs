//! The page: one self-contained file that can also be printed.

use std::fmt::Write as _;

use tapeline_console::output;
use tapeline_measure::{Rank, figures};

use super::gate::Verdict;
use super::groups::{Alike, Compared, Group, Groups};
use super::loaded::{Figure, Loaded};
use super::plots::Plot;
use crate::plot::escaped;
use crate::spread::Spread;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;max-width:1180px;margin:2rem auto;padding:0 1rem;\
color:#222;background:#fff}\
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.2rem}\
table{border-collapse:collapse;margin:.6rem 0;font-variant-numeric:tabular-nums}\
th,td{padding:.25rem .7rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}\
td.n,th.n{text-align:right;white-space:nowrap}\
.PASS{color:#00734f}.NOISY{color:#8a5a00}.OVERLOAD,.LOSSY,.GENERATOR-LIMITED,.NO-RESULT,.FAIL{color:#b3261e}\
.verdict{font-weight:600}.scroll{width:max-content;min-width:100%}small{color:#666}\
svg{max-width:100%;height:auto;border-radius:4px}summary{cursor:pointer}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}th,td{border-color:#333}small{color:#999}\
svg{filter:invert(.91) hue-rotate(180deg)}\
.PASS{color:#5bd6a5}.NOISY{color:#e0b060}.OVERLOAD,.LOSSY,.GENERATOR-LIMITED,.NO-RESULT,.FAIL{color:#ff8a80}}";

/// The percentiles that have a column.
const RANKS: [Rank; 6] = [
    Rank::MEDIAN,
    Rank::Hundredths(9_000),
    Rank::P99,
    Rank::Hundredths(9_990),
    Rank::Hundredths(9_999),
    Rank::Max,
];

pub(super) fn page(title: &str, groups: &Groups, plots: &[Plot], verdicts: &[Verdict]) -> String {
    let title = escaped(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<h1>{title}</h1>\n"
    );
    // Writing to a String does not fail.
    let _ = (
        gates(&mut page, verdicts),
        overview(&mut page, groups),
        compared(&mut page, groups),
        drawn(&mut page, plots),
        phases(&mut page, groups),
        details(&mut page, groups),
    );
    let _ = write!(
        page,
        "<p><small>Written by tapeline {}. How the cost of each part grows with its size: docs/benchmarks/growth.md, which \
         <code>make bench-growth DOC=1</code> draws for a machine.</small></p>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    page
}

fn gates(page: &mut String, verdicts: &[Verdict]) -> std::fmt::Result {
    if verdicts.is_empty() {
        return Ok(());
    }
    writeln!(page, "<h2>Gates</h2>\n<ul>")?;
    for verdict in verdicts {
        let class = if verdict.is_good { "PASS" } else { "FAIL" };
        writeln!(page, "<li class=\"{class}\">{}</li>", escaped(&verdict.to_string()))?;
    }
    writeln!(page, "</ul>")
}

/// A row for each run.
fn overview(page: &mut String, groups: &Groups) -> std::fmt::Result {
    page.push_str(
        "<h2>Runs</h2>\n<div class=\"scroll\"><table>\n<tr><th>run</th><th>verdict</th><th class=\"n\">messages/s</th>\n\
         <th class=\"n\">lost</th><th class=\"n\">cores</th><th class=\"n\">memory</th><th>latency</th>\n",
    );
    for rank in RANKS {
        writeln!(page, "<th class=\"n\">{}</th>", rank.name())?;
    }
    writeln!(page, "<th class=\"n\">jitter floor</th></tr>")?;
    for run in groups.runs() {
        let (word, _) = run.verdict.clone().unwrap_or_default();
        let cell =
            |text: Option<String>| format!("<td class=\"n\">{}</td>", text.unwrap_or_else(|| "–".to_owned()));
        writeln!(
            page,
            "<tr><td>{}<br><small>{}, {}</small></td><td class=\"verdict {}\">{}</td>",
            escaped(&run.group),
            escaped(&run.kind),
            escaped(&run.name),
            class(&word),
            escaped(&word)
        )?;
        page.push_str(&cell(run.throughput.map(|rate| output::rate(rate, "msgs"))));
        page.push_str(&cell(run.lost.map(figures::thousands)));
        page.push_str(&cell(run.cpu_cores.map(|cores| format!("{cores:.2}"))));
        page.push_str(&cell(run.memory_bytes.map(|bytes| figures::quantity(bytes, "B", true))));
        writeln!(page, "<td>{}</td>", run.whole().map_or(String::new(), |latency| escaped(&latency.name)))?;
        for rank in RANKS {
            page.push_str(&cell(run.figure(Figure::Latency(rank)).map(|ns| figures::duration(ns as u64))));
        }
        page.push_str(&cell(run.jitter_floor_ns.map(figures::duration)));
        writeln!(page, "</tr>")?;
    }
    writeln!(page, "</table></div>\n<ul>")?;
    for (run, (word, why)) in groups.runs().filter_map(|run| Some((run, run.verdict.as_ref()?))) {
        let (name, class, word, why) = (escaped(&run.name), class(word), escaped(word), escaped(why));
        writeln!(page, "<li>{name}: <span class=\"verdict {class}\">{word}</span>: {why}</li>")?;
    }
    writeln!(
        page,
        "</ul>\n<p><small>A percentile stands there only where at least ten samples lie beyond it.</small></p>"
    )
}

/// Groups of the same end side by side, with ratios to the first.
fn compared(page: &mut String, groups: &Groups) -> std::fmt::Result {
    groups.alike().try_for_each(|alike| side_by_side(page, &alike))
}

fn side_by_side(page: &mut String, alike: &Alike<'_>) -> std::fmt::Result {
    let Alike { first, others, compared } = alike;
    let all = || std::iter::once(*first).chain(others.iter().copied());
    let what = match compared {
        Compared::Whole(hop) => format!("Latency is that of {}.", escaped(hop)),
        Compared::ServiceTime => "Latency is service time, from the start of encoding: not all of these runs know when messages were \
             due. Latency files of other makers' tools have start-up in them."
            .to_owned(),
        Compared::Nothing => "Latencies are of different things: these runs have no hop in common.".to_owned(),
    };
    writeln!(page, "<h2>Side by side</h2>\n<p>{what}</p>\n<div class=\"scroll\"><table>\n<tr><th></th>")?;
    for group in all() {
        let runs = group.runs.len();
        let count = if runs == 1 {
            String::new()
        } else {
            format!("<br><small>{runs} runs: median, least to most</small>")
        };
        writeln!(page, "<th class=\"n\">{}{count}</th>", escaped(&group.name))?;
    }
    writeln!(page, "</tr>")?;
    let latency = RANKS.map(|rank| (rank.name(), Figure::Latency(rank)));
    let rest = [
        ("mean".to_owned(), Figure::Mean),
        ("throughput".to_owned(), Figure::Throughput),
        ("cores".to_owned(), Figure::Cpu),
        ("memory".to_owned(), Figure::Memory),
    ];
    for (name, figure) in latency.into_iter().chain(rest) {
        if all().all(|group| group.spread(figure).is_none()) {
            continue;
        }
        let base = first.spread(figure);
        write!(page, "<tr><th>{name}</th><td class=\"n\">{}</td>", spread_cell(first, figure, base))?;
        for group in others {
            let spread = group.spread(figure);
            let ratio = base.zip(spread).filter(|(base, _)| base.median > 0.0);
            let ratio = ratio.map_or(String::new(), |(base, spread)| {
                format!("<br><b>{:.2} ×</b>", spread.median / base.median)
            });
            write!(page, "<td class=\"n\">{}{ratio}</td>", spread_cell(group, figure, spread))?;
        }
        writeln!(page, "</tr>")?;
    }
    writeln!(page, "</table></div>")
}

fn spread_cell(group: &Group, figure: Figure, spread: Option<Spread>) -> String {
    let Some(Spread { least, median, most }) = spread else { return "–".to_owned() };
    let shown = |value: f64| shown(figure, value);
    match group.runs.len() {
        1 => shown(median),
        _ => format!("{}<br><small>{} to {}</small>", shown(median), shown(least), shown(most)),
    }
}

fn shown(figure: Figure, value: f64) -> String {
    match figure {
        Figure::Latency(_) | Figure::Mean => figures::duration(value as u64),
        Figure::Throughput => output::rate(value, "msgs"),
        Figure::Cpu => format!("{value:.2}"),
        Figure::Memory => figures::quantity(value, "B", true),
        Figure::Lost => figures::thousands(value as u64),
    }
}

fn drawn(page: &mut String, plots: &[Plot]) -> std::fmt::Result {
    if !plots.is_empty() {
        writeln!(page, "<h2>Plots</h2>")?;
    }
    for plot in plots {
        writeln!(page, "<div class=\"scroll\" id=\"{}\">\n{}</div>", plot.name, plot.svg)?;
    }
    Ok(())
}

fn phases(page: &mut String, groups: &Groups) -> std::fmt::Result {
    if groups.runs().all(|run| run.phases.is_empty()) {
        return Ok(());
    }
    writeln!(
        page,
        "<h2>Start-up and steady state</h2>\n<div class=\"scroll\"><table>\n<tr><th>run</th><th>phase</th><th class=\"n\">seconds</th>\
         <th class=\"n\">throughput</th><th class=\"n\">p50</th><th class=\"n\">p99</th><th class=\"n\">max</th></tr>"
    )?;
    for run in groups.runs() {
        for phase in &run.phases {
            let at = |rank: &str| {
                output::latency(phase.latency.iter().find(|(name, _)| name == rank).map(|(_, ns)| *ns))
            };
            writeln!(
                page,
                "<tr><td>{}</td><td>{}</td><td class=\"n\">{:.3}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                escaped(&run.name),
                escaped(&phase.name),
                phase.seconds,
                output::rate(phase.messages_per_second, "msgs"),
                at("p50"),
                at("p99"),
                at("max")
            )?;
        }
    }
    writeln!(page, "</table></div>")
}

/// The settings and the environment of each run.
fn details(page: &mut String, groups: &Groups) -> std::fmt::Result {
    writeln!(page, "<h2>Where and how</h2>")?;
    for run in groups.runs() {
        writeln!(page, "<details><summary>{}</summary>", escaped(&run.name))?;
        for note in &run.notes {
            writeln!(page, "<p>{}</p>", escaped(note))?;
        }
        writeln!(page, "<table>")?;
        let Loaded { started, seconds, settings, environment, .. } = run;
        let fixed = [
            ("started".to_owned(), started.clone()),
            ("seconds".to_owned(), seconds.map_or(String::new(), |seconds| format!("{seconds:.3}"))),
        ];
        for (name, value) in
            fixed.iter().chain(settings).chain(environment).filter(|(_, value)| !value.is_empty())
        {
            writeln!(page, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value))?;
        }
        writeln!(page, "</table></details>")?;
    }
    Ok(())
}

/// The CSS class of a verdict; empty for an unknown word.
fn class(word: &str) -> &'static str {
    ["PASS", "NOISY", "OVERLOAD", "LOSSY", "GENERATOR-LIMITED", "NO-RESULT"]
        .into_iter()
        .find(|known| *known == word)
        .unwrap_or_default()
}
