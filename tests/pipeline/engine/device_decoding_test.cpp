// JPEGs decoded on the device: the same stream, whoever decodes which of its images.
#include "headrace/pipeline/operations.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/images.h"

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
      resize(70) | center_crop(64) | to_float, resize(60) | center_crop(49) | cast(DType::kF32)};
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

}  // namespace
}  // namespace headrace::test
