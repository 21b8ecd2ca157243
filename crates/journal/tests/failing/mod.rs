//! A folder in memory that fails on request, and whose machine can stop: unsynced pages are then lost at random.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;

use tapeline_journal::{File, Folder};

/// The operations that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fails {
    Nothing,
    /// Writes after this number of bytes, and extending files: a full disk.
    Full(u64),
    /// Every change: a disk that became read-only.
    ReadOnly,
    /// Syncs: an I/O error.
    Sync,
    /// The process is about to be killed, or the machine to [stop](Memory::stop): this number of bytes is still
    /// written, nothing is synced, and nothing is truncated any more.
    Dying(u64),
}

#[derive(Debug, Default)]
struct Contents {
    now: Vec<u8>,
    on_disk: Vec<u8>,
}

/// Bytes that a disk writes in one piece.
const PAGE: usize = 4_096;

#[derive(Debug)]
struct State {
    files: BTreeMap<String, Rc<RefCell<Contents>>>,
    /// File names that are on disk.
    names: BTreeSet<String>,
    fails: Fails,
}

#[derive(Clone, Debug)]
pub(crate) struct Memory(Rc<RefCell<State>>);

#[derive(Debug)]
pub(crate) struct InMemory {
    contents: Rc<RefCell<Contents>>,
    of: Memory,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self(Rc::new(RefCell::new(State {
            files: BTreeMap::new(),
            names: BTreeSet::new(),
            fails: Fails::Nothing,
        })))
    }

    pub(crate) fn fail(&self, fails: Fails) {
        self.0.borrow_mut().fails = fails;
    }

    /// Stops and restarts the machine. `keeps` decides for each unsynced page whether it is on disk.
    pub(crate) fn stop(&self, mut keeps: impl FnMut() -> bool) -> Self {
        let after = Self::new();
        for (name, contents) in &self.0.borrow().files {
            if !self.0.borrow().names.contains(name) && !keeps() {
                continue;
            }
            let contents = contents.borrow();
            let mut bytes = contents.on_disk.clone();
            if bytes.len() != contents.now.len() && keeps() {
                bytes.resize(contents.now.len(), 0);
            }
            for (page, now) in bytes.chunks_mut(PAGE).zip(contents.now.chunks(PAGE)) {
                if keeps() {
                    let count = now.len().min(page.len());
                    page[..count].copy_from_slice(&now[..count]);
                }
            }
            let contents = Contents { on_disk: bytes.clone(), now: bytes };
            after.0.borrow_mut().names.insert(name.clone());
            after.0.borrow_mut().files.insert(name.clone(), Rc::new(RefCell::new(contents)));
        }
        after
    }

    /// Adds a file with these bytes.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        let contents = Contents { now: bytes.to_vec(), on_disk: bytes.to_vec() };
        self.0.borrow_mut().files.insert(name.to_owned(), Rc::new(RefCell::new(contents)));
    }

    fn writable(&self, bytes: u64) -> io::Result<u64> {
        match &mut self.0.borrow_mut().fails {
            Fails::Full(0) => Err(io::ErrorKind::StorageFull.into()),
            Fails::Dying(0) if bytes > 0 => Err(io::Error::from_raw_os_error(5)),
            Fails::Full(left) | Fails::Dying(left) => {
                let taken = bytes.min(*left);
                *left -= taken;
                Ok(taken)
            }
            Fails::ReadOnly => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            Fails::Nothing | Fails::Sync => Ok(bytes),
        }
    }
}

impl Folder for Memory {
    type File = InMemory;

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.borrow().files.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<InMemory> {
        self.writable(0)?;
        let contents = Rc::new(RefCell::new(Contents::default()));
        if self.0.borrow_mut().files.insert(name.to_owned(), Rc::clone(&contents)).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(InMemory { contents, of: self.clone() })
    }

    fn open(&self, name: &str, _: bool) -> io::Result<InMemory> {
        let state = self.0.borrow();
        let contents = state.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(InMemory { contents: Rc::clone(contents), of: self.clone() })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if self.0.borrow().fails == Fails::ReadOnly {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        self.0.borrow_mut().files.remove(name).map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        if matches!(state.fails, Fails::Sync | Fails::Dying(_)) {
            return Err(io::Error::from_raw_os_error(5));
        }
        state.names = state.files.keys().cloned().collect();
        Ok(())
    }
}

impl File for InMemory {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let contents = self.contents.borrow();
        let from = contents.now.get(offset as usize..).unwrap_or_default();
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let count = self.of.writable(bytes.len() as u64)? as usize;
        let mut contents = self.contents.borrow_mut();
        let end = offset as usize + count;
        if contents.now.len() < end {
            contents.now.resize(end, 0);
        }
        contents.now[offset as usize..end].copy_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.contents.borrow().now.len() as u64)
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        if matches!(self.of.0.borrow().fails, Fails::ReadOnly | Fails::Dying(_)) {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        self.contents.borrow_mut().now.resize(bytes as usize, 0);
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.of.writable(0)?;
        self.contents.borrow_mut().now.resize(bytes as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if matches!(self.of.0.borrow().fails, Fails::Sync | Fails::Dying(_)) {
            return Err(io::Error::from_raw_os_error(5));
        }
        let mut contents = self.contents.borrow_mut();
        contents.on_disk = contents.now.clone();
        Ok(())
    }
}
