// What benchmarks of one device share.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "headrace/devices/base/rng.h"
#include "headrace/devices/device_group.h"
#include "headrace/devices/kernels.h"
#include "headrace/devices/registry.h"

namespace headrace {

// A device, a stream and the tensors of one benchmark.
class DeviceBench {
 public:
  DeviceBench()
      : devices_(open_devices(std::getenv("HEADRACE_DEVICES") != nullptr ? "auto" : "cpu:1")),
        stream_(device().create_stream()) {}

  Device& device() { return devices_[0]; }
  Stream& stream() { return *stream_; }
  Kernels& kernels() { return *device().kernels(); }

  TensorView empty(const Shape& shape, DType dtype = DType::kF32) {
    const auto bytes = static_cast<std::size_t>(shape.elements()) * size_of(dtype);
    const TensorView view = buffers_.emplace_back(device().allocate(bytes)).view(shape, dtype);
    stream().fill(view.data, 0, bytes);
    return view;
  }
  // Uniform in [-1/8, 1/8): zeros would be unfairly fast on some devices.
  TensorView random(const Shape& shape) {
    const TensorView view = empty(shape);
    Philox source({.seed = 1});
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (float& value : values) value = (2 * source.uniform() - 1) / 8;
    stream().copy(view.data, values.data(), view.bytes());
    stream().synchronize();
    return view;
  }
  template <typename T>
  T* constant(const T& value) {
    const TensorView view = empty({static_cast<std::int64_t>(sizeof(T))}, DType::kU8);
    stream().copy(view.data, &value, sizeof(T));
    stream().synchronize();
    return view.as<T>();
  }

  // Times captured launches of `work`.
  void time(benchmark::State& state, const std::function<void()>& work) {
    stream().begin_capture();
    work();
    const auto captured = stream().end_capture();
    const auto launch = [&] {
      stream().launch(*captured);
      stream().synchronize();
    };
    launch();
    for (auto iteration : state) launch();
  }

 private:
  DeviceGroup devices_;
  std::list<Buffer> buffers_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace headrace
