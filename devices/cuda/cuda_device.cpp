#include "headrace/devices/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_math.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/host_node.h"
#include "headrace/devices/cuda/input_kernel.h"
#include "headrace/devices/cuda/settings.h"
#include "headrace/devices/device.h"
#include "headrace/devices/kernels.h"

namespace headrace {

namespace {

// Calls launch(handle) with the stream's, on its device; not after a failure of the stream.
template <typename Launch>
void launch_on(Stream& stream, const Launch& launch) {
  auto* mine = dynamic_cast<CudaStream*>(&stream);
  const DeviceInfo& device = stream.device().info();
  if (mine == nullptr) throw ConfigError(device.name + ": the stream is not one of a GPU");
  if (mine->skips()) return;
  CUDA_CHECK(cudaSetDevice(device.ordinal), device.name);
  CUDA_CHECK(launch(mine->handle()), device.name);
}

}  // namespace

void CudaInputKernels::convert_pixels(Stream& stream, const PixelConversion& conversion) {
  check_pixel_conversion(conversion);
  launch_on(stream, [&](cudaStream_t handle) {
    cudaError_t status = cudaSuccess;
    cuda::by_input_work(conversion,
                        [&](const auto& work) { status = launch_input_kernel(work, conversion.layout, handle); });
    return status;
  });
}

void CudaInputKernels::decode_jpegs(Stream& stream, const JpegDecoding& decoding) {
  launch_on(stream, [&](cudaStream_t handle) { return launch_jpeg_kernels(decoding, handle); });
}

CudaDevice::CudaDevice(DeviceInfo info, const std::string& name)
    : info_(std::move(info)), polling_(polling_time()) {
  info_.name = name;
  make_current();
  CUDA_CHECK(cudaFree(nullptr), info_.name);  // creates the context here, not in the first step
  pool_.emplace(info_.ordinal, info_.name);
  if (cudaDeviceGetAttribute(&host_node_, cudaDevAttrHostNumaId, info_.ordinal) != cudaSuccess) {
    cudaGetLastError();  // an older driver does not tell
    host_node_ = -1;
  }
  load_input_kernels();
}

// Loads them before any replica can wait on the GPU for another (rendezvous.h). A GPU for which none were built
// still does copies; its first conversion reports the error.
void CudaDevice::load_input_kernels() const {
  for (const auto load : {load_image_kernels, load_window_kernels, load_jpeg_kernels}) {
    const cudaError_t status = load();
    if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction) {
      cudaGetLastError();
    } else {
      CUDA_CHECK(status, info_.name);
    }
  }
}

CudaDevice::~CudaDevice() = default;

Kernels* CudaDevice::kernels() noexcept {
  std::call_once(kernels_made_, [this] { make_kernels(); });
  return kernels_.get();
}

std::string CudaDevice::why_no_kernels() {
  kernels();
  return why_no_kernels_;
}

void CudaDevice::make_kernels() noexcept {
  try {
    const LoadedMath& loaded = cuda_math();
    why_no_kernels_ = loaded.missing;
    if (loaded.math == nullptr) return;
    make_current();
    kernels_ = loaded.math->create_kernels(*this);
  } catch (const std::exception& error) {
    why_no_kernels_ = error.what();
  }
}

MemoryUse CudaDevice::memory_use() const noexcept {
  return {.device_bytes = device_bytes_ + pool_->used_bytes(), .pinned_bytes = pinned_bytes_.load()};
}

std::uint64_t CudaDevice::free_bytes() const {
  make_current();
  std::size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total), info_.name);
  return free + pool_->idle_bytes();
}

std::unique_ptr<Stream> CudaDevice::create_stream() {
  make_current();
  return std::make_unique<CudaStream>(*this, *pool_);
}

std::unique_ptr<Stream> CudaDevice::create_urgent_stream() {
  make_current();
  int least = 0, greatest = 0;
  CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest), info_.name);
  return std::make_unique<CudaStream>(*this, *pool_, greatest);
}

std::unique_ptr<Stream> CudaDevice::borrow_stream(std::uintptr_t handle) {
  return std::make_unique<CudaBorrowedStream>(*this, reinterpret_cast<cudaStream_t>(handle));
}

std::unique_ptr<Event> CudaDevice::create_event() {
  make_current();
  return std::make_unique<CudaEvent>(info_.name, CudaTiming::kNo, polling_);
}

std::unique_ptr<Event> CudaDevice::create_timed_event() {
  make_current();
  return std::make_unique<CudaEvent>(info_.name, CudaTiming::kYes, polling_);
}

void CudaDevice::release(void* data, std::size_t bytes, MemoryPlace place) noexcept {
  // A failure to free cannot be reported: the device is lost, and its streams report that.
  if (place == MemoryPlace::kPinned) {
    cudaFreeHost(data);
  } else {
    cudaFree(data);
  }
  counter(place) -= bytes;
}

void CudaDevice::make_current() const { CUDA_CHECK(cudaSetDevice(info_.ordinal), info_.name); }

void CudaDevice::Scratch::release(void* data, std::size_t /*bytes*/, MemoryPlace /*place*/) noexcept {
  cudaFree(data);
}

Buffer CudaDevice::allocate_scratch(std::size_t bytes) {
  if (bytes == 0) return {};
  return {scratch_, allocate_memory(bytes, MemoryPlace::kDevice), bytes, MemoryPlace::kDevice};
}

Buffer CudaDevice::allocate(std::size_t bytes, MemoryPlace place) {
  if (bytes == 0) return {};
  void* const data = allocate_memory(bytes, place);
  counter(place) += bytes;
  return {*this, data, bytes, place};
}

void* CudaDevice::allocate_memory(std::size_t bytes, MemoryPlace place) {
  make_current();
  const auto attempt = [&](void*& data) {
    if (place != MemoryPlace::kPinned) return cudaMalloc(&data, bytes);
    const OnHostNode near(host_node_);
    return cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  };
  void* data = nullptr;
  cudaError_t status = attempt(data);
  if (status == cudaErrorMemoryAllocation && pool_->idle_bytes() > 0) {
    cudaGetLastError();
    pool_->trim();
    status = attempt(data);
  }
  if (status == cudaErrorMemoryAllocation || status == cudaErrorInvalidValue) {
    throw_out_of_memory(*this, bytes, place);
  }
  if (status != cudaSuccess) {
    const char* call = place == MemoryPlace::kPinned ? "cudaHostAlloc" : "cudaMalloc";
    detail::throw_cuda_error(status, call, info_.name);
  }
  return data;
}

std::atomic<std::uint64_t>& CudaDevice::counter(MemoryPlace place) noexcept {
  return place == MemoryPlace::kPinned ? pinned_bytes_ : device_bytes_;
}

namespace {

// Throws DeviceError unless it is of this device's kind.
template <typename Any>
auto& cuda_event_of(Any& event, const std::string& device) {
  using Mine = std::conditional_t<std::is_const_v<Any>, const CudaEvent, CudaEvent>;
  auto* const mine = dynamic_cast<Mine*>(&event);
  if (mine == nullptr) {
    throw DeviceError(ErrorCode::kInvalidArgument, "an event of another kind of device", device,
                      "wait for it on the host, with Event::wait()");
  }
  return *mine;
}

}  // namespace

// Setting a device makes a context on it, so a device that is already current is neither set nor restored.
CurrentDevice::CurrentDevice(int ordinal, const std::string& name) : ordinal_(ordinal) {
  CUDA_CHECK(cudaGetDevice(&before_), name);
  if (before_ != ordinal_) CUDA_CHECK(cudaSetDevice(ordinal_), name);
}

CurrentDevice::~CurrentDevice() {
  if (before_ != ordinal_) cudaSetDevice(before_);
}

void CudaBorrowedStream::synchronize() {
  const CurrentDevice here = current();
  CUDA_CHECK(cudaStreamSynchronize(stream_), name());
}

void CudaBorrowedStream::record(Event& event) {
  const CurrentDevice here = current();
  CUDA_CHECK(cudaEventRecord(cuda_event_of(event, name()).handle(), stream_), name());
}

void CudaBorrowedStream::wait(const Event& event) {
  const CurrentDevice here = current();
  CUDA_CHECK(cudaStreamWaitEvent(stream_, cuda_event_of(event, name()).handle(), cudaEventWaitDefault), name());
}

void CudaBorrowedStream::follow(Stream& other) {
  const CurrentDevice here = current();
  CudaEvent point(name(), CudaTiming::kNo);
  other.record(point);
  wait(point);
}

void CudaBorrowedStream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const CurrentDevice here = current();
  CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), name());
}

void CudaBorrowedStream::fill(void* to, unsigned char value, std::size_t bytes) {
  if (bytes == 0) return;
  const CurrentDevice here = current();
  CUDA_CHECK(cudaMemsetAsync(to, value, bytes, stream_), name());
}

Buffer CudaBorrowedStream::allocate(std::size_t /*bytes*/) { refuse("allocate()"); }
void CudaBorrowedStream::call(std::function<void()> /*function*/) { refuse("call()"); }
void CudaBorrowedStream::begin_capture() { refuse("begin_capture()"); }
std::unique_ptr<CapturedWork> CudaBorrowedStream::end_capture() { refuse("end_capture()"); }
void CudaBorrowedStream::launch(CapturedWork& /*work*/) { refuse("launch()"); }

const std::string& CudaBorrowedStream::name() const noexcept { return device_.info().name; }

// The handle may be that of a default stream, which belongs to the current device.
CurrentDevice CudaBorrowedStream::current() const { return {device_.info().ordinal, name()}; }

void CudaBorrowedStream::refuse(const std::string& call) const {
  throw DeviceError(ErrorCode::kUnsupported, call + " in a stream of another library", name(),
                    "take a stream of Device::create_stream()");
}

}  // namespace headrace
