//! Forgets the measurements of an owner who is erased.
//!
//! The generation of the owner is raised, and then what it had is deleted. A feeder asks for the generation before it reads pages. So what it read of the erased pages has an
//! earlier generation, and does not count, whenever it comes; the feeder's sweep deletes it. If the owner has pages, because it was reopened meanwhile, they are fed again.

use super::control::{BuildName, Builds};
use super::generations::Generations;
use crate::history::collection::OfOwner;
use crate::mongo::Result;

/// Forgets the owner in all builds, also if the history has no definition with a time series here. The tombstone must be there first, so that
/// nothing is fed again.
///
/// # Errors
/// The database does not answer in time. Then it may be repeated.
pub(crate) async fn forget(of: OfOwner<'_>) -> Result<()> {
    let (source, deadline) = (of.source, of.deadline);
    let Some(builds) = Builds::of(source, deadline).await? else { return Ok(()) };
    for number in builds.all() {
        let build = BuildName::of(source, number);
        let generations = Generations { source, build: &build, deadline };
        let current = generations.raise(of.owner).await?;
        build.note_raise(source, deadline).await?;
        generations.delete_older(&[(of.owner.clone(), current)]).await?;
    }
    Ok(())
}
