use mongodb::bson::doc;

use super::document::{self, COLLECTION, MinuteBucket};
use super::engine::PageViews;
use crate::domain::{Minute, PagePath};
use crate::store::read_preference::SOON;
use crate::store::{Deadline, Error};

impl PageViews {
    /// The bucket of one page and minute, if it exists.
    ///
    /// # Errors
    /// The database does not answer in time, or the bucket is corrupt.
    pub async fn bucket(
        &self,
        path: &PagePath,
        minute: Minute,
        deadline: Deadline,
    ) -> Result<Option<MinuteBucket>, Error> {
        let command = doc! {
            "find": COLLECTION,
            "filter": document::named(path, minute),
            "limit": 1,
            "singleBatch": true,
            "hint": { "page": 1, "timestamp": 1 },
        };
        let found = self.query(command, SOON, deadline).await?;
        Ok(found.first().map(|found| MinuteBucket::read(found)).transpose()?)
    }
}
