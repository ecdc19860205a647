//! The keys of a long history are compared in several readings, so that they fit into memory.

use crate::store::buckets::identity::ItemKey;

/// Keys of one owner that are compared in one reading. Each takes 40 bytes or less.
pub(crate) const MOST_KEYS: u64 = 1_000_000;

/// The keys that one reading compares: those whose first byte has a given remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyShare {
    of: u64,
    index: u64,
}

impl KeyShare {
    pub(crate) const FIRST: Self = Self { of: 1, index: 0 };

    /// The first share of the keys, for a history of this many items.
    pub(crate) fn of_items(items: u64) -> Self {
        Self { of: items.div_ceil(MOST_KEYS).clamp(1, 256), index: 0 }
    }

    pub(crate) fn next(self) -> Option<Self> {
        Some(Self { index: self.index + 1, ..self }).filter(|next| next.index < self.of)
    }

    pub(crate) fn is_first(self) -> bool {
        self.index == 0
    }

    pub(crate) fn has(self, key: ItemKey) -> bool {
        u64::from(key.last_byte()) % self.of == self.index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each key is compared in one reading, so that two equal ones meet.
    #[test]
    fn the_readings_of_a_long_history_share_its_keys() {
        for items in [0, 1, MOST_KEYS, MOST_KEYS + 1, 3_000_000, u64::MAX] {
            let shares: Vec<_> =
                std::iter::successors(Some(KeyShare::of_items(items)), |share| share.next()).collect();
            assert_eq!(shares.len() as u64, items.div_ceil(MOST_KEYS).clamp(1, 256));
            assert_eq!(shares.iter().filter(|share| share.is_first()).count(), 1);
            // Those of one upload differ in their last bytes alone.
            let line = |number: u32| {
                let number = number.to_be_bytes();
                ItemKey::read(&[&[7; 8][..], &number].concat()).unwrap()
            };
            for share in &shares {
                assert!((0..256).any(|number| share.has(line(number))), "{items}: {share:?}");
            }
            for byte in 0..=255 {
                let key = ItemKey::read(&[byte; ItemKey::LEN]).unwrap();
                assert_eq!(shares.iter().filter(|share| share.has(key)).count(), 1, "{items}: {byte}");
            }
        }
    }
}
