//! One file from several servers: each gives every n-th range, and they go into one file in whatever order they come. Until all are there and on disk, nothing has the name.
//!
//! `cargo run -p haul-files --example gather -- OBJECT TARGET DIRECTORY-OF-OBJECTS..`

use std::error::Error;
use std::path::Path;

use haul_files::store::{At, Attributes, Content, Part, Spot, Stage, Store};
use haul_files::{Cancel, CopyError, Local, StoreError, WirePath};
use haul_objects::Objects;

const RANGE: u64 = 1 << 20;

/// Makes `target` from the replicas of `object`, one in each of `servers`.
pub fn gather<S: Store, D: Store>(servers: &[S], object: &WirePath, store: &D, target: &WirePath) -> Result<u64, Box<dyn Error>> {
    let place = store.destination(target, false).map_err(CopyError::Stopped)?;
    let name = place.rename.as_deref().ok_or("is a directory")?;
    let tops = servers.iter().map(|server| server.source(object).map_err(CopyError::Stopped)).collect::<Result<Vec<_>, _>>()?;
    let replicas = servers.iter().zip(&tops).map(|(server, top)| server.open(At::Top(top))).collect::<Result<Vec<_>, _>>()?;
    let size = replicas.first().ok_or("no server")?.metadata()?.size;

    let job = blake3::hash(&object.0);
    let (stage, _journal) = store.stage(&place, job.as_bytes(), false, &Cancel::new()).map_err(CopyError::Stopped)?;
    let (number, part) = stage.create(0o600)?;
    part.set_size(size)?;
    let stripe = |first: usize, replica: &S::File| -> Result<(), StoreError> {
        let mut buffer = Vec::new();
        for range in (first as u64..size.div_ceil(RANGE)).step_by(servers.len()) {
            buffer.clear();
            replica.read_at(&mut buffer, range * RANGE, RANGE as usize)?;
            part.write_at(&buffer, range * RANGE)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = replicas.iter().enumerate().map(|(first, file)| scope.spawn(move || stripe(first, file))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| StoreError::FAILED)?)
    })?;

    let attributes = Attributes { final_mode: 0o644, ..Attributes::default() };
    part.finish(&attributes, Some(attributes.final_mode))?;
    stage.sync(&[number])?;
    stage.commit(number, &Spot { dir: &place.root, name, path: &|name| name.to_vec() }, &attributes)?;
    stage.sync_names(Some(std::slice::from_ref(&place.root)))?;
    stage.remove()?;
    Ok(size)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [object, target, directories @ ..] = &arguments[..] else {
        return Err("usage: gather OBJECT TARGET DIRECTORY-OF-OBJECTS..".into());
    };
    let servers = directories.iter().map(|directory| Objects::open(Path::new(directory))).collect::<Result<Vec<_>, _>>()?;
    let bytes = gather(&servers, &Path::new(object).into(), &Local::own(), &Path::new(target).into())?;
    println!("{bytes} bytes from {} servers", servers.len());
    Ok(())
}
