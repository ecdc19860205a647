/// How deep arrays and objects of an item may stand in each other; the item itself is the first. It bounds the
/// recursion of all that reads items.
pub(super) const MOST_LEVELS: u32 = 32;
