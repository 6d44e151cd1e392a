#include "headrace/tests/support/fake_cuda/runtime.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

struct CUmemPoolHandle_st {
  int device = 0;
};

namespace headrace::test::fake_cuda {
namespace {

// Shared by all threads.
struct Runtime {
  std::mutex mutex;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::atomic<int> capability{90};  // of all GPUs: 9.0
  std::vector<CUstream_st*> streams;
  std::map<const std::byte*, std::size_t> memory;  // device and pinned
  GraphOrder order = GraphOrder::kCaptured;
  Branches last_graph;
  std::atomic<int> meetings{-1};  // that work; negative: all
  std::atomic<int> policy{-1};    // of the last pinned allocation
};

Runtime& runtime() {
  static Runtime one;
  return one;
}

thread_local bool behind = false;
thread_local char host = 0;  // of the GPUs that this thread sees

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

void clear() {
  clear_calls();
  behind = false;
  const std::lock_guard lock(runtime().mutex);
  runtime().order = GraphOrder::kCaptured;
  runtime().capability = 90;
  runtime().meetings = -1;
}

int policy_of_pinned_memory() { return runtime().policy; }

void time_out_meetings(int works) { runtime().meetings = works; }

bool meeting_times_out() {
  std::atomic<int>& left = runtime().meetings;
  return left == 0 || (left > 0 && left-- == 0);
}

void set_compute_capability(int major, int minor) { runtime().capability = 10 * major + minor; }

void fall_behind() { behind = true; }

void set_host(int number) { host = static_cast<char>(number); }

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

cudaError_t launch(cudaStream_t stream, std::function<void()> kernel, const char* name, const char* node) {
  if (const cudaError_t status = enter_on(name, device_of(stream)); status != cudaSuccess) return status;
  return submit(stream, std::move(kernel), node == nullptr ? name : node);
}

}  // namespace headrace::test::fake_cuda

using namespace headrace::test::fake_cuda;

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
  return take_last_error();
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
cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  ENTER("cudaGetDeviceProperties");
  *properties = {};
  std::strcpy(properties->name, "no GPU");
  properties->uuid.bytes[0] = host;
  properties->uuid.bytes[1] = static_cast<char>(device);
  properties->major = runtime().capability / 10;
  properties->minor = runtime().capability % 10;
  properties->totalGlobalMem = std::size_t{1} << 32;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  ENTER("cudaDeviceGetAttribute");
  *value = which == cudaDevAttrHostNumaId ? 0 : 1;
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
  set_current_device(device);
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  ENTER("cudaGetDevice");
  *device = current_device();
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
  int policy = -1;
  syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0);
  runtime().policy = policy;
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
  *stream = new CUstream_st{.priority = priority, .device = current_device()};
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
  GraphOrder order{};
  {
    const std::lock_guard lock(runtime().mutex);
    order = runtime().order;
  }
  run(executable->graph, order);
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  ENTER("cudaEventCreateWithFlags");
  *event = new CUevent_st{.device = current_device()};
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  if ((flags & cudaEventBlockingSync) == 0) count("event that spins");
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
