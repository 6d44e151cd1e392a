// Runs operations on one field, and the same with naive code.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "headrace/cache/memory_cache.h"
#include "headrace/pipeline/plan/cached_sample.h"
#include "headrace/pipeline/plan/sample_program.h"
#include "headrace/tests/support/bytes.h"

namespace headrace::test {

// Notes nothing.
class QuietProbe final : public Probe {
 public:
  void begin(const std::string&, std::uint64_t) noexcept override {}
  void enter_user_code() noexcept override {}
  void leave_user_code() override {}
};

// Values of any element type as floats, (height, width, channels) or as laid out.
struct Image {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<float> values;

  float& at(std::int64_t y, std::int64_t x, std::int64_t c) {
    return values[static_cast<std::size_t>((y * width + x) * channels + c)];
  }
  float at(std::int64_t y, std::int64_t x, std::int64_t c) const {
    return values[static_cast<std::size_t>((y * width + x) * channels + c)];
  }
};

inline Image random_image(std::int64_t height, std::int64_t width, std::int64_t channels, std::uint64_t seed) {
  Image image{.height = height, .width = width, .channels = channels, .values = {}};
  image.values.resize(static_cast<std::size_t>(height * width * channels));
  Philox random({.seed = seed});
  for (float& value : image.values) value = static_cast<float>(random.below(256));
  return image;
}

inline std::vector<std::byte> to_elements(const std::vector<float>& values, DType type) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == DType::kU8) {
      bytes[i] = static_cast<std::byte>(values[i]);
    } else {
      std::memcpy(bytes.data() + i * sizeof(float), &values[i], sizeof(float));
    }
  }
  return bytes;
}

inline std::vector<float> from_elements(std::span<const std::byte> bytes, DType type) {
  std::vector<float> values(bytes.size() / size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == DType::kU8) {
      values[i] = static_cast<float>(std::to_integer<int>(bytes[i]));
    } else {
      std::memcpy(&values[i], bytes.data() + i * sizeof(float), sizeof(float));
    }
  }
  return values;
}

inline std::vector<SampleStage> planned(const Operations& operations) {
  std::vector<SampleStage> stages;
  for (const Operation& operation : operations.list()) {
    stages.emplace_back(
        PlannedOperation{.operation = operation, .number = static_cast<std::uint16_t>(stages.size())});
  }
  return stages;
}

// The operations on one field of any shape, as a plan runs them on what a cache holds.
class Chain {
 public:
  Chain(const Field& field, const std::vector<SampleStage>& stages) : program_(plan_of(field, stages)) {}

  const Field& output() const { return program_.fields()[0]; }
  bool is_slow() const { return program_.is_slow(); }
  void run_into(const FieldView& in, const StepContext& context, std::span<std::byte> row) const {
    std::vector<std::byte> sample;
    sample.resize(append_field(sample, 0, in));
    SampleRows rows;
    rows[0] = row.data();
    const std::size_t bytes = row.size();
    StepContext sized = context;
    sized.row_bytes = &bytes;
    program_.run_cached({.bytes = sample}, sized, rows);
  }

 private:
  class OneField final : public Source {
   public:
    explicit OneField(const Field& field) { info_.fields = {field}; }
    const SourceInfo& info() const noexcept override { return info_; }
    RecordView read(std::uint64_t, std::vector<std::byte>&) const override { return {}; }
    std::string describe(std::uint64_t) const override { return {}; }

   private:
    SourceInfo info_;
  };

  static StreamPlan plan_of(const Field& field, const std::vector<SampleStage>& stages) {
    StreamPlan plan;
    plan.source = std::make_shared<OneField>(field);
    plan.sample_stages = stages;
    plan.caches.push_back({.cache = memory(), .stages = 0});
    return plan;
  }

  SampleProgram program_;
};

struct ChainResult {
  Field field;
  std::vector<float> values;
};

// The chain on an image of elements of `type`; record and pass key the random draws.
inline ChainResult run_chain(const Operations& operations, const Image& image, DType type,
                             std::uint64_t record = 0, std::uint64_t pass = 0) {
  const Field field{.name = "image", .dtype = type, .shape = {image.height, image.width, image.channels}};
  const std::vector<SampleStage> stages = planned(operations);
  const Chain chain(field, stages);
  const Field& output = chain.output();
  std::vector<std::byte> row(static_cast<std::size_t>(output.shape.elements()) * size_of(output.dtype));
  const std::vector<std::byte> bytes = to_elements(image.values, type);
  Scratch scratch;
  QuietProbe probe;
  const StepContext context{.seed = 11, .pass = pass, .record = record, .scratch = &scratch, .probe = &probe};
  chain.run_into({.bytes = bytes, .shape = field.shape}, context, row);
  return {.field = output, .values = from_elements(row, output.dtype)};
}

inline Philox draws(std::uint16_t operation, std::uint64_t record = 0, std::uint64_t pass = 0) {
  return Philox({.seed = 11, .epoch = static_cast<std::uint32_t>(pass), .record = record, .operation = operation});
}

// One operation after another, one element after another.
inline Image naive_crop(const Image& in, std::int64_t top, std::int64_t left, std::int64_t size, Padding padding) {
  Image out{.height = size, .width = size, .channels = in.channels, .values = {}};
  out.values.resize(static_cast<std::size_t>(size * size * in.channels));
  const auto reflected = [](std::int64_t at, std::int64_t extent) {
    while (at < 0 || at >= extent) at = at < 0 ? -at : 2 * (extent - 1) - at;
    return at;
  };
  for (std::int64_t y = 0; y < size; ++y) {
    for (std::int64_t x = 0; x < size; ++x) {
      for (std::int64_t c = 0; c < in.channels; ++c) {
        const std::int64_t row = top + y, column = left + x;
        const bool inside = row >= 0 && row < in.height && column >= 0 && column < in.width;
        out.at(y, x, c) = inside ? in.at(row, column, c)
                          : padding == Padding::kReflect
                              ? in.at(reflected(row, in.height), reflected(column, in.width), c)
                              : 0.0F;
      }
    }
  }
  return out;
}

inline Image naive_mirror(const Image& in) {
  Image out = in;
  for (std::int64_t y = 0; y < in.height; ++y) {
    for (std::int64_t x = 0; x < in.width; ++x) {
      for (std::int64_t c = 0; c < in.channels; ++c) out.at(y, x, c) = in.at(y, in.width - 1 - x, c);
    }
  }
  return out;
}

inline std::vector<float> naive_planes(const Image& in) {
  std::vector<float> planes;
  for (std::int64_t c = 0; c < in.channels; ++c) {
    for (std::int64_t i = 0; i < in.height * in.width; ++i) {
      planes.push_back(in.values[static_cast<std::size_t>(i * in.channels + c)]);
    }
  }
  return planes;
}

inline void expect_near(const std::vector<float>& actual, const std::vector<float>& expected, float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_LE(std::abs(actual[i] - expected[i]), tolerance)
        << "at " << i << ": " << actual[i] << ", " << expected[i];
  }
}

// A chain on the bytes of an encoded image, decode first.
inline std::vector<float> run_encoded(const Operations& operations, const Bytes& encoded) {
  std::vector<SampleStage> stages = planned(operations);
  stages.insert(stages.begin(), DecodeStage{});
  const Field field{.name = "image", .dtype = DType::kU8, .shape = {}, .encoding = Encoding::kImage};
  const Chain chain(field, stages);
  std::vector<std::byte> row(static_cast<std::size_t>(chain.output().shape.elements()));
  Scratch scratch;
  QuietProbe probe;
  chain.run_into({.bytes = encoded, .shape = {static_cast<std::int64_t>(encoded.size())}},
                 {.seed = 11, .scratch = &scratch, .probe = &probe}, row);
  return from_elements(row, DType::kU8);
}

inline Image decoded(const Bytes& encoded) {
  ImageDecoder decoder;
  const ImageSize size = decoder.read_size(encoded);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.height * size.width * 3));
  decoder.decode(encoded, pixels);
  return {.height = size.height, .width = size.width, .channels = 3, .values = {pixels.begin(), pixels.end()}};
}

}  // namespace headrace::test
