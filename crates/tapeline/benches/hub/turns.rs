//! What several turns of a bench come to, as its page shows it.

/// Each turn's figure by the other's of the same turn.
pub(crate) fn ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()
}

/// min / **median** / max of the turns that have a figure, with so many decimals.
pub(crate) fn spread(figures: &[f64], decimals: usize) -> String {
    let mut sorted: Vec<f64> = figures.iter().copied().filter(|figure| figure.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    match (sorted.first(), sorted.get(sorted.len() / 2), sorted.last()) {
        (Some(least), Some(median), Some(most)) => {
            format!("{least:.decimals$} / **{median:.decimals$}** / {most:.decimals$}")
        }
        _ => "–".to_owned(),
    }
}
