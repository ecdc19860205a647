//! A bucket as a document. Reading validates every field again and names the corrupt one: the validator stops
//! invalid writes, but not damage on disk.

use std::collections::BTreeMap;

use bson::raw::{RawBsonRef, RawDocument};
use bson::{Bson, Document, doc};
use pagebucket_engine::Corruption;
use pagebucket_engine::internal::documents::{date, instant};

use crate::page_path::PagePath;
use crate::resolution::Minute;

/// The views of one page in one minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinuteBucket {
    /// The page that was viewed.
    pub path: PagePath,
    /// The minute of the views.
    pub minute: Minute,
    /// The number of views: the sum of `seconds`.
    pub total: u64,
    /// The number of views by second, 0 to 59. A second without views is absent or 0.
    pub seconds: BTreeMap<u8, u64>,
}

impl MinuteBucket {
    /// # Errors
    /// A field has a value that the validator forbids; the error names the field.
    pub(crate) fn read(document: &RawDocument) -> Result<Self, Corruption> {
        let seconds = document
            .get_document("seconds")
            .map_err(|_| Corruption::of(document, "seconds", "is not a document"))?;
        let mut by_second = BTreeMap::new();
        for item in seconds {
            let (key, value) = item.map_err(|_| Corruption::of(document, "seconds", "is not readable"))?;
            let fault = |detail| Corruption::of(document, &format!("seconds.{}", key.as_str()), detail);
            let second = second(key.as_str()).ok_or_else(|| fault("is not named 0 to 59"))?;
            let views = count(value).ok_or_else(|| fault("is not a whole number, 0 or more"))?;
            if by_second.insert(second, views).is_some() {
                return Err(fault("is repeated"));
            }
        }
        let total = total(document)?;
        if by_second.values().try_fold(0, |sum: u64, views| sum.checked_add(*views)) != Some(total) {
            return Err(Corruption::of(document, "totalViews", "is not the sum of seconds"));
        }
        Ok(Self { path: path(document, "page")?, minute: minute(document)?, total, seconds: by_second })
    }
}

/// The page that a field names.
pub(crate) fn path(document: &RawDocument, field: &str) -> Result<PagePath, Corruption> {
    let path = document.get_str(field).ok().and_then(|path| PagePath::parse(path).ok());
    path.ok_or_else(|| Corruption::of(document, "page", "is not a path of 1 to 512 bytes"))
}

/// The minute of a bucket or of a projection of one.
pub(crate) fn minute(document: &RawDocument) -> Result<Minute, Corruption> {
    let start = document.get_datetime("timestamp").ok().and_then(instant);
    let minute = start.and_then(|start| Minute::beginning_at(start).ok());
    minute.ok_or_else(|| {
        Corruption::of(document, "timestamp", "is not a whole minute of the years 0000 to 9999")
    })
}

/// The total of a bucket or of a projection of one.
pub(crate) fn total(document: &RawDocument) -> Result<u64, Corruption> {
    let total = document.get("totalViews").ok().flatten().and_then(count);
    total.ok_or_else(|| Corruption::of(document, "totalViews", "is not a whole number, 0 or more"))
}

/// A number of views, which the database keeps as int32 or int64.
pub(crate) fn count(value: RawBsonRef<'_>) -> Option<u64> {
    let number = match value {
        RawBsonRef::Int32(number) => i64::from(number),
        RawBsonRef::Int64(number) => number,
        _ => return None,
    };
    u64::try_from(number).ok()
}

fn second(name: &str) -> Option<u8> {
    let second: u8 = name.parse().ok().filter(|second| *second < 60)?;
    // Only the canonical spelling: not `02`.
    (second.to_string() == name).then_some(second)
}

/// The filter of a statement: page and minute of the bucket.
pub(crate) fn named(path: &PagePath, minute: Minute) -> Document {
    doc! { "page": path.as_str(), "timestamp": date(minute.start()) }
}

/// The update of a statement: the views to add to a bucket, by second.
pub(crate) fn increment(seconds: &BTreeMap<u8, u64>) -> Document {
    let mut amounts = doc! { "totalViews": amount(seconds.values().sum()) };
    for (second, views) in seconds {
        amounts.insert(format!("seconds.{}", second), amount(*views));
    }
    doc! { "$inc": amounts }
}

/// An int32 if the number fits. The server converts a counter that outgrows int32 to an int64.
fn amount(views: u64) -> Bson {
    i32::try_from(views).map_or_else(|_| Bson::Int64(i64::try_from(views).unwrap_or(i64::MAX)), Bson::Int32)
}

/// A bucket with all 60 seconds, each with 0 views.
pub(crate) fn zeros(path: &PagePath, minute: Minute) -> Document {
    let seconds: Document = (0..60).map(|second| (second.to_string(), Bson::Int32(0))).collect();
    let mut document = named(path, minute);
    document.extend(doc! { "totalViews": 0, "seconds": seconds });
    document
}

#[cfg(test)]
mod tests {
    use bson::oid::ObjectId;
    use bson::{DateTime, RawDocumentBuf};

    use super::*;
    use pagebucket_model::domain::Instant;

    fn with(field: &str, value: impl Into<Bson>) -> Result<MinuteBucket, Corruption> {
        let minute = Minute::of(Instant::from_millis(-60_000).unwrap());
        let mut document = doc! { "_id": ObjectId::from_bytes([7; 12]) };
        document.extend(named(&PagePath::parse("/index.htm").unwrap(), minute));
        document.extend(doc! { "totalViews": 17, "seconds": { "14": 14_i64, "2": 3 } });
        document.insert(field, value);
        MinuteBucket::read(&RawDocumentBuf::try_from(&document).unwrap())
    }

    #[test]
    fn a_bucket_is_read_as_it_is() {
        let read = with("totalViews", 17).unwrap();
        assert_eq!((read.minute.start().millis(), read.total), (-60_000, 17));
        assert_eq!(read.seconds, BTreeMap::from([(2, 3), (14, 14)]));
        let zeros = zeros(&read.path, read.minute);
        assert_eq!(MinuteBucket::read(&RawDocumentBuf::try_from(&zeros).unwrap()).unwrap().seconds.len(), 60);
    }

    #[test]
    fn what_is_corrupt_is_named() {
        let millis = |millis| Bson::from(DateTime::from_millis(millis));
        for (field, value, named) in [
            ("page", Bson::from("index.htm"), "page"),
            ("page", 7.into(), "page"),
            ("timestamp", millis(1), "timestamp"),
            ("timestamp", millis(i64::MIN), "timestamp"),
            ("timestamp", 0_i64.into(), "timestamp"),
            ("totalViews", 16.into(), "totalViews"),
            ("totalViews", 17.0.into(), "totalViews"),
            ("totalViews", Bson::from(-17), "totalViews"),
            ("seconds", Bson::Null, "seconds"),
            ("seconds", doc! { "60": 17 }.into(), "seconds.60"),
            ("seconds", doc! { "02": 17 }.into(), "seconds.02"),
            ("seconds", doc! { "2": 17.0 }.into(), "seconds.2"),
            ("seconds", doc! { "2": 18, "3": -1 }.into(), "seconds.3"),
            ("seconds", doc! { "2": i64::MAX, "3": i64::MAX, "4": i64::MAX }.into(), "totalViews"),
        ] {
            let corruption = with(field, value.clone()).expect_err(&format!("{field}: {value}"));
            assert_eq!(
                (corruption.field.as_str(), corruption.id.as_str()),
                (named, "070707070707070707070707"),
                "{value}"
            );
        }
    }

    #[test]
    fn what_is_added_fits() {
        let added = increment(&BTreeMap::from([(2, 3), (59, 3_000_000_000)]));
        let amounts =
            doc! { "totalViews": 3_000_000_003_i64, "seconds.2": 3, "seconds.59": 3_000_000_000_i64 };
        assert_eq!(added, doc! { "$inc": amounts });
    }
}
