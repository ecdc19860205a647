//! Medians, quartiles, means and percentiles.

use std::fmt;

/// Median and quartiles.
#[derive(Clone, Copy)]
pub struct Spread {
    pub lower: f64,
    pub median: f64,
    pub upper: f64,
}

impl Spread {
    /// `None` without values. Between two values it is interpolated.
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

    /// `median [lower, upper]`, each number written by `number`.
    pub fn show(self, number: impl Fn(f64) -> String) -> String {
        format!("{} [{}, {}]", number(self.median), number(self.lower), number(self.upper))
    }
}

/// A ratio: two digits after the point where they mean something.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            &self.show(|ratio| if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }),
        )
    }
}

/// 0 without values.
pub fn mean(values: &[u32]) -> f64 {
    values.iter().fold(0.0, |sum, value| sum + f64::from(*value)) / values.len().max(1) as f64
}

/// The value that so large a share of sorted values does not exceed; 0 without values.
pub fn percentile(sorted: &[u32], share: f64) -> f64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().map_or(0.0, f64::from)
}

/// With commas between thousands.
pub fn grouped(number: u64) -> String {
    if number < 1000 {
        number.to_string()
    } else {
        format!("{},{:03}", grouped(number / 1000), number % 1000)
    }
}
