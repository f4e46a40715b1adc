//! Kernels at the vector width of the machine: the only `unsafe` of this crate.
//!
//! A kernel is plain safe Rust. It is compiled twice, for the baseline of the target and, on x86-64, for AVX2 and what comes
//! with it; which one runs is decided by the machine.

/// Work that gains from wide vectors. `run` and what it calls must be `#[inline(always)]`: what is not inlined is
/// compiled for the baseline.
pub(crate) trait Kernel {
    /// What comes out.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;
}

/// Runs a kernel as the machine does it best.
pub(crate) fn best<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
    {
        #[expect(unsafe_code, reason = "the compiler cannot know the machine")]
        // SAFETY: the function needs the features that were just detected, and nothing else
        return unsafe { with_avx2(kernel) };
    }
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}
