#include "headrace/tests/support/fake_cuda/runtime.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace headrace::test::fake_cuda {
namespace {

struct Failure {
  int works = 0;
  cudaError_t status = cudaSuccess;
};

// Shared by all threads.
struct Bookkeeping {
  std::mutex mutex;
  std::map<std::thread::id, Calls> calls;
  std::map<std::string, Failure> failures;
  cudaError_t lost = cudaSuccess;  // what every call answers once the device is lost
  std::vector<std::string> misplaced;
  std::optional<std::vector<std::string>> log;  // nothing: nobody asked for it
};

Bookkeeping& bookkeeping() {
  static Bookkeeping one;
  return one;
}

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current = 0;  // device

bool stays(cudaError_t status) { return status == cudaErrorIllegalAddress || status == cudaErrorLaunchFailure; }

}  // namespace

cudaError_t answer(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

cudaError_t take_last_error() { return std::exchange(last_error, cudaSuccess); }

void count(const char* name) {
  const std::lock_guard lock(bookkeeping().mutex);
  ++bookkeeping().calls[std::this_thread::get_id()][name];
  if (bookkeeping().log) bookkeeping().log->emplace_back(name);
}

cudaError_t enter(const char* name) {
  count(name);
  Bookkeeping& all = bookkeeping();
  const std::lock_guard lock(all.mutex);
  const auto found = all.failures.find(name);
  if (found != all.failures.end() && found->second.works-- <= 0) {
    found->second.works = 0;
    if (stays(found->second.status)) all.lost = found->second.status;
    return answer(found->second.status);
  }
  return answer(all.lost);
}

cudaError_t enter_on(const char* name, int device) {
  const cudaError_t status = enter(name);
  if (device == current) return status;
  const std::lock_guard lock(bookkeeping().mutex);
  bookkeeping().misplaced.push_back(std::string(name) + " of device " + std::to_string(device) + " while " +
                                    std::to_string(current) + " is current");
  return answer(cudaErrorInvalidDevice);
}

void set_current_device(int device) { current = device; }
int current_device() { return current; }

Calls calls_here() {
  const std::lock_guard lock(bookkeeping().mutex);
  return bookkeeping().calls[std::this_thread::get_id()];
}

Calls calls_elsewhere() {
  const std::lock_guard lock(bookkeeping().mutex);
  Calls sum;
  for (const auto& [thread, calls] : bookkeeping().calls) {
    for (const auto& [name, count] : calls) sum[name] += thread == std::this_thread::get_id() ? 0 : count;
  }
  return sum;
}

void fail(const std::string& name, int works, cudaError_t status) {
  const std::lock_guard lock(bookkeeping().mutex);
  bookkeeping().failures[name] = {.works = works, .status = status};
}

void clear_calls() {
  const std::lock_guard lock(bookkeeping().mutex);
  bookkeeping().log.reset();
  bookkeeping().misplaced.clear();
  bookkeeping().failures.clear();
  bookkeeping().lost = cudaSuccess;
}

void note(const char* name) { count(name); }

void start_log() {
  const std::lock_guard lock(bookkeeping().mutex);
  bookkeeping().log.emplace();
}

std::vector<std::string> log() {
  const std::lock_guard lock(bookkeeping().mutex);
  return bookkeeping().log.value();
}

std::vector<std::string> misplaced_calls() {
  const std::lock_guard lock(bookkeeping().mutex);
  return bookkeeping().misplaced;
}

namespace {

std::size_t branch_of(CUgraph_st& graph, cudaStream_t stream) {
  const auto found = std::ranges::find(graph.streams, stream);
  const auto branch = static_cast<std::size_t>(found - graph.streams.begin());
  if (found == graph.streams.end()) graph.streams.push_back(stream);
  return branch;
}

// Returns whether `node` runs before `other` if the edges allow both.
bool precedes(const Node& node, const Node& other, GraphOrder order) {
  if (order == GraphOrder::kEarliestBranchFirst) return node.branch < other.branch;
  return order == GraphOrder::kLatestBranchFirst && node.branch > other.branch;
}

}  // namespace

bool is_default(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}
int device_of(cudaStream_t stream) { return is_default(stream) ? current_device() : stream->device; }
CUgraph_st* capture_of(cudaStream_t stream) { return is_default(stream) ? nullptr : stream->capture; }

cudaError_t submit(cudaStream_t stream, std::function<void()> work, const char* name) {
  if (capture_of(stream) == nullptr) {
    work();
    return cudaSuccess;
  }
  CUgraph_st& graph = *stream->capture;
  graph.nodes.push_back({.work = std::move(work),
                         .name = name,
                         .branch = branch_of(graph, stream),
                         .after = std::exchange(stream->last, {graph.nodes.size()})});
  return cudaSuccess;
}

void run(const CUgraph_st& graph, GraphOrder order) {
  std::vector<bool> done(graph.nodes.size(), false);
  const auto ready = [&](std::size_t i) {
    return !done[i] && std::ranges::all_of(graph.nodes[i].after, [&](std::size_t before) { return done[before]; });
  };
  for (std::size_t left = graph.nodes.size(); left > 0; --left) {
    std::size_t next = graph.nodes.size();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      if (!ready(i)) continue;
      if (next == graph.nodes.size() || precedes(graph.nodes[i], graph.nodes[next], order)) next = i;
    }
    graph.nodes[next].work();
    done[next] = true;
  }
}

bool joined(const CUgraph_st& graph, const Nodes& last) {
  Nodes reached = last;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    if (reached.contains(i)) reached.insert(graph.nodes[i].after.begin(), graph.nodes[i].after.end());
  }
  return reached.size() == graph.nodes.size();
}

Branches branches_of(const CUgraph_st& graph) {
  Branches branches;
  for (const CUstream_st* stream : graph.streams)
    branches.push_back({.priority = stream->priority, .kernels = {}});
  for (const Node& node : graph.nodes) branches[node.branch].kernels.push_back(node.name);
  return branches;
}

}  // namespace headrace::test::fake_cuda
