//! What a request has beside its texts: frames of messages and tools, and media.

use crate::media::Media;

/// Tokens that are added to those of the texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overheads {
    /// For a request, once.
    pub request: u64,
    /// For each message.
    pub message: u64,
    /// For each tool result, with the call that it answers.
    pub result: u64,
    /// For a request with tools, once.
    pub tools: u64,
    /// For each tool.
    pub tool: u64,
    /// What names, descriptions and schemas of tools are multiplied by: some providers send less than the JSON.
    pub tool_text: f64,
    /// How tools are written.
    pub notation: Notation,
    /// For media.
    pub media: MediaRule,
}

/// How a provider shows tools to its models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// As they are sent: name, description, schema.
    Json,
    /// As declarations.
    TypeScript,
}

/// What media cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MediaRule {
    /// The same for each part, whatever it is; nobody looks at it.
    Fixed(u64),
    /// By what it is.
    Shown {
        /// For an image.
        image: ImageRule,
        /// For a page of a PDF.
        pdf_page: u64,
        /// For a second of sound.
        audio_second: f64,
    },
}

/// What an image costs, by its pixels. Limits that are 0 play no part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ImageRule {
    /// The same for each.
    Fixed(u64),
    /// Fitted into a square, then its short side; a base, and so much for each tile. In low detail the base alone.
    Tiles {
        /// side of the square, in pixels
        max_side: u64,
        /// in pixels
        short_side: u64,
        /// side of a tile, in pixels
        tile: u64,
        /// tokens
        base: u64,
        /// tokens
        per_tile: u64,
    },
    /// Patches, the last ones of a row or column whole; made smaller until the long side and their number fit.
    Patches {
        /// side of a patch, in pixels
        patch: u64,
        /// in pixels
        max_side: u64,
        /// in all
        max_patches: u64,
        /// the same where the model looks at an image in its original detail
        original_patches: u64,
        /// tokens of a patch
        multiplier: f64,
        /// an image that is made smaller gets a side of whole patches, else the largest size that fits
        whole: bool,
        /// automatic detail is original detail
        auto_is_original: bool,
    },
    /// A base for an image whose sides are both small, else a base for each tile.
    Crops {
        /// in pixels
        small_side: u64,
        /// in pixels
        max_side: u64,
        /// side of a tile, in pixels; 0: two thirds of the short side, 256 to 768, and once more for the whole image
        tile: u64,
        /// tokens
        base: u64,
    },
}

/// How closely the model looks at an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// As the provider likes.
    Auto,
    /// As if it were small.
    Low,
    /// Closely.
    High,
    /// As it is.
    Original,
}

impl Detail {
    /// By its name: anything else is `auto`.
    #[must_use]
    pub fn named(name: &[u8]) -> Detail {
        match name {
            b"low" => Detail::Low,
            b"high" => Detail::High,
            b"original" => Detail::Original,
            _ => Detail::Auto,
        }
    }
}

/// The size of an image whose size is not known: a screenshot.
const ASSUMED: (u64, u64) = (1920, 1080);
/// Bytes of a token of a text file.
const BYTES_OF_TOKEN: u64 = 4;

impl MediaRule {
    /// Tokens of a part.
    #[must_use]
    pub fn tokens(self, media: Media, detail: Detail) -> u64 {
        let (image, pdf_page, audio_second) = match self {
            MediaRule::Fixed(tokens) => return tokens,
            MediaRule::Shown { image, pdf_page, audio_second } => (image, pdf_page, audio_second),
        };
        match media {
            Media::Image(pixels) => {
                let (width, height) = pixels.unwrap_or(ASSUMED);
                image.tokens(width, height, detail)
            }
            Media::Pdf(pages) => pages.saturating_mul(pdf_page),
            Media::Text(bytes) => bytes.div_ceil(BYTES_OF_TOKEN),
            Media::Audio(seconds) => count((seconds * audio_second).ceil()),
            Media::Other => image.tokens(ASSUMED.0, ASSUMED.1, detail),
        }
    }
}

impl ImageRule {
    /// Tokens of an image of so many pixels.
    #[must_use]
    pub fn tokens(self, width: u64, height: u64, detail: Detail) -> u64 {
        let size = Size { wide: side(width), high: side(height) };
        match self {
            ImageRule::Fixed(tokens) => tokens,
            ImageRule::Tiles { base, .. } if detail == Detail::Low => base,
            ImageRule::Tiles { max_side, short_side, tile, base, per_tile } => {
                let size = size.fit_long(max_side).fit_short(short_side);
                base.saturating_add(per_tile.saturating_mul(size.squares(number(tile))))
            }
            ImageRule::Patches {
                patch,
                max_side,
                max_patches,
                original_patches,
                multiplier,
                whole,
                auto_is_original,
            } => {
                let is_original = detail == Detail::Original || (detail == Detail::Auto && auto_is_original);
                let most = if is_original { original_patches } else { max_patches };
                let size = size.fit_long(max_side);
                let mut patches = size.squares(number(patch));
                if most > 0 && patches > most {
                    let size = size.times(1.0 / number(patch));
                    patches = if whole { size.whole_squares(most) } else { size.most_squares(most) };
                }
                count((number(patches) * multiplier - SLACK).ceil())
            }
            ImageRule::Crops { small_side, base, .. } if size.long() <= number(small_side) => base,
            ImageRule::Crops { max_side, tile, base, .. } => {
                let size = size.fit_long(max_side);
                base.saturating_mul(if tile > 0 {
                    size.squares(number(tile))
                } else {
                    size.squares((size.short() / 1.5).floor().clamp(256.0, 768.0)) + 1
                })
            }
        }
    }
}

/// No image is wider or higher.
const MOST_PIXELS: u64 = 65_535;
/// What rounding errors may add to a whole number.
const SLACK: f64 = 1e-9;

/// The sides of an image, in pixels or in patches.
#[derive(Clone, Copy)]
struct Size {
    wide: f64,
    high: f64,
}

impl Size {
    fn long(self) -> f64 {
        self.wide.max(self.high)
    }

    fn short(self) -> f64 {
        self.wide.min(self.high)
    }

    fn times(self, scale: f64) -> Size {
        Size { wide: self.wide * scale, high: self.high * scale }
    }

    /// Made smaller until the long side is not above `most`.
    fn fit_long(self, most: u64) -> Size {
        let scale = number(most) / self.long();
        if most > 0 && scale < 1.0 { self.times(scale) } else { self }
    }

    /// Made smaller until the short side is not above `most`.
    fn fit_short(self, most: u64) -> Size {
        let scale = number(most) / self.short();
        if most > 0 && scale < 1.0 { self.times(scale) } else { self }
    }

    /// Squares that cover it.
    fn squares(self, side: f64) -> u64 {
        let along = |length: f64| count((length / side - SLACK).ceil()).max(1);
        along(self.wide).saturating_mul(along(self.high))
    }

    /// Patches of the largest image of this shape that has at most `most`.
    fn most_squares(self, most: u64) -> u64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if self.times(middle).squares(1.0) <= most {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.times(low).squares(1.0).min(most)
    }

    /// Patches of an image that is scaled to an area of `most` patches, and then until one side is whole patches.
    fn whole_squares(self, most: u64) -> u64 {
        let size = self.times((number(most) / (self.wide * self.high)).sqrt());
        let down = |side: f64| (side + SLACK).floor().max(1.0) / side;
        size.times(down(size.wide).min(down(size.high))).squares(1.0).min(most)
    }
}

fn side(pixels: u64) -> f64 {
    number(pixels.clamp(1, MOST_PIXELS))
}

#[expect(clippy::cast_precision_loss, reason = "pixels and tokens are far below 2^53")]
fn number(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and NaN is 0")]
fn count(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GPT_4O: ImageRule =
        ImageRule::Tiles { max_side: 2048, short_side: 768, tile: 512, base: 85, per_tile: 170 };
    const GPT_MINI: ImageRule = ImageRule::Patches {
        patch: 32,
        max_side: 0,
        max_patches: 1536,
        original_patches: 0,
        multiplier: 1.0,
        whole: true,
        auto_is_original: false,
    };
    const CLAUDE: ImageRule = ImageRule::Patches {
        patch: 28,
        max_side: 1568,
        max_patches: 1568,
        original_patches: 1568,
        multiplier: 1.0,
        whole: false,
        auto_is_original: false,
    };
    const GEMINI: ImageRule = ImageRule::Crops { small_side: 384, max_side: 3072, tile: 768, base: 258 };

    /// The examples of the providers' documentation.
    #[test]
    fn published_examples() {
        assert_eq!(GPT_4O.tokens(1024, 1024, Detail::High), 765);
        assert_eq!(GPT_4O.tokens(2048, 4096, Detail::High), 1105);
        assert_eq!(GPT_4O.tokens(4096, 8192, Detail::Low), 85);
        assert_eq!(GPT_MINI.tokens(1024, 1024, Detail::High), 1024);
        assert_eq!(GPT_MINI.tokens(1800, 2400, Detail::High), 1452);
        assert_eq!(GPT_MINI.tokens(1920, 1920, Detail::Original), 3600);
        assert_eq!(CLAUDE.tokens(200, 200, Detail::High), 64);
        // of the shape of the largest number of patches, 48 x 32: rounding errors cost no row
        assert!((33..1_000).all(|side| GPT_MINI.tokens(48 * side, 32 * side, Detail::High) == 1536));
        assert_eq!(CLAUDE.tokens(1000, 1000, Detail::High), 1296);
        assert_eq!(GEMINI.tokens(384, 100, Detail::High), 258);
        assert_eq!(GEMINI.tokens(1024, 1024, Detail::High), 1032);
    }

    #[test]
    fn media_cost_what_they_show() {
        let rule = MediaRule::Shown { image: GPT_4O, pdf_page: 1_000, audio_second: 32.0 };
        let tokens = |media| rule.tokens(media, Detail::High);
        assert_eq!(tokens(Media::Image(Some((1024, 1024)))), 765);
        assert_eq!(tokens(Media::Image(None)), 1105);
        assert_eq!(tokens(Media::Other), 1105);
        assert_eq!(tokens(Media::Pdf(3)), 3_000);
        assert_eq!(tokens(Media::Text(5)), 2);
        assert_eq!(tokens(Media::Audio(1.5)), 48);
        assert_eq!(MediaRule::Fixed(256).tokens(Media::Pdf(3), Detail::Low), 256);
    }

    proptest! {
        #[test]
        fn every_size_costs_something(width in any::<u64>(), height in prop_oneof![any::<u64>(), 0..5_000_u64]) {
            for rule in [GPT_4O, GPT_MINI, CLAUDE, GEMINI, ImageRule::Fixed(7)] {
                prop_assert!(rule.tokens(width, height, Detail::High) > 0);
            }
            prop_assert!(CLAUDE.tokens(width, height, Detail::High) <= 1568);
        }
    }
}
