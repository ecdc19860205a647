//! Whose histories a key reaches, as its record has it: `7` means the owner 7 of every collection of owners,
//! `customers=7` that of one collection, and `*` instead of an id every owner.

use std::collections::{BTreeMap, BTreeSet};

use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::{AllowedOwners, Invalid, OwnerType};

/// The most entries of a record.
pub const MOST_OWNERS: usize = 1000;

/// The collection that an entry names, and the id.
fn split(entry: &str) -> (Option<&str>, &str) {
    entry.split_once('=').map_or((None, entry), |(collection, id)| (Some(collection), id))
}

/// Checks an entry by the types of the owners.
///
/// # Errors
/// No definition has the collection, or none of those that are meant has such an id.
pub fn check(entry: &str, definitions: &Definitions) -> Result<(), Invalid> {
    let (collection, id) = split(entry);
    let owners = || definitions.iter().map(|definition| &definition.owner);
    let meant = owners().filter(|owner| collection.is_none_or(|collection| collection == owner.collection));
    let mut parsed =
        meant.map(|owner| if id == AllowedOwners::EVERY { Ok(()) } else { owner.kind.parse(id).map(drop) });
    let Some(first) = parsed.next() else {
        let known: BTreeSet<_> = owners().map(|owner| owner.collection.as_str()).collect();
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Invalid::new(format!("must name a collection of owners before \"=\": {known}")));
    };
    parsed.fold(first, Result::or)
}

/// Whose histories a record with these entries reaches, for each of the collections.
pub(crate) fn reached(
    entries: Option<&[String]>,
    collections: &BTreeMap<Box<str>, OwnerType>,
) -> BTreeMap<Box<str>, AllowedOwners> {
    let of = |collection: &str, kind: OwnerType| {
        let Some(entries) = entries else { return AllowedOwners::All };
        let meant = entries.iter().map(|entry| split(entry));
        let meant = meant.filter(|(of, _)| of.is_none_or(|of| of == collection));
        AllowedOwners::of_ids(meant.map(|(_, id)| id), kind)
    };
    collections.iter().map(|(collection, kind)| (collection.clone(), of(collection, *kind))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions() -> Definitions {
        Definitions::of_directory(concat!(env!("CARGO_MANIFEST_DIR"), "/test_data/histories").as_ref())
            .unwrap()
    }

    #[test]
    fn an_entry_means_one_collection_or_all() {
        let collections =
            BTreeMap::from([("customers".into(), OwnerType::Integer), ("rooms".into(), OwnerType::String)]);
        let of = |entries: &[&str]| {
            let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
            reached(Some(&entries), &collections)
        };
        let these = |ids: &[&str]| AllowedOwners::These(ids.iter().map(|id| (*id).into()).collect());
        let both =
            |customers, rooms| BTreeMap::from([("customers".into(), customers), ("rooms".into(), rooms)]);
        assert_eq!(reached(None, &collections), both(AllowedOwners::All, AllowedOwners::All));
        assert_eq!(of(&["7", "8"]), both(these(&["7", "8"]), these(&["7", "8"])));
        assert_eq!(of(&["customers=7", "rooms=a", "9"]), both(these(&["7", "9"]), these(&["a", "9"])));
        let id = "018F3C6E-7B1A-7C3D-9E2F-0123456789AB";
        let uuids = reached(Some(&[format!("teams={id}")]), &[("teams".into(), OwnerType::Uuid)].into());
        assert_eq!(uuids["teams"], these(&[&id.to_lowercase()]));
        assert_eq!(of(&["customers=*"]), both(AllowedOwners::All, these(&[])));
        assert_eq!(of(&["7", "*"]), both(AllowedOwners::All, AllowedOwners::All));
        assert_eq!(of(&["teams=7"]), both(these(&[]), these(&[])));
    }

    #[test]
    fn entries_are_checked_by_the_types_of_owners() {
        let definitions = definitions();
        for entry in ["7", "*"] {
            assert_eq!(check(entry, &definitions), Ok(()), "{entry}");
        }
        for definition in definitions.iter() {
            let collection = &definition.owner.collection;
            assert_eq!(check(&format!("{collection}=7"), &definitions), Ok(()));
            assert_eq!(check(&format!("{collection}=*"), &definitions), Ok(()));
            assert!(check(&format!("{collection}="), &definitions).is_err());
            assert!(check(&format!("{collection}=a_b"), &definitions).is_err());
        }
        let built_in = Definitions::built_in();
        for entry in ["", "a", "07", "=7", "customers=a", "customers=7=8", "7;8", "Customers=7"] {
            assert!(check(entry, &built_in).is_err(), "{entry}");
        }
        let Invalid(rule) = check("rooms=7", &built_in).unwrap_err();
        assert_eq!(rule, "must name a collection of owners before \"=\": customers");
    }
}
