//! A `.creds` file's user, who signs.

use std::path::PathBuf;

use ascar_credentials::Credentials;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The token of a `.creds` file, and the signature of a server's nonce by its key.
#[pyfunction]
pub fn sign_in(path: PathBuf, nonce: &str) -> PyResult<(String, String)> {
    let login = Credentials::read(&path)
        .and_then(|user| user.login(nonce))
        .map_err(PyValueError::new_err)?;
    Ok((login.token, login.signature))
}
