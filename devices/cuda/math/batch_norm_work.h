// Batch normalisation as work for threads: one pass for sums, one that applies them, each way. An activation after
// it is part of these passes, as is max pooling before it (norm_calls.h). Private to the CUDA backend.
//
// Bytes that move for an element of 2 bytes (bf16; of 4, twice as many), activation included:
//            a kernel each                                                  fused
//   forward  statistics 2, apply 4, activation 4: 10                        statistics 2, apply 4: 6
//   backward activation 6, sums 4, apply 6: 16                              sums 4, apply 6: 10
// and the activation's input is not kept from forward to backward: 2 bytes of memory fewer.
#pragma once

#include <cmath>

#include "headrace/devices/cuda/math/activation_math.h"
#include "headrace/devices/cuda/math/column_sums_work.h"

namespace headrace::cuda {

// The vectors of kernel::BatchNorm for the threads.
struct NormVectors {
  const float* gamma;  // null: 1
  const float* beta;
  float* running_mean;
  float* running_var;
  float* saved_mean;     // null outside training
  float* saved_inv_std;  // null outside training
  float epsilon, momentum;

  HEADRACE_HOST_DEVICE float scale(std::int64_t column) const { return gamma != nullptr ? gamma[column] : 1.0F; }
};

inline NormVectors norm_vectors(const kernel::BatchNorm& norm) {
  return {norm.gamma.as<float>(),
          norm.beta.as<float>(),
          norm.running_mean.as<float>(),
          norm.running_var.as<float>(),
          norm.saved_mean.as<float>(),
          norm.saved_inv_std.as<float>(),
          norm.epsilon,
          norm.momentum};
}

// The batch's statistics over its real rows, and the update of the running ones.
template <typename T>
struct BatchStatistics {
  using Total = Moments<float>;

  const T* x;
  std::int64_t columns;
  RealRows real;
  NormVectors norm;

  HEADRACE_HOST_DEVICE std::int64_t rows() const { return real.count(); }
  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  // Welford: a large common offset costs no digits.
  template <int kWidth>
  HEADRACE_HOST_DEVICE void add(Nothing, Total (&totals)[kWidth], std::int64_t row, std::int64_t column) const {
    add_values(totals, load_pack<kWidth>(x + row * columns + column));
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE static void add_values(Total (&totals)[kWidth], const Pack<T, kWidth>& pack) {
    const float count = totals[0].count + 1.0F;
    const float share = 1.0F / count;
    for (int k = 0; k < kWidth; ++k) {
      const float value = value_of(pack.values[k]);
      const float distance = value - totals[k].mean;
      totals[k].count = count;
      totals[k].mean += distance * share;
      totals[k].deviation += distance * (value - totals[k].mean);
    }
  }
  // Loads what it follows before it divides.
  HEADRACE_HOST_DEVICE void finish(std::int64_t column, const Moments<double>& total) const {
    const float mean = norm.running_mean[column], var = norm.running_var[column];
    if (total.count == 0) {
      norm.saved_mean[column] = mean;
      norm.saved_inv_std[column] = 1.0F / sqrtf(var + norm.epsilon);
      return;
    }
    const double variance = total.deviation / total.count;
    const double others = total.count > 1 ? total.count - 1 : 1;
    norm.saved_mean[column] = static_cast<float>(total.mean);
    norm.saved_inv_std[column] = static_cast<float>(1 / sqrt(variance + static_cast<double>(norm.epsilon)));
    norm.running_mean[column] = followed(mean, total.mean);
    norm.running_var[column] = followed(var, total.deviation / others);
  }
  HEADRACE_HOST_DEVICE float followed(float running, double batch) const {
    const double momentum = norm.momentum;
    return static_cast<float>(momentum * static_cast<double>(running) + (1 - momentum) * batch);
  }
};

// y = activation((x - mean) * scale + beta), with the saved statistics in training, else the running ones.
template <typename T, Activation kActivation>
struct Normalize {
  const T* x;
  T* y;
  std::int64_t columns;
  NormVectors norm;

  template <int kWidth>
  struct Own {
    float mean[kWidth], scale[kWidth], beta[kWidth];
  };
  template <int kWidth>
  HEADRACE_HOST_DEVICE Own<kWidth> begin(std::int64_t column) const {
    Own<kWidth> own;
    for (int k = 0; k < kWidth; ++k) {
      const std::int64_t c = column + k;
      const bool training = norm.saved_mean != nullptr;
      own.mean[k] = training ? norm.saved_mean[c] : norm.running_mean[c];
      own.scale[k] = training ? norm.scale(c) * norm.saved_inv_std[c]
                              : norm.scale(c) / sqrtf(norm.running_var[c] + norm.epsilon);
      own.beta[k] = norm.beta[c];
    }
    return own;
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(const Own<kWidth>& own, std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * columns + column;
    Pack<T, kWidth> pack = load_pack<kWidth>(x + at);
    for (int k = 0; k < kWidth; ++k) {
      const float normalized = (value_of(pack.values[k]) - own.mean[k]) * own.scale[k] + own.beta[k];
      pack.values[k] = element_of<T>(activated<T>(kActivation, normalized));
    }
    store_pack(y + at, pack);
  }
};

// Converts the gradient of the activation's result to that of its argument.
template <typename T, int kWidth, Activation kActivation>
struct ThroughActivation {
  float mean[kWidth], scale[kWidth], beta[kWidth];

  HEADRACE_HOST_DEVICE ThroughActivation(const NormVectors& norm, std::int64_t column) {
    for (int k = 0; k < kWidth; ++k) {
      mean[k] = norm.saved_mean[column + k];
      scale[k] = norm.scale(column + k) * norm.saved_inv_std[column + k];
      beta[k] = norm.beta[column + k];
    }
  }
  // `distance` is x's from the mean.
  HEADRACE_HOST_DEVICE float operator()(int k, float distance, float dy) const {
    return activation_gradient<T>(kActivation, distance * scale[k] + beta[k], dy);
  }
};

// Sums of the gradient over the real rows: dgamma, dbeta, and the coefficients of the input's gradient.
template <typename T, Activation kActivation>
struct NormGradients {
  using Total = GradientSums<float>;

  const T* x;
  const T* dy;
  std::int64_t columns;
  RealRows real;
  NormVectors norm;
  float* dgamma;  // or null
  float* dbeta;   // or null
  float* offset;  // columns each
  float* slope;

  template <int kWidth>
  using Own = ThroughActivation<T, kWidth, kActivation>;
  HEADRACE_HOST_DEVICE std::int64_t rows() const { return real.count(); }
  template <int kWidth>
  HEADRACE_HOST_DEVICE Own<kWidth> begin(std::int64_t column) const {
    return {norm, column};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void add(const Own<kWidth>& own, Total (&totals)[kWidth], std::int64_t row,
                                std::int64_t column) const {
    const std::int64_t at = row * columns + column;
    const Pack<T, kWidth> from = load_pack<kWidth>(x + at), gradient = load_pack<kWidth>(dy + at);
    for (int k = 0; k < kWidth; ++k) {
      const float distance = value_of(from.values[k]) - own.mean[k];
      const float g = own(k, distance, value_of(gradient.values[k]));
      totals[k].dy += g;
      totals[k].dy_distance += g * distance;
    }
  }
  HEADRACE_HOST_DEVICE void finish(std::int64_t column, const GradientSums<double>& total) const {
    const std::int64_t count = real.count();
    const double share = count > 0 ? 1 / static_cast<double>(count) : 0;
    const double inv_std = norm.saved_inv_std[column];
    if (dgamma != nullptr) dgamma[column] = static_cast<float>(total.dy_distance * inv_std);
    if (dbeta != nullptr) dbeta[column] = static_cast<float>(total.dy);
    offset[column] = static_cast<float>(total.dy * share);
    slope[column] = static_cast<float>(total.dy_distance * share * inv_std * inv_std);
  }
};

// dx = scale * (dz - offset - (x - mean) * slope) in the real rows, 0 in the others, dz being dy through the
// activation. dx may be dy.
template <typename T, Activation kActivation>
struct NormInputGradient {
  static constexpr int kResidentBlocks = 4;

  const T* x;
  const T* dy;
  T* dx;
  std::int64_t columns;
  RealRows real;
  NormVectors norm;
  const float* offset;
  const float* slope;

  template <int kWidth>
  struct Own {
    ThroughActivation<T, kWidth, kActivation> through;
    std::int64_t rows;
    float offset[kWidth], slope[kWidth];
  };
  template <int kWidth>
  HEADRACE_HOST_DEVICE Own<kWidth> begin(std::int64_t column) const {
    Own<kWidth> own{{norm, column}, real.count(), {}, {}};
    for (int k = 0; k < kWidth; ++k) {
      own.offset[k] = offset[column + k];
      own.slope[k] = slope[column + k];
    }
    return own;
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(const Own<kWidth>& own, std::int64_t row, std::int64_t column) const {
    store_pack(dx + row * columns + column, gradient(own, row, column));
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE Pack<T, kWidth> gradient(const Own<kWidth>& own, std::int64_t row,
                                                std::int64_t column) const {
    const std::int64_t at = row * columns + column;
    Pack<T, kWidth> result{};
    if (row >= own.rows) return result;
    const Pack<T, kWidth> from = load_pack<kWidth>(x + at), of_y = load_pack<kWidth>(dy + at);
    for (int k = 0; k < kWidth; ++k) {
      const float distance = value_of(from.values[k]) - own.through.mean[k];
      const float dz = own.through(k, distance, value_of(of_y.values[k]));
      result.values[k] = element_of<T>(own.through.scale[k] * (dz - own.offset[k] - distance * own.slope[k]));
    }
    return result;
  }
};

// Returns the rows of x, pixels, that belong to real examples.
inline RealRows real_rows(const TensorView& x, const StepScalars* scalars) {
  const std::int64_t rows = x.elements() / x.shape.back();
  return {scalars, rows / x.shape[0], rows};
}

// Block totals, then two coefficients per column.
inline std::size_t batch_norm_scratch_bytes(const TensorView& x) {
  return reduction_scratch_bytes(x) + 2 * static_cast<std::size_t>(x.shape.back()) * sizeof(float);
}

// Calls function(type, width, activation) for the call's tensors and norm; `columns` is a row's length.
template <typename Function, typename... Views>
void by_norm(const kernel::BatchNorm& norm, const Function& function, const TensorView& x,
             const Views&... others) {
  by_type(x.dtype, [&](auto type) {
    constexpr int kWidth = kPackWidth<decltype(type)>;
    by_width<kWidth>(x.shape.back() % kWidth == 0 && packs_fit(kWidth, x, others...), [&](auto width) {
      by_fused_activation(norm.activation, [&](auto activation) { function(type, width, activation); });
    });
  });
}

template <int kWidth, typename T, Activation kActivation, typename Launcher>
void normalize(Launcher& launch, const TensorView& x, const NormVectors& by, const TensorView& y) {
  const std::int64_t columns = x.shape.back();
  launch.template columns<kWidth>(Normalize<T, kActivation>{x.as<T>(), y.as<T>(), columns, by},
                                  column_grid(x.elements() / columns, columns, kWidth));
}

template <typename Launcher>
void submit_batch_norm_infer(Launcher& launch, const kernel::BatchNormInfer& of) {
  NormVectors running = norm_vectors(of.norm);
  running.saved_mean = nullptr;
  const auto work = [&](auto type, auto width, auto activation) {
    normalize<width(), decltype(type), activation()>(launch, of.x, running, of.y);
  };
  by_norm(of.norm, work, of.x, of.y);
}

template <typename Launcher>
void submit_batch_norm_train(Launcher& launch, const kernel::BatchNormTrain& of, void* scratch) {
  const NormVectors vectors = norm_vectors(of.norm);
  const std::int64_t columns = of.x.shape.back();
  by_type(of.x.dtype, [&]<typename T>(T) {
    by_width<kNarrowWidth>(columns % kNarrowWidth == 0 && packs_fit(kNarrowWidth, of.x), [&](auto width) {
      launch.template reduce<width()>(
          BatchStatistics<T>{of.x.as<T>(), columns, real_rows(of.x, of.scalars), vectors},
          column_grid(of.x.elements() / columns, columns, width()), scratch);
    });
  });
  const auto work = [&](auto type, auto width, auto activation) {
    normalize<width(), decltype(type), activation()>(launch, of.x, vectors, of.y);
  };
  by_norm(of.norm, work, of.x, of.y);
}

// Runs the pass for sums, then returns the work of the pass that applies them, writing to dx.
template <int kWidth, typename T, Activation kActivation, typename Launcher>
NormInputGradient<T, kActivation> norm_gradients(Launcher& launch, const kernel::BatchNormBackward& of,
                                                 void* scratch) {
  const std::int64_t columns = of.x.shape.back();
  const NormVectors vectors = norm_vectors(of.norm);
  const RealRows real = real_rows(of.x, of.scalars);
  auto* offset = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + reduction_scratch_bytes(of.x));
  float* slope = offset + columns;
  launch.template reduce<narrow_width(kWidth)>(
      NormGradients<T, kActivation>{of.x.as<T>(), of.dy.as<T>(), columns, real, vectors, of.dgamma.as<float>(),
                                    of.dbeta.as<float>(), offset, slope},
      column_grid(of.x.elements() / columns, columns, narrow_width(kWidth)), scratch);
  return {of.x.as<T>(), of.dy.as<T>(), of.dx.as<T>(), columns, real, vectors, offset, slope};
}

template <typename Launcher>
void submit_batch_norm_backward(Launcher& launch, const kernel::BatchNormBackward& of, void* scratch) {
  const auto work = [&](auto type, auto width, auto activation) {
    const auto apply = norm_gradients<width(), decltype(type), activation()>(launch, of, scratch);
    launch.template columns<width()>(apply, column_grid(of.x.elements() / apply.columns, apply.columns, width()));
  };
  by_norm(of.norm, work, of.x, of.dy, of.dx);
}

}  // namespace headrace::cuda
