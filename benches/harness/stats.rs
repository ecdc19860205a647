//! Medians, quartiles, and ratios of blocks that ran in one round.

/// Median and quartiles.
#[derive(Clone, Copy)]
pub struct Spread {
    pub lower: f64,
    pub median: f64,
    pub upper: f64,
}

impl Spread {
    /// `None` of nothing. Between two values it is interpolated.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let (below, part) = (place.floor() as usize, place.fract());
            let above = values[last.min(below + 1)];
            // Equal infinities have no difference.
            if part == 0.0 { values[below] } else { values[below] * (1.0 - part) + above * part }
        };
        Some(Self { lower: at(0.25), median: at(0.5), upper: at(0.75) })
    }

    /// Of the ratios of values with the same index, which are of the same round.
    pub fn of_ratios(above: &[f64], below: &[f64]) -> Option<Self> {
        Self::of(above.iter().zip(below).map(|(above, below)| above / below))
    }
}

/// 0 of nothing.
pub fn mean(values: &[u32]) -> f64 {
    values.iter().fold(0.0, |sum, value| sum + f64::from(*value)) / values.len().max(1) as f64
}

/// The value that so large a share of sorted values does not exceed; 0 of nothing.
pub fn percentile(sorted: &[u32], share: f64) -> f64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().map_or(0.0, f64::from)
}
