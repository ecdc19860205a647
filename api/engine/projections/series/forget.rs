//! Forgets the measurements of an owner who is erased ([`series`](super), "Erasure, readers, rebuilds").
//!
//! One raise for each tombstone is enough: a feeder that asks for the generation later finds the tombstone,
//! and feeds nothing. Housekeeping looks for late pages for a day, so repeated raises would make readers read
//! again and again.

use mongodb::bson::DateTime;

use super::control::{Build, Builds};
use super::view::tell_readers;
use crate::mongo::Result;
use crate::store::collection::OfOwner;

/// Forgets the owner in all builds, also if the history has no definition with a time series here. The
/// tombstone must be there first, so that nothing is fed again; `since` is its date. A damaged one has none,
/// and hinders nothing. After an error it may be repeated.
pub(crate) async fn forget(of: OfOwner<'_>, since: Option<DateTime>) -> Result<()> {
    let (source, deadline) = (of.source, of.deadline);
    let Some(builds) = Builds::of(source, deadline).await? else { return Ok(()) };
    for number in builds.all() {
        let build = Build { source, number };
        let known = build.generations(std::slice::from_ref(of.owner), deadline).await?.remove(of.owner);
        let current = match known.filter(|known| since.is_some() && known.forgotten == since) {
            Some(known) => known.current,
            None => {
                let current = build.raise(of.owner, deadline).await?;
                tell_readers(build).await?;
                // Last: if this is not reached, the generation is raised once more.
                if let Some(since) = since {
                    build.forgotten(of.owner, since, deadline).await?;
                }
                current
            }
        };
        build.delete_older(&[(of.owner.clone(), current)], deadline).await?;
    }
    Ok(())
}
