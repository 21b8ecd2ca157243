//! The machine that is looked at: its files, its cores, and which of these are to be quiet.

use tapeline_measure::{Error, SystemFiles, figures};

use super::finding::Finding;

/// What a check finds; an error is a file that does not say.
pub(super) type Found = Result<Finding, Error>;

/// A thing to look at, and how.
pub(super) type Check = (&'static str, fn(&Machine) -> Found);

/// What the checks look at.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) files: SystemFiles,
    /// The cores that were named; all that are online if none were.
    pub(super) cores: Vec<usize>,
    /// Cores that should do nothing else: those that were named; all but the first, which the system needs, if none were.
    pub(super) quiet: Vec<usize>,
    /// The other ones that are online: the system's.
    pub(super) house: Vec<usize>,
}

impl Machine {
    /// With the cores that were named, all of them online.
    pub(super) fn new(files: SystemFiles, online: &[usize], named: Option<Vec<usize>>) -> Self {
        let quiet = named.clone().unwrap_or_else(|| online.iter().skip(1).copied().collect());
        let house = online.iter().copied().filter(|core| !quiet.contains(core)).collect();
        Self { files, cores: named.unwrap_or_else(|| online.to_vec()), quiet, house }
    }

    /// What each of these cores says, with the cores that say it: `performance on cores 0-3`.
    pub(super) fn by_value(
        &self,
        mut read: impl FnMut(usize) -> Result<String, Error>,
    ) -> Result<Vec<(String, Vec<usize>)>, Error> {
        let mut values: Vec<(String, Vec<usize>)> = Vec::new();
        for &core in &self.cores {
            let value = read(core)?;
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, cores)) => cores.push(core),
                None => values.push((value, vec![core])),
            }
        }
        Ok(values)
    }

    /// The kernel's command line, word by word.
    pub(super) fn kernel_arguments(&self) -> Result<Vec<String>, Error> {
        Ok(self.files.line("proc/cmdline")?.split_whitespace().map(str::to_owned).collect())
    }

    /// The command that adds to the kernel's command line at the next start, as the distribution has it.
    pub(super) fn kernel_argument(&self, argument: &str) -> String {
        if ["usr/sbin/grubby", "usr/bin/grubby"].iter().any(|path| self.files.path(path).exists()) {
            return format!("sudo grubby --update-kernel=ALL --args=\"{argument}\" && sudo reboot");
        }
        format!(
            "echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {argument}\"' | \
             sudo tee -a /etc/default/grub.d/latency.cfg && sudo update-grub && sudo reboot"
        )
    }
}

/// `core 1`, `cores 0-3`.
pub(super) fn cores_text(cores: &[usize]) -> String {
    let plural = if cores.len() == 1 { "core" } else { "cores" };
    format!("{plural} {}", figures::list(cores))
}

/// `performance on cores 0-3, powersave on core 4`.
pub(super) fn values_text(values: &[(String, Vec<usize>)]) -> String {
    let texts: Vec<String> =
        values.iter().map(|(value, cores)| format!("{value} on {}", cores_text(cores))).collect();
    texts.join(", ")
}

/// A file of each of these cores, for the shell to open out: `/sys/devices/system/cpu/cpu{0,2}/cpufreq/scaling_governor`.
pub(super) fn files_of(cores: &[usize], file: &str) -> String {
    let numbers: Vec<String> = cores.iter().map(usize::to_string).collect();
    match numbers.as_slice() {
        [one] => format!("/sys/devices/system/cpu/cpu{one}/{file}"),
        all => format!("/sys/devices/system/cpu/cpu{{{}}}/{file}", all.join(",")),
    }
}
