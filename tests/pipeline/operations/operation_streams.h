// Streams of images with operations, and what is expected of all of them.
#pragma once

#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {

inline constexpr std::int64_t kGlobal = 12;

// 53 examples: the last batch has 5.
inline Dataset samples() { return Dataset::from(noise_images(53, 12, 10)).shuffle({.seed = 1}); }

inline Dataset augmented_by(const Operations& operations) {
  return samples().map(operations).batch({.global_batch = kGlobal});
}

inline Dataset mixed(const Operations& mixing, const Operations& before) {
  return samples().map(before | one_hot(10, 0.1F)).batch({.global_batch = kGlobal}).map(mixing);
}

inline const std::vector<float> kColourMean{0.5F, 0.4F, 0.3F}, kColourStd{0.2F, 0.3F, 0.4F};

inline Operations to_floats() { return normalize(kColourMean, kColourStd); }
inline Operations to_planes() { return to_floats() | to_layout(ImageLayout::kChannelsFirst); }

// samples() in batches of kGlobal: the same bits for all threads, replicas, prefetch depths and resume points.
inline void expect_operation_streams(const Dataset& dataset) {
  const auto whole = cpu_digests_of(dataset, {.seed = 4, .epochs = 2, .threads = 1, .prefetch = 0});
  ASSERT_EQ(whole.size(), 10U);
  DeviceGroup one = test_devices(1);
  const LoaderState start = Loader(dataset, one, {.seed = 4, .epochs = 2}).state();
  std::size_t step = 0;
  for (const int threads : {1, 2, 4}) {
    for (const int replicas : {1, 2, 3}) {
      for (const int prefetch : {0, 2}) {
        const LoaderOptions options{.seed = 4, .epochs = 2, .threads = threads, .prefetch = prefetch};
        EXPECT_EQ(digests_of(dataset, replicas, options), whole)
            << threads << " threads, " << replicas << " replicas, prefetch " << prefetch;
        LoaderOptions later = options;
        later.start = start;
        step = (step + 1) % (whole.size() + 1);
        later.start->sequence = step;
        EXPECT_EQ(digests_of(dataset, replicas, later),
                  std::vector(whole.begin() + static_cast<std::ptrdiff_t>(step), whole.end()))
            << "from " << step;
      }
    }
  }
  EXPECT_EQ(whole[0].examples, kGlobal);
  EXPECT_EQ(whole[4].examples, 5);
}

// All examples of a batch: images and labels as floats.
struct Rows {
  std::vector<std::vector<float>> images, labels;
};

inline std::vector<Rows> batches_of(const Dataset& dataset, std::uint64_t epochs = 1) {
  DeviceGroup devices = test_devices(1);
  Loader loader(dataset, devices, {.seed = 4, .epochs = epochs});
  std::vector<Rows> all;
  while (const auto batch = loader.next()) {
    Rows rows;
    const auto take = [&](const char* name, std::vector<std::vector<float>>& out) {
      const TensorView& tensor = batch->tensor(name);
      std::vector<float> values;
      if (tensor.dtype == DType::kU8) {
        const auto bytes = download_examples<std::uint8_t>(devices[0], *batch, name);
        values.assign(bytes.begin(), bytes.end());
      } else {
        values = download_examples<float>(devices[0], *batch, name);
      }
      const auto one = static_cast<std::ptrdiff_t>(tensor.shape.without_front().elements());
      for (auto row = values.begin(); row != values.end(); row += one) out.emplace_back(row, row + one);
    };
    take("image", rows.images);
    take("label", rows.labels);
    all.push_back(std::move(rows));
  }
  return all;
}

inline void expect_close(const std::vector<float>& actual, const std::vector<float>& expected, float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], tolerance) << "at " << i;
}

inline std::vector<float> blend(const std::vector<float>& a, const std::vector<float>& b, double share) {
  std::vector<float> result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    result.push_back(static_cast<float>(share * double{a[i]} + (1 - share) * double{b[i]}));
  }
  return result;
}

inline std::string refusal_of_augmenting(const std::function<Dataset()>& make) {
  return message_of([&] { make().fields(); });
}

}  // namespace headrace::test
