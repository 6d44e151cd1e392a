// A CUDA runtime without a GPU: memory is the host's, streams run at once, graphs run again what was captured, in
// any order that their edges allow. It has two devices, counts its calls and fails them where a test says so; what
// is documented for the current device alone fails on another one's. The CUDA backend's own sources run on it.
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

// In which order graphs run from now on, until clear(): as they were captured; where their edges leave a choice, a
// node of the earliest branch that has one ready, or of the latest.
enum class GraphOrder { kCaptured, kEarliestBranchFirst, kLatestBranchFirst };
void run_graphs(GraphOrder order);

// The graph that was captured last, by streams: the one that captured, then those with a node in the order of
// their first. Copies and host functions have the name "".
struct Branch {
  int priority = 0;  // negative ones come first
  std::vector<std::string> kernels = {};
};
using Branches = std::vector<Branch>;
Branches last_graph();

// Counts what is no call of the runtime's.
void note(const char* name);

// The names of all threads' calls since start_log(), in their order.
void start_log();
std::vector<std::string> log();

// From now on the GPUs that this thread asks for are those of another host, as far as their UUIDs tell.
void set_host(int host);

// Of this thread. No call.
int current_device();
// In words, since the last clear(): calls that want their device to be the current one, and did not find it so.
std::vector<std::string> misplaced_calls();

// A kernel, counted by this name: runs now or, where the stream captures, at every launch of its graph. `node` is
// its name there, where it has another one.
cudaError_t launch(cudaStream_t stream, std::function<void()> kernel, const char* name = "kernel",
                   const char* node = nullptr);

}  // namespace headrace::test::fake_cuda
