//! Where a value stands in a JSON text, for the faults of the value.

use std::fmt::Display;

use super::limits::LONGEST_NAME;
use crate::domain::{BrokenRule, Faults};

/// Where a value stands in a JSON text. It is written down only when a fault is reported.
#[derive(Clone, Copy)]
pub(crate) enum ValuePath<'a> {
    /// At this JSON Pointer.
    At(&'a str),
    /// A member of an object.
    Member(&'a ValuePath<'a>, &'a str),
    /// An item of an array.
    Item(&'a ValuePath<'a>, usize),
}

impl ValuePath<'_> {
    /// The number of values from the outermost one to this one.
    pub(crate) fn level(&self) -> u32 {
        match self {
            Self::At(_) => 1,
            Self::Member(above, _) | Self::Item(above, _) => above.level() + 1,
        }
    }

    /// Adds a fault at this place. A name of more than 64 bytes is not repeated: the fault is reported of the
    /// object that has it.
    pub(crate) fn fault(&self, faults: &mut Faults, rule: BrokenRule) {
        let Some((object, bytes)) = self.outermost_long_name() else {
            return faults.push(|| self.pointer(), rule);
        };
        let of_object =
            |rule: &dyn Display| format!("has a field with a name of {bytes} bytes, which {rule}");
        let rule = match rule {
            BrokenRule::Type { rule, found } => BrokenRule::Type { rule: of_object(&rule), found },
            rule => of_object(&rule).into(),
        };
        faults.push(|| object.pointer(), rule);
    }

    fn outermost_long_name(&self) -> Option<(&Self, usize)> {
        match self {
            Self::At(_) => None,
            Self::Item(above, _) => above.outermost_long_name(),
            Self::Member(above, name) => above
                .outermost_long_name()
                .or_else(|| (name.len() > LONGEST_NAME).then_some((above, name.len()))),
        }
    }

    fn pointer(&self) -> String {
        match self {
            Self::At(pointer) => (*pointer).to_owned(),
            Self::Item(above, index) => format!("{}/{index}", above.pointer()),
            Self::Member(above, name) => format!("{}/{}", above.pointer(), escaped(name)),
        }
    }
}

/// A name as a part of a JSON Pointer.
pub(crate) fn escaped(name: &str) -> String {
    // RFC 6901, section 3: "~" before "/", or the escape would be escaped.
    name.replace('~', "~0").replace('/', "~1")
}
