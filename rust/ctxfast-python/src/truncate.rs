//! Long tool outputs: where they are cut, and writing them to a file without a copy. `ctxfast.truncate` and
//! `ctxfast.store` are the public faces.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ctxfast::text::Text;
use ctxfast::text::encode::fingerprint;
use ctxfast::tools::Kinds;
use ctxfast::truncate::{self, Keep, Limits, Saved, Totals};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::{Read, parameter_type_error};
use crate::memory::view;
use crate::read::json::{self, Keys};
use crate::read::text_of;

/// Lines and UTF-8 bytes of a text. A line feed at its end begins no further line.
#[pyfunction]
pub(crate) fn text_size(text: &Bound<'_, PyString>) -> (usize, usize) {
    let (text, py) = (view(text), text.py());
    let totals = py.detach(|| Totals::of(text));
    (totals.lines, totals.bytes)
}

/// Which ends of an output are kept: those that `keep` asks for, or those that suit the kind of tool.
#[pyfunction]
pub(crate) fn kept_ends(keep: &str, tool_name: &str) -> &'static str {
    let ends = Keep::of(Kinds::default().of(tool_name));
    match (keep, ends) {
        ("head", _) | ("auto", Keep::Head) => "head",
        ("tail", _) | ("auto", Keep::Tail) => "tail",
        (_, Keep::MostlyTail) => "mostly_tail",
        _ => "halves",
    }
}

/// Where a text of so many lines and bytes is cut that is longer than the limits in lines, bytes and characters:
/// characters that are kept at the start and at the end, lines of which nothing is kept, bytes that are not. `None` if it
/// is not longer. `keep` is `"head"`, `"tail"`, `"halves"` or `"mostly_tail"`.
#[pyfunction]
pub(crate) fn cut_text(
    text: &Bound<'_, PyString>,
    size: (usize, usize),
    limits: (usize, usize, usize),
    keep: &str,
) -> Option<(usize, usize, usize, usize)> {
    let text = view(text);
    let totals = Totals::known(text, size.0, size.1);
    let limits = Limits { lines: limits.0, bytes: limits.1, chars: limits.2 };
    let keep = match keep {
        "head" => Keep::Head,
        "tail" => Keep::Tail,
        "mostly_tail" => Keep::MostlyTail,
        _ => Keep::Halves,
    };
    let cut = truncate::cut_known(text, totals, limits, keep)?;
    Some((cut.head, cut.tail, cut.omitted_lines, cut.omitted_bytes))
}

/// The line that stands where something was cut out.
#[pyfunction]
#[pyo3(signature = (omitted_lines, omitted_bytes, saved_as, hint))]
pub(crate) fn truncation_marker(
    omitted_lines: usize,
    omitted_bytes: usize,
    saved_as: Option<&str>,
    hint: &str,
) -> String {
    let saved = saved_as.map_or(Saved::Not, Saved::As);
    truncate::marker(omitted_lines, omitted_bytes, saved, hint)
}

/// The text of a tool output, its text parts joined by line feeds, and how many parts are no text.
#[pyfunction]
pub(crate) fn output_text<'py>(content: &Bound<'py, PyAny>) -> Read<(Bound<'py, PyString>, usize)> {
    text_of(content)
}

/// The parts of a tool output as compact JSON: what is saved of it.
#[pyfunction]
pub(crate) fn output_json<'py>(content: &Bound<'py, PyAny>) -> Read<Bound<'py, PyString>> {
    Ok(json::text(content, Keys::All)?.0)
}

/// A hash of a text or of bytes, 32 digits; a text has that of its UTF-8.
#[pyfunction]
pub(crate) fn output_hash(output: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = output.py();
    let hash = match Output::of(output)? {
        Output::Text(text) => {
            let text = view(text);
            py.detach(|| text.fingerprint())
        }
        Output::Bytes(bytes) => {
            let bytes = bytes.as_bytes();
            py.detach(|| fingerprint(bytes))
        }
    };
    Ok(format!("{hash:032x}"))
}

/// Writes a text (as UTF-8) or bytes to a file that must not exist yet, readable by its owner only, and gives the hash.
/// Raises `OSError`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "a path of Python is a new one here")]
pub(crate) fn write_output(path: PathBuf, output: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = output.py();
    let hash = match Output::of(output)? {
        Output::Text(text) => {
            let text = view(text);
            py.detach(|| {
                let mut file = create(&path)?;
                text.encode_and_hash(|piece| file.write_all(piece))
            })
        }
        Output::Bytes(bytes) => {
            let bytes = bytes.as_bytes();
            py.detach(|| create(&path)?.write_all(bytes).map(|()| fingerprint(bytes)))
        }
    };
    hash.map(|hash| format!("{hash:032x}")).map_err(os_error)
}

/// The exception with the system's number, which PyO3's own has not.
fn os_error(error: io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) if cfg!(unix) => PyOSError::new_err((number, error.to_string())),
        _ => error.into(),
    }
}

/// What is left of an ASCII text: so many characters of its start, a line in the gap, and the characters from `start` to
/// `end`. Made at once: added up in Python it would take up to twice the memory.
#[pyfunction]
pub(crate) fn join_ascii<'py>(
    text: &Bound<'py, PyString>,
    head: usize,
    gap: &str,
    start: usize,
    end: usize,
) -> Bound<'py, PyString> {
    let py = text.py();
    let text = view(text);
    let parts = [text.slice(0..head), Text::Utf8(gap), text.slice(start..end)].map(Text::as_well_formed);
    PyString::new(py, &parts.concat())
}

enum Output<'a, 'py> {
    Text(&'a Bound<'py, PyString>),
    Bytes(&'a Bound<'py, PyBytes>),
}

impl<'a, 'py> Output<'a, 'py> {
    fn of(output: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = output.cast::<PyString>() {
            return Ok(Self::Text(text));
        }
        match output.cast::<PyBytes>() {
            Ok(bytes) => Ok(Self::Bytes(bytes)),
            Err(_) => Err(parameter_type_error("text", "str or bytes", output)),
        }
    }
}

/// A new file: nothing is there yet, not even a link that leads nowhere.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true); // O_CREAT | O_EXCL, which follows no link
    #[cfg(unix)]
    {
        use std::fs::Permissions;
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        let file = options.mode(0o600).open(path)?;
        // whatever the umask has taken away; some file systems have no permissions
        drop(file.set_permissions(Permissions::from_mode(0o600)));
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(path)
}
