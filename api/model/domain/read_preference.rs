//! Which member of a replica set serves reads.

/// Which member serves reads that do not need the primary: the supported modes of MongoDB's read preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadPreference {
    /// The primary alone.
    #[default]
    Primary,
    /// A secondary if there is one, else the primary.
    SecondaryPreferred,
    /// The member with the lowest network latency.
    Nearest,
}
