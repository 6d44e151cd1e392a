// A CUDA runtime without a GPU: it counts its calls, can fail them, and keeps graphs; below, what its own sources
// share.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace headrace::test::fake_cuda {

// A CUDA runtime without a GPU: memory is the host's, streams run at once, graphs run again what was captured, in
// any order that their edges allow. It has two devices, counts its calls and fails them where a test says so; what
// is documented for the current device alone fails on another one's. The CUDA backend's own sources run on it.

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

// The NUMA policy of the thread that last allocated pinned memory, as get_mempolicy() tells it; the GPUs' node is
// 0.
int policy_of_pinned_memory();

// Meetings of replicas that share a GPU (cuda::meet) time out after the next `works` of them, all replicas'
// together, until clear().
void time_out_meetings(int works);
// Counts a meeting; returns whether it times out.
bool meeting_times_out();

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

// Bookkeeping of calls to the fake runtime: counts, failures that tests ask for, each thread's current device and
// last error. Private to the fake. Thread-safe.

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

// Streams, events and captured graphs of the fake runtime, and how a graph runs again. Private to the fake.

using Nodes = std::set<std::size_t>;  // of a graph, by number

struct Node {
  std::function<void()> work;
  std::string name;
  std::size_t branch = 0;
  Nodes after;  // it waits for these
};

}  // namespace headrace::test::fake_cuda

struct CUgraph_st {
  std::vector<headrace::test::fake_cuda::Node> nodes;  // in the order of submission, which respects every edge
  std::vector<CUstream_st*> streams = {};              // by branch
};
struct CUgraphExec_st {
  CUgraph_st graph;
};
struct CUstream_st {
  int priority = 0;
  int device = 0;
  CUgraph_st* capture = nullptr;               // to which it belongs; owned by the stream that began it
  headrace::test::fake_cuda::Nodes last = {};  // of it: what its next node waits for
};
struct CUevent_st {
  int device = 0;
  bool timed = false, recorded = false;
  std::atomic<bool> pending{false};  // what it marks is not over, as far as a query tells
  std::chrono::steady_clock::time_point at = {};
  CUgraph_st* capture = nullptr;               // within which it was recorded, as an edge
  headrace::test::fake_cuda::Nodes last = {};  // of it: what it stands for
};

namespace headrace::test::fake_cuda {

// The default streams belong to the current device and are never captured here.
bool is_default(cudaStream_t stream);
int device_of(cudaStream_t stream);
CUgraph_st* capture_of(cudaStream_t stream);  // null: none

// Does the work now or, if the stream is being captured, at every launch of its graph.
cudaError_t submit(cudaStream_t stream, std::function<void()> work, const char* name = "");

// Does the work of all nodes, in an order that the edges allow.
void run(const CUgraph_st& graph, GraphOrder order);

// Returns whether `last`, the end of the capturing stream, comes after every node.
bool joined(const CUgraph_st& graph, const Nodes& last);

Branches branches_of(const CUgraph_st& graph);

}  // namespace headrace::test::fake_cuda
