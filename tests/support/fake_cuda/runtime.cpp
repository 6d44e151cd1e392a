#include "headrace/tests/support/fake_cuda/runtime.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace fake = headrace::test::fake_cuda;

namespace {
using Nodes = std::set<std::size_t>;  // of a graph, by number

struct Node {
  std::function<void()> work;
  std::string name;
  std::size_t branch = 0;
  Nodes after;  // it waits for these
};
}  // namespace

struct CUgraph_st {
  std::vector<Node> nodes;                 // in the order of submission, which respects every edge
  std::vector<CUstream_st*> streams = {};  // by branch
};
struct CUgraphExec_st {
  CUgraph_st graph;
};
struct CUstream_st {
  int priority = 0;
  int device = 0;
  CUgraph_st* capture = nullptr;  // to which it belongs; owned by the stream that began it
  Nodes last = {};                // of it: what its next node waits for
};
struct CUevent_st {
  int device = 0;
  bool timed = false, recorded = false;
  std::atomic<bool> pending{false};  // what it marks is not over, as far as a query tells
  std::chrono::steady_clock::time_point at = {};
  CUgraph_st* capture = nullptr;  // within which it was recorded, as an edge
  Nodes last = {};                // of it: what it stands for
};
struct CUmemPoolHandle_st {
  int device = 0;
};

namespace {

constexpr int kDevices = 2;

struct Failure {
  int works = 0;
  cudaError_t status = cudaSuccess;
};

// What is the process's own.
struct Runtime {
  std::mutex mutex;
  std::map<std::thread::id, fake::Calls> calls;
  std::map<std::string, Failure> failures;
  cudaError_t lost = cudaSuccess;  // what every call answers once the device is lost
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::atomic<int> capability{90};  // of all GPUs: 9.0
  std::vector<CUstream_st*> streams;
  std::vector<std::string> misplaced;
  std::map<const std::byte*, std::size_t> memory;  // device and pinned
  std::optional<std::vector<std::string>> log;     // nothing: nobody asked for it
  fake::GraphOrder order = fake::GraphOrder::kCaptured;
  fake::Branches last_graph;
};

Runtime& runtime() {
  static Runtime one;
  return one;
}

thread_local cudaError_t last_error = cudaSuccess;
thread_local bool behind = false;
thread_local int current = 0;  // device

cudaError_t answer(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

bool stays(cudaError_t status) { return status == cudaErrorIllegalAddress || status == cudaErrorLaunchFailure; }

void count(const char* name) {
  const std::lock_guard lock(runtime().mutex);
  ++runtime().calls[std::this_thread::get_id()][name];
  if (runtime().log) runtime().log->emplace_back(name);
}

// Counts the call; an error where a test wants one.
cudaError_t enter(const char* name) {
  count(name);
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  const auto found = all.failures.find(name);
  if (found != all.failures.end() && found->second.works-- <= 0) {
    found->second.works = 0;
    if (stays(found->second.status)) all.lost = found->second.status;
    return answer(found->second.status);
  }
  return answer(all.lost);
}

// The same of a call that is documented for the current device alone, where something of `device` is meant.
cudaError_t enter_on(const char* name, int device) {
  const cudaError_t status = enter(name);
  if (device == current) return status;
  const std::lock_guard lock(runtime().mutex);
  runtime().misplaced.push_back(std::string(name) + " of device " + std::to_string(device) + " while " +
                                std::to_string(current) + " is current");
  return answer(cudaErrorInvalidDevice);
}

// The default streams are the current device's, and are not captured here.
bool is_default(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}
int device_of(cudaStream_t stream) { return is_default(stream) ? current : stream->device; }
CUgraph_st* capture_of(cudaStream_t stream) { return is_default(stream) ? nullptr : stream->capture; }

std::size_t branch_of(CUgraph_st& graph, cudaStream_t stream) {
  const auto found = std::ranges::find(graph.streams, stream);
  const auto branch = static_cast<std::size_t>(found - graph.streams.begin());
  if (found == graph.streams.end()) graph.streams.push_back(stream);
  return branch;
}

cudaError_t submit(cudaStream_t stream, std::function<void()> work, const char* name = "") {
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

// The nodes that run before others of which `order` leaves the choice.
bool precedes(const Node& node, const Node& other, fake::GraphOrder order) {
  if (order == fake::GraphOrder::kEarliestBranchFirst) return node.branch < other.branch;
  return order == fake::GraphOrder::kLatestBranchFirst && node.branch > other.branch;
}

void run(const CUgraph_st& graph, fake::GraphOrder order) {
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

// Whether the end of the capturing stream is the end of all.
bool joined(const CUgraph_st& graph, const Nodes& last) {
  Nodes reached = last;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    if (reached.contains(i)) reached.insert(graph.nodes[i].after.begin(), graph.nodes[i].after.end());
  }
  return reached.size() == graph.nodes.size();
}

fake::Branches branches_of(const CUgraph_st& graph) {
  fake::Branches branches;
  for (const CUstream_st* stream : graph.streams)
    branches.push_back({.priority = stream->priority, .kernels = {}});
  for (const Node& node : graph.nodes) branches[node.branch].kernels.push_back(node.name);
  return branches;
}

void reach(cudaEvent_t event) {
  event->recorded = true;
  event->pending = behind;
  event->at = std::chrono::steady_clock::now();
}

cudaError_t allocate(void** data, std::size_t bytes) {
  *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*data == nullptr) return answer(cudaErrorMemoryAllocation);
  const std::lock_guard lock(runtime().mutex);
  runtime().memory[static_cast<const std::byte*>(*data)] = bytes;
  return cudaSuccess;
}

void give_back(void* data) {
  {
    const std::lock_guard lock(runtime().mutex);
    runtime().memory.erase(static_cast<const std::byte*>(data));
  }
  std::free(data);
}

// A copy from or to it is made by the host, which waits.
bool is_pageable(const void* data) {
  const auto* at = static_cast<const std::byte*>(data);
  const std::lock_guard lock(runtime().mutex);
  const auto after = runtime().memory.upper_bound(at);
  if (after == runtime().memory.begin()) return true;
  const auto& [begin, bytes] = *std::prev(after);
  return at >= begin + bytes;
}

}  // namespace

namespace headrace::test::fake_cuda {

Calls calls_here() {
  const std::lock_guard lock(runtime().mutex);
  return runtime().calls[std::this_thread::get_id()];
}

Calls calls_elsewhere() {
  const std::lock_guard lock(runtime().mutex);
  Calls sum;
  for (const auto& [thread, calls] : runtime().calls) {
    for (const auto& [name, count] : calls) sum[name] += thread == std::this_thread::get_id() ? 0 : count;
  }
  return sum;
}

void fail(const std::string& name, int works, cudaError_t status) {
  const std::lock_guard lock(runtime().mutex);
  runtime().failures[name] = {.works = works, .status = status};
}

void clear() {
  const std::lock_guard lock(runtime().mutex);
  behind = false;
  runtime().order = GraphOrder::kCaptured;
  runtime().log.reset();
  runtime().misplaced.clear();
  runtime().failures.clear();
  runtime().lost = cudaSuccess;
  runtime().capability = 90;
}

void set_compute_capability(int major, int minor) { runtime().capability = 10 * major + minor; }

void fall_behind() { behind = true; }

cudaStreamCaptureMode capture_mode() {
  const std::lock_guard lock(runtime().mutex);
  return runtime().mode;
}

void run_graphs(GraphOrder order) {
  const std::lock_guard lock(runtime().mutex);
  runtime().order = order;
}

Branches last_graph() {
  const std::lock_guard lock(runtime().mutex);
  return runtime().last_graph;
}

void note(const char* name) { count(name); }

void start_log() {
  const std::lock_guard lock(runtime().mutex);
  runtime().log.emplace();
}

std::vector<std::string> log() {
  const std::lock_guard lock(runtime().mutex);
  return runtime().log.value();
}

int current_device() { return current; }

std::vector<std::string> misplaced_calls() {
  const std::lock_guard lock(runtime().mutex);
  return runtime().misplaced;
}

cudaError_t launch(cudaStream_t stream, std::function<void()> kernel, const char* name, const char* node) {
  if (const cudaError_t status = enter_on(name, device_of(stream)); status != cudaSuccess) return status;
  return submit(stream, std::move(kernel), node == nullptr ? name : node);
}

}  // namespace headrace::test::fake_cuda

// Counts the call, and returns from it where it is to fail.
#define ENTER(name)                                                        \
  do {                                                                     \
    if (const cudaError_t entered = enter(name); entered != cudaSuccess) { \
      return entered;                                                      \
    }                                                                      \
  } while (false)
// The same of a call that wants the stream's device to be the current one.
#define ENTER_ON(name, stream)                                                                   \
  do {                                                                                           \
    if (const cudaError_t entered = enter_on(name, device_of(stream)); entered != cudaSuccess) { \
      return entered;                                                                            \
    }                                                                                            \
  } while (false)

extern "C" {

cudaError_t CUDARTAPI cudaGetLastError(void) {
  count("cudaGetLastError");
  const cudaError_t last = last_error;
  last_error = cudaSuccess;
  return last;
}
const char* CUDARTAPI cudaGetErrorName(cudaError_t status) {
  return status == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaErrorOfATest";
}
const char* CUDARTAPI cudaGetErrorString(cudaError_t status) {
  return status == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "an error of a test";
}

cudaError_t CUDARTAPI cudaGetDeviceCount(int* count) {
  ENTER("cudaGetDeviceCount");
  *count = kDevices;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  ENTER("cudaGetDeviceProperties");
  *properties = {};
  std::strcpy(properties->name, "no GPU");
  properties->major = runtime().capability / 10;
  properties->minor = runtime().capability % 10;
  properties->totalGlobalMem = std::size_t{1} << 32;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  ENTER("cudaDeviceGetAttribute");
  *value = 1;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) {
  ENTER("cudaDriverGetVersion");
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version) {
  ENTER("cudaRuntimeGetVersion");
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaSetDevice(int device) {
  ENTER("cudaSetDevice");
  if (device < 0 || device >= kDevices) return answer(cudaErrorInvalidDevice);
  current = device;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  ENTER("cudaGetDevice");
  *device = current;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  ENTER("cudaMemGetInfo");
  *free = *total = std::size_t{1} << 32;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMalloc(void** data, std::size_t bytes) {
  ENTER("cudaMalloc");
  return allocate(data, bytes);
}
cudaError_t CUDARTAPI cudaHostAlloc(void** data, std::size_t bytes, unsigned int) {
  ENTER("cudaHostAlloc");
  return allocate(data, bytes);
}
// Memory comes back also from a device that is lost: nothing of a test's is to leak.
cudaError_t CUDARTAPI cudaFree(void* data) {
  give_back(data);
  ENTER("cudaFree");
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaFreeHost(void* data) {
  give_back(data);
  ENTER("cudaFreeHost");
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  ENTER("cudaMemPoolCreate");
  *pool = new CUmemPoolHandle_st{properties->location.id};
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete pool;
  ENTER("cudaMemPoolDestroy");
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  ENTER("cudaMemPoolSetAttribute");
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  ENTER("cudaMemPoolGetAttribute");
  *static_cast<std::uint64_t*>(value) = 0;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) {
  ENTER("cudaMemPoolTrimTo");
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMallocFromPoolAsync(void** data, std::size_t bytes, cudaMemPool_t pool,
                                              cudaStream_t stream) {
  ENTER_ON("cudaMallocFromPoolAsync", stream);
  if (pool->device != device_of(stream)) return answer(cudaErrorInvalidDevice);
  return allocate(data, bytes);
}
cudaError_t CUDARTAPI cudaFreeAsync(void* data, cudaStream_t stream) {
  give_back(data);
  ENTER_ON("cudaFreeAsync", stream);
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  ENTER("cudaDeviceGetStreamPriorityRange");
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int priority) {
  ENTER("cudaStreamCreateWithPriority");
  *stream = new CUstream_st{.priority = priority, .device = current};
  const std::lock_guard lock(runtime().mutex);
  runtime().streams.push_back(*stream);
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  ENTER("cudaStreamCreateWithFlags");
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream) {
  {
    const std::lock_guard lock(runtime().mutex);
    std::erase(runtime().streams, stream);
  }
  delete stream;
  ENTER("cudaStreamDestroy");
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t) {
  ENTER("cudaStreamSynchronize");
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  ENTER_ON("cudaStreamWaitEvent", stream);
  if (flags == cudaEventWaitExternal || event->capture == nullptr || is_default(stream)) return cudaSuccess;
  if (stream->capture == nullptr) stream->last.clear();
  stream->capture = event->capture;
  stream->last.insert(event->last.begin(), event->last.end());
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                      cudaStream_t stream) {
  ENTER("cudaMemcpyAsync");
  if (is_pageable(from) || is_pageable(to)) count("pageable copy");
  return submit(stream, [=] { std::memcpy(to, from, bytes); });
}
// As the runtime's, it refuses what it cannot do: to be captured, nothing, the default stream.
cudaError_t CUDARTAPI cudaMemcpyBatchAsync(void* const* to, const void* const* from, const std::size_t* bytes,
                                           std::size_t count, cudaMemcpyAttributes* attributes, std::size_t* first,
                                           std::size_t kinds, cudaStream_t stream) {
  ENTER_ON("cudaMemcpyBatchAsync", stream);
  if (is_default(stream)) return answer(cudaErrorInvalidValue);
  if (stream->capture != nullptr) return answer(cudaErrorStreamCaptureUnsupported);
  if (count == 0 || kinds != 1 || first[0] != 0) return answer(cudaErrorInvalidValue);
  if (attributes->srcAccessOrder != cudaMemcpySrcAccessOrderStream) return answer(cudaErrorInvalidValue);
  for (std::size_t i = 0; i < count; ++i) {
    if (bytes[i] == 0) return answer(cudaErrorInvalidValue);
    std::memcpy(to[i], from[i], bytes[i]);
  }
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  ENTER_ON("cudaMemsetAsync", stream);
  return submit(stream, [=] { std::memset(to, value, bytes); });
}
cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  ENTER_ON("cudaLaunchHostFunc", stream);
  return submit(stream, [=] { function(data); });
}

cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  ENTER_ON("cudaStreamBeginCapture", stream);
  stream->capture = new CUgraph_st{.nodes = {}, .streams = {stream}};
  stream->last.clear();
  const std::lock_guard lock(runtime().mutex);
  runtime().mode = mode;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  ENTER_ON("cudaStreamEndCapture", stream);
  *graph = stream->capture;
  if (*graph == nullptr) return answer(cudaErrorStreamCaptureInvalidated);
  const bool whole = joined(**graph, stream->last);
  const std::lock_guard lock(runtime().mutex);
  for (CUstream_st* each : runtime().streams) {
    if (each->capture == *graph) each->capture = nullptr;
  }
  if (whole) return cudaSuccess;
  delete std::exchange(*graph, nullptr);
  return answer(cudaErrorStreamCaptureUnjoined);
}
cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  ENTER("cudaGraphInstantiate");
  *executable = new CUgraphExec_st{*graph};
  const std::lock_guard lock(runtime().mutex);
  runtime().last_graph = branches_of(*graph);
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  ENTER("cudaGraphDestroy");
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  ENTER("cudaGraphExecDestroy");
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  ENTER_ON("cudaGraphLaunch", stream);
  fake::GraphOrder order{};
  {
    const std::lock_guard lock(runtime().mutex);
    order = runtime().order;
  }
  run(executable->graph, order);
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  ENTER("cudaEventCreateWithFlags");
  *event = new CUevent_st{.device = current};
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event) {
  delete event;
  ENTER("cudaEventDestroy");
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  ENTER_ON("cudaEventRecordWithFlags", stream);
  if (event->device != device_of(stream)) return answer(cudaErrorInvalidResourceHandle);
  event->capture = flags == cudaEventRecordExternal ? nullptr : capture_of(stream);
  if (event->capture != nullptr) event->last = stream->last;
  if (event->capture != nullptr) return cudaSuccess;
  return submit(stream, [event] { reach(event); });
}
cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  ENTER_ON("cudaEventRecord", stream);
  if (event->device != device_of(stream)) return answer(cudaErrorInvalidResourceHandle);
  event->capture = capture_of(stream);
  if (event->capture != nullptr) event->last = stream->last;
  if (event->capture == nullptr) reach(event);
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event) {
  ENTER("cudaEventQuery");
  return answer(event->pending ? cudaErrorNotReady : cudaSuccess);
}
cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event) {
  ENTER("cudaEventSynchronize");
  event->pending = false;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  ENTER("cudaEventElapsedTime");
  if (!start->timed || !end->timed || !start->recorded || !end->recorded) {
    return answer(cudaErrorInvalidResourceHandle);
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->at - start->at).count();
  return cudaSuccess;
}

}  // extern "C"
