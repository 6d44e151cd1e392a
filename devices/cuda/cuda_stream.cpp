#include "headrace/devices/cuda/cuda_stream.h"

#include <algorithm>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/device.h"

namespace headrace {
namespace {

// Returns whether the status of cudaEventElapsedTime means that events were not recorded, are not complete or have
// no time: no error, and none that a later call should find.
bool has_no_answer(cudaError_t status) {
  return status == cudaErrorNotReady || status == cudaErrorInvalidResourceHandle ||
         status == cudaErrorInvalidValue;
}

}  // namespace

CudaEvent::CudaEvent(std::string device, CudaTiming timing, std::chrono::nanoseconds polling)
    : device_(std::move(device)), timing_(timing), polling_(polling) {
  const unsigned int flags = timing == CudaTiming::kYes ? cudaEventDefault : cudaEventDisableTiming;
  CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags | cudaEventBlockingSync), device_);
}

// Fails only if the device is lost, which its streams report.
CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

bool CudaEvent::ready() const {
  const cudaError_t status = cudaEventQuery(event_);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // no error that a later call should find
    return false;
  }
  if (status != cudaSuccess) detail::throw_cuda_error(status, "cudaEventQuery", device_);
  return true;
}

void CudaEvent::wait() const {
  for (const Stopwatch polled; polled.nanoseconds() < static_cast<std::uint64_t>(polling_.count());) {
    if (ready()) return;
  }
  CUDA_CHECK(cudaEventSynchronize(event_), device_);
}

std::optional<std::int64_t> CudaEvent::ns_since(const Event& earlier) const {
  const auto* other = dynamic_cast<const CudaEvent*>(&earlier);
  if (other == nullptr || timing_ == CudaTiming::kNo || other->timing_ == CudaTiming::kNo) return std::nullopt;
  float milliseconds = 0;
  const cudaError_t status = cudaEventElapsedTime(&milliseconds, other->event_, event_);
  if (has_no_answer(status)) {
    cudaGetLastError();
    return std::nullopt;
  }
  if (status != cudaSuccess) detail::throw_cuda_error(status, "cudaEventElapsedTime", device_);
  return static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
}

HostFailure::HostFailure(const std::string& device) {
  void* word = nullptr;
  CUDA_CHECK(cudaHostAlloc(&word, sizeof(std::uint32_t), cudaHostAllocPortable | cudaHostAllocMapped), device);
  word_ = static_cast<std::uint32_t*>(word);
  mark(false);
}

HostFailure::~HostFailure() { cudaFreeHost(word_); }

void HostFailure::mark(bool failed) noexcept {
  std::atomic_ref(*word_).store(failed ? 1U : 0U, std::memory_order_release);
}

void HostFailure::keep(std::exception_ptr error) noexcept {
  const std::lock_guard lock(mutex_);
  error_.note(std::move(error));
  mark(true);
}

std::exception_ptr HostFailure::take() noexcept {
  const std::lock_guard lock(mutex_);
  mark(false);
  return error_.take();
}

void HostCalls::submit(std::function<void()> function, const FailureSlot& failure, cudaStream_t stream,
                       const std::string& device) {
  auto call = std::make_unique<Call>();
  call->function = std::move(function);
  call->failure = &failure;
  Call* submitted = call.get();
  calls_.push_back(std::move(call));
  CUDA_CHECK(cudaLaunchHostFunc(stream, &HostCalls::run, submitted), device);
}

void HostCalls::collect() noexcept {
  while (!calls_.empty() && calls_.front()->over.load(std::memory_order_acquire)) calls_.pop_front();
}

void HostCalls::run(void* data) noexcept {
  auto& call = *static_cast<Call*>(data);
  HostFailure& failure = *call.failure->load(std::memory_order_acquire);
  try {
    if (!failure.failed()) call.function();
  } catch (...) {
    failure.keep(std::current_exception());
  }
  call.over.store(true, std::memory_order_release);
}

bool CopyBatch::submit(std::span<const MemoryCopy> copies, cudaStream_t stream, const std::string& device) {
  if (!supported_) return false;
  to_.clear();
  from_.clear();
  bytes_.clear();
  for (const MemoryCopy& copy : copies) {
    if (copy.bytes == 0) continue;  // CUDA refuses it
    to_.push_back(copy.to);
    from_.push_back(copy.from);
    bytes_.push_back(copy.bytes);
  }
  if (bytes_.empty()) return true;
  const cudaError_t status = submit(stream);
  if (status == cudaErrorNotSupported || status == cudaErrorCallRequiresNewerDriver) {
    cudaGetLastError();
    supported_ = false;
    return false;
  }
  if (status != cudaSuccess) detail::throw_cuda_error(status, "cudaMemcpyBatchAsync", device);
  return true;
}

// Needs CUDA 13: the function has other arguments before.
cudaError_t CopyBatch::submit(cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  cudaMemcpyAttributes in_stream_order{};
  in_stream_order.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t from_the_first = 0;
  return cudaMemcpyBatchAsync(to_.data(), from_.data(), bytes_.data(), bytes_.size(), &in_stream_order,
                              &from_the_first, 1, stream);
#else
  static_cast<void>(stream);
  return cudaErrorNotSupported;
#endif
}

CudaStream::CudaStream(Device& device, CudaPool& pool, int priority)
    : device_(device),
      pool_(pool),
      counted_(pool.gpu(), device.info().name),
      failure_(device.info().name),
      here_(device.info().name, CudaTiming::kNo) {
  CUDA_CHECK(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority), name());
}

CudaStream::~CudaStream() {
  cudaSetDevice(device_.info().ordinal);
  if (capture_) {
    cudaGraph_t unfinished = nullptr;
    if (cudaStreamEndCapture(stream_, &unfinished) == cudaSuccess) cudaGraphDestroy(unfinished);
  }
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

void CudaStream::synchronize() {
  if (origin_ != nullptr) refuse("synchronize() while the stream is capturing", "call end_capture() first");
  const cudaError_t status = cudaStreamSynchronize(stream_);
  host_calls_.collect();
  const std::exception_ptr reported = take_reported();
  if (const std::exception_ptr error = failure_.take()) std::rethrow_exception(error);
  if (status != cudaSuccess) detail::throw_cuda_error(status, "cudaStreamSynchronize", name());
  if (reported) std::rethrow_exception(reported);
}

void CudaStream::listen_to(const std::shared_ptr<StreamReport>& report) {
  if (origin_ != nullptr && origin_ != this) return origin_->listen_to(report);
  std::erase_if(reports_, [](const auto& known) { return known.expired(); });
  const bool known = std::ranges::any_of(reports_, [&](const auto& other) { return other.lock() == report; });
  if (!known) reports_.push_back(report);
}

// Returns the first error; calls every report, so that none resurfaces later.
std::exception_ptr CudaStream::take_reported() noexcept {
  std::exception_ptr first;
  for (const auto& listed : reports_) {
    const auto report = listed.lock();
    const std::exception_ptr error = report ? report->take() : nullptr;
    if (!first) first = error;
  }
  return first;
}

void CudaStream::record(Event& event) {
  auto* mine = dynamic_cast<CudaEvent*>(&event);
  if (mine == nullptr) refuse("record() of an event of another kind of device", "use an event of this device");
  const unsigned int flags = origin_ != nullptr ? cudaEventRecordExternal : cudaEventRecordDefault;
  make_current();
  CUDA_CHECK(cudaEventRecordWithFlags(mine->handle(), stream_, flags), name());
}

void CudaStream::wait(const Event& event) {
  const auto* mine = dynamic_cast<const CudaEvent*>(&event);
  if (mine == nullptr) {
    refuse("wait() for an event of another kind of device", "wait for it on the host, with Event::wait()");
  }
  const unsigned int flags = origin_ != nullptr ? cudaEventWaitExternal : cudaEventWaitDefault;
  make_current();
  CUDA_CHECK(cudaStreamWaitEvent(stream_, mine->handle(), flags), name());
}

// Within a capture the two calls become edges: the first that comes from a capturing stream includes this one.
void CudaStream::follow(Stream& other) {
  auto* leader = dynamic_cast<CudaStream*>(&other);
  if (leader == nullptr) {
    refuse("follow() of a stream of another kind of device", "wait for it on the host, with synchronize()");
  }
  if (leader == this) return;
  if (origin_ != nullptr && origin_ != leader->origin_) {
    refuse("follow() of a stream outside of the capture", "let that stream follow this one first");
  }
  make_current();
  CUDA_CHECK(cudaEventRecord(leader->here_.handle(), leader->stream_), name());
  CUDA_CHECK(cudaStreamWaitEvent(stream_, leader->here_.handle(), cudaEventWaitDefault), name());
  if (origin_ != nullptr || leader->origin_ == nullptr) return;
  origin_ = leader->origin_;
  origin_->branches_.push_back(this);
}

Buffer CudaStream::allocate(std::size_t bytes) {
  if (origin_ != nullptr) refuse("allocate() while the stream is capturing", "allocate before begin_capture()");
  if (bytes == 0) return {};
  make_current();
  void* data = pool_.allocate(bytes, stream_);
  if (data == nullptr) throw_out_of_memory(device_, bytes, MemoryPlace::kDevice);
  return {*this, data, bytes, MemoryPlace::kDevice};
}

void CudaStream::release(void* data, std::size_t bytes, MemoryPlace /*place*/) noexcept {
  cudaSetDevice(device_.info().ordinal);
  pool_.release(data, bytes, stream_);
}

void CudaStream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0 || skips()) return;
  CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), name());
}

void CudaStream::copy_together(std::span<const MemoryCopy> copies) {
  if (skips()) return;
  if (origin_ == nullptr && copies.size() > 1) {
    make_current();
    if (copies_.submit(copies, stream_, name())) return;
  }
  Stream::copy_together(copies);
}

void CudaStream::fill(void* to, unsigned char value, std::size_t bytes) {
  if (bytes == 0 || skips()) return;
  make_current();
  CUDA_CHECK(cudaMemsetAsync(to, value, bytes, stream_), name());
}

void CudaStream::call(std::function<void()> function) {
  HEADRACE_CHECK(function != nullptr, "call() of an empty function");
  if (skips()) return;
  make_current();
  if (origin_ != nullptr) {
    CudaCapturedWork& capture = *origin_->capture_;
    return capture.host_calls.submit(std::move(function), capture.failure, stream_, name());
  }
  host_calls_.collect();
  host_calls_.submit(std::move(function), failure_slot_, stream_, name());
}

void CudaStream::begin_capture() {
  if (origin_ != nullptr) refuse("begin_capture() while the stream is capturing", "captures do not nest");
  // Relaxed: this thread and others continue to allocate, load modules and build plans meanwhile, as kernels and
  // libraries do on first use. None of that becomes part of the capture.
  make_current();
  CUDA_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), name());
  capture_ = std::make_unique<CudaCapturedWork>();
  origin_ = this;
}

std::unique_ptr<CapturedWork> CudaStream::end_capture() {
  if (!capture_) refuse("end_capture() without begin_capture()", {});
  make_current();
  auto work = std::exchange(capture_, nullptr);
  leave_capture();
  cudaGraph_t graph = nullptr;
  CUDA_CHECK(cudaStreamEndCapture(stream_, &graph), name());
  const cudaError_t status = cudaGraphInstantiate(&work->executable, graph, 0);
  cudaGraphDestroy(graph);
  if (status != cudaSuccess) detail::throw_cuda_error(status, "cudaGraphInstantiate", name());
  return work;
}

void CudaStream::leave_capture() noexcept {
  for (CudaStream* branch : branches_) branch->origin_ = nullptr;
  branches_.clear();
  origin_ = nullptr;
}

void CudaStream::launch(CapturedWork& work) {
  if (origin_ != nullptr) {
    refuse("launch() while the stream is capturing", "captures do not nest: launch it afterwards");
  }
  auto* mine = dynamic_cast<CudaCapturedWork*>(&work);
  if (mine == nullptr) refuse("launch() of work captured by another kind of device", {});
  // Not skipped after an error: its collectives tell the other replicas, which would wait for them.
  mine->failure.store(&failure_, std::memory_order_release);
  make_current();
  CUDA_CHECK(cudaGraphLaunch(mine->executable, stream_), name());
}

// Every call sets the device: a thread may serve several GPUs, and only copies are documented to work whatever
// device is current.
void CudaStream::make_current() const { CUDA_CHECK(cudaSetDevice(device_.info().ordinal), name()); }

const std::string& CudaStream::name() const noexcept { return device_.info().name; }

void CudaStream::refuse(const std::string& message, const std::string& hint) const {
  throw DeviceError(ErrorCode::kInvalidArgument, message, name(), hint);
}

}  // namespace headrace
