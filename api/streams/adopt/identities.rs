//! Whether `_id` identifies the items of a source whose server does not guarantee it.

use std::collections::HashSet;

use mongodb::bson::Bson;
use pagebucket_engine::internal::ItemKey;
use pagebucket_model::domain::OwnerId;

use super::item::DocumentReader;
use super::source::SourceError;
use super::source_item::SourceItem;
use super::watch::shown;

/// The identities of the items of one owner that were read: those of an owner come together.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    owner: Option<OwnerId>,
    seen: HashSet<ItemKey>,
}

impl Identities {
    /// Adds what is found at the next place.
    ///
    /// # Errors
    /// Its document has no `_id`, or another item has the same identity.
    pub(crate) fn add(&mut self, found: &SourceItem, reader: &DocumentReader) -> Result<(), SourceError> {
        let (owner, key, id) = match found {
            SourceItem::Item(item) => (&item.owner, item.key, item.id()),
            SourceItem::Refused(refused) => match &refused.known {
                Some((owner, key)) => (owner, *key, refused.id.clone()),
                None => return Ok(()),
            },
            SourceItem::Miscounted(_) => return Ok(()),
        };
        if self.owner.as_ref() != Some(owner) {
            *self = Self { owner: Some(owner.clone()), seen: HashSet::new() };
        }
        let has = match id {
            Bson::Null => "one without it".to_owned(),
            id if !self.seen.insert(key) => format!("several with {}", shown(&id)),
            _ => return Ok(()),
        };
        let noun = reader.definition.owner.noun();
        Err(SourceError::Unidentified(format!("{noun} {owner} has {has}")))
    }
}
