// oneDNN's engine for one CPU device, and the primitives made for it so far. oneDNN is seen in the files
// onednn*.{h,cpp} only. Private to the CPU backend.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "headrace/devices/cpu/math/bf16_products.h"

namespace headrace {

// A primitive with the layouts it wants, for one set of shapes.
struct OneDnnPlan {
  dnnl::primitive primitive;
  dnnl::memory::desc source, weights, bias, result, scratchpad;
  // Between the caller's weights (as `plain`) and the primitive's own layout, where they differ.
  dnnl::primitive reorder;
  dnnl::memory::desc plain, reorder_scratchpad;
};

// Thread-safe.
class OneDnn {
 public:
  // Primitives may use `threads` OpenMP threads. `device` names errors.
  OneDnn(std::string device, int threads, Bf16Products products);

  const dnnl::engine& engine() const noexcept { return engine_; }
  const dnnl::stream& stream() const noexcept { return stream_; }
  Bf16Products bf16_products() const noexcept { return products_; }

  // The plan for `key`, from the first call with that key: make() runs once. Throws DeviceError where oneDNN
  // cannot do it.
  using Key = std::vector<std::int64_t>;
  std::shared_ptr<const OneDnnPlan> plan(const Key& key, const std::function<OneDnnPlan()>& make);

  // Turns a failure inside `function` into a DeviceError.
  void guard(const char* what, const std::function<void()>& function) const;

 private:
  const std::string device_;
  const int threads_;
  const Bf16Products products_;
  const dnnl::engine engine_;
  const dnnl::stream stream_;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const OneDnnPlan>> plans_;  // guarded by mutex_
};

}  // namespace headrace
