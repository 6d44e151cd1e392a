// The last operations on the device: the same stream, fewer bytes on the bus.
#include "headrace/devices/base/bf16.h"
#include "headrace/tests/pipeline/device_chains.h"

namespace headrace::test {
namespace {

// On the host of CPU replicas, and by devices of their own: one stream, however it is run.
TEST(DeviceConversion, GivesTheSameBitsForAnyReplicasThreadsAndPrefetch) {
  for (const Operations& operations : convertible()) {
    const Dataset dataset = images_with(operations);
    const auto expected = cpu_digests_of(dataset, {.seed = 5, .epochs = 2, .threads = 1, .prefetch = 0});
    ASSERT_EQ(expected.size(), 10U);
    for (const auto& [replicas, threads, prefetch] : kRunShapes) {
      for (const ConvertAt at : {ConvertAt::kDevice, ConvertAt::kHost}) {
        DeviceGroup devices = own_memory_devices(replicas);
        Loader loader(dataset, devices,
                      {.seed = 5, .epochs = 2, .threads = threads, .prefetch = prefetch, .convert = at});
        EXPECT_EQ(digests_of(loader, devices), expected)
            << dataset.explain() << replicas << " replicas, " << threads << " threads, prefetch " << prefetch;
      }
    }
  }
}

// By the threads of the engine, by the CPU's kernels and by a GPU's, from batches and from samples that are kept.
TEST(DeviceConversion, ABatchsSha256DoesNotTellWhoConvertedIt) {
  const Dataset dataset = images_with(pad_crop(9, 4, Padding::kReflect) | flip() | normalize(kMean, kStd) |
                                      to_layout(ImageLayout::kChannelsFirst));
  const auto expected = cpu_digests_of(dataset, {.seed = 5, .epochs = 3, .threads = 1});
  for (const std::string& kind : {std::string("discrete"), std::string("twin"), test_kind()}) {
    for (const ConvertAt at : {ConvertAt::kAuto, ConvertAt::kHost}) {
      for (const Residency resident : {Residency::kAuto, Residency::kNever}) {
        DeviceGroup devices = devices_of_kind(kind, 2);
        Loader loader(dataset, devices, {.seed = 5, .epochs = 3, .convert = at, .resident = resident});
        EXPECT_EQ(digests_of(loader, devices), expected) << kind;
        const bool converts = at == ConvertAt::kAuto && !devices[0].info().host_memory;
        EXPECT_EQ(value_of(loader, "conversion") == "on the device", converts) << kind;
        EXPECT_EQ(value_of(loader, "samples") == "kept on the device", converts && resident == Residency::kAuto)
            << kind;
      }
    }
  }
}

TEST(DeviceConversion, RoundsToBf16WhereAskedTo) {
  for (const Operations& operations : convertible()) {
    const Dataset dataset = images_with(operations);
    DeviceGroup devices = own_memory_devices(1);
    Loader wide(dataset, devices, {.seed = 5, .convert = ConvertAt::kDevice});
    Loader half(dataset, devices, {.seed = 5, .convert = ConvertAt::kDevice, .converted = DType::kBF16});
    EXPECT_EQ(half.fields()[0].dtype, DType::kF32) << "what the plan gives";
    while (const auto batch = wide.next()) {
      const auto rounded = half.next();
      ASSERT_TRUE(rounded);
      ASSERT_EQ(rounded->tensor("image").dtype, DType::kBF16);
      ASSERT_EQ(rounded->tensor("image").shape, batch->tensor("image").shape);
      const auto floats = download<float>(devices[0], *batch, "image");
      const auto halves = download<BFloat16>(devices[0], *rounded, "image");
      for (std::size_t i = 0; i < floats.size(); ++i) {
        ASSERT_EQ(halves[i].bits, nearest_bf16(floats[i]).bits) << dataset.explain() << i;
      }
    }
    EXPECT_FALSE(half.next());
  }
  DeviceGroup devices = own_memory_devices(1);
  EXPECT_THROW(Loader(images_with(normalize(kMean, kStd)), devices, {.converted = DType::kF16}), ConfigError);
}

TEST(DeviceConversion, ContinuesFromAnyStepWhereverItWasConverted) {
  const Dataset dataset = images_with(pad_crop(8, 2) | flip() | normalize(kMean, kStd));
  const auto whole = cpu_digests_of(dataset, {.seed = 5, .threads = 1});
  for (std::size_t step = 0; step < whole.size(); ++step) {
    DeviceGroup host = cpu_replicas(2);
    LoaderState state;
    {
      Loader loader(dataset, host, {.seed = 5, .threads = 1});
      for (std::size_t i = 0; i < step; ++i) {
        for (int r = 0; r < 2; ++r) loader.next(r);
      }
      state = loader.state();
    }
    DeviceGroup devices = own_memory_devices(3);
    Loader loader(dataset, devices, {.seed = 5, .start = state});
    EXPECT_EQ(digests_of(loader, devices),
              std::vector(whole.begin() + static_cast<std::ptrdiff_t>(step), whole.end()));
  }
}

TEST(DeviceConversion, SendsBytesAndAllocatesOnce) {
  const Dataset dataset = images_with(pad_crop(8, 2) | flip() | normalize(kMean, kStd), 64);
  DeviceGroup devices = own_memory_devices(1);
  const auto pinned = [&](ConvertAt at) {
    const Loader loader(dataset, devices, {.prefetch = 2, .convert = at});
    return devices[0].memory_use().pinned_bytes;
  };
  constexpr std::uint64_t kSlots = 3, kRows = 64, kLabel = 8, kWindow = 12;
  EXPECT_EQ(pinned(ConvertAt::kHost), kSlots * kRows * (8 * 8 * 3 * 4 + kLabel));
  EXPECT_EQ(pinned(ConvertAt::kAuto), kSlots * kRows * (9 * 12 * 3 + kLabel + kWindow));

  Loader loader(dataset, devices, {.epochs = 3, .prefetch = 2});
  const MemoryUse before = devices[0].memory_use();
  while (loader.next()) {
  }
  EXPECT_EQ(devices[0].memory_use().pinned_bytes, before.pinned_bytes);
  EXPECT_EQ(devices[0].memory_use().device_bytes, before.device_bytes);
}

// Rows that were skipped or replaced have the windows of the records that are there instead.
TEST(DeviceConversion, BadRecordsChangeNothingElse) {
  const auto source = noise_images(64, 9, 12);
  const UserMap picky{.name = "picky",
                      .output = {.dtype = DType::kU8, .shape = {9, 12, 3}},
                      .function = [](auto in, const Shape&, auto out, Philox&) {
                        if (std::to_integer<int>(in[0]) < 40) throw Error(ErrorCode::kDataCorrupt, "too dark");
                        std::ranges::copy(in, out.begin());
                      }};
  const Dataset dataset = Dataset::from(source)
                              .map(user_map(picky) | pad_crop(8, 2) | flip() | normalize(kMean, kStd))
                              .batch({.global_batch = 16});
  for (const OnError on_error : {OnError::kSkip, OnError::kSubstitute}) {
    const ErrorPolicy errors{.on_error = on_error, .max_bad_share = 0.9};
    const auto expected = cpu_digests_of(dataset, {.seed = 5, .threads = 1, .errors = errors});
    ASSERT_EQ(expected.size(), 4U);
    DeviceGroup devices = own_memory_devices(2);
    Loader loader(dataset, devices, {.seed = 5, .threads = 2, .convert = ConvertAt::kDevice, .errors = errors});
    EXPECT_EQ(digests_of(loader, devices), expected);
    EXPECT_GT(loader.stats().bad_records, 2U);
  }
}

TEST(DeviceConversion, ACacheKeepsWhatItKept) {
  const auto cache = memory();
  const Dataset dataset = Dataset::from(noise_images(64, 9, 12))
                              .map(center_crop(9))
                              .cache(cache)
                              .map(flip() | normalize(kMean, kStd))
                              .batch({.global_batch = 16});
  const auto expected = cpu_digests_of(dataset, {.epochs = 2, .threads = 1});
  DeviceGroup devices = own_memory_devices(2);
  Loader loader(dataset, devices, {.epochs = 2, .convert = ConvertAt::kDevice});
  EXPECT_EQ(digests_of(loader, devices), expected);
  EXPECT_EQ(loader.stats().cache.records, 64U);
  EXPECT_THAT(dataset.explain(devices), HasSubstr("center_crop(size=9)\n"));
}

TEST(DeviceConversion, ReplaysInHeadspace) {
  DeviceGroup devices = own_memory_devices(1);
  Loader loader(images_with(pad_crop(8, 2) | flip() | normalize(kMean, kStd)), devices,
                {.epochs = 50, .prefetch = 1, .convert = ConvertAt::kDevice, .headspace = 2});
  std::vector<std::vector<float>> seen;
  for (int i = 0; i < 20; ++i) {
    const auto batch = loader.next();
    seen.push_back(download<float>(devices[0], *batch, "image"));
    if (i >= 2) {
      EXPECT_EQ(seen.back(), seen[seen.size() - 3]) << i;
    }
  }
  EXPECT_NE(seen[0], seen[1]);
}

TEST(DeviceConversion, ExplainSaysWhereEachStepRunsAndWhy) {
  DeviceGroup gpu = own_memory_devices(1), cpu = cpu_replicas(1);
  const Dataset dataset = images_with(cutout(3) | flip() | normalize({0.5F}, {0.5F}));
  const std::string on_gpu = dataset.explain(gpu);
  EXPECT_THAT(on_gpu,
              HasSubstr("cutout(size=3, fill=[0])\nflip(probability=0.5, alternating=false)  [on the device]\n"));
  EXPECT_THAT(on_gpu, HasSubstr("normalize(mean=[0.5], std=[0.5])  [on the device]\n"));
  EXPECT_THAT(on_gpu, HasSubstr("conversion on the device: 'image' crosses the bus as uint8 (9, 12, 3) instead of "
                                "float32 (9, 12, 3)\n"));
  EXPECT_THAT(dataset.explain(cpu),
              HasSubstr("conversion on the host: cpu:0 reads batches where the host wrote them"));
  EXPECT_THAT(dataset.explain(gpu, ConvertAt::kHost), HasSubstr("conversion on the host: as the options say"));
  EXPECT_EQ(dataset.explain().find("device"), std::string::npos);
}

TEST(DeviceConversion, IsAChoiceOfTheLoader) {
  DeviceGroup gpu = own_memory_devices(1), cpu = cpu_replicas(1);
  const auto value = [](const Loader& loader) { return value_of(loader, "conversion"); };
  const Dataset floats = images_with(normalize(kMean, kStd));
  EXPECT_EQ(value(Loader(floats, gpu)), "on the device");
  EXPECT_EQ(value(Loader(floats, gpu, {.convert = ConvertAt::kHost})), "on the host");
  EXPECT_EQ(value(Loader(floats, cpu)), "") << "there is none to make";
}

TEST(DeviceConversion, WhatADeviceCannotDoIsTheHosts) {
  DeviceGroup devices = own_memory_devices(2);
  const auto refuses = [&](const Dataset& dataset, const char* reason) {
    const auto expected = cpu_digests_of(dataset, {.seed = 5, .threads = 1});
    Loader loader(dataset, devices, {.seed = 5});
    EXPECT_EQ(digests_of(loader, devices), expected);
    EXPECT_THAT(error_of<ConfigError>([&] {
                  const Loader forced(dataset, devices, {.convert = ConvertAt::kDevice});
                }).what(),
                HasSubstr(reason));
  };
  const char* nothing = "no image of uint8 becomes a larger one of float32";
  refuses(images_with(flip()), nothing);
  refuses(images_with(normalize(kMean, kStd) | cutout(3)), nothing);
  refuses(images_with(normalize(kMean, kStd) | pad_crop(8, 2)), nothing);
  const Operations tone = brightness_contrast({.brightness = 0.3F, .contrast = 0.2F});
  refuses(images_with(normalize(kMean, kStd) | tone | tone), nothing);
  refuses(images_with(cast(DType::kF32) | tone | normalize({10.0F}, {3.0F})), nothing);
  refuses(images_with(cast(DType::kF32) | tone | pad_crop(9, 1)), nothing);
  refuses(images_with(pad_crop(4, 0) | cast(DType::kF32) | cutout(2)), nothing);
  refuses(images_with(one_hot(10) | normalize(kMean, kStd) | Operation{Cutout{.size = 2}}), nothing);
  refuses(Dataset::from(noise_images(64, 9, 12))
              .map(one_hot(10) | normalize(kMean, kStd))
              .batch({.global_batch = 16})
              .map(mixup()),
          "mixup(alpha=0.2, probability=1) mixes finished examples on the host");
  DeviceGroup cpu = cpu_replicas(1);
  EXPECT_THROW(Loader(images_with(normalize(kMean, kStd)), cpu, {.convert = ConvertAt::kDevice}), ConfigError);
}

// A window of a large image is cheaper to cut out than to send: there the crop is the host's.
TEST(DeviceConversion, SendsNeverMoreThanTheResult) {
  const Dataset dataset = Dataset::from(noise_images(24, 40, 40))
                              .map(center_crop(8) | flip() | normalize(kMean, kStd))
                              .batch({.global_batch = 8});
  DeviceGroup devices = own_memory_devices(1);
  EXPECT_THAT(dataset.explain(devices),
              HasSubstr("center_crop(size=8)\nflip(probability=0.5, alternating=false)  [on the device]\n"));
  const auto expected = cpu_digests_of(dataset, {.seed = 5, .threads = 1});
  Loader loader(dataset, devices, {.seed = 5});
  EXPECT_EQ(digests_of(loader, devices), expected);
}

}  // namespace
}  // namespace headrace::test
