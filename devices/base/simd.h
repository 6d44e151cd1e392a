// Turns plain loops into vector code: they are compiled for several generations of x86-64, and the best version is
// chosen when the program starts. All versions give the same bits: the floors are compiled with -ffp-contract=off,
// so that multiplications and additions are never contracted.
//
// Inside such a function call only HEADRACE_INLINE ones (anything else, even std::sqrt or std::bit_cast, is
// compiled for the oldest generation and keeps the loop scalar), and no lambdas.
#pragma once

// HEADRACE_SIMD is for bytes, whose permutations profit from one more generation; HEADRACE_SIMD_MATH is for
// floats. There is no choice under sanitizers: it would run before their runtime is ready.
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && \
    !defined(HEADRACE_SANITIZED)
#define HEADRACE_SIMD \
  __attribute__((target_clones("arch=icelake-server", "arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define HEADRACE_SIMD_MATH \
  __attribute__((optimize("O3", "no-trapping-math"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HEADRACE_SIMD
#define HEADRACE_SIMD_MATH
#endif

#if defined(__GNUC__)
#define HEADRACE_INLINE inline __attribute__((always_inline))
#else
#define HEADRACE_INLINE inline
#endif
