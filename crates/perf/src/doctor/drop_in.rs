//! Files that make settings last. Each names its writer in its first line, so that nobody else's file is changed.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tapeline_console::Hinted;

/// The first line of each file.
const MARK: &str = "# Written by `tapeline doctor --apply`; `tapeline doctor --revert` removes it.";
/// Begins the command that restores the setting that was in effect before.
const BEFORE: &str = "# before: ";

/// One of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropIn {
    /// The cores of plants.
    Cores,
    /// Values of kernel files: huge pages.
    KernelFiles,
    /// Settings of `sysctl`.
    Sysctl,
    /// Settings of logind.
    Logind,
}

impl DropIn {
    pub(super) const ALL: [Self; 4] = [Self::Cores, Self::KernelFiles, Self::Sysctl, Self::Logind];

    /// The file, as seen from the root.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Cores => "etc/systemd/system/tapeline@.service.d/tapeline-cores.conf",
            Self::KernelFiles => "etc/tmpfiles.d/tapeline-huge-pages.conf",
            Self::Sysctl => "etc/sysctl.d/60-tapeline.conf",
            Self::Logind => "etc/systemd/logind.conf.d/tapeline.conf",
        }
    }

    /// The section that settings belong to, in a file with sections.
    const fn section(self) -> Option<&'static str> {
        match self {
            Self::Cores => Some("[Service]"),
            Self::Logind => Some("[Login]"),
            Self::KernelFiles | Self::Sysctl => None,
        }
    }

    /// The command after which the file is in effect; without it, the next boot.
    pub(super) const fn takes_effect_by(self) -> &'static str {
        match self {
            Self::Cores => "systemctl daemon-reload && systemctl restart 'tapeline@*'",
            Self::KernelFiles => "systemd-tmpfiles --create /etc/tmpfiles.d/tapeline-huge-pages.conf",
            Self::Sysctl => "sysctl -p /etc/sysctl.d/60-tapeline.conf",
            Self::Logind => "systemctl restart systemd-logind",
        }
    }

    /// Adds settings, each with the command that restores what was before. A setting of the same name is replaced, and keeps the
    /// command that it had.
    ///
    /// # Errors
    /// The file is somebody else's, or cannot be written.
    pub(super) fn add(self, root: &Path, settings: &[(String, String)]) -> anyhow::Result<PathBuf> {
        let path = root.join(self.path());
        let mut lines = match self.read(root)? {
            Some(text) => text.lines().map(str::to_owned).collect(),
            None => {
                let section = self.section().map(str::to_owned);
                [Some(MARK.to_owned()), section].into_iter().flatten().collect::<Vec<_>>()
            }
        };
        for (setting, before) in settings {
            match lines.iter_mut().find(|line| is_same_setting(line, setting)) {
                Some(line) => setting.clone_into(line),
                None => lines.extend([format!("{BEFORE}{before}"), setting.clone()]),
            }
        }
        write_whole(&path, &(lines.join("\n") + "\n"))?;
        Ok(path)
    }

    /// The commands that restore what was before the file; `None` if there is no file.
    ///
    /// # Errors
    /// The file is somebody else's, or cannot be read.
    pub(super) fn restores(self, root: &Path) -> anyhow::Result<Option<Vec<String>>> {
        let commands = |text: String| {
            text.lines().filter_map(|line| line.strip_prefix(BEFORE)).map(str::to_owned).collect()
        };
        Ok(self.read(root)?.map(commands))
    }

    /// Removes the file.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub(super) fn remove(self, root: &Path) -> anyhow::Result<()> {
        let path = root.join(self.path());
        std::fs::remove_file(&path).map_err(|error| refused("remove", &path, error))?;
        // The folder of a unit's drop-ins, if nothing else is in it.
        if self == Self::Cores
            && let Some(folder) = path.parent()
        {
            let _ = std::fs::remove_dir(folder);
        }
        Ok(())
    }

    /// The file's text; `None` if there is no file.
    fn read(self, root: &Path) -> anyhow::Result<Option<String>> {
        let path = root.join(self.path());
        match std::fs::read_to_string(&path) {
            Ok(text) if text.starts_with(MARK) => Ok(Some(text)),
            Ok(_) => {
                let what = format!(
                    "{} was not written by `tapeline doctor --apply`, and stays as it is",
                    path.display()
                );
                Err(Hinted::new(what, "move the file, or put the settings into it by hand").into())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused("read", &path, error)),
        }
    }
}

/// Whether a line has the same setting: the name before `=`, or the path of a line of `tmpfiles.d`.
fn is_same_setting(line: &str, setting: &str) -> bool {
    fn name(line: &str) -> Option<&str> {
        match line.split_once('=') {
            Some((name, _)) => Some(name.trim()),
            None => line.strip_prefix("w ")?.split_whitespace().next(),
        }
    }
    !line.starts_with('#') && name(line).is_some_and(|one| name(setting) == Some(one))
}

/// Writes a file as a whole or not at all.
fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().context("a file has a folder")?;
    std::fs::create_dir_all(folder).map_err(|error| refused("create", folder, error))?;
    let part = path.with_extension("part");
    let mut file = std::fs::File::create(&part).map_err(|error| refused("write", &part, error))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| refused("write", &part, error))?;
    std::fs::rename(&part, path).map_err(|error| refused("write", path, error))
}

fn refused(doing: &str, path: &Path, error: std::io::Error) -> anyhow::Error {
    let is_denied = error.kind() == ErrorKind::PermissionDenied;
    let what = format!("cannot {doing} {}: {error}", path.display());
    if is_denied {
        Hinted::new(what, "files of the system are root's: sudo tapeline doctor …").into()
    } else {
        anyhow::anyhow!(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(settings: &[(&str, &str)]) -> Vec<(String, String)> {
        settings.iter().map(|(setting, before)| ((*setting).to_owned(), (*before).to_owned())).collect()
    }

    #[test]
    fn a_setting_is_written_once_and_remembers_what_was_before() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let first = pairs(&[("a.b = 1", "sysctl -w a.b=0"), ("c.d = 2", "sysctl -w c.d=9")]);
        let path = DropIn::Sysctl.add(root, &first).unwrap();
        DropIn::Sysctl
            .add(root, &pairs(&[("a.b = 5", "sysctl -w a.b=1"), ("e.f = 3", "sysctl -w e.f=4")]))
            .unwrap();
        let expected = format!(
            "{MARK}\n{BEFORE}sysctl -w a.b=0\na.b = 5\n{BEFORE}sysctl -w c.d=9\nc.d = 2\n{BEFORE}sysctl -w e.f=4\ne.f = 3\n"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(
            DropIn::Sysctl.restores(root).unwrap().unwrap(),
            ["sysctl -w a.b=0", "sysctl -w c.d=9", "sysctl -w e.f=4"]
        );
        DropIn::Sysctl.remove(root).unwrap();
        assert_eq!(DropIn::Sysctl.restores(root).unwrap(), None);
    }

    #[test]
    fn lines_of_tmpfiles_and_sections_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let line = |value: &str| format!("w /sys/kernel/x - - - - {value}");
        let before = |value: &str| pairs(&[(&line(value), "echo always > /sys/kernel/x")]);
        let path = DropIn::KernelFiles.add(folder.path(), &before("madvise")).unwrap();
        DropIn::KernelFiles.add(folder.path(), &before("never")).unwrap();
        assert!(
            std::fs::read_to_string(path)
                .unwrap()
                .ends_with(&format!("{BEFORE}echo always > /sys/kernel/x\n{}\n", line("never")))
        );
        let path = DropIn::Cores.add(folder.path(), &pairs(&[("CPUAffinity=2-3", "none")])).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            format!("{MARK}\n[Service]\n{BEFORE}none\nCPUAffinity=2-3\n")
        );
        DropIn::Cores.remove(folder.path()).unwrap();
        assert!(!path.parent().unwrap().exists());
    }

    #[test]
    fn a_file_of_somebody_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(DropIn::Logind.path());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "[Login]\nRemoveIPC=yes\n").unwrap();
        let error = DropIn::Logind.add(folder.path(), &pairs(&[("RemoveIPC=no", "")])).unwrap_err();
        assert!(error.to_string().contains("was not written by"), "{error}");
        assert!(DropIn::Logind.restores(folder.path()).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[Login]\nRemoveIPC=yes\n");
    }
}
