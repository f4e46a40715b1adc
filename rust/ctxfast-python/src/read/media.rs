//! The data of a media part, wherever a form puts them.

use ctxfast::media::{Data, Hint, Media, look};
use ctxfast::overheads::Detail;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use super::fields;
use crate::memory::{one_byte_text, wanted};

wanted! {
    /// Fields that hold the data of a media part, or something that holds them.
    pub(crate) struct MediaFields {
        image_url = b"image_url",
        source = b"source",
        input_audio = b"input_audio",
        audio = b"audio",
        file = b"file",
        video_url = b"video_url",
        inline_data = b"inline_data",
        inline_data_too = b"inlineData",
        image = b"image",
        data = b"data",
        file_data = b"file_data",
        bytes = b"bytes",
        base64 = b"base64",
        blob = b"blob",
        url = b"url",
        detail = b"detail",
    }
}

/// The data lie at most so deep in a part: `{"file": {"file_data": ...}}`, and one more.
const MAX_DEPTH: usize = 3;

/// Looks at a media part: what it is, and how closely the model shall look. What cannot be read is a part without data.
pub(crate) fn media(hint: Hint, part: &Bound<'_, PyAny>) -> (Media, Detail) {
    let (data, detail) = data_of(part);
    let media = match data {
        Some(data) => {
            if let Ok(bytes) = data.cast::<PyBytes>() {
                look(hint, Data::Raw(bytes.as_bytes()))
            } else if let Ok(bytes) = data.cast::<PyByteArray>() {
                look(hint, Data::Raw(&bytes.to_vec()))
            } else {
                look(hint, Data::Written(one_byte_text(&data).unwrap_or_default()))
            }
        }
        None => look(hint, Data::Written(&[])),
    };
    (media, detail)
}

/// The data of a media part, a string or bytes, and how closely the model shall look at it.
pub(super) fn data_of<'py>(part: &Bound<'py, PyAny>) -> (Option<Bound<'py, PyAny>>, Detail) {
    let mut detail = Detail::Auto;
    let data = data(part.clone(), MAX_DEPTH, &mut detail);
    (data, detail)
}

fn data<'py>(part: Bound<'py, PyAny>, depth: usize, detail: &mut Detail) -> Option<Bound<'py, PyAny>> {
    if part.is_instance_of::<PyString>()
        || part.is_instance_of::<PyBytes>()
        || part.is_instance_of::<PyByteArray>()
    {
        return Some(part);
    }
    let mut fields = MediaFields::default();
    if depth == 0 || fields::read(&part, &mut fields).is_err() {
        return None;
    }
    if let Some(name) = fields.detail.as_ref().and_then(one_byte_text) {
        *detail = Detail::named(name);
    }
    let MediaFields { image_url, source, input_audio, audio, file, video_url, inline_data, .. } = fields;
    let inside =
        [image_url, source, input_audio, audio, file, video_url, inline_data, fields.inline_data_too];
    let here =
        [fields.image, fields.data, fields.file_data, fields.bytes, fields.base64, fields.blob, fields.url];
    let found = inside.into_iter().chain(here).flatten().next()?;
    data(found, depth - 1, detail)
}
