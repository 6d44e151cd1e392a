// Fixtures and arguments shared by the benchmarks of one device.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/rng.h"
#include "headrace/devices/device_group.h"
#include "headrace/devices/kernels.h"
#include "headrace/devices/registry.h"

namespace headrace {

// Takes NAME=VALUE out of the program's arguments, `flag` being "NAME="; the last one counts.
inline std::optional<std::string> take_flag(int& argc, char** argv, std::string_view flag) {
  std::optional<std::string> value;
  char** const end = std::remove_if(argv + 1, argv + argc, [&](const char* argument) {
    const bool ours = std::string_view(argument).starts_with(flag);
    if (ours) value = argument + flag.size();
    return ours;
  });
  argc = static_cast<int>(end - argv);
  return value;
}

// That of --device=SPEC, which is taken out of the arguments. Else $HEADRACE_DEVICES counts, else `usual`.
inline std::string take_device_flag(int& argc, char** argv, const std::string& usual = "cpu:1") {
  const char* variable = std::getenv("HEADRACE_DEVICES");
  return take_flag(argc, argv, "--device=").value_or(variable != nullptr ? variable : usual);
}

// A stream and the tensors of one benchmark, on a device that outlives it.
class DeviceBench {
 public:
  explicit DeviceBench(Device& device) : device_(device), stream_(device.create_stream()) {}

  Device& device() { return device_; }
  Stream& stream() { return *stream_; }
  Kernels& kernels() { return *device_.kernels(); }
  // Submitting to a GPU costs the host microseconds: launches are timed many at a time.
  std::int64_t launches() const { return device_.info().host_memory ? 1 : 20; }

  TensorView empty(const Shape& shape, DType dtype = DType::kF32) {
    const auto bytes = static_cast<std::size_t>(shape.elements()) * size_of(dtype);
    const TensorView view = buffers_.emplace_back(device_.allocate(bytes)).view(shape, dtype);
    stream().fill(view.data, 0, bytes);
    return view;
  }
  // Uniform in [-1/8, 1/8), f32 or bf16, repeated every 2^20: zeros would be unfairly fast on some devices.
  TensorView random(const Shape& shape, DType dtype = DType::kF32) {
    const TensorView view = empty(shape, dtype);
    const auto drawn = static_cast<std::size_t>(std::min<std::int64_t>(shape.elements(), 1 << 20));
    Philox source({.seed = 1});
    std::vector<float> values(drawn);
    for (float& value : values) value = (2 * source.uniform() - 1) / 8;
    if (dtype == DType::kF32) {
      repeat(view, values.data());
    } else {
      std::vector<std::uint16_t> halves(drawn);
      std::ranges::transform(values, halves.begin(), [](float value) {
        return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
      });
      repeat(view, halves.data());
    }
    return view;
  }
  template <typename T>
  T* constant(const T& value) {
    const TensorView view = empty({static_cast<std::int64_t>(sizeof(T))}, DType::kU8);
    stream().copy(view.data, &value, sizeof(T));
    stream().synchronize();
    return view.as<T>();
  }

  // Runs `work` once, then captures it: what is planned at the first call is not in the capture.
  std::unique_ptr<CapturedWork> captured(const std::function<void()>& work) {
    work();
    stream().synchronize();
    stream().begin_capture();
    work();
    return stream().end_capture();
  }
  void launch(CapturedWork& work, std::int64_t times) {
    for (std::int64_t i = 0; i < times; ++i) stream().launch(work);
    stream().synchronize();
  }
  // Times captured launches of `work`.
  void time(benchmark::State& state, const std::function<void()>& work) {
    const auto once = captured(work);
    launch(*once, launches());
    while (state.KeepRunningBatch(launches())) launch(*once, launches());
  }

 private:
  // The first 2^20 elements come from the host, the others are copies of them.
  template <typename T>
  void repeat(const TensorView& view, const T* values) {
    const auto elements = static_cast<std::size_t>(view.elements());
    std::size_t filled = std::min<std::size_t>(elements, std::size_t{1} << 20);
    stream().copy(view.data, values, filled * sizeof(T));
    while (filled < elements) {
      const std::size_t more = std::min(filled, elements - filled);
      stream().copy(view.as<T>() + filled, view.data, more * sizeof(T));
      filled += more;
    }
    stream().synchronize();
  }

  Device& device_;
  std::list<Buffer> buffers_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace headrace
