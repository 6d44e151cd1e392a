// What every device's InputKernels must do, bit for bit.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/rng.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/tests/conformance/device_fixture.h"

namespace headrace::test {

template <typename Target>
class InputKernelsSuite : public DeviceFixture<Target> {
 protected:
  // A batch of random bytes on the device, and room for the result.
  struct Images {
    std::int64_t n, h, w, c;
    std::vector<std::uint8_t> bytes;
    std::vector<float> scale, shift;
    Buffer pixels, scale_buffer, shift_buffer, out;

    Shape shape() const { return {n, h, w, c}; }

    PixelConversion conversion(ImageLayout layout) const {
      return {.pixels = pixels.view(shape(), DType::kU8),
              .scale = scale_buffer.view({c}, DType::kF32),
              .shift = shift_buffer.view({c}, DType::kF32),
              .out = out.view(layout == ImageLayout::kChannelsLast ? shape() : Shape{n, c, h, w}, DType::kF32),
              .layout = layout};
    }

    float wanted(std::int64_t image, std::int64_t pixel, std::int64_t channel) const {
      const volatile float product = static_cast<float>(bytes[index((image * h * w + pixel) * c + channel)]) *
                                     scale[index(channel)];  // volatile: rounded by itself
      return product + shift[index(channel)];
    }

    // Of a window's pixel, the border made the simplest way.
    float wanted_of(const PixelWindow& window, std::int64_t image, std::int64_t y, std::int64_t x,
                    std::int64_t channel, std::int64_t width, std::int64_t pad, PixelBorder border) const {
      std::int64_t row = window.top + y - pad;
      std::int64_t column = window.left + (window.mirrored != 0 ? width - 1 - x : x) - pad;
      const bool outside = row < 0 || row >= h || column < 0 || column >= w;
      if (outside && border == PixelBorder::kZero) return shift[index(channel)];
      while (row < 0 || row >= h) row = row < 0 ? -row : 2 * (h - 1) - row;
      while (column < 0 || column >= w) column = column < 0 ? -column : 2 * (w - 1) - column;
      return wanted(image, row * w + column, channel);
    }

    static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  };

  Images make(Stream& stream, const Shape& shape) {
    Images images{.n = shape[0],
                  .h = shape[1],
                  .w = shape[2],
                  .c = shape[3],
                  .bytes = {},
                  .scale = {},
                  .shift = {},
                  .pixels = {},
                  .scale_buffer = {},
                  .shift_buffer = {},
                  .out = {}};
    Philox random(RandomKey{.seed = static_cast<std::uint64_t>(shape.elements())});
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      images.bytes.push_back(static_cast<std::uint8_t>(random.below(256)));
    }
    for (std::int64_t i = 0; i < images.c; ++i) {
      images.scale.push_back(random.uniform() / 100);
      images.shift.push_back(random.uniform() * -3);
    }
    images.pixels = upload(stream, images.bytes);
    images.scale_buffer = upload(stream, images.scale);
    images.shift_buffer = upload(stream, images.shift);
    images.out = this->device().allocate(images.bytes.size() * sizeof(float));
    return images;
  }

  struct Windows {
    std::vector<PixelWindow> list;
    Buffer buffer;
  };

  // One an image, of this size: the corners of what is possible, then random ones.
  Windows make_windows(Stream& stream, const Images& images, const Shape& size, std::int64_t pad) {
    Windows windows;
    Philox random(RandomKey{.seed = 7});
    const auto down = static_cast<std::uint32_t>(images.h + 2 * pad - size[0]);
    const auto right = static_cast<std::uint32_t>(images.w + 2 * pad - size[1]);
    for (std::int64_t i = 0; i < images.n; ++i) {
      const std::uint32_t top = i == 0 ? 0 : i == 1 ? down : random.below(down + 1);
      const std::uint32_t left = i == 0 ? 0 : i == 1 ? right : random.below(right + 1);
      windows.list.push_back({.top = static_cast<std::int32_t>(top),
                              .left = static_cast<std::int32_t>(left),
                              .mirrored = static_cast<std::int32_t>(i % 2)});
    }
    windows.buffer = upload(stream, windows.list);
    return windows;
  }

  template <typename T>
  Buffer upload(Stream& stream, const std::vector<T>& values) {
    Buffer buffer = this->device().allocate(values.size() * sizeof(T));
    stream.copy(buffer.data(), values.data(), values.size() * sizeof(T));
    stream.synchronize();
    return buffer;
  }
};
TYPED_TEST_SUITE_P(InputKernelsSuite);

TYPED_TEST_P(InputKernelsSuite, ConvertsEveryPixelInBothLayouts) {
  const auto stream = this->device().create_stream();
  InputKernels* kernels = this->device().input_kernels();
  ASSERT_NE(kernels, nullptr);
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 28, 28, 1}, Shape{3, 5, 7, 3}, Shape{16, 32, 32, 3},
                             Shape{2, 9, 4, 4}, Shape{1, 224, 224, 3}}) {
    const auto images = this->make(*stream, shape);
    const std::int64_t pixels = images.h * images.w;
    for (const ImageLayout layout : {ImageLayout::kChannelsLast, ImageLayout::kChannelsFirst}) {
      kernels->convert_pixels(*stream, images.conversion(layout));
      const std::vector<float> result = this->template download<float>(*stream, images.out);
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        const std::int64_t image = i / (pixels * images.c);
        const std::int64_t rest = i % (pixels * images.c);
        const bool nhwc = layout == ImageLayout::kChannelsLast;
        const std::int64_t pixel = nhwc ? rest / images.c : rest % pixels;
        const std::int64_t channel = nhwc ? rest % images.c : rest / pixels;
        ASSERT_EQ(result[static_cast<std::size_t>(i)], images.wanted(image, pixel, channel))
            << shape.to_string() << (nhwc ? " NHWC " : " NCHW ") << i;
      }
    }
  }
}

// Every way to place a window, on sizes with and without a remainder of a GPU's block, and on more images than its
// blocks take at once.
TYPED_TEST_P(InputKernelsSuite, CropsPadsAndFlips) {
  const auto stream = this->device().create_stream();
  struct Case {
    Shape in;
    std::int64_t height, width, pad;
    PixelBorder border;
  };
  for (const Case& c :
       {Case{{1, 1, 1, 1}, 1, 1, 0, PixelBorder::kZero}, Case{{9, 32, 32, 3}, 32, 32, 4, PixelBorder::kZero},
        Case{{9, 32, 32, 3}, 32, 32, 2, PixelBorder::kReflect}, Case{{4, 5, 7, 1}, 3, 8, 4, PixelBorder::kReflect},
        Case{{4, 5, 7, 2}, 9, 4, 3, PixelBorder::kZero}, Case{{3, 60, 80, 3}, 50, 61, 0, PixelBorder::kZero},
        Case{{300, 32, 32, 3}, 32, 32, 4, PixelBorder::kReflect}}) {
    auto images = this->make(*stream, c.in);
    const auto windows = this->make_windows(*stream, images, {c.height, c.width}, c.pad);
    images.out = this->device().allocate(static_cast<std::size_t>(images.n * c.height * c.width * images.c) *
                                         sizeof(float));
    for (const ImageLayout layout : {ImageLayout::kChannelsLast, ImageLayout::kChannelsFirst}) {
      const bool nhwc = layout == ImageLayout::kChannelsLast;
      PixelConversion conversion = images.conversion(layout);
      conversion.out = images.out.view(
          nhwc ? Shape{images.n, c.height, c.width, images.c} : Shape{images.n, images.c, c.height, c.width},
          DType::kF32);
      conversion.windows = windows.buffer.view({images.n, 3}, DType::kI32);
      conversion.pad = c.pad;
      conversion.border = c.border;
      this->device().input_kernels()->convert_pixels(*stream, conversion);
      const std::vector<float> result = this->template download<float>(*stream, images.out);
      std::size_t at = 0;
      for (std::int64_t n = 0; n < images.n; ++n) {
        for (std::int64_t i = 0; i < c.height * c.width * images.c; ++i, ++at) {
          const std::int64_t channel = nhwc ? i % images.c : i / (c.height * c.width);
          const std::int64_t pixel = nhwc ? i / images.c : i % (c.height * c.width);
          ASSERT_EQ(result[at], images.wanted_of(windows.list[static_cast<std::size_t>(n)], n, pixel / c.width,
                                                 pixel % c.width, channel, c.width, c.pad, c.border))
              << c.in.to_string() << " pad " << c.pad << (nhwc ? " NHWC " : " NCHW ") << at;
        }
      }
    }
  }
}

// Of images anywhere in memory, one more than once, with windows and without.
TYPED_TEST_P(InputKernelsSuite, PicksImages) {
  const auto stream = this->device().create_stream();
  const auto many = this->make(*stream, {11, 6, 5, 3});
  const std::vector<std::int32_t> order{10, 0, 3, 3, 7};
  const auto n = static_cast<std::int64_t>(order.size());
  const Buffer picks = this->upload(*stream, order);
  const auto windows = this->make_windows(*stream, many, {4, 5}, 1);
  const Buffer out = this->device().allocate(static_cast<std::size_t>(n * 6 * 5 * 3) * sizeof(float));
  for (const ImageLayout layout : {ImageLayout::kChannelsLast, ImageLayout::kChannelsFirst}) {
    for (const std::int64_t height : {6, 4}) {
      const bool nhwc = layout == ImageLayout::kChannelsLast, cut = height == 4;
      PixelConversion conversion = many.conversion(layout);
      conversion.picks = picks.view({n}, DType::kI32);
      conversion.out = out.view(nhwc ? Shape{n, height, 5, 3} : Shape{n, 3, height, 5}, DType::kF32);
      if (cut) conversion.windows = windows.buffer.view({n, 3}, DType::kI32);
      conversion.pad = cut ? 1 : 0;
      this->device().input_kernels()->convert_pixels(*stream, conversion);
      const std::vector<float> result = this->template download<float>(*stream, out);
      for (std::int64_t i = 0; i < n * height * 5 * 3; ++i) {
        const std::int64_t example = i / (height * 5 * 3), rest = i % (height * 5 * 3);
        const std::int64_t channel = nhwc ? rest % 3 : rest / (height * 5);
        const std::int64_t pixel = nhwc ? rest / 3 : rest % (height * 5);
        const PixelWindow window = cut ? windows.list[static_cast<std::size_t>(example)] : PixelWindow{};
        ASSERT_EQ(result[static_cast<std::size_t>(i)],
                  many.wanted_of(window, order[static_cast<std::size_t>(example)], pixel / 5, pixel % 5, channel,
                                 5, conversion.pad, PixelBorder::kZero))
            << (nhwc ? "NHWC " : "NCHW ") << i << (cut ? " windows" : " whole");
      }
    }
  }
}

TYPED_TEST_P(InputKernelsSuite, ChangesTones) {
  const auto stream = this->device().create_stream();
  const auto images = this->make(*stream, {9, 7, 5, 3});
  std::vector<PixelTone> tones;
  for (int i = 0; i < 9; ++i) {
    tones.push_back({.shift = 0.1F * static_cast<float>(i - 4), .gain = 0.7F + 0.1F * static_cast<float>(i)});
  }
  const Buffer buffer = this->upload(*stream, tones);
  const auto windows = this->make_windows(*stream, images, {7, 5}, 0);
  for (const ImageLayout layout : {ImageLayout::kChannelsLast, ImageLayout::kChannelsFirst}) {
    for (const bool cut : {false, true}) {
      PixelConversion conversion = images.conversion(layout);
      conversion.tones = buffer.view({9, 2}, DType::kF32);
      if (cut) conversion.windows = windows.buffer.view({9, 3}, DType::kI32);
      this->device().input_kernels()->convert_pixels(*stream, conversion);
      const std::vector<float> result = this->template download<float>(*stream, images.out);
      for (std::size_t i = 0; i < result.size(); ++i) {
        const std::size_t n = i / 105, rest = i % 105;
        const bool nhwc = layout == ImageLayout::kChannelsLast;
        const auto channel = static_cast<std::int64_t>(nhwc ? rest % 3 : rest / 35);
        const auto pixel = static_cast<std::int64_t>(nhwc ? rest / 3 : rest % 35);
        const PixelWindow window = cut ? windows.list[n] : PixelWindow{};
        const volatile float shifted = images.wanted_of(window, static_cast<std::int64_t>(n), pixel / 5, pixel % 5,
                                                        channel, 5, 0, PixelBorder::kZero) +
                                       tones[n].shift;
        ASSERT_EQ(result[i], shifted * tones[n].gain) << (nhwc ? "NHWC " : "NCHW ") << i << (cut ? " cut" : "");
      }
    }
  }
  PixelConversion bad = images.conversion(ImageLayout::kChannelsLast);
  bad.tones = buffer.view({8, 2}, DType::kF32);
  EXPECT_THROW(this->device().input_kernels()->convert_pixels(*stream, bad), ConfigError);
  bad.tones = buffer.view({9, 2}, DType::kI32);
  EXPECT_THROW(this->device().input_kernels()->convert_pixels(*stream, bad), ConfigError);
}

// In every form that has a kernel of its own: lines with and without a remainder of a pack, of three and of other
// channels, in borders of zeros and of reflections.
TYPED_TEST_P(InputKernelsSuite, WritesBf16NearestToF32) {
  const auto stream = this->device().create_stream();
  const Buffer tones = this->upload(*stream, std::vector<PixelTone>(9, {.shift = 0.13F, .gain = 0.7F}));
  for (const Shape& shape : {Shape{9, 7, 5, 3}, Shape{9, 6, 8, 3}, Shape{9, 6, 8, 2}}) {
    const auto images = this->make(*stream, shape);
    const auto windows = this->make_windows(*stream, images, {images.h, images.w}, 3);
    const Buffer half = this->device().allocate(images.bytes.size() * sizeof(BFloat16));
    for (const ImageLayout layout : {ImageLayout::kChannelsLast, ImageLayout::kChannelsFirst}) {
      for (int form = 0; form < 8; ++form) {
        PixelConversion conversion = images.conversion(layout);
        if (form % 2 == 1) conversion.tones = tones.view({9, 2}, DType::kF32);
        if (form / 2 % 2 == 1) {
          conversion.windows = windows.buffer.view({9, 3}, DType::kI32);
          conversion.pad = 3;
        }
        conversion.border = form < 4 ? PixelBorder::kZero : PixelBorder::kReflect;
        this->device().input_kernels()->convert_pixels(*stream, conversion);
        conversion.out = half.view(conversion.out.shape, DType::kBF16);
        this->device().input_kernels()->convert_pixels(*stream, conversion);
        const auto wide = this->template download<float>(*stream, images.out);
        const auto rounded = this->template download<BFloat16>(*stream, half);
        for (std::size_t i = 0; i < wide.size(); ++i) {
          ASSERT_EQ(rounded[i].bits, nearest_bf16(wide[i]).bits)
              << shape.to_string() << " form " << form << ", " << i;
        }
      }
    }
  }
}

TYPED_TEST_P(InputKernelsSuite, RefusesPicksThatDoNotFit) {
  const auto stream = this->device().create_stream();
  const auto images = this->make(*stream, {2, 4, 5, 3});
  const Buffer picks = this->upload(*stream, std::vector<std::int32_t>{1, 0, 1});
  PixelConversion good = images.conversion(ImageLayout::kChannelsLast);
  good.picks = picks.view({2}, DType::kI32);
  this->device().input_kernels()->convert_pixels(*stream, good);
  const auto refused = [&](PixelConversion bad) {
    EXPECT_THROW(this->device().input_kernels()->convert_pixels(*stream, bad), ConfigError);
  };
  PixelConversion bad = good;
  bad.picks.shape = {3};
  refused(bad);
  bad = good;
  bad.picks.shape = {2, 1};
  refused(bad);
  bad = good;
  bad.picks.dtype = DType::kF32;
  refused(bad);
  EXPECT_NO_THROW(stream->synchronize());
}

TYPED_TEST_P(InputKernelsSuite, RefusesWindowsThatDoNotFit) {
  const auto stream = this->device().create_stream();
  const auto images = this->make(*stream, {2, 4, 5, 3});
  const auto windows = this->make_windows(*stream, images, {4, 5}, 1);
  PixelConversion good = images.conversion(ImageLayout::kChannelsLast);
  good.windows = windows.buffer.view({2, 3}, DType::kI32);
  good.pad = 1;
  this->device().input_kernels()->convert_pixels(*stream, good);
  const auto refused = [&](PixelConversion bad) {
    EXPECT_THROW(this->device().input_kernels()->convert_pixels(*stream, bad), ConfigError);
  };
  PixelConversion bad = good;
  bad.windows = {};
  refused(bad);
  bad = good;
  bad.windows.shape = {3, 3};
  refused(bad);
  bad = good;
  bad.windows.dtype = DType::kF32;
  refused(bad);
  bad = good;
  bad.pad = -1;
  refused(bad);
  bad = good;
  bad.pad = 4;
  bad.border = PixelBorder::kReflect;
  refused(bad);
  bad = good;
  bad.out.shape = {2, 7, 5, 3};
  refused(bad);
  bad = good;
  bad.out.shape = {1, 4, 5, 3};
  refused(bad);
  EXPECT_NO_THROW(stream->synchronize());
}

TYPED_TEST_P(InputKernelsSuite, RunsInStreamOrderAndInCaptures) {
  const auto stream = this->device().create_stream();
  const auto images = this->make(*stream, {2, 4, 4, 3});
  stream->begin_capture();
  stream->fill(images.pixels.data(), 10, images.pixels.size());
  this->device().input_kernels()->convert_pixels(*stream, images.conversion(ImageLayout::kChannelsLast));
  const auto work = stream->end_capture();
  stream->launch(*work);
  const std::vector<float> result = this->template download<float>(*stream, images.out);
  EXPECT_NEAR(result[4], 10 * images.scale[1] + images.shift[1], 1e-5F);
}

TYPED_TEST_P(InputKernelsSuite, RefusesWhatDoesNotFit) {
  const auto stream = this->device().create_stream();
  const auto images = this->make(*stream, {2, 4, 5, 3});
  const PixelConversion good = images.conversion(ImageLayout::kChannelsFirst);
  const auto refused = [&](PixelConversion bad) {
    EXPECT_THROW(this->device().input_kernels()->convert_pixels(*stream, bad), ConfigError);
  };
  PixelConversion bad = good;
  bad.layout = ImageLayout::kChannelsLast;
  refused(bad);
  bad = good;
  bad.pixels.dtype = DType::kF32;
  refused(bad);
  bad = good;
  bad.pixels.shape = {2, 4, 15};
  refused(bad);
  bad = good;
  bad.out.dtype = DType::kF16;
  refused(bad);
  bad = good;
  bad.scale.shape = {4};
  refused(bad);
  EXPECT_NO_THROW(stream->synchronize());
}

REGISTER_TYPED_TEST_SUITE_P(InputKernelsSuite, ConvertsEveryPixelInBothLayouts, CropsPadsAndFlips, PicksImages,
                            ChangesTones, WritesBf16NearestToF32, RefusesPicksThatDoNotFit,
                            RefusesWindowsThatDoNotFit, RunsInStreamOrderAndInCaptures, RefusesWhatDoesNotFit);

}  // namespace headrace::test
