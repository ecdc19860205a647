//! Forgets the measurements of an owner who is erased.
//!
//! The generation of the owner is raised, and then what it had is deleted. A feeder asks for the generation
//! before it reads pages. So what it read of the erased pages has an earlier generation, and does not count,
//! whenever it comes; the feeder's sweep deletes it. If the owner has pages, because it was reopened
//! meanwhile, they are fed again.
//!
//! One raise for each tombstone is enough: a feeder that asks for the generation later finds the tombstone,
//! and feeds nothing. Housekeeping looks for late pages for a day, so repeated raises would make readers read
//! again and again.

use mongodb::bson::DateTime;

use super::control::{BuildName, Builds};
use super::generations::Generations;
use super::view::tell_readers;
use crate::mongo::Result;
use crate::store::collection::OfOwner;

/// Forgets the owner in all builds, also if the history has no definition with a time series here. The
/// tombstone must be there first, so that nothing is fed again; `since` is its date. A damaged one has none,
/// and hinders nothing.
///
/// # Errors
/// The database does not answer in time. Then it may be repeated.
pub(crate) async fn forget(of: OfOwner<'_>, since: Option<DateTime>) -> Result<()> {
    let (source, deadline) = (of.source, of.deadline);
    let Some(builds) = Builds::of(source, deadline).await? else { return Ok(()) };
    for number in builds.all() {
        let build = BuildName::of(source, number);
        let generations = Generations { source, build: &build, deadline };
        let known = generations.of(std::slice::from_ref(of.owner)).await?.remove(of.owner);
        let current = match known.filter(|known| since.is_some() && known.forgotten == since) {
            Some(known) => known.current,
            None => {
                let current = generations.raise(of.owner).await?;
                tell_readers(source, &build).await?;
                // Last: if this is not reached, the generation is raised once more.
                if let Some(since) = since {
                    generations.forgotten(of.owner, since).await?;
                }
                current
            }
        };
        generations.delete_older(&[(of.owner.clone(), current)]).await?;
    }
    Ok(())
}
