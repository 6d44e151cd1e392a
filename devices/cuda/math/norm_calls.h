// Batch normalisation of GpuKernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/cuda/math/batch_norm_work.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/pooling_work.h"

namespace headrace::cuda {

// Max pooling and the batch normalisation of its result as work for threads.
//
// Bytes that move for an element of the pooled image of 2 bytes (bf16), windows of 2 x 2 that touch:
//            a kernel each                                       fused
//   forward  pooling 8 + 2 + 1, statistics 2, apply 4: 17        pooling with statistics 11, apply 4: 15
//   backward sums 4, apply 6, pooling 2 + 1 + 8: 21              sums 4, apply with pooling 5 + 8: 17

// Pools every row, and sums over the real ones.
template <typename T, int kWindow>
struct PoolingStatistics {
  using Total = Moments<float>;
  static constexpr int kResidentBlocks = kWindow == 3 ? 3 : kReducingBlocks;
  static constexpr bool kOneRowAtOnce = kWindow != 2;  // the loads of one window are enough in flight

  MaxPoolForward<T, kWindow> pooling;
  BatchStatistics<T> statistics;

  HEADRACE_HOST_DEVICE std::int64_t rows() const { return statistics.real.all; }
  // Returns the number of real rows.
  template <int kWidth>
  HEADRACE_HOST_DEVICE std::int64_t begin(std::int64_t) const {
    return statistics.real.count();
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void add(std::int64_t real, Total (&totals)[kWidth], std::int64_t row,
                                std::int64_t column) const {
    const Pack<T, kWidth> pack = pooling.template pool<kWidth>(row, column);
    if (row < real) BatchStatistics<T>::add_values(totals, pack);
  }
  HEADRACE_HOST_DEVICE void finish(std::int64_t column, const Moments<double>& total) const {
    statistics.finish(column, total);
  }
};

// For windows that do not overlap: the thread of a pooled pixel computes its gradient once and writes the pixels
// of its window, and those after it that belong to no window.
template <typename T, Activation kActivation, int kWindow>
struct PoolingInputGradient {
  static constexpr int kResidentBlocks = 3;

  PoolShape shape;
  NormInputGradient<T, kActivation> norm;  // whose dx is not written
  const std::uint8_t* argmax;
  T* dx;

  template <int kWidth>
  HEADRACE_HOST_DEVICE auto begin(std::int64_t column) const {
    return norm.template begin<kWidth>(column);
  }
  template <int kWidth, typename Own>
  HEADRACE_HOST_DEVICE void run(const Own& own, std::int64_t row, std::int64_t column) const {
    const Pack<T, kWidth> gradient = norm.template gradient<kWidth>(own, row, column);
    const Pack<std::uint8_t, kWidth> winner = load_pack<kWidth>(argmax + row * shape.channels + column);
    if constexpr (kWindow > 0) {
      PoolingCell<T, kWindow>::write(shape, row, column, gradient, winner, dx);
    } else {
      write_cell<kWidth>(row, column, gradient, winner);
    }
  }

 private:
  // Handles windows of any size, with or without gaps between them.
  template <int kWidth>
  HEADRACE_HOST_DEVICE void write_cell(std::int64_t row, std::int64_t column, const Pack<T, kWidth>& gradient,
                                       const Pack<std::uint8_t, kWidth>& winner) const {
    const Pixel out = shape.out.pixel(row);
    // The cell's extent: a stride, or the remainder at the end of an axis.
    const int top = out.y * shape.stride, left = out.x * shape.stride;
    const int high = out.y + 1 < shape.out.height ? shape.stride : shape.in.height - top;
    const int wide = out.x + 1 < shape.out.width ? shape.stride : shape.in.width - left;
    T* line = dx + out.image * shape.in_image() + (top * shape.in.width + left) * shape.channels + column;
    HEADRACE_ROLLED
    for (int y = 0; y < high; ++y, line += shape.in.width * shape.channels) {
      HEADRACE_ROLLED
      for (int x = 0; x < wide; ++x) {
        const bool inside = y < shape.window && x < shape.window;
        const int place = y * shape.window + x;
        Pack<T, kWidth> pack{};
        for (int k = 0; k < kWidth; ++k) {
          if (inside && winner.values[k] == place) pack.values[k] = gradient.values[k];
        }
        store_pack(line + x * shape.channels, pack);
      }
    }
  }
};

template <typename Launcher>
void submit_max_pool_batch_norm_train(Launcher& launch, const kernel::MaxPoolBatchNormTrain& of, void* scratch) {
  const NormVectors vectors = norm_vectors(of.norm);
  const TensorView &x = of.x, &pooled = of.pooled, &argmax = of.pool.argmax;
  const std::int64_t columns = x.shape.back();
  by_type(x.dtype, [&]<typename T>(T) {
    by_window(of.pool.options.window, [&](auto window) {
      using Work = PoolingStatistics<T, window()>;
      const Work work{
          {pool_shape(x, pooled, of.pool.options), x.as<T>(), pooled.as<T>(), argmax.as<std::uint8_t>()},
          {pooled.as<T>(), columns, real_rows(pooled, of.scalars), vectors}};
      constexpr int kWidth = kPackWidth<T>;
      by_width<kWidth>(columns % kWidth == 0 && packs_fit(kWidth, x, pooled, argmax), [&](auto width) {
        launch.template reduce<width()>(
            work, column_grid(pooled.elements() / columns, columns, width(), max_reducing_blocks<Work>()),
            scratch);
      });
    });
  });
  const auto apply = [&](auto type, auto width, auto activation) {
    normalize<width(), decltype(type), activation()>(launch, pooled, vectors, of.y);
  };
  by_norm(of.norm, apply, pooled, of.y);
}

// For overlapping windows a separate kernel writes each pixel, from the gradient in dy's place.
template <typename Launcher>
void submit_max_pool_batch_norm_backward(Launcher& launch, const kernel::MaxPoolBatchNormBackward& of,
                                         void* scratch) {
  const auto& [options, argmax] = of.pool;
  kernel::BatchNormBackward norm{of.pooled, of.dy, of.dgamma, of.dbeta, of.dy, of.norm, of.scalars};
  if (options.stride < options.window) {
    submit_batch_norm_backward(launch, norm, scratch);
    return submit_max_pool_backward(launch, kernel::MaxPoolBackward{of.dy, argmax, of.dx, options});
  }
  norm.dx = {};  // the gradient goes on to the pixels
  const auto work = [&]<typename T>(T, auto width, auto activation) {
    const auto apply = norm_gradients<width(), T, activation()>(launch, norm, scratch);
    by_touching_window(of.pool.options, [&](auto window) {
      launch.template columns<width()>(
          PoolingInputGradient<T, activation(), window()>{pool_shape(of.dx, of.pooled, of.pool.options), apply,
                                                          of.pool.argmax.as<std::uint8_t>(), of.dx.as<T>()},
          column_grid(of.pooled.elements() / apply.columns, apply.columns, width()));
    });
  };
  by_norm(of.norm, work, of.pooled, of.dy, of.dx, of.pool.argmax);
}

// An element is a channel.
struct PackStatistics {
  RealRows real;
  NormVectors norm;
  float* row;
  std::int64_t channels;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t channel) const {
    if (channel == 0) row[0] = static_cast<float>(real.count());
    const float inverse = norm.saved_inv_std[channel];
    row[1 + channel] = norm.saved_mean[channel];
    row[1 + channels + channel] = 1.0F / (inverse * inverse);
  }
};

// An element is a channel; replicas are joined in order.
struct JoinStatistics {
  const float* statistics;
  std::int64_t world_replicas, replica, channels;
  NormVectors norm;
  float* variance;
  float* inverse_counts;

  HEADRACE_HOST_DEVICE Moments<double> joined(std::int64_t channel) const {
    Moments<double> all{};
    for (std::int64_t r = 0; r < world_replicas; ++r) {
      const float* row = statistics + r * (1 + 2 * channels);
      const double count = static_cast<double>(row[0]);
      if (count == 0) continue;
      const double distance = static_cast<double>(row[1 + channel]) - all.mean, total = all.count + count;
      all.deviation += static_cast<double>(row[1 + channels + channel]) * count +
                       distance * distance * all.count * count / total;
      all.mean += distance * count / total;
      all.count = total;
    }
    return all;
  }

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t c) const {
    const Moments<double> all = joined(c);
    const bool any = all.count > 0;
    if (c == 0) {
      const float own = statistics[replica * (1 + 2 * channels)];
      inverse_counts[0] = own > 0 ? 1.0F / own : 0.0F;
      inverse_counts[1] = any ? static_cast<float>(1 / all.count) : 0.0F;
    }
    variance[c] = any ? static_cast<float>(all.deviation / all.count) : norm.running_var[c];
    norm.saved_mean[c] = any ? static_cast<float>(all.mean) : norm.running_mean[c];
    norm.saved_inv_std[c] = 1.0F / sqrtf(variance[c] + norm.epsilon);
    if (!any) return;
    follow(norm.running_mean[c], all.mean);
    follow(norm.running_var[c], all.deviation / (all.count > 1 ? all.count - 1 : 1));
  }
  HEADRACE_HOST_DEVICE void follow(float& running, double batch) const {
    const double momentum = static_cast<double>(norm.momentum);
    running = static_cast<float>(momentum * static_cast<double>(running) + (1 - momentum) * batch);
  }
};

// dx += offset + slope x in the real rows.
template <typename T>
struct JoinInputGradient {
  const T* x;
  T* dx;
  std::int64_t channels;
  RealRows real;
  NormVectors norm;
  const float* own;
  const float* joint;
  const float* inverse_counts;

  template <int kWidth>
  struct Affine {
    float offset[kWidth], slope[kWidth];
  };
  template <int kWidth>
  HEADRACE_HOST_DEVICE Affine<kWidth> begin(std::int64_t column) const {
    Affine<kWidth> affine;
    for (int k = 0; k < kWidth; ++k) {
      const std::int64_t c = column + k;
      const float inverse = norm.saved_inv_std[c], scale = norm.scale(c) * inverse;
      const float sums = difference_of_means(c), products = difference_of_means(channels + c);
      affine.slope[k] = scale * products * inverse;
      affine.offset[k] = scale * sums - affine.slope[k] * norm.saved_mean[c];
    }
    return affine;
  }
  // Returns this replica's mean minus that of all replicas; exactly 0 if no other replica has rows.
  HEADRACE_HOST_DEVICE float difference_of_means(std::int64_t at) const {
    return rounded_product(own[at], inverse_counts[0]) - rounded_product(joint[at], inverse_counts[1]);
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(const Affine<kWidth>& affine, std::int64_t row, std::int64_t column) const {
    if (row >= real.count()) return;
    const std::int64_t at = row * channels + column;
    const Pack<T, kWidth> from = load_pack<kWidth>(x + at);
    Pack<T, kWidth> pack = load_pack<kWidth>(dx + at);
    for (int k = 0; k < kWidth; ++k) {
      pack.values[k] = element_of<T>(value_of(pack.values[k]) +
                                     (affine.offset[k] + affine.slope[k] * value_of(from.values[k])));
    }
    store_pack(dx + at, pack);
  }
};

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::BatchNormTrain& of) {
  launches_.submit(stream, name_of(of), batch_norm_scratch_bytes(of.x),
                   [=](auto& launch, void* scratch) { submit_batch_norm_train(launch, of, scratch); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::BatchNormInfer& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) { submit_batch_norm_infer(launch, of); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::BatchNormBackward& of) {
  launches_.submit(stream, name_of(of), batch_norm_scratch_bytes(of.x),
                   [=](auto& launch, void* scratch) { submit_batch_norm_backward(launch, of, scratch); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::PackStatistics& of) {
  const PackStatistics work{real_rows(of.x, of.scalars), norm_vectors(of.norm), of.row.as<float>(),
                            of.x.shape.back()};
  launches_.submit(stream, name_of(of), [work](auto& launch) { launch.template flat<1>(work, work.channels); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::JoinStatistics& of) {
  const std::int64_t channels = of.norm.saved_mean.elements();
  const JoinStatistics work{
      of.statistics.as<float>(), of.statistics.shape[0],       of.replica, channels, norm_vectors(of.norm),
      of.variance.as<float>(),   of.inverse_counts.as<float>()};
  launches_.submit(stream, name_of(of), [work](auto& launch) { launch.template flat<1>(work, work.channels); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::JoinInputGradient& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    by_type(of.x.dtype, [&]<typename T>(T) {
      const std::int64_t channels = of.x.shape.back();
      const JoinInputGradient<T> work{of.x.as<T>(),
                                      of.dx.as<T>(),
                                      channels,
                                      real_rows(of.x, of.scalars),
                                      norm_vectors(of.norm),
                                      of.own.as<float>(),
                                      of.joint.as<float>(),
                                      of.inverse_counts.as<float>()};
      constexpr int kWidth = narrow_width(kPackWidth<T>);
      submit_columns<kWidth>(launch, work, of.x.elements() / channels, channels, of.x, of.dx);
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::MaxPoolBatchNormTrain& of) {
  launches_.submit(stream, name_of(of), batch_norm_scratch_bytes(of.pooled),
                   [=](auto& launch, void* scratch) { submit_max_pool_batch_norm_train(launch, of, scratch); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::MaxPoolBatchNormBackward& of) {
  launches_.submit(stream, name_of(of), batch_norm_scratch_bytes(of.pooled),
                   [=](auto& launch, void* scratch) { submit_max_pool_batch_norm_backward(launch, of, scratch); });
}

}  // namespace headrace::cuda
