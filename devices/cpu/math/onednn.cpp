#include "headrace/devices/cpu/math/onednn.h"

#include <omp.h>

#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// A primitive is made for as many threads as its maker may use: the host's number is not the stream's.
class OmpThreads {
 public:
  explicit OmpThreads(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~OmpThreads() { omp_set_num_threads(before_); }
  OmpThreads(const OmpThreads&) = delete;
  OmpThreads& operator=(const OmpThreads&) = delete;

 private:
  int before_;
};

}  // namespace

OneDnn::OneDnn(std::string device, int threads, Bf16Products products)
    : device_(std::move(device)),
      threads_(threads),
      products_(products),
      engine_(dnnl::engine::kind::cpu, 0),
      stream_(engine_) {}

std::shared_ptr<const OneDnnPlan> OneDnn::plan(const Key& key, const std::function<OneDnnPlan()>& make) {
  const std::lock_guard lock(mutex_);
  auto& slot = plans_[key];
  if (slot == nullptr) {
    guard("making a primitive", [&] {
      const OmpThreads threads(threads_);
      slot = std::make_shared<const OneDnnPlan>(make());
    });
  }
  return slot;
}

void OneDnn::guard(const char* what, const std::function<void()>& function) const {
  try {
    function();
  } catch (const dnnl::error& error) {
    const ErrorCode code = error.status == dnnl_unimplemented   ? ErrorCode::kUnsupported
                           : error.status == dnnl_out_of_memory ? ErrorCode::kOutOfMemory
                                                                : ErrorCode::kDevice;
    throw DeviceError(code, std::string(what) + " failed in oneDNN: " + error.what(), device_,
                      "ONEDNN_VERBOSE=1 in the environment shows what it tried");
  }
}

}  // namespace headrace
