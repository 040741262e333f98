//! Programs at hand that run on another machine as they are: haul linked statically, one file for each kind of machine.
//!
//! What kind of machine a file is for, and whether it needs a loader over there, its ELF header says; its name does not count.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use data_encoding::HEXLOWER;

/// haul for one kind of machine, in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// As `uname -m` says it.
    pub machine: &'static str,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of all of it, in hexadecimal digits.
    pub sha256: String,
}

/// Machines that haul is built for: their number in ELF headers, and what `uname -m` says there.
const MACHINES: [(u16, &str); 2] = [(62, "x86_64"), (183, "aarch64")];
/// Beside the directory of a program, where packages have programs for all kinds of machines.
const BESIDE: &str = "../lib/haul/static";
/// `PT_INTERP`: what needs a loader has a program header of this type.
const LOADER: u32 = 3;
/// The ELF header of a program of 64 bits.
const HEADER_BYTES: usize = 64;
/// A program header of it.
const PART_BYTES: usize = 56;

impl Program {
    /// The program in this file, if it is one that a machine can run as it is.
    pub fn standing_alone(path: &Path) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        match Elf::read(&mut file)? {
            Some(elf) if !elf.needs_loader => Self::hashed(path, &elf, file).map(Some),
            _ => Ok(None),
        }
    }

    /// The program in this file, whatever else it may need over there: somebody has named it.
    pub fn named(path: &Path) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        Elf::read(&mut file)?.map(|elf| Self::hashed(path, &elf, file)).transpose()
    }

    /// All that stand alone in a directory, one for each kind of machine; none where there is no directory.
    pub fn all_in(dir: &Path) -> io::Result<Vec<Self>> {
        let mut found: Vec<Self> = Vec::new();
        let entries = match fs::read_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            entries => entries?,
        };
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        for path in paths.iter().filter(|path| path.is_file()) {
            let program = Self::standing_alone(path)?;
            found.extend(program.filter(|program| found.iter().all(|one| one.machine != program.machine)));
        }
        Ok(found)
    }

    /// What a user has named: a program, or all that stand alone in a directory.
    pub fn all_named(path: &Path) -> io::Result<Vec<Self>> {
        if path.is_dir() { Self::all_in(path) } else { Ok(Self::named(path)?.into_iter().collect()) }
    }

    /// The program that runs, where it stands alone, and those that were installed beside it for this purpose. Nobody has named them: what cannot be read is not at hand.
    pub fn at_hand() -> Vec<Self> {
        let Ok(own) = std::env::current_exe() else { return Vec::new() };
        let mut programs: Vec<Self> = Self::standing_alone(&own).ok().flatten().into_iter().collect();
        let beside = own.parent().map(|dir| dir.join(BESIDE)).and_then(|dir| Self::all_in(&dir).ok()).unwrap_or_default();
        for program in beside {
            if programs.iter().all(|one| one.machine != program.machine) {
                programs.push(program);
            }
        }
        programs
    }

    fn hashed(path: &Path, elf: &Elf, mut file: File) -> io::Result<Self> {
        file.seek(SeekFrom::Start(0))?;
        let (mut context, mut bytes, mut part) = (Context::new(&SHA256), 0, vec![0; 1 << 18]);
        loop {
            let read = file.read(&mut part)?;
            if read == 0 {
                break;
            }
            context.update(part.get(..read).unwrap_or_default());
            bytes += read as u64;
        }
        let sha256 = HEXLOWER.encode(context.finish().as_ref());
        Ok(Self { path: path.to_owned(), machine: elf.machine, bytes, sha256 })
    }
}

/// What counts of an ELF file's header.
struct Elf {
    machine: &'static str,
    needs_loader: bool,
}

impl Elf {
    /// Of a program of 64 bits, little end first, for one of [`MACHINES`]; nothing of any other file.
    fn read(file: &mut File) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER_BYTES];
        match file.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            result => result?,
        }
        let number = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let machine = MACHINES.iter().find(|(machine, _)| *machine == number(18)).map(|(_, name)| *name);
        // Magic, 64 bits, little end first; an executable or one that runs at any address.
        let is_program = header.starts_with(b"\x7fELF\x02\x01") && matches!(number(16), 2 | 3);
        let Some(machine) = machine.filter(|_| is_program && usize::from(number(54)) == PART_BYTES) else { return Ok(None) };
        let parts_at = u64::from_le_bytes(header[32..40].try_into().expect("eight bytes"));
        let mut parts = vec![0; usize::from(number(56)) * PART_BYTES];
        file.seek(SeekFrom::Start(parts_at))?;
        match file.read_exact(&mut parts) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            result => result?,
        }
        let needs_loader = parts.chunks_exact(PART_BYTES).any(|part| part.starts_with(&LOADER.to_le_bytes()));
        Ok(Some(Self { machine, needs_loader }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of a program with these program headers' types.
    fn elf(machine: u16, parts: &[u32]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(HEADER_BYTES, 0);
        bytes[16] = 3;
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = HEADER_BYTES as u8;
        bytes[54] = PART_BYTES as u8;
        bytes[56] = parts.len() as u8;
        for kind in parts {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; PART_BYTES - 4]);
        }
        bytes
    }

    #[test]
    fn what_stands_alone_is_found_by_its_header() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = |name: &str, content: &[u8]| fs::write(dir.path().join(name), content).expect("a file");
        file("a-dynamic", &elf(62, &[1, LOADER]));
        file("b-static", &elf(62, &[1, 2]));
        file("c-static-too", &elf(62, &[1]));
        file("arm", &elf(183, &[1]));
        file("mips", &elf(8, &[1]));
        file("script", b"#!/bin/sh\nexit 0\n");
        file("cut", &elf(62, &[1])[..100]);
        fs::create_dir(dir.path().join("dir")).expect("a directory");
        let found = Program::all_in(dir.path()).expect("reads");
        let names: Vec<_> = found.iter().map(|program| (program.machine, program.path.file_name().expect("a name"))).collect();
        assert_eq!(names, [("aarch64", "arm".as_ref()), ("x86_64", "b-static".as_ref())]);
        assert!(Program::all_in(&dir.path().join("nowhere")).expect("none").is_empty());
        let named = Program::named(&dir.path().join("a-dynamic")).expect("reads").expect("a program");
        assert_eq!((named.machine, named.bytes), ("x86_64", 176));
        assert_eq!(Program::named(&dir.path().join("script")).expect("reads"), None);
    }

    #[cfg(unix)]
    #[test]
    fn the_hash_is_that_of_sha256sum() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("program");
        fs::write(&path, elf(62, &[1])).expect("a file");
        let output = std::process::Command::new("sha256sum").arg(&path).output().expect("sha256sum");
        let program = Program::standing_alone(&path).expect("reads").expect("a program");
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(&program.sha256), "{program:?}");
    }
}
