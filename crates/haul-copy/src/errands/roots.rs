//! What a daemon has for this client, for whoever does not know.

use haul::{Connection, block_on};
use haul_files::WirePath;

use super::{ErrandError, Errands};

/// Names of the roots that a daemon lets this client see, on a connection for copies that is used up by it. Blocks.
pub fn roots(connection: Connection) -> Result<Vec<WirePath>, ErrandError> {
    block_on(async {
        let errands = Errands::open(connection).await?;
        let found = errands.list(&WirePath(b"/".to_vec())).await;
        errands.close();
        Ok(found?.into_iter().map(|found| found.name).collect())
    })
}
