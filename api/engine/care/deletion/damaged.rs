//! Damaged buckets of an owner that is erased: those that the erasure of pages does not find, or that keep it
//! from its end.
//!
//! A bucket is an owner's if its owner's field has the owner's id, or if its `_id` begins with the id and `_`
//! and its owner's field holds no id. A bucket whose `_id` and owner's field name different owners stays, and
//! the log names it: it may be a part of the other owner's history.
//!
//! When no page is left, all other buckets of the owner are deleted one by one, each as it was seen, after
//! the tombstone was raised above their numbers. An append after a reopening has other numbers, and the
//! marker of the beginning, which has the `_id` of an erased page, has another `since`. A request puts a
//! damaged tombstone right in one update; housekeeping leaves it alone and warns. A request to erase an owner
//! whose tombstone is swept looks for buckets again, and begins again if it finds one.

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_model::domain::{MAX_SAFE_INTEGER, OwnerId, OwnerType, PageNumber};

use crate::mongo::majority::at_most;
use crate::mongo::values::int64;
use crate::mongo::{Corruption, Result};
use crate::store::buckets::bucket_id::BucketId;
use crate::store::buckets::marker::{self, Marker, TOMBSTONE, tombstone_id};
use crate::store::collection::fence;
use crate::store::collection::{OfOwner, number_in, owner_bson, owner_in, page_in, page_of};

/// The most buckets that a step deletes.
const MOST: usize = 1_000;

/// The most buckets of others that the log names in a step.
const MOST_NAMED: usize = 10;

/// What a tombstone says of numbers: the first page, and the second after which the next page has its own.
pub(crate) type Numbers = (PageNumber, u64);

/// The numbers of an owner that never had a bucket.
pub(crate) const UNUSED: Numbers = (PageNumber::FIRST, 0);

/// The numbers that follow those of a bucket, as far as they are readable.
pub(crate) fn used(bucket: &RawDocument, owner: &OwnerId) -> Numbers {
    let page = page_of(bucket).filter(|page| page.get() < MAX_SAFE_INTEGER).map(PageNumber::next);
    let id = BucketId::parse(bucket.get_str("_id").unwrap_or_default(), owner).map(|id| id.second);
    let second = number_in(bucket, "second").filter(|second| *second <= BucketId::LAST_SECOND);
    (page.max(page_in(bucket, "firstPage")).unwrap_or(PageNumber::FIRST), id.max(second).unwrap_or(0))
}

/// The greater of both.
pub(crate) fn later(one: Numbers, other: Numbers) -> Numbers {
    (one.0.max(other.0), one.1.max(other.1))
}

/// Reads the owner's tombstone. First it puts right what has its `_id` or its page number and is no sound
/// tombstone: no other could be written. Also returns the numbers that follow those of what was deleted.
pub(crate) async fn sound_tombstone(of: OfOwner<'_>) -> Result<(Option<Marker>, Numbers)> {
    let id = tombstone_id(of.owner);
    let whole = |bucket: &RawDocument| Ok(bucket.to_owned());
    let by_page = of.find(of.at_most(doc! { "page": TOMBSTONE }, 1), whole).await?.pop();
    if let Some(sound) = by_page.as_ref().filter(|found| is_tombstone(of, found)) {
        return Ok((Marker::read(sound)?, UNUSED));
    }
    let by_id = of.source.reads.by_id(of.source.collection(), &id, of.deadline, whole).await?;
    let by_id = by_id.filter(|found| !is_tombstone(of, found));
    let mut numbers = UNUSED;
    if let Some(other) = by_page.filter(|found| !found.get_str("_id").is_ok_and(|found| found == id)) {
        warn(of, &other, "page", "is a tombstone's, and its _id is not");
        numbers = used(&other, of.owner);
        of.source
            .delete(of.source.collection(), [of.filter(seen(&other, &["_id", "page"]))], of.deadline)
            .await?;
    }
    let Some(damaged) = by_id else { return Ok((None, numbers)) };
    warn(of, &damaged, "_id", "is a tombstone's, and other fields are not");
    numbers = later(numbers, used(&damaged, of.owner));
    // At once where the owner's field is right: without a tombstone an append could open page 1. As it was
    // seen, because another instance may have put it right meanwhile.
    let seen = seen(&damaged, &["_id", "page", "count", "firstPage", "second", "since"]);
    let tombstone = doc! {
        "_id": id, of.source.owner_field(): owner_bson(of.owner), "page": TOMBSTONE, "count": 0,
        "first": DateTime::from_millis(0), "last": DateTime::from_millis(0), "history": [],
        "firstPage": numbers.0, "second": int64(numbers.1),
        "since": fence::now(of.source.topology()), "erased": "$$NOW", "swept": false,
    };
    if !of.update(seen.clone(), vec![doc! { "$replaceWith": tombstone }], doc! { "_id": 1 }).await? {
        of.source.delete(of.source.collection(), [seen], of.deadline).await?;
    }
    Ok((marker::tombstone(of).await?, numbers))
}

/// Whether each field of a bucket is one of the owner's tombstone, and none is missing.
fn is_tombstone(of: OfOwner<'_>, bucket: &RawDocument) -> bool {
    let owner = &of.source.definition.owner;
    let id = tombstone_id(of.owner);
    let fits = |name: &str, value| match (name, value) {
        ("_id", RawBsonRef::String(found)) => found == id,
        ("page", RawBsonRef::Int64(page)) => page == TOMBSTONE,
        ("count", RawBsonRef::Int32(count)) => count == 0,
        ("first" | "last" | "since" | "erased", value) => matches!(value, RawBsonRef::DateTime(_)),
        ("history", RawBsonRef::Array(items)) => items.is_empty(),
        ("firstPage", RawBsonRef::Int64(page)) => page >= 1,
        ("second", RawBsonRef::Int64(second)) => second >= 0,
        ("swept", value) => matches!(value, RawBsonRef::Boolean(_)),
        (name, _) => *name == *owner.field && owner_in(bucket, owner).as_ref() == Some(of.owner),
    };
    let mut fields = 0;
    let all_fit = bucket.iter().all(|field| {
        fields += 1;
        field.is_ok_and(|(name, value)| fits(name.as_str(), value))
    });
    all_fit && fields == 12
}

/// Deletes buckets that [`find`] has found, and returns whether these were all. A bucket that is written
/// after a reopening is none of them: its owner's field is right, its `_id` is later, or it is a marker with
/// another `since`.
pub(crate) async fn delete(of: OfOwner<'_>, left: Vec<Document>) -> Result<bool> {
    let all = left.len() < MOST;
    of.source.delete(of.source.collection(), left, of.deadline).await?;
    Ok(all)
}

/// Finds buckets of the owner that are left beside pages: a marker of the beginning, and damaged ones. One
/// for which `spared` holds is none of them. Returns a filter for each, and what the tombstone must say
/// before they are deleted.
pub(crate) async fn find(of: OfOwner<'_>, spared: Option<Document>) -> Result<(Vec<Document>, Numbers)> {
    let unreadable = doc! { "$nor": [any_owner(of)] };
    let mut by_id = prefix(of);
    by_id.extend(unreadable.clone());
    let mut by_field = of.filter(doc! { "_id": { "$ne": tombstone_id(of.owner) } });
    by_field.extend(spared.map(|spared| ("$nor".to_owned(), vec![spared].into())));
    let (mut left, mut numbers) = (Vec::new(), UNUSED);
    for (condition, hint, same) in
        [(by_field, of.source.by_page(), of.filter(Document::new())), (by_id, doc! { "_id": 1 }, unreadable)]
    {
        let most = MOST - left.len();
        if most == 0 {
            break;
        }
        let mut command = at_most(of.source.collection(), condition, most, hint);
        command.insert("projection", marker::fields());
        let owner = of.owner.clone();
        let read = move |bucket: &RawDocument| Ok((seen(bucket, &["_id", "since"]), used(bucket, &owner)));
        for (seen, used) in of.find(command, read).await? {
            numbers = later(numbers, used);
            left.push(same.clone().into_iter().chain(seen).collect());
        }
    }
    Ok((left, numbers))
}

/// Names in the log the buckets that are the owner's by their `_id`, and another's by their owner's field.
pub(crate) async fn name_others(of: OfOwner<'_>) -> Result<()> {
    let mut condition = prefix(of);
    let other = doc! { of.source.owner_field(): { "$ne": owner_bson(of.owner) } };
    condition.insert("$and", vec![any_owner(of), other]);
    let command = at_most(of.source.collection(), condition, MOST_NAMED, doc! { "_id": 1 });
    let whole = |bucket: &RawDocument| Ok(bucket.to_owned());
    for bucket in of.find(command, whole).await? {
        warn(of, &bucket, of.source.owner_field(), "is another owner's id: the bucket stays");
    }
    Ok(())
}

/// Every bucket whose `_id` begins with the owner's. The bounds alone hold more: see [`BucketId::range`].
fn prefix(of: OfOwner<'_>) -> Document {
    let owner = of.owner;
    // ` follows _ in ASCII.
    doc! { "_id": { "$regex": format!("^{owner}_"), "$gte": format!("{owner}_"), "$lte": format!("{owner}`") } }
}

/// A bucket whose owner's field holds an id.
fn any_owner(of: OfOwner<'_>) -> Document {
    let owner = &of.source.definition.owner;
    let id = match owner.kind {
        OwnerType::Integer => doc! { "$type": "long", "$gte": 1_i64, "$lte": MAX_SAFE_INTEGER as i64 },
        OwnerType::String => {
            doc! { "$type": "string", "$regex": format!("^[A-Za-z0-9-]{{1,{}}}$", OwnerType::MAX_LEN) }
        }
        OwnerType::Uuid => doc! { "$type": "string", "$regex": OwnerType::STORED_UUID },
    };
    doc! { &*owner.field: id }
}

/// A condition on these fields: that they have the values that they have in this bucket.
fn seen(bucket: &RawDocument, fields: &[&str]) -> Document {
    let value = |field: &&str| {
        let value = bucket.get(field).ok().flatten().and_then(|value| Bson::try_from(value).ok());
        ((*field).to_owned(), value.map_or(doc! { "$exists": false }, |value| doc! { "$eq": value }).into())
    };
    fields.iter().map(value).collect()
}

fn warn(of: OfOwner<'_>, bucket: &RawDocument, field: &str, why: &str) {
    let damage = Corruption::of(bucket, field, why);
    tracing::warn!(history = of.source.collection(), owner = %of.owner, %damage, "an erasure has met a damaged bucket");
}
