// HEADRACE_SIMD before a function: compiled once for each of these processors, the best one chosen when the
// program starts. All versions give the same bits (the floor is compiled with -ffp-contract=off).
#pragma once

#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && \
    !defined(HEADRACE_SANITIZED)
#define HEADRACE_SIMD \
  __attribute__((target_clones("arch=icelake-server", "arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HEADRACE_SIMD
#endif
