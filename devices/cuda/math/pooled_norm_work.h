// Max pooling and the batch normalisation of its result as work for threads. Private to the CUDA backend.
//
// Bytes that move for an element of the pooled image of 2 bytes (bf16), windows of 2 x 2 that touch:
//            a kernel each                                       fused
//   forward  pooling 8 + 2 + 1, statistics 2, apply 4: 17        pooling with statistics 11, apply 4: 15
//   backward sums 4, apply 6, pooling 2 + 1 + 8: 21              sums 4, apply with pooling 5 + 8: 17
#pragma once

#include "headrace/devices/cuda/math/batch_norm_work.h"
#include "headrace/devices/cuda/math/pooling_work.h"

namespace headrace::cuda {

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
  by_type(x.dtype, [&](auto type) {
    by_window(of.pool.options.window, [&](auto window) {
      using T = decltype(type);
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
  const auto work = [&](auto type, auto width, auto activation) {
    using T = decltype(type);
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

}  // namespace headrace::cuda
