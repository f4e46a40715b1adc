//! What a media part is, from the first bytes of its data: an image of so many pixels, a PDF of so many pages, sound.
//!
//! Providers count media by what they show, never by their bytes: a PNG of 1 MB has 700,000 tokens as base64 text, and
//! 85 to 1,600 in fact. So only headers are read; what they say beats what the part calls itself.

use std::borrow::Cow;

use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, Engine, GeneralPurpose, GeneralPurposeConfig};
use memchr::{memchr2, memmem};

/// The data of a media part.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// Bytes.
    Raw(&'a [u8]),
    /// A data URL or base64; or a name (a URL, an id) of which nothing is known, or nothing.
    Written(&'a [u8]),
}

/// What a part calls itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// An image.
    Image,
    /// Sound.
    Audio,
    /// A document, a file.
    File,
    /// A video, or nobody knows.
    Other,
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Media {
    /// An image, and its width and height in pixels where its header says them.
    Image(Option<(u64, u64)>),
    /// A PDF of so many pages: those that can be seen in it, else one for 50,000 bytes; at least one.
    Pdf(u64),
    /// A file of so many bytes of text.
    Text(u64),
    /// Sound of so many seconds: as a WAV header says, else as if it had 128 kbit/s; a minute if there is nothing.
    Audio(f64),
    /// Something else.
    Other,
}

/// Headers are looked for in so many bytes; JPEG alone may have the size further behind.
const HEAD: usize = 48 << 10;
/// No more bytes than these are decoded.
const MOST: usize = 64 << 20;
/// Of a page of a PDF whose pages cannot be seen, for they are compressed: text and some pictures.
const BYTES_OF_PAGE: u64 = 50_000;
/// Of a second of compressed sound.
const BYTES_OF_SECOND: f64 = 16_000.0;

/// Looks at the data of a part.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "lengths of data are far below 2^53")]
pub fn look(hint: Hint, data: Data) -> Media {
    let (head, length) = match data {
        Data::Raw(bytes) => (Cow::Borrowed(bytes.get(..HEAD).unwrap_or(bytes)), bytes.len()),
        Data::Written(text) => {
            let text = encoded(text);
            (Cow::Owned(decode(text, HEAD)), text.len() / 4 * 3)
        }
    };
    let whole = || match data {
        Data::Raw(bytes) => Cow::Borrowed(bytes.get(..MOST).unwrap_or(bytes)),
        Data::Written(text) => Cow::Owned(decode(encoded(text), MOST)),
    };
    match head.as_ref() {
        [0x89, b'P', b'N', b'G', ..]
        | [b'G', b'I', b'F', b'8', ..]
        | [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Media::Image(pixels(&head)),
        [0xFF, 0xD8, 0xFF, ..] => {
            Media::Image(pixels(&head).or_else(|| if length > HEAD { pixels(&whole()) } else { None }))
        }
        [b'%', b'P', b'D', b'F', ..] => {
            let pages = pages(&whole());
            Media::Pdf(if pages > 0 { pages } else { (length as u64 / BYTES_OF_PAGE).max(1) })
        }
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => {
            let rate =
                head.get(28..).and_then(<[u8]>::first_chunk).map_or(0, |rate| u32::from_le_bytes(*rate));
            let rate = if rate > 0 { f64::from(rate) } else { BYTES_OF_SECOND };
            Media::Audio(length as f64 / rate)
        }
        [b'I', b'D', b'3', ..] | [b'O', b'g', b'g', b'S', ..] | [b'f', b'L', b'a', b'C', ..] => {
            Media::Audio(length as f64 / BYTES_OF_SECOND)
        }
        _ => match hint {
            Hint::Image => Media::Image(None),
            Hint::Audio if length > 0 => Media::Audio(length as f64 / BYTES_OF_SECOND),
            Hint::Audio => Media::Audio(60.0),
            Hint::File if length > 0 && !head.contains(&0) && is_utf8(&head) => Media::Text(length as u64),
            Hint::File => Media::Pdf((length as u64 / BYTES_OF_PAGE).max(1)),
            Hint::Other => Media::Other,
        },
    }
}

/// The base64 in a data URL; `None`: it is no data URL, or one without base64.
#[must_use]
pub fn in_data_url(text: &[u8]) -> Option<&[u8]> {
    if !text.starts_with(b"data:") {
        return None;
    }
    let mark = b";base64,";
    text.get(memmem::find(start(text), mark)? + mark.len()..)
}

/// What is base64 in a data URL, or in something that may be a name.
fn encoded(text: &[u8]) -> &[u8] {
    // neither is of base64's alphabet
    let is_name = memchr2(b':', b'.', start(text)).is_some();
    in_data_url(text).unwrap_or(if is_name { &[] } else { text })
}

/// As far as what stands before base64 is looked for.
fn start(text: &[u8]) -> &[u8] {
    text.get(..256).unwrap_or(text)
}

/// Decodes at most so many bytes, up to what is no base64: either alphabet, with or without padding, in lines or not.
fn decode(text: &[u8], most: usize) -> Vec<u8> {
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let most = most / 3 * 4;
    // most often it is base64 and nothing else, which needs no copy
    if let Ok(bytes) = ENGINE.decode(text.get(..most).unwrap_or(text)) {
        return bytes;
    }
    let mut digits: Vec<u8> = text
        .iter()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map_while(|&byte| match byte {
            b'-' => Some(b'+'),
            b'_' => Some(b'/'),
            b'+' | b'/' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => Some(byte),
            _ => None,
        })
        .take(most)
        .collect();
    if digits.len() % 4 == 1 {
        digits.pop(); // six bits are no byte
    }
    ENGINE.decode(digits).unwrap_or_default()
}

fn pixels(bytes: &[u8]) -> Option<(u64, u64)> {
    imagesize::blob_size(bytes).ok().map(|size| (size.width as u64, size.height as u64))
}

/// How many objects of a PDF call themselves a page.
fn pages(bytes: &[u8]) -> u64 {
    let is_page =
        |place: &usize| bytes.get(place + b"/Page".len()).is_none_or(|next| !next.is_ascii_alphabetic());
    memmem::find_iter(bytes, b"/Page").filter(is_page).count() as u64
}

/// Whether it is UTF-8, but for a character that is cut at the end.
fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).err().is_none_or(|error| error.error_len().is_none())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 6, 0, 0, 0]);
        bytes
    }

    /// An Exif segment of so many bytes stands before the size.
    fn jpeg(width: u16, height: u16, exif: usize) -> Vec<u8> {
        let mut bytes = vec![0xFF, 0xD8];
        for length in [exif.min(60_000), exif.saturating_sub(60_000)] {
            bytes.extend([0xFF, 0xE1]);
            bytes.extend(u16::try_from(length + 2).unwrap().to_be_bytes());
            bytes.resize(bytes.len() + length, 0);
        }
        bytes.extend([0xFF, 0xC0, 0, 17, 8]);
        bytes.extend(height.to_be_bytes());
        bytes.extend(width.to_be_bytes());
        bytes.resize(bytes.len() + 20, 3);
        bytes
    }

    fn written(bytes: &[u8]) -> String {
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }

    #[test]
    fn images_say_their_size() {
        let gif = b"GIF89a\x40\x01\xF0\x00\0\0\0".to_vec();
        let webp = [b"RIFF\0\0\0\0WEBPVP8X\x0A\0\0\0\0\0\0\0".as_slice(), &[0x3F, 1, 0, 0xEF, 0, 0]].concat();
        let images = [
            (png(640, 480), (640, 480)),
            (jpeg(1200, 800, 10), (1200, 800)),
            (jpeg(1200, 800, 90_000), (1200, 800)),
            (gif, (320, 240)),
            (webp, (320, 240)),
        ];
        for (bytes, size) in images {
            let expected = Media::Image(Some(size));
            assert_eq!(look(Hint::Other, Data::Raw(&bytes)), expected);
            let base64 = written(&bytes);
            assert_eq!(look(Hint::File, Data::Written(base64.as_bytes())), expected);
            let url = format!("data:image/x;name=a;base64,{base64}");
            assert_eq!(look(Hint::Image, Data::Written(url.as_bytes())), expected);
            let lines =
                base64.as_bytes().chunks(76).map(<[u8]>::to_vec).collect::<Vec<_>>().join(b"\r\n".as_slice());
            assert_eq!(look(Hint::Image, Data::Written(&lines)), expected);
            let for_urls = base64.replace('+', "-").replace('/', "_").replace('=', "");
            assert_eq!(look(Hint::Image, Data::Written(for_urls.as_bytes())), expected);
        }
    }

    #[test]
    fn what_is_no_data_has_no_size() {
        for name in
            ["https://example.org/a.png", "file-6YjT8", "", "data:image/svg+xml,%3Csvg%3E", "gs://b/c"]
        {
            assert_eq!(look(Hint::Image, Data::Written(name.as_bytes())), Media::Image(None), "{name}");
            assert_eq!(look(Hint::Other, Data::Written(name.as_bytes())), Media::Other, "{name}");
        }
        assert_eq!(look(Hint::File, Data::Written(b"https://example.org/a.pdf")), Media::Pdf(1));
        assert_eq!(look(Hint::Audio, Data::Written(b"")), Media::Audio(60.0));
        assert_eq!(look(Hint::Image, Data::Raw(&png(1, 1)[..20])), Media::Image(None));
    }

    #[test]
    fn documents_have_pages_or_text() {
        let pdf = b"%PDF-1.4 /Type /Pages /Kids [] /Type /Page\n/Type/Page>> /PageLayout /Type /Page";
        assert_eq!(look(Hint::File, Data::Raw(pdf)), Media::Pdf(3));
        let compressed = [b"%PDF-1.7".as_slice(), &vec![7; 180_000]].concat();
        assert_eq!(look(Hint::Other, Data::Raw(&compressed)), Media::Pdf(3));
        assert_eq!(look(Hint::File, Data::Written(written(b"name,size\n").as_bytes())), Media::Text(12));
        assert_eq!(look(Hint::File, Data::Raw("größe".as_bytes())), Media::Text(7));
        assert_eq!(look(Hint::File, Data::Raw(b"PK\x03\x04\0\0")), Media::Pdf(1));
    }

    #[test]
    fn sound_has_seconds() {
        let mut wave =
            b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\xC0\x5D\0\0\x80\xBB\0\0\x02\0\x10\0data".to_vec();
        wave.resize(96_000, 0);
        assert_eq!(look(Hint::Other, Data::Raw(&wave)), Media::Audio(2.0));
        assert_eq!(
            look(Hint::File, Data::Raw(&[b"ID3".as_slice(), &[0; 15_997]].concat())),
            Media::Audio(1.0)
        );
        assert_eq!(look(Hint::Audio, Data::Raw(&[1; 8_000])), Media::Audio(0.5));
    }

    proptest! {
        #[test]
        fn nothing_is_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200), start in 0..8_usize) {
            let start = [
                b"".as_slice(), b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xFF\xD8\xFF", b"RIFFaaaaWEBPVP8 ", b"RIFFaaaaWAVE",
                b"%PDF", b"RIFFaaaaWEBPVP8L",
            ][start];
            let bytes = [start, &bytes].concat();
            for hint in [Hint::Image, Hint::Audio, Hint::File, Hint::Other] {
                let raw = look(hint, Data::Raw(&bytes));
                if let Media::Audio(seconds) = raw {
                    prop_assert!(seconds.is_finite() && seconds >= 0.0);
                }
                let _ = look(hint, Data::Written(&bytes));
            }
        }

        #[test]
        fn base64_is_its_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decode(written(&bytes).as_bytes(), MOST), bytes);
        }
    }
}
