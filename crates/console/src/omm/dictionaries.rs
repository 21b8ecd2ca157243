//! The dictionary from files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use tapeline_omm::Dictionary;

use crate::paths::{self, FilePath};

/// The field dictionary.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Dictionary")]
pub struct DictionaryArgs {
    /// Field dictionary, in the format of RDMFieldDictionary [default: a small built-in dictionary]
    #[arg(long, value_name = "FILE")]
    dictionary: Option<FilePath>,
    /// Enumerations, in the format of enumtype.def
    #[arg(long, value_name = "FILE", requires = "dictionary")]
    enums: Option<FilePath>,
}

impl DictionaryArgs {
    /// These files.
    pub const fn of(dictionary: Option<FilePath>, enums: Option<FilePath>) -> Self {
        Self { dictionary, enums }
    }

    /// These files, if none is named.
    pub fn or(self, files: Option<(PathBuf, PathBuf)>) -> Self {
        match files {
            Some((fields, enums)) if self.dictionary.is_none() => {
                Self { dictionary: Some(FilePath::of(fields)), enums: Some(FilePath::of(enums)) }
            }
            _ => self,
        }
    }

    /// These files; if none is named, those of their usual names in the working directory, if they are there.
    pub fn or_usual(self) -> Self {
        let there = |name: &str| Some(FilePath::of(name)).filter(|path| path.is_file());
        match there("RDMFieldDictionary") {
            Some(fields) if self.dictionary.is_none() => {
                Self { dictionary: Some(fields), enums: there("enumtype.def") }
            }
            _ => self,
        }
    }

    /// What is loaded, for people.
    pub fn shown(&self) -> String {
        let file = |path: &Path| paths::shown(path).to_string();
        match (&self.dictionary, &self.enums) {
            (None, _) => "(built in)".to_owned(),
            (Some(fields), None) => file(fields),
            (Some(fields), Some(enums)) => format!("{}, {}", file(fields), file(enums)),
        }
    }

    /// The dictionary of the files, or Tapeline's own.
    ///
    /// # Errors
    /// A file that cannot be read, or a line of it that is not as it should be.
    pub fn load(&self) -> anyhow::Result<Arc<Dictionary>> {
        let Some(fields) = &self.dictionary else { return Ok(Arc::new(Dictionary::builtin().clone())) };
        let mut dictionary =
            Dictionary::parse(&text(fields)?).with_context(|| format!("in {}", paths::shown(&fields)))?;
        if let Some(enums) = &self.enums {
            let text = text(enums)?;
            dictionary = dictionary
                .with_enumerations(&text)
                .with_context(|| format!("in {}", paths::shown(&enums)))?;
        }
        Ok(Arc::new(dictionary))
    }
}

/// A file's text. Explanations in such files are not always UTF-8, and nobody reads them.
fn text(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", paths::shown(&path)))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
