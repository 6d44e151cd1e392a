#include "headrace/devices/cuda/cuda_borrowed_stream.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_event.h"
#include "headrace/devices/device.h"

namespace headrace {
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
