// Marks functions that both GPU and host run: the mathematics of the kernels is plain code, tested on the host.
// Private to the CUDA backend.
#pragma once

#ifdef __CUDACC__
#define HEADRACE_HOST_DEVICE __host__ __device__ inline
#else
#define HEADRACE_HOST_DEVICE inline
#endif

// Before a loop: keeps nvcc from unrolling it. Unrolling short loops costs registers and gains nothing.
// UNROLLED(n) unrolls it n times, n being a constant expression.
#ifdef __CUDA_ARCH__
#define HEADRACE_PRAGMA(text) _Pragma(#text)
#define HEADRACE_UNROLLED(rounds) HEADRACE_PRAGMA(unroll rounds)
#define HEADRACE_ROLLED HEADRACE_UNROLLED(1)
#else
#define HEADRACE_UNROLLED(rounds)
#define HEADRACE_ROLLED
#endif
