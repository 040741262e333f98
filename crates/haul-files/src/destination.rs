//! Where a job goes, and how its next run finds what this one has kept there.

use haul_names::{directory_and_name, stage_id};

use crate::store::{Place, Store};
use haul_faults::{Stop, WirePath};

/// What a destination means for a job. One that was to get its name from an earlier run is still to get it, and no directory to copy into, though that
/// run has made the directory: what it has kept beside it says so.
pub(crate) fn destination<S: Store>(store: &S, spelled: &WirePath, many: bool, job: &[u8; 32]) -> Result<Place<S::Dir>, Stop> {
    let place = store.destination(spelled, many)?;
    if many || place.rename.is_some() {
        return Ok(place);
    }
    let Some((above, name)) = directory_and_name(&spelled.0) else { return Ok(place) };
    match store.destination(&WirePath(above), false) {
        Ok(above) if above.rename.is_none() && store.has_stage(&above.root, &stage_id(job, Some(&name))) => {
            let directory_only = spelled.0.ends_with(b"/");
            Ok(Place { rename: Some(name), spelled: spelled.clone(), directory_only, ..above })
        }
        // Who may not look there has not begun there either.
        _ => Ok(place),
    }
}
