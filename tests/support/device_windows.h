// Windows of JPEGs as a GPU decodes them, by its kernels' work on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "headrace/pipeline/operations/machinery/resampler.h"
#include "headrace/tests/support/host_launcher.h"

namespace headrace::test {

class DeviceWindows {
 public:
  // Returns a window's pixels, resized to `result`; std::nullopt if devices leave the file to the host. The row
  // has room for any window; what a batch's row holds beside it is not looked at. `before`: every byte
  // of the device's scratch memory.
  std::optional<std::vector<std::uint8_t>> decode(std::span<const std::byte> encoded, const JpegIndex& index,
                                                  const ImageWindow& window, const ImageSize& result,
                                                  std::byte before = {}) {
    resampler_.plan({.height = window.height, .width = window.width}, result,
                    {.height = result.height, .width = result.width});
    JpegWindow row;
    const std::int64_t pixels = result.height * result.width * 3;
    row_.resize(2 * encoded.size() + (std::size_t{1} << 17) + static_cast<std::size_t>(pixels));
    if (!writer_.open(encoded, resampler_.vertical(window.top), resampler_.horizontal(window.left)) ||
        !writer_.write(index, {.row = row_, .overflow = {}, .window = &row})) {
      return std::nullopt;
    }
    scratch_.resize((static_cast<std::size_t>(row.scratch_bytes) + sizeof scratch_[0] - 1) / sizeof scratch_[0]);
    std::memset(scratch_.data(), std::to_integer<int>(before), scratch_.size() * sizeof scratch_[0]);
    const auto view = [](void* data, const Shape& shape) { return TensorView{data, shape, DType::kU8}; };
    const JpegDecoding decoding{.rows = {&row, 1},
                                .windows = view(&row, {1, static_cast<std::int64_t>(sizeof row)}),
                                .pixels = view(row_.data(), {1, result.height, result.width, 3}),
                                .scratch = view(scratch_.data(), {row.scratch_bytes})};
    cuda::jpeg::for_each_launch(decoding, [](auto step, const auto& rows, int count, int items) {
      run_on_host(step, rows, count, items);
    });
    const auto* first = reinterpret_cast<const std::uint8_t*>(row_.data());
    return std::vector(first, first + pixels);
  }

 private:
  struct alignas(16) Sixteen {
    std::byte bytes[16];
  };

  JpegWindowWriter writer_;
  Resampler resampler_;
  std::vector<std::byte> row_;
  std::vector<Sixteen> scratch_;
};

}  // namespace headrace::test
