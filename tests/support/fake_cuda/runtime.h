// A CUDA runtime without a GPU: memory is the host's, streams run at once, graphs run again what was captured. It
// has two devices, counts its calls and fails them where a test says so; what is documented for the current device
// alone fails on another one's. The CUDA backend's own sources run on it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace headrace::test::fake_cuda {

// By the name of the runtime's function; a kernel launched outside of a graph counts as "kernel", a single
// copy from or to pageable memory as "pageable copy" too. Thread-safe.
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

// The names of all threads' calls since start_log(), in their order.
void start_log();
std::vector<std::string> log();

// Of this thread. No call.
int current_device();
// In words, since the last clear(): calls that want their device to be the current one, and did not find it so.
std::vector<std::string> misplaced_calls();

// A kernel, counted by this name: runs now or, where the stream captures, at every launch of its graph.
cudaError_t launch(cudaStream_t stream, std::function<void()> kernel, const char* name = "kernel");

}  // namespace headrace::test::fake_cuda
