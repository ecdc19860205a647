//! The classes of requests that are limited separately.

/// What is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Requests that store or count something.
    Appends,
    /// Requests that read.
    Reads,
    /// Uploads and exports: their beginnings.
    Streams,
    /// Tokens and keys that have to be verified.
    SignIn,
}

impl Class {
    /// All classes, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Appends, Self::Reads, Self::Streams, Self::SignIn];

    /// The name of the class: of its policy in `RateLimit-Policy`, and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Appends => "appends",
            Self::Reads => "reads",
            Self::Streams => "streams",
            Self::SignIn => "sign-in",
        }
    }
}
