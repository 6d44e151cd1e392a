// How the CPU kernels become vector code: plain loops, compiled for three generations of x86-64 and chosen
// when the program starts. Private to the CPU backend.
//
// Inside a HEADRACE_SIMD function call only HEADRACE_INLINE ones (anything else, even std::sqrt or std::bit_cast,
// is compiled for the oldest generation and keeps the loop scalar), and no lambdas. Multiplications and additions
// are not contracted (-ffp-contract=off), so all three give the same bits.
#pragma once

// Under sanitizers the choice would run before their runtime is ready, so there is none.
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && \
    !defined(HEADRACE_SANITIZED)
#define HEADRACE_SIMD \
  __attribute__((optimize("O3", "no-trapping-math"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HEADRACE_SIMD
#endif

#if defined(__GNUC__)
#define HEADRACE_INLINE inline __attribute__((always_inline))
#else
#define HEADRACE_INLINE inline
#endif
