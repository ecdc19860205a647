//! Adoptions, as the engine stores them.

mod groups;
