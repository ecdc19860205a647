//! Histories of other definitions than that of trades.

mod descriptors;
