// A CUDA runtime without a GPU: memory is the host's, streams run at once, graphs run again what was captured. It
// counts its calls and fails them where a test says so. The CUDA backend's own sources run on it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace headrace::test::fake_cuda {

// By the name of the runtime's function; a kernel launched outside of a graph counts as "kernel", sums over two
// GPUs as "sum" and "sum in order". Thread-safe.
using Calls = std::map<std::string, std::uint64_t>;
// Of this thread so far, and of all the others.
Calls calls_here();
Calls calls_elsewhere();

// What calls of `name` after the first `works` of them answer from now on; like a GPU's own, most errors stay:
// every later call that asks the device answers the same. Until clear().
void fail(const std::string& name, int works, cudaError_t status);
void clear();

// The GPUs' compute capability, 9.0 at first. Until clear().
void set_compute_capability(int major, int minor);

// From now on events that this thread records are reached when somebody waits for them, and not before: the device
// is busy, as seen from here.
void fall_behind();

// The mode of the last capture.
cudaStreamCaptureMode capture_mode();

// Counts what is no call of the runtime's.
void note(const char* name);

// A kernel: runs now or, where the stream captures, at every launch of its graph.
cudaError_t launch(cudaStream_t stream, std::function<void()> kernel);

}  // namespace headrace::test::fake_cuda
