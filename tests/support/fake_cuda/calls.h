// Bookkeeping of calls to the fake runtime: counts, failures that tests ask for, each thread's current device and
// last error. Private to the fake. Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

namespace headrace::test::fake_cuda {

constexpr int kDevices = 2;

// Returns `status`, and keeps it as this thread's last error if it is one.
cudaError_t answer(cudaError_t status);
// Returns this thread's last error and resets it.
cudaError_t take_last_error();

// Counts the call and logs its name.
void count(const char* name);
// Counts the call; returns the error that a test asked for, if any.
cudaError_t enter(const char* name);
// As enter(), for a call on something of `device` that CUDA documents for the current device alone: an error, and
// a misplaced call, if another device is current.
cudaError_t enter_on(const char* name, int device);

// REQUIRES: 0 <= device < kDevices.
void set_current_device(int device);

// Clears failures, the log and misplaced calls; keeps the counts.
void clear_calls();

}  // namespace headrace::test::fake_cuda
