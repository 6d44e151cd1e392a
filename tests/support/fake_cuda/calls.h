// What the fake runtime keeps of its calls: counts, the failures that tests want, each thread's current device and
// last error. Private to it. Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

namespace headrace::test::fake_cuda {

constexpr int kDevices = 2;

// `status`, kept as this thread's last error where it is one.
cudaError_t answer(cudaError_t status);
// This thread's last error, which is forgotten.
cudaError_t take_last_error();

// Counts the call, and its name goes to the log.
void count(const char* name);
// The same; an error where a test wants one.
cudaError_t enter(const char* name);
// The same of a call that is documented for the current device alone, where something of `device` is meant.
cudaError_t enter_on(const char* name, int device);

// Precondition: there is such a device.
void set_current_device(int device);

// Forgets failures, the log and misplaced calls; counts stay.
void clear_calls();

}  // namespace headrace::test::fake_cuda
