//! The machine under check: its files, its cores, and the cores that should be quiet.

use tapeline_measure::{Error, SystemFiles, figures};

use super::finding::Finding;

/// The result of a check; an error means that a file does not report the setting.
pub(super) type Found = Result<Finding, Error>;

/// The topic of a check, and its function.
pub(super) type Check = (&'static str, fn(&Machine) -> Found);

/// The input of all checks.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) files: SystemFiles,
    /// The cores named by the user, otherwise all online cores.
    pub(super) cores: Vec<usize>,
    /// Cores that should do no other work: the named cores, otherwise all except the first, which the system needs.
    pub(super) quiet: Vec<usize>,
    /// The other online cores, for the system.
    pub(super) house: Vec<usize>,
}

impl Machine {
    /// A machine with these online cores. All named cores must be online.
    pub(super) fn new(files: SystemFiles, online: &[usize], named: Option<Vec<usize>>) -> Self {
        let quiet = named.clone().unwrap_or_else(|| online.iter().skip(1).copied().collect());
        let house = online.iter().copied().filter(|core| !quiet.contains(core)).collect();
        Self { files, cores: named.unwrap_or_else(|| online.to_vec()), quiet, house }
    }

    /// The distinct values over all checked cores, with the cores that have each: `performance on cores 0-3`.
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

    /// The distribution's command that adds an argument to the kernel's command line for the next boot.
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

/// A file of each of these cores, for brace expansion: `/sys/devices/system/cpu/cpu{0,2}/cpufreq/scaling_governor`.
pub(super) fn files_of(cores: &[usize], file: &str) -> String {
    let numbers: Vec<String> = cores.iter().map(usize::to_string).collect();
    match numbers.as_slice() {
        [one] => format!("/sys/devices/system/cpu/cpu{one}/{file}"),
        all => format!("/sys/devices/system/cpu/cpu{{{}}}/{file}", all.join(",")),
    }
}
