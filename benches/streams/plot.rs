//! Bars, in groups, as SVG.

use std::fmt::Write;

use crate::harness::report::grouped;
use crate::harness::svg::{self, COLOURS};

/// Bars that belong together.
pub struct Group {
    pub title: &'static str,
    pub bars: Vec<Bar>,
}

pub struct Bar {
    pub label: String,
    /// Not less than 0.
    pub value: f64,
}

const WIDTH: f64 = 820.0;
const TOP: f64 = 50.0;
/// Labels end here, and bars begin.
const LEFT: f64 = 170.0;
/// Where the longest bar of a group ends; behind it is its number.
const RIGHT: f64 = 720.0;
/// From one bar to the next.
const STEP: f64 = 22.0;
const THICKNESS: f64 = 15.0;
/// A group's title, and the space before it.
const HEAD: f64 = 36.0;

/// The whole file. Each group has a scale of its own, from 0.
pub fn draw(title: &str, groups: &[Group]) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = draw_all(&mut text, title, groups);
    text
}

fn draw_all(text: &mut String, title: &str, groups: &[Group]) -> std::fmt::Result {
    let bars = groups.iter().map(|group| group.bars.len()).sum::<usize>();
    let height = TOP + HEAD * groups.len() as f64 + STEP * bars as f64 + 10.0;
    svg::begin(text, title, (WIDTH, height), 20.0)?;
    let mut y = TOP;
    for Group { title, bars } in groups {
        writeln!(text, r#"<text x="20" y="{:.1}" font-weight="bold">{title}</text>"#, y + 14.0)?;
        y += HEAD - 10.0;
        let most = bars.iter().map(|bar| bar.value).fold(1.0, f64::max);
        for Bar { label, value } in bars {
            let colour = if label.starts_with("ours") { COLOURS[0] } else { COLOURS[2] };
            let (length, middle) = ((RIGHT - LEFT) * value / most, y + THICKNESS / 2.0 + 4.5);
            writeln!(
                text,
                r#"<text x="{:.1}" y="{middle:.1}" text-anchor="end">{label}</text>"#,
                LEFT - 8.0
            )?;
            writeln!(
                text,
                r#"<rect x="{LEFT}" y="{y:.1}" width="{length:.1}" height="{THICKNESS}" fill="{colour}"/>"#
            )?;
            let number = grouped(value.round() as u64);
            writeln!(text, r#"<text x="{:.1}" y="{middle:.1}">{number}</text>"#, LEFT + length + 8.0)?;
            y += STEP;
        }
        y += 10.0;
    }
    writeln!(text, "</svg>")
}
