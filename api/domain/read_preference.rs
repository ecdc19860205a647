use clap::ValueEnum;

/// Which member serves reads that do not need the primary: the supported modes of MongoDB's read preference.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadPreference {
    /// The primary alone.
    #[default]
    #[value(name = "primary")]
    Primary,
    /// A secondary if there is one, else the primary.
    #[value(name = "secondaryPreferred")]
    SecondaryPreferred,
    /// The member with the lowest network latency.
    #[value(name = "nearest")]
    Nearest,
}
