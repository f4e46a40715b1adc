//! Kernels at the vector width of the machine: the only `unsafe` of this crate.
//!
//! A kernel is plain safe Rust. It is compiled twice, for the baseline of the target and, on x86-64, for AVX2 and what comes
//! with it; which one runs is decided by the machine. What the compiler does not make wide by itself is a function of
//! [`Vectors`], of which a kernel is given one.

#![expect(clippy::inline_always, reason = "what is not inlined is not compiled for AVX2")]

/// Work that gains from wide vectors. `run` and what it calls must be `#[inline(always)]`: what is not inlined is
/// compiled for the baseline.
pub(crate) trait Kernel {
    /// What comes out.
    type Output;

    /// Does the work.
    fn run(self, vectors: impl Vectors) -> Self::Output;
}

/// What machines do in their own ways.
pub(crate) trait Vectors: Copy {
    /// The highest bit of each byte, the first one lowest.
    fn highest_bits(self, bytes: [u8; 64]) -> u64;
}

/// Runs a kernel as the machine does it best.
pub(crate) fn best<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = avx2::Avx2::detected() {
        return avx2.run(kernel);
    }
    kernel.run(Baseline)
}

/// Brings the start of something into the nearest cache, and does not wait for it.
#[inline(always)]
pub(crate) fn prefetch<T>(what: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[expect(unsafe_code, reason = "the library has no safe way to it")]
        // SAFETY: nothing is read, whatever the address is, and every x86-64 can do it
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(what).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}

/// What every machine does.
#[derive(Clone, Copy)]
pub(crate) struct Baseline;

impl Vectors for Baseline {
    #[inline(always)]
    fn highest_bits(self, bytes: [u8; 64]) -> u64 {
        let mut all = 0;
        for eight in bytes.as_chunks().0.iter().rev() {
            let bits = u64::from_le_bytes(*eight) & 0x8080_8080_8080_8080;
            // each factor brings one of them into the highest byte
            all = all << 8 | bits.wrapping_mul(0x0002_0408_1020_4081) >> 56;
        }
        all
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the compiler cannot know the machine")]
mod avx2 {
    use std::arch::x86_64::{__m256i, _mm256_movemask_epi8};

    use super::{Kernel, Vectors};

    /// That the machine has AVX2 and what comes with it.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2(());

    impl Avx2 {
        pub(super) fn detected() -> Option<Avx2> {
            let is_there = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            is_there.then_some(Avx2(()))
        }

        pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn with_avx2<K: Kernel>(avx2: Avx2, kernel: K) -> K::Output {
                kernel.run(avx2)
            }
            // SAFETY: the function needs the features that `detected` found, for nobody else makes an `Avx2`
            unsafe { with_avx2(self, kernel) }
        }
    }

    impl Vectors for Avx2 {
        #[inline(always)]
        fn highest_bits(self, bytes: [u8; 64]) -> u64 {
            // SAFETY: 64 bytes are two vectors of 32, which may hold any bytes
            let halves: [__m256i; 2] = unsafe { std::mem::transmute(bytes) };
            // SAFETY: it needs AVX2, which `detected` found, for nobody else makes an `Avx2`
            let [low, high] = halves.map(|half| unsafe { _mm256_movemask_epi8(half) }.cast_unsigned());
            u64::from(high) << 32 | u64::from(low)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits by their definition.
    struct HighestBits([u8; 64]);

    impl Kernel for HighestBits {
        type Output = ();

        fn run(self, vectors: impl Vectors) {
            let bits = vectors.highest_bits(self.0);
            for (place, byte) in self.0.into_iter().enumerate() {
                assert_eq!(bits >> place & 1, u64::from(byte >> 7), "{place}");
            }
        }
    }

    #[test]
    fn highest_bits_are_those_of_the_bytes() {
        for factor in [1, 2, 37, 151, 255] {
            let bytes = std::array::from_fn(|place| (place * factor + 7).to_le_bytes()[0]);
            HighestBits(bytes).run(Baseline);
            best(HighestBits(bytes));
        }
    }
}
