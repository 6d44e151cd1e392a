// What marks a function that both GPU and host run: the mathematics of the kernels is plain code, tested on the
// host. Private to the CUDA backend.
#pragma once

#ifdef __CUDACC__
#define HEADRACE_HOST_DEVICE __host__ __device__ inline
#else
#define HEADRACE_HOST_DEVICE inline
#endif

// Before a loop: nvcc leaves it one. Loops of few rounds that are unrolled cost registers and gain nothing.
#ifdef __CUDA_ARCH__
#define HEADRACE_ROLLED _Pragma("unroll 1")
#else
#define HEADRACE_ROLLED
#endif
