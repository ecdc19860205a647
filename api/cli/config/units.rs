//! Numbers with a unit, as people write them: `64MiB`, `30s`, `24h`. A number alone has the unit that its
//! setting counts in.

use std::ops::RangeInclusive;

use pagebucket_model::domain::Invalid;

/// A unit, and what it is worth in the first one of its kind.
type Unit = (&'static str, u64);

const TIMES: &[Unit] = &[("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
const SIZES: &[Unit] = &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Parses a whole number of this unit, which may be written in others of its kind.
pub(crate) fn number_of<N: TryFrom<u64> + 'static>(
    own: &'static str,
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<N, Invalid> + Clone + Send + Sync + 'static {
    let units = if SIZES.iter().any(|(name, _)| *name == own) { SIZES } else { TIMES };
    let worth = move |name: &str| units.iter().find(|unit| unit.0 == name).map(|unit| unit.1);
    move |text| {
        let text = text.trim();
        let (number, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
        let parse = || {
            let unit = if unit.is_empty() { worth(own) } else { worth(unit.trim_start()) }?;
            let (total, own) = (number.parse::<u64>().ok()?.checked_mul(unit)?, worth(own)?);
            let number = Some(total / own).filter(|number| total % own == 0 && range.contains(number))?;
            N::try_from(number).ok()
        };
        parse().ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            let names: Vec<_> = units.iter().map(|unit| unit.0).collect();
            let names = names.join(", ");
            Invalid(format!("must be {least}{own} to {most}{own}, in {names}, or a number alone, in {own}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_a_unit_or_its_own() {
        let (seconds, days) = (number_of::<u64>("s", 0..=86_400), number_of::<u64>("d", 0..=10));
        for (text, value) in [("30", 30), (" 30s ", 30), ("5 m", 300), ("24h", 86_400), ("1d", 86_400)] {
            assert_eq!(seconds(text), Ok(value), "{text}");
        }
        assert_eq!((days("48h"), days("7")), (Ok(2), Ok(7)));
        let sizes = number_of::<u32>("MiB", 1..=65_536);
        assert_eq!((sizes("64MiB"), sizes("1GiB"), sizes("32")), (Ok(64), Ok(1024), Ok(32)));
        for text in
            ["", "s", "-1", "+1", "1.5s", "30S", "30 s s", "25h", "2d", "99999999999999999999", "1MiB"]
        {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert!(days("1h").is_err() && sizes("1KiB").is_err());
        let Err(Invalid(rule)) = sizes("64MB") else { panic!("a unit that is none") };
        assert_eq!(rule, "must be 1MiB to 65536MiB, in B, KiB, MiB, GiB, or a number alone, in MiB");
    }
}
