//! Who logs in.

use anyhow::Context;
use clap::Args;
use tapeline_client::login::{LONGEST_USER, Login};

use crate::failure::Hinted;
use crate::paths::{self, FilePath};

/// Where a password is looked for when no file is named.
const VARIABLE: &str = "TAPELINE_OMM_PASSWORD";
/// Who logs in where the machine does not say who the user is.
const NOBODY: &str = "tapeline";

/// The login of a client.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Login")]
pub struct LoginArgs {
    /// User name [default: $USER]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// File whose first line is the password [default: the variable TAPELINE_OMM_PASSWORD, if set]
    #[arg(long, value_name = "FILE")]
    password_file: Option<FilePath>,
    /// Application ID for permissioning systems
    #[arg(long, value_name = "NUMBER", default_value_t = 256)]
    application_id: u16,
    /// Position of the user: an address and a network or host
    #[arg(long, value_name = "TEXT", default_value = "127.0.0.1/net")]
    position: String,
}

impl LoginArgs {
    /// What the login will say.
    ///
    /// # Errors
    /// No name, or a password that cannot be read. The error does not show it.
    pub fn credentials(&self) -> anyhow::Result<Login> {
        let user = match &self.user {
            Some(user) => user.clone(),
            None => std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or(NOBODY.to_owned()),
        };
        if user.is_empty() || user.len() > LONGEST_USER {
            let what = format!("a user's name has 1 to {LONGEST_USER} bytes, this one {}", user.len());
            return Err(Hinted::new(what, "name the user with --user").into());
        }
        let password = match &self.password_file {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", paths::shown(&path)))?;
                Some(text.lines().next().unwrap_or_default().to_owned())
            }
            None => std::env::var(VARIABLE).ok(),
        };
        let login = Login::user(&user).with_password(password);
        Ok(login.with_application_id(self.application_id).with_position(&self.position))
    }
}
