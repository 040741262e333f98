use std::fs;
use std::path::Path;

use super::*;
use crate::stores::space;

const JOB: [u8; 32] = [7; 32];

/// Two directories of one file system, which have the same room, and a list of places.
struct Stage {
    dir: tempfile::TempDir,
    places: Places,
    own: Local,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["one", "two"] {
            fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        let listed = [dir.path().join("one"), dir.path().join("two")];
        Self::of(dir, listed.map(|path| WirePath::from(path.as_path())).to_vec())
    }

    fn of(dir: tempfile::TempDir, listed: Vec<WirePath>) -> Self {
        let own = Local::of(Access::Account { home: dir.path().to_owned() });
        Self { places: Places::told_by(move || Ok(listed.clone())), dir, own }
    }

    fn write(&self, asked: &str) -> Result<(String, bool), String> {
        let look = Look { places: &self.places, own: &self.own, cancel: &Cancel::new() };
        let found = look.to_write(&WirePath(asked.into()), &JOB);
        found.map(|(at, was_there)| (self.short(&at), was_there)).map_err(|error| error.to_string())
    }

    fn read(&self, asked: &str) -> Result<String, String> {
        let look = Look { places: &self.places, own: &self.own, cancel: &Cancel::new() };
        look.to_read(&WirePath(asked.into())).map(|at| self.short(&at)).map_err(|error| error.to_string())
    }

    /// Without the directory of the test.
    fn short(&self, at: &WirePath) -> String {
        at.to_string().replace(&format!("{}/", self.dir.path().display()), "")
    }

    fn make(&self, path: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, "content").expect("a file");
    }
}

#[test]
fn a_name_that_is_nowhere_goes_to_the_first_of_the_places_with_most_room() {
    let stage = Stage::new();
    assert_eq!(stage.write("any:new"), Ok(("one/new".into(), false)));
    assert_eq!(stage.write("any:/new/"), Ok(("one/new/".into(), false)));
    // Of unequal ones it is the larger, wherever it stands.
    let tempdir = || tempfile::tempdir().expect("a directory");
    let dir = tempdir();
    let room = |place: &str| space(Path::new(place), &Cancel::new()).expect("room").free;
    let (disk, memory) = (dir.path().to_str().expect("UTF-8").to_owned(), "ram:".to_owned());
    let expected = if room(&memory) > room(&disk) { "ram:haul-test-new".to_owned() } else { format!("{disk}/haul-test-new") };
    for listed in [[&disk, &memory], [&memory, &disk]] {
        let listed = listed.map(|place| WirePath(place.clone().into_bytes())).to_vec();
        assert_eq!(Stage::of(tempdir(), listed).write("any:haul-test-new"), Ok((expected.clone(), false)));
    }
}

#[test]
fn what_is_there_stays_where_it_is() {
    let stage = Stage::new();
    stage.make("two/set/file");
    assert_eq!(stage.write("any:set"), Ok(("two/set".into(), true)));
    // What is new in a directory goes where that is: another place has no such directory.
    assert_eq!(stage.write("any:set/new"), Ok(("two/set/new".into(), false)));
    assert_eq!(stage.read("any:set/file"), Ok("two/set/file".into()));
    assert_eq!(stage.read("any:set/f*"), Ok("two/set/f*".into()));
    stage.make("one/set/file");
    for found in [stage.write("any:set").map(|_| ()), stage.read("any:set").map(|_| ())] {
        let error = found.expect_err("there are two");
        assert!(error.contains("one/set and ") && error.contains("two/set: name the one"), "{error}");
    }
}

#[test]
fn an_interrupted_job_goes_on_where_it_was() {
    let stage = Stage::new();
    let second = WirePath::from(stage.dir.path().join("two/big").as_path());
    let place = stage.own.destination(&second, false).expect("a place");
    let id = stage_id(&JOB, place.rename.as_deref());
    drop(stage.own.stage(&place, &id, true, &Cancel::new()).expect("a stage"));
    assert_eq!(stage.write("any:big"), Ok(("two/big".into(), true)));
    assert_eq!(stage.write("any:other"), Ok(("one/other".into(), false)), "it is another job's");
}

#[test]
fn what_cannot_be_used_is_passed_over_and_told_where_nothing_else_is_left() {
    let stage = Stage::new();
    let two = WirePath::from(stage.dir.path().join("two").as_path());
    let mixed = Stage::of(tempfile::tempdir().expect("a directory"), vec![WirePath(b"no/such".into()), two]);
    mixed.write("any:new").expect("the other one");
    let none = Stage::of(tempfile::tempdir().expect("a directory"), vec![WirePath(b"no/such".into())]);
    let error = none.write("any:new").expect_err("no place");
    assert!(error.contains("any:new: no/such/new: No such file or directory"), "{error}");
    // What nobody has is missed in the first place.
    assert_eq!(stage.read("any:nothing"), Ok("one/nothing".into()));
}

#[test]
fn names_stay_in_their_place_and_there_must_be_one() {
    let stage = Stage::new();
    stage.make("outside");
    for asked in ["any:../outside", "any:a/../../outside", "any:.."] {
        assert!(stage.write(asked).expect_err(asked).contains("no .."), "{asked}");
        assert!(stage.read(asked).expect_err(asked).contains("no .."), "{asked}");
    }
    for asked in ["any:", "any:/", "any:./"] {
        assert!(stage.write(asked).expect_err(asked).contains("any:NAME"), "{asked}");
        assert!(stage.read(asked).expect_err(asked).contains("any:NAME"), "{asked}");
    }
    assert!(stage.read("any:*").expect_err("of which directory?").contains("any:DIRECTORY/*"));
}

#[test]
fn whoever_has_no_list_is_told_how_to_write_one() {
    let unlisted = |places| Stage { places, ..Stage::new() }.write("any:new").expect_err("no list");
    for places in [Places::default(), Places::told_by(|| Ok(Vec::new()))] {
        assert!(unlisted(places).contains("places = [\"/scratch/me\", \"ram:\"]"));
    }
    assert_eq!(unlisted(Places::told_by(|| Err("config.toml:3: wrong".into()))), "any:new: config.toml:3: wrong");
}
