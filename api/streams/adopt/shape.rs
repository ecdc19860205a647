//! The two shapes of a source, and the pipelines that read them item by item.

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::{Bson, Document, doc};
use pagebucket_model::domain::MAX_SAFE_INTEGER;
use pagebucket_model::item::{decimal_text, whole_number};

use super::source::{PARTS, Source, SourceError};

/// How the documents of a source hold items. It is shown as the flag has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
#[display(rename_all = "lowercase")]
pub enum Shape {
    /// One item each, with its owner: `{customerId, ticker, ...}`.
    Documents,
    /// Many items of one owner each: `{customerId, count, history: [...]}`, the buckets of the manual.
    Buckets,
}

/// The array of a bucket.
pub(crate) const ITEMS: &str = "history";

/// Documents by which the shape is known.
const SAMPLE: i64 = 100;

impl Shape {
    /// The shape that the first documents of the source have.
    ///
    /// # Errors
    /// There are none, or they differ.
    pub async fn of(source: &Source) -> Result<Self, SourceError> {
        let sample = source.sample(SAMPLE).await?;
        let buckets = sample.iter().filter(|document| document.get_array(ITEMS).is_ok()).count();
        let name = source.name();
        match buckets {
            _ if sample.is_empty() => Err(SourceError::Shape(format!(
                "{name} has no documents; if there will be some, name their shape with --shape"
            ))),
            0 => Ok(Self::Documents),
            all if all == sample.len() => Ok(Self::Buckets),
            _ => Err(SourceError::Shape(format!(
                "some documents of {name} have an array `{ITEMS}`, and others have none; name the shape with --shape"
            ))),
        }
    }
}

/// Where an item is in what a pipeline gives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourcePlace<'a> {
    /// The `_id` of the document.
    pub id: RawBsonRef<'a>,
    pub owner: Option<RawBsonRef<'a>>,
    /// The item; of a document, all of it.
    pub item: Option<RawBsonRef<'a>>,
    /// The index in the array of a bucket.
    pub index: Option<u32>,
    /// Number of items in the bucket; `None` if it has no array.
    pub items: Option<u32>,
    /// What the bucket says that it has.
    pub count: Option<i64>,
}

/// The pipeline that gives the items of a source by owner, those of each owner by `order` if there is one,
/// from the owner `from` on.
pub(crate) fn sorted(shape: Shape, owner: &str, order: Option<&str>, from: Option<Bson>) -> Vec<Document> {
    let mut pipeline = Vec::new();
    if let Some(from) = from {
        // Not `{owner: {$gte: from}}`, which compares values of one type only. A sort takes the least element
        // of an array.
        let field = format!("${owner}");
        let sorted = doc! { "$cond": [{ "$isArray": &field }, { "$min": &field }, &field] };
        pipeline.push(doc! { "$match": { "$expr": { "$gte": [sorted, { "$literal": from }] } } });
    }
    match (shape, order) {
        (Shape::Documents, None) => pipeline.push(doc! { "$sort": { owner: 1 } }),
        (Shape::Documents, Some(order)) => pipeline.push(doc! { "$sort": { owner: 1, order: 1, "_id": 1 } }),
        (Shape::Buckets, None) => {
            pipeline.push(doc! { "$sort": { owner: 1 } });
            pipeline.extend(items(owner));
        }
        (Shape::Buckets, Some(order)) => {
            pipeline.extend(items(owner));
            pipeline.push(doc! { "$sort": { "o": 1, format!("h.{order}"): 1, "i": 1, "p": 1 } });
        }
    }
    pipeline
}

/// The pipeline that gives the items of these documents; those of a bucket in their order.
pub(crate) fn of_ids(shape: Shape, owner: &str, ids: Vec<Bson>) -> Vec<Document> {
    let mut pipeline = vec![doc! { "$match": { "_id": { "$in": ids } } }];
    if shape == Shape::Buckets {
        pipeline.extend(items(owner));
    }
    pipeline
}

/// Takes buckets apart.
fn items(owner: &str) -> [Document; 2] {
    let array = format!("${ITEMS}");
    let size = doc! { "$cond": [{ "$isArray": &array }, { "$size": &array }, -1] };
    [
        doc! { "$project": { "_id": 0, "i": "$_id", "o": format!("${owner}"), "c": "$count", "h": array, "n": size } },
        doc! { "$unwind": { "path": "$h", "includeArrayIndex": "p", "preserveNullAndEmptyArrays": true } },
    ]
}

impl<'a> SourcePlace<'a> {
    /// Where the item is in a document that a pipeline of this shape has given.
    pub(crate) fn of(shape: Shape, owner: &str, document: &'a RawDocument) -> Self {
        let get = |name: &str| document.get(name).ok().flatten();
        match shape {
            Shape::Documents => Self {
                id: get("_id").unwrap_or(RawBsonRef::Null),
                owner: get(owner),
                item: Some(RawBsonRef::Document(document)),
                index: None,
                items: None,
                count: None,
            },
            Shape::Buckets => Self {
                id: get("i").unwrap_or(RawBsonRef::Null),
                owner: get("o"),
                item: get("h"),
                index: get("p").and_then(whole).and_then(|index| index.try_into().ok()),
                items: get("n").and_then(whole).and_then(|items| items.try_into().ok()),
                count: get("c").and_then(whole),
            },
        }
    }

    /// How much of its document it is, in [`PARTS`].
    pub(crate) fn parts(&self) -> u64 {
        PARTS / u64::from(self.items.unwrap_or(1).max(1))
    }
}

/// A whole number of any type.
pub(crate) fn whole(value: RawBsonRef<'_>) -> Option<i64> {
    match value {
        RawBsonRef::Int32(number) => Some(number.into()),
        RawBsonRef::Int64(number) => Some(number),
        // Beyond, a double stands for several numbers.
        RawBsonRef::Double(number) if number.fract() == 0.0 && number.abs() <= MAX_SAFE_INTEGER as f64 => {
            Some(number as i64)
        }
        decimal => whole_text(decimal)?.parse().ok(),
    }
}

/// The digits of a whole decimal number. `None` for any other value.
pub(crate) fn whole_text(value: RawBsonRef<'_>) -> Option<String> {
    let RawBsonRef::Decimal128(number) = value else { return None };
    whole_number(&decimal_text(number.bytes())?)
}
