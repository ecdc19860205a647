use super::{Instant, Invalid};

/// A half-open span of time: at or after one moment, and before another. Either end may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateRange {
    from: Option<Instant>,
    to: Option<Instant>,
}

impl DateRange {
    /// # Errors
    /// `to` is before `from`. If they are equal, the span is empty.
    pub fn new(from: Option<Instant>, to: Option<Instant>) -> Result<Self, Invalid> {
        match (from, to) {
            (Some(from), Some(to)) if to < from => Err(Invalid::new("must not be before `from`")),
            _ => Ok(Self { from, to }),
        }
    }

    /// The first moment in the span, unless it is open.
    pub fn from(self) -> Option<Instant> {
        self.from
    }

    /// The first moment after the span, unless it is open.
    pub fn to(self) -> Option<Instant> {
        self.to
    }

    /// Whether this moment is in the span.
    pub fn contains(self, date: Instant) -> bool {
        self.from.is_none_or(|from| from <= date) && self.to.is_none_or(|to| date < to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Instant {
        Instant::from_millis(millis).unwrap()
    }

    #[test]
    fn begins_with_from_and_ends_before_to() {
        let range = DateRange::new(Some(at(5)), Some(at(7))).unwrap();
        assert_eq!([4, 5, 6, 7].map(|millis| range.contains(at(millis))), [false, true, true, false]);
        let since = DateRange::new(Some(at(5)), None).unwrap();
        assert_eq!([4, 5, 9].map(|millis| since.contains(at(millis))), [false, true, true]);
        let until = DateRange::new(None, Some(at(5))).unwrap();
        assert_eq!([-9, 4, 5].map(|millis| until.contains(at(millis))), [true, true, false]);
    }

    #[test]
    fn may_be_empty_but_not_reversed() {
        assert!(!DateRange::new(Some(at(5)), Some(at(5))).unwrap().contains(at(5)));
        assert!(DateRange::new(Some(at(6)), Some(at(5))).is_err());
    }
}
