// The elementwise functions as work for threads, and the choice among them for a call. A launcher is a CUDA stream
// (cuda_launcher.cuh) or, in tests, loops on the host. Private to the CUDA backend.
#pragma once

#include "headrace/devices/cuda/element.h"
#include "headrace/devices/cuda/math/activation_math.h"
#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/reduction_tree.h"

namespace headrace::cuda {

template <typename T, Activation kActivation>
struct ActivationForward {
  const T* x;
  T* y;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    Pack<T, kWidth> pack = load_pack<kWidth>(x + at);
    for (T& element : pack.values) element = element_of<T>(activated<T>(kActivation, value_of(element)));
    store_pack(y + at, pack);
  }
};

template <typename T, Activation kActivation>
struct ActivationBackward {
  const T* x;
  const T* dy;
  T* dx;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    const Pack<T, kWidth> from = load_pack<kWidth>(x + at);
    Pack<T, kWidth> pack = load_pack<kWidth>(dy + at);
    for (int k = 0; k < kWidth; ++k) {
      pack.values[k] =
          element_of<T>(activation_gradient<T>(kActivation, value_of(from.values[k]), value_of(pack.values[k])));
    }
    store_pack(dx + at, pack);
  }
};

template <typename T>
struct Add {
  const T* a;
  const T* b;
  T* sum;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    const Pack<T, kWidth> other = load_pack<kWidth>(b + at);
    Pack<T, kWidth> pack = load_pack<kWidth>(a + at);
    for (int k = 0; k < kWidth; ++k) {
      pack.values[k] = element_of<T>(value_of(pack.values[k]) + value_of(other.values[k]));
    }
    store_pack(sum + at, pack);
  }
};

struct SumTree {
  const float* parts[kernel::kMaxSummed] = {};
  int count = 0;
  float* sum = nullptr;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    static_assert(kWidth == 1, "neighbouring threads read neighbouring elements");
    sum[at] = pairwise_sum(count, [this, at](int part) { return parts[part][at]; });
  }
};

template <typename From, typename To>
struct Convert {
  const From* from;
  To* to;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    const Pack<From, kWidth> source = load_pack<kWidth>(from + at);
    Pack<To, kWidth> pack;
    for (int k = 0; k < kWidth; ++k) pack.values[k] = element_of<To>(value_of(source.values[k]));
    store_pack(to + at, pack);
  }
};

template <typename From, typename To>
struct Scale {
  const From* x;
  Factor factor;
  To* y;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    const float by = factor.stored == nullptr ? factor.value : *factor.stored;
    const Pack<From, kWidth> source = load_pack<kWidth>(x + at);
    Pack<To, kWidth> pack;
    for (int k = 0; k < kWidth; ++k) pack.values[k] = element_of<To>(value_of(source.values[k]) * by);
    store_pack(y + at, pack);
  }
};

// Runs work over elements, in packs if the views allow it.
template <int kWidth, typename Launcher, typename Work, typename... Views>
void submit_flat(Launcher& launch, const Work& work, std::int64_t count, const Views&... views) {
  by_width<kWidth>(packs_fit(kWidth, views...), [&](auto width) { launch.template flat<width()>(work, count); });
}

// Runs work over a matrix, in packs of columns if they and the views allow it.
template <int kWidth, typename Launcher, typename Work, typename... Views>
void submit_columns(Launcher& launch, const Work& work, std::int64_t rows, std::int64_t columns,
                    const Views&... views) {
  by_width<kWidth>(columns % kWidth == 0 && packs_fit(kWidth, views...), [&](auto width) {
    launch.template columns<width()>(work, column_grid(rows, columns, width()));
  });
}

// Calls function(type, activation) with the type of the stored activations.
template <typename Function>
void by_type_and_activation(DType dtype, Activation activation, const Function& function) {
  by_type(dtype, [&](auto type) { by_activation(activation, [&](auto which) { function(type, which); }); });
}

template <typename Launcher>
void submit_activation_forward(Launcher& launch, Activation activation, const TensorView& x, const TensorView& y) {
  by_type_and_activation(x.dtype, activation, [&]<typename T>(T, auto which) {
    submit_flat<kPackWidth<T>>(launch, ActivationForward<T, which()>{x.as<T>(), y.as<T>()}, x.elements(), x, y);
  });
}

template <typename Launcher>
void submit_add(Launcher& launch, const TensorView& a, const TensorView& b, const TensorView& sum) {
  by_type(a.dtype, [&]<typename T>(T) {
    submit_flat<kPackWidth<T>>(launch, Add<T>{a.as<T>(), b.as<T>(), sum.as<T>()}, a.elements(), a, b, sum);
  });
}

template <typename Launcher>
void submit_convert(Launcher& launch, const TensorView& from, const TensorView& to) {
  by_type(from.dtype, [&](auto source) {
    by_type(to.dtype, [&](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      constexpr int kWidth = 8;  // bf16 in 16 bytes
      submit_flat<kWidth>(launch, Convert<From, To>{from.as<From>(), to.as<To>()}, from.elements(), from, to);
    });
  });
}

}  // namespace headrace::cuda
