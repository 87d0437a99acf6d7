//! Writes files that other programs read and write too: completely or not at all, from what they hold at that moment,
//! with a copy of what was there before.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use lispbox::server::usual_folder;
use tempfile::NamedTempFile;

use crate::context::Problem;

/// The number of times that a change is computed anew because its file has changed meanwhile.
const ATTEMPTS: usize = 3;

/// The files that a change of a client's file writes.
#[derive(Default)]
pub struct Change {
    /// The files of lispbox that are written before the client's own.
    pub before: Vec<OwnFile>,
    /// The new text of the client's file, if it changes.
    pub text: Option<String>,
    /// The files of lispbox that are written after it.
    pub after: Vec<OwnFile>,
}

/// A file of lispbox that is written.
pub struct OwnFile {
    /// The file.
    pub file: PathBuf,
    /// Its new text; without one, it is removed.
    pub text: Option<String>,
    /// True if a copy of the previous file is kept.
    pub is_copied: bool,
}

/// The copies of previous files that were made.
#[derive(Default)]
pub struct Copies {
    /// The copy of the client's file.
    pub of_client: Option<PathBuf>,
    /// Those of lispbox's own files.
    pub of_own: Vec<PathBuf>,
}

/// Changes a file that its client, whose name is `title`, may write at any time. `compute` gets the text of the file,
/// which is empty if there is none. If another text is there when the change is to be written, it is asked again.
///
/// # Errors
/// Returns an error if the file cannot be read or written, or if it changes each time. Nothing is written then.
pub fn change<T>(
    file: &Path,
    title: &str,
    mut compute: impl FnMut(&str) -> Result<(Change, T), Problem>,
) -> Result<(T, Copies), Problem> {
    for _ in 0..ATTEMPTS {
        let seen = current(file)?;
        let (change, told) = compute(&seen)?;
        let draft = change.text.as_deref().map(|text| Draft::of(file, text)).transpose()?;
        let mut own = Own::default();
        change.before.into_iter().try_for_each(|file| own.write(file))?;
        if current(file)? != seen {
            continue;
        }
        let of_client = draft.map(|draft| draft.put(true)).transpose()?.flatten();
        own.is_kept = true;
        change.after.into_iter().try_for_each(|file| own.write(file))?;
        return Ok((told, Copies { of_client, of_own: own.copies() }));
    }
    Err(Problem::Failed(format!("{} keeps changing; quit {title} and repeat", file.display())))
}

/// Returns the text of a file, which is empty if there is none.
///
/// # Errors
/// Returns an error if it is there and cannot be read, or is a link to nothing.
pub fn current(file: &Path) -> Result<String, Problem> {
    match std::fs::read_to_string(file) {
        Err(problem) if problem.kind() == ErrorKind::NotFound => {
            refuse_link_to_nothing(file)?;
            Ok(String::new())
        }
        read => read.map_err(|problem| failed(file, &problem)),
    }
}

/// Replaces a file and keeps a copy of its previous content; a new file is readable only by its owner. Returns the copy,
/// if there is one.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn replace(file: &Path, text: &str) -> Result<Option<PathBuf>, Problem> {
    if std::fs::read_to_string(file).is_ok_and(|before| before == text) {
        return Ok(None);
    }
    Draft::of(file, text)?.put(true)
}

/// Checks that a file can be replaced, without any trace of that.
///
/// # Errors
/// Returns an error if files cannot be written in its folder, or belong to another user there.
pub fn check_writable(file: &Path) -> Result<(), Problem> {
    refuse_link_to_nothing(file)?;
    let target = target(file);
    let folder = target.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let trial = tempfile::Builder::new().prefix(".lispbox-").tempfile_in(folder);
    let trial = trial.map_err(|problem| failed(file, &problem))?;
    refuse_foreign_home(trial.path())
}

/// Locks the files of lispbox that `setup` and `config import` write, until the result is dropped. There is no lock
/// where the system has none.
pub fn lock() -> Option<File> {
    let file = usual_folder()?.join("setup.lock");
    check_writable(&file).ok()?;
    std::fs::create_dir_all(file.parent()?).ok()?;
    let file = File::options().create(true).truncate(false).write(true).open(file).ok()?;
    file.lock().ok()?;
    Some(file)
}

fn failed(file: &Path, problem: &io::Error) -> Problem {
    Problem::Failed(format!("{}: {problem}", file.display()))
}

fn refuse_link_to_nothing(file: &Path) -> Result<(), Problem> {
    match std::fs::read_link(file) {
        Ok(to) if !file.exists() => {
            Err(Problem::Failed(format!("{} is a link to {}, which is not there", file.display(), to.display())))
        }
        _ => Ok(()),
    }
}

/// Refuses to write as the administrator into the home folder of another user, who could not change the files then.
#[cfg(unix)]
fn refuse_foreign_home(trial: &Path) -> Result<(), Problem> {
    use std::os::unix::fs::MetadataExt;
    const ADMINISTRATOR: u32 = 0;
    let owner = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.uid());
    let home = std::env::var_os("HOME").and_then(|home| std::fs::canonicalize(home).ok());
    let home = home.filter(|home| std::fs::canonicalize(trial).is_ok_and(|trial| trial.starts_with(home)));
    match home.as_deref().and_then(owner) {
        Some(home) if home != ADMINISTRATOR && owner(trial) == Some(ADMINISTRATOR) => {
            Err(Problem::Usage("the home folder belongs to another user; run it without sudo".to_owned()))
        }
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn refuse_foreign_home(_: &Path) -> Result<(), Problem> {
    Ok(())
}

/// The file that is replaced: if the named one is a link, its target.
fn target(file: &Path) -> PathBuf {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    std::fs::canonicalize(&file).unwrap_or(file)
}

/// A text that is about to become that of a file.
struct Draft {
    file: PathBuf,
    target: PathBuf,
    draft: NamedTempFile,
    /// The text must be written into the file that is there, since a new one would belong to another user.
    is_in_place: bool,
}

impl Draft {
    fn of(file: &Path, text: &str) -> Result<Draft, Problem> {
        refuse_link_to_nothing(file)?;
        let failed = |problem: io::Error| failed(file, &problem);
        let target = target(file);
        let folder = target.parent().unwrap_or(Path::new("."));
        if !folder.is_dir() {
            check_writable(file)?;
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut draft = tempfile::Builder::new().prefix(".lispbox-").tempfile_in(folder).map_err(failed)?;
        refuse_foreign_home(draft.path())?;
        draft.write_all(text.as_bytes()).and_then(|()| draft.as_file().sync_all()).map_err(failed)?;
        let mut is_in_place = false;
        if let Ok(metadata) = std::fs::metadata(&target) {
            is_in_place = keep_owner(draft.path(), &metadata).is_err();
            std::fs::set_permissions(draft.path(), metadata.permissions()).map_err(failed)?;
        }
        Ok(Draft { file: file.to_owned(), target, draft, is_in_place })
    }

    /// Replaces what is there, of which a copy may stay.
    fn put(self, is_copied: bool) -> Result<Option<PathBuf>, Problem> {
        let Draft { file, target, draft, is_in_place } = self;
        let failed = |problem: io::Error| failed(&file, &problem);
        let mut copied = None;
        if let Ok(metadata) = std::fs::metadata(&target)
            && is_copied
        {
            let copy = free_name(&file);
            std::fs::copy(&target, &copy).map_err(failed)?;
            let _ = keep_owner(&copy, &metadata);
            copied = Some(copy);
        }
        put_at(&target, draft, is_in_place).map_err(|problem| match &copied {
            Some(copy) if is_same(copy, &target) => {
                let _ = std::fs::remove_file(copy);
                failed(problem)
            }
            Some(copy) => failed(io::Error::other(format!("{problem}; the previous file is {}", copy.display()))),
            None => failed(problem),
        })?;
        Ok(copied)
    }
}

fn put_at(target: &Path, draft: NamedTempFile, is_in_place: bool) -> io::Result<()> {
    let draft = match is_in_place {
        true => draft,
        false => match draft.persist(target) {
            Ok(_) => return Ok(()),
            // A file that is mounted by itself, as into a container, cannot be replaced.
            Err(problem) if matches!(problem.error.kind(), ErrorKind::ResourceBusy | ErrorKind::CrossesDevices) => {
                problem.file
            }
            Err(problem) => return Err(problem.error),
        },
    };
    std::fs::write(target, std::fs::read(draft.path())?)
}

fn is_same(one: &Path, other: &Path) -> bool {
    std::fs::read(one).is_ok_and(|text| std::fs::read(other).is_ok_and(|other| other == text))
}

/// Gives a file the owner and the group of another one.
#[cfg(unix)]
fn keep_owner(file: &Path, of: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let own = std::fs::metadata(file)?;
    if (own.uid(), own.gid()) == (of.uid(), of.gid()) {
        return Ok(());
    }
    std::os::unix::fs::chown(file, Some(of.uid()), Some(of.gid()))
}

#[cfg(not(unix))]
fn keep_owner(_: &Path, _: &std::fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// `NAME.backup`, `NAME.backup-2`, …
fn free_name(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let names = std::iter::once(format!("{name}.backup")).chain((2..).map(|number| format!("{name}.backup-{number}")));
    let mut paths = names.map(|name| file.with_file_name(name));
    paths.find(|path| !path.exists()).unwrap_or_else(|| file.with_extension("backup"))
}

/// The own files that were written for a change. They are as before again if the change is not completed.
#[derive(Default)]
struct Own {
    written: Vec<(PathBuf, Option<Vec<u8>>, Option<PathBuf>)>,
    is_kept: bool,
}

impl Own {
    fn write(&mut self, own: OwnFile) -> Result<(), Problem> {
        let OwnFile { file, text, is_copied } = own;
        let before = std::fs::read(&file).ok();
        if before.as_deref() == text.as_ref().map(String::as_bytes) {
            return Ok(());
        }
        let copy = match &text {
            Some(text) => Draft::of(&file, text)?.put(is_copied)?,
            None => std::fs::remove_file(&file).map(|()| None).map_err(|problem| failed(&file, &problem))?,
        };
        self.written.push((file, before, copy));
        Ok(())
    }

    fn copies(&self) -> Vec<PathBuf> {
        self.written.iter().filter_map(|(.., copy)| copy.clone()).collect()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        for (file, before, copy) in &self.written {
            let _ = match before {
                Some(before) => std::fs::write(file, before),
                None => std::fs::remove_file(file),
            };
            copy.iter().for_each(|copy| drop(std::fs::remove_file(copy)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(file: &Path, text: &str) -> OwnFile {
        OwnFile { file: file.to_owned(), text: Some(text.to_owned()), is_copied: true }
    }

    #[test]
    fn a_change_is_computed_from_what_is_there_when_it_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, other) = (folder.path().join("client.json"), folder.path().join("own.json"));
        let changed = |times: usize| {
            std::fs::write(&file, "0").expect("written");
            std::fs::write(&other, "before").expect("written");
            let mut seen = 0;
            let outcome = change(&file, "Claude", |text| {
                seen += 1;
                if seen <= times {
                    std::fs::write(&file, seen.to_string()).expect("written");
                }
                let change =
                    Change { before: vec![own(&other, text)], text: Some(format!("after {text}")), after: Vec::new() };
                Ok((change, ()))
            });
            let read = |file: &Path| std::fs::read_to_string(file).expect("it is there");
            let copies = std::fs::read_dir(folder.path()).expect("a folder").count() - 2;
            let outcome = outcome.map(drop).map_err(|problem| match problem {
                Problem::Usage(message) | Problem::Failed(message) => message,
            });
            for entry in std::fs::read_dir(folder.path()).expect("a folder").flatten() {
                if entry.path().display().to_string().contains("backup") {
                    std::fs::remove_file(entry.path()).expect("removed");
                }
            }
            (outcome, read(&file), read(&other), copies)
        };
        assert_eq!(changed(0), (Ok(()), "after 0".to_owned(), "0".to_owned(), 2));
        assert_eq!(changed(2), (Ok(()), "after 2".to_owned(), "2".to_owned(), 2));
        let (refused, text, other, copies) = changed(3);
        let message = refused.expect_err("it changes each time");
        assert!(message.ends_with("client.json keeps changing; quit Claude and repeat"), "{message}");
        assert_eq!((text.as_str(), other.as_str(), copies), ("3", "before", 0));
    }

    #[test]
    fn own_files_are_as_before_if_a_change_fails() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("own.json"), "before").expect("written");
        std::fs::write(path("file"), "no folder").expect("written");
        let outcome = change(&path("client.json"), "Claude", |_| {
            let before = vec![own(&path("own.json"), "x"), own(&path("new.json"), "x"), own(&path("file/in"), "x")];
            Ok((Change { before, text: Some("x".to_owned()), after: Vec::new() }, ()))
        });
        assert!(outcome.is_err());
        assert_eq!(std::fs::read_to_string(path("own.json")).expect("it is there"), "before");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }
}
