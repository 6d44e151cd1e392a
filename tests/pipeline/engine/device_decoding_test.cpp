// JPEGs decoded on the device: the same stream, whoever decodes which of its images.
#include <fmt/format.h>

#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/operations.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/data.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/long_run.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::test {
namespace {

constexpr int kImages = 90;

// Pictures of every sampling, grey ones, with restart marks and tables of their own, and others that devices leave
// to the host: progressive JPEGs, CMYK, PNGs.
std::vector<Bytes> pictures() {
  constexpr std::pair<int, int> kFactors[] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}};
  std::vector<Bytes> files;
  for (int i = 0; i < kImages; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    const int height = 20 + 7 * i % 90, width = 20 + 11 * i % 110;
    const auto [horizontal, vertical] = kFactors[i % 6];
    const int kind = i % 11;
    if (kind == 10) {
      files.push_back(encode_png(make_picture(height, width, 3, seed)));
      continue;
    }
    const JpegOptions options{.quality = i % 4 == 0 ? 100 : 60 + i % 40,
                              .horizontal = horizontal,
                              .vertical = vertical,
                              .progressive = kind == 9,
                              .restart_rows = kind == 8 ? 1 : 0,
                              .standard_tables = kind % 2 == 0};
    files.push_back(encode_jpeg(make_picture(height, width, kind == 7 ? 1 : kind == 6 ? 4 : 3, seed), options));
  }
  return files;
}

// Chains whose images devices can decode.
std::vector<Operations> chains() {
  const Operations to_float = flip() | normalize({0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F});
  return {
      random_resized_crop({.size = 64}) | to_float,
      random_resized_crop({.size = 61, .area = {0.05F, 0.3F}}) | to_float | to_layout(ImageLayout::kChannelsFirst),
      resize(70) | center_crop(64) | to_float,
      resize(60) | center_crop(49) | cast(DType::kF32),
      resize(48, 64) | to_float,
      random_resized_crop({.size = 64}) | flip(),
      resize(70) | center_crop(63) | flip(0.7F) | flip(0.3F),
      resize(60, 50)};
}

Dataset images_of(std::vector<Bytes> files, const Operations& operations) {
  return Dataset::from(std::make_shared<FakeSource>(std::move(files)))
      .shuffle({.seed = 7})
      .decode()
      .map(operations)
      .batch({.global_batch = 16});
}

const LoaderOptions kOnDevice{.seed = 5, .epochs = 2, .resident = Residency::kNever, .decode = ConvertAt::kDevice};

TEST(DeviceDecoding, GivesTheSameBitsForAnyReplicasAndThreads) {
  for (const Operations& operations : chains()) {
    const auto dataset = [&] { return images_of(pictures(), operations); };
    const auto expected = cpu_digests_of(dataset(), {.seed = 5, .epochs = 2, .threads = 1});
    for (const auto& [replicas, threads] : {std::pair(1, 1), std::pair(3, 4)}) {
      DeviceGroup devices = own_memory_devices(replicas, "twin");
      LoaderOptions options = kOnDevice;
      options.threads = threads;
      Loader loader(dataset(), devices, options);
      EXPECT_EQ(digests_of(loader, devices), expected) << dataset().explain();
      EXPECT_GT(loader.stats().device_decoded, kImages) << "of two epochs";
      EXPECT_LT(loader.stats().device_decoded, 2 * kImages) << "some are the host's";
    }
  }
}

TEST(DeviceDecoding, ContinuesFromAnyStepAndServesAPartOfTheWorld) {
  const auto dataset = [&] { return images_of(pictures(), chains().front()); };
  const auto expected = cpu_digests_of(dataset(), {.seed = 5, .epochs = 2});
  DeviceGroup devices = own_memory_devices(2, "twin");
  for (const int steps : {1, 7}) {
    LoaderOptions options = kOnDevice;
    Loader first(dataset(), devices, options);
    for (int i = 0; i < steps; ++i) {
      for (int r = 0; r < 2; ++r) first.next(r);
    }
    options.start = first.state();
    Loader rest(dataset(), devices, options);
    const auto digests = digests_of(rest, devices);
    EXPECT_TRUE(std::ranges::equal(digests, std::span(expected).subspan(static_cast<std::size_t>(steps))));
    EXPECT_GT(rest.stats().device_decoded, 0U);
  }
}

// What is bad is bad wherever it would be decoded, and others come in its place.
TEST(DeviceDecoding, RefusesWhatTheHostRefuses) {
  std::vector<Bytes> files;
  std::mt19937 random(17);
  for (int i = 0; i < long_or(800, 120); ++i) {
    Bytes file = pictures()[static_cast<std::size_t>(i % kImages)];
    const std::size_t at = 2 + random() % (file.size() - 2);
    if (i % 3 != 0) file[at] ^= std::byte(1U << random() % 8);
    if (i % 17 == 0) file.resize(at);
    files.push_back(std::move(file));
  }
  for (const OnError on_error : {OnError::kSkip, OnError::kSubstitute}) {
    const ErrorPolicy errors{.on_error = on_error, .max_bad_share = 0.9};
    const auto dataset = [&] { return images_of(files, chains().front()); };
    DeviceGroup cpu = cpu_replicas(1), devices = own_memory_devices(2, "twin");
    Loader host(dataset(), cpu, {.seed = 5, .epochs = 2, .errors = errors});
    LoaderOptions options = kOnDevice;
    options.errors = errors;
    Loader loader(dataset(), devices, options);
    EXPECT_EQ(digests_of(loader, devices), digests_of(host, cpu));
    EXPECT_EQ(loader.stats().bad_records, host.stats().bad_records);
    EXPECT_EQ(loader.stats().warned_records, host.stats().warned_records);
    EXPECT_GT(loader.stats().bad_records, 0U);
    EXPECT_GT(loader.stats().device_decoded, 0U);
  }
}

// With the indexes that lie beside the images, in one pass, which keeps none.
TEST(DeviceDecoding, TakesTheIndexesOfRecordFiles) {
  TempFolder images, packed;
  const std::vector<Bytes> files = pictures();
  for (int i = 0; i < kImages; ++i) {
    images.write(fmt::format("class{}/{}.jpg", i % 3, i), files[static_cast<std::size_t>(i)]);
  }
  convert_dataset(images.path(), packed / "records");
  const auto dataset = [&] {
    return Dataset::from(open_source(packed / "records", Split::kTrain))
        .decode()
        .map(chains().front())
        .batch({.global_batch = 16});
  };
  LoaderOptions options = kOnDevice;
  options.epochs = 1;
  DeviceGroup devices = own_memory_devices(1, "twin");
  Loader loader(dataset(), devices, options);
  EXPECT_EQ(digests_of(loader, devices), cpu_digests_of(dataset(), {.seed = 5}));
  EXPECT_GT(loader.stats().device_decoded, kImages / 2);
}

TEST(DeviceDecoding, Photographs) {
  const auto path = shared_data("imagenet-sample-700.tar");
  if (!path) GTEST_SKIP() << "no ImageNet sample here: set HEADRACE_DATA";
  const auto dataset = [&] {
    return Dataset::from(image_archive(*path))
        .take(static_cast<std::uint64_t>(long_or(700, 32)))
        .decode()
        .map(random_resized_crop({.size = 224}) | flip() | normalize({0.5F}, {0.25F}))
        .batch({.global_batch = 32});
  };
  DeviceGroup devices = own_memory_devices(1, "twin");
  Loader loader(dataset(), devices, kOnDevice);
  EXPECT_EQ(digests_of(loader, devices), cpu_digests_of(dataset(), {.seed = 5, .epochs = 2}));
  EXPECT_GT(loader.stats().device_decoded, loader.stats().examples * 9 / 10);
}

TEST(DeviceDecoding, SaysWhereAndWhy) {
  const Dataset dataset = images_of(pictures(), chains().front());
  DeviceGroup gpu = devices_of_kind("twin", 1), discrete = devices_of_kind("discrete", 1), cpu = cpu_replicas(1);
  using ::testing::HasSubstr;
  EXPECT_THAT(dataset.explain(gpu), HasSubstr("decoding on the host and device: JPEGs of 'image'"));
  EXPECT_THAT(dataset.explain(gpu, ConvertAt::kAuto, Residency::kAuto, ConvertAt::kHost),
              HasSubstr("decoding on the host: as the options say"));
  EXPECT_THAT(dataset.explain(discrete), HasSubstr("decoding on the host: gpu:0 has no kernel for it"));
  const Dataset kept = images_of(pictures(), chains()[2]);
  EXPECT_THAT(kept.explain(gpu), HasSubstr("decoding on the host: the samples are kept on the device"));
  const Dataset numbered = Dataset::from(fake_jpegs(8))
                               .decode()
                               .map(random_resized_crop({.size = 24}) | normalize({0.5F}, {0.25F}))
                               .enumerate()
                               .batch({.global_batch = 4});
  EXPECT_THAT(numbered.explain(gpu), HasSubstr("decoding on the host: no image is decoded and resized last"));
  EXPECT_THROW(Loader(numbered, gpu, kOnDevice), ConfigError);
  EXPECT_THROW(Loader(dataset, cpu, kOnDevice), ConfigError);
  EXPECT_EQ(value_of(Loader(dataset, gpu, {.decode = ConvertAt::kDevice}), "decoding"), "on the device");
  EXPECT_EQ(value_of(Loader(dataset, gpu), "decoding"), "0 % on the device") << "to start with";
  Loader loader(dataset, gpu, {.decode = ConvertAt::kHost});
  while (loader.next()) {
  }
  EXPECT_EQ(loader.stats().device_decoded, 0U);
}

}  // namespace
}  // namespace headrace::test
