// Samples that devices keep: the same stream, and a record crosses the bus once.
#include "headrace/tests/pipeline/device_chains.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/support/failing_device.h"
#include "headrace/tests/support/twin_kernels.h"

namespace headrace::test {
namespace {

constexpr std::uint64_t kResidentRecords = 211, kSampleBytes = 9 * 12 * 3;

Dataset moved(std::int64_t global = 48) {
  return images_with(pad_crop(8, 2) | flip() | normalize(kMean, kStd), global);
}

Choice kept(const Loader& loader) {
  for (const Choice& choice : loader.choices()) {
    if (choice.what == "samples") return choice;
  }
  return {};
}

// Chains that leave a random operation to the host are among them: their samples cannot be kept.
TEST(Resident, GivesTheSameBitsForAnyReplicasThreadsAndPrefetch) {
  int resident = 0;
  for (const Operations& operations : convertible()) {
    const Dataset dataset = images_with(operations);
    const auto expected = cpu_digests_of(dataset, {.seed = 5, .epochs = 3, .threads = 1, .prefetch = 0});
    ASSERT_EQ(expected.size(), 15U);
    for (const auto& [replicas, threads, prefetch] : kRunShapes) {
      DeviceGroup devices = own_memory_devices(replicas);
      Loader loader(dataset, devices, {.seed = 5, .epochs = 3, .threads = threads, .prefetch = prefetch});
      EXPECT_EQ(digests_of(loader, devices), expected)
          << dataset.explain() << replicas << " replicas, " << threads << " threads, prefetch " << prefetch;
      const bool keeps = kept(loader).value == "kept on the device";
      resident += keeps ? 1 : 0;
      EXPECT_EQ(loader.stats().kept_records, keeps ? kResidentRecords : 0);
    }
  }
  EXPECT_EQ(resident, 16 * 6);
}

TEST(Resident, TheGpusKernelGivesTheSameBits) {
  for (const ImageLayout layout : {ImageLayout::kChannelsLast, ImageLayout::kChannelsFirst}) {
    const Dataset dataset =
        images_with(pad_crop(9, 4, Padding::kReflect) | flip() | normalize(kMean, kStd) | to_layout(layout));
    DeviceGroup devices = twin_devices(1);
    Loader loader(dataset, devices, {.seed = 5, .epochs = 2, .resident = Residency::kAlways});
    EXPECT_EQ(digests_of(loader, devices), cpu_digests_of(dataset, {.seed = 5, .epochs = 2}));
  }
}

TEST(Resident, ContinuesFromAnyStep) {
  const auto whole = cpu_digests_of(moved(), {.seed = 5, .epochs = 3, .threads = 1});
  for (std::size_t step = 0; step < whole.size(); step += 2) {
    DeviceGroup before = own_memory_devices(2), devices = own_memory_devices(3);
    LoaderState state;
    {
      Loader loader(moved(), before, {.seed = 5, .epochs = 3});
      for (std::size_t i = 0; i < step; ++i) {
        for (int r = 0; r < 2; ++r) loader.next(r);
      }
      state = loader.state();
    }
    Loader loader(moved(), devices, {.seed = 5, .epochs = 3, .start = state});
    EXPECT_EQ(digests_of(loader, devices),
              std::vector(whole.begin() + static_cast<std::ptrdiff_t>(step), whole.end()));
  }
}

// A record more than once in an epoch, and epochs that are not of the same records.
TEST(Resident, AnyOrderOfRecords) {
  const Operations operations = flip() | normalize(kMean, kStd);
  const Dataset all = Dataset::from(noise_images(60, 9, 12));
  for (const Dataset& indices : {all.repeat(3).shuffle(), all.shuffle().take(25), all.skip(7).shard(3, 1)}) {
    const Dataset dataset = indices.map(operations).batch({.global_batch = 16});
    DeviceGroup devices = own_memory_devices(2);
    Loader loader(dataset, devices, {.epochs = 4, .resident = Residency::kAlways});
    EXPECT_EQ(digests_of(loader, devices), cpu_digests_of(dataset, {.epochs = 4}));
  }
}

// Only what was still on its way when the first epoch ended is read a second time.
TEST(Resident, ReadsEachRecordAboutOnce) {
  const auto source = fake_jpegs(64);
  const Dataset dataset = Dataset::from(source)
                              .decode()
                              .shuffle()
                              .map(center_crop(24) | pad_crop(24, 2) | flip() | normalize(kMean, kStd))
                              .batch({.global_batch = 8});
  const auto expected = cpu_digests_of(dataset, {.epochs = 5});
  const std::uint64_t before = source->reads();
  DeviceGroup devices = own_memory_devices(2);
  constexpr int kPrefetch = 1;
  Loader loader(dataset, devices, {.epochs = 5, .prefetch = kPrefetch});
  EXPECT_EQ(digests_of(loader, devices), expected);
  EXPECT_LE(source->reads() - before, 64U + 8U * (kPrefetch + 1));
}

// What is decoded has a size that is known before it is.
TEST(Resident, KeepsDecodedImages) {
  std::vector<std::vector<std::byte>> images;
  for (int i = 0; i < 40; ++i) {
    images.push_back(encode_jpeg(make_picture(16, 20, 3, static_cast<std::uint64_t>(i))));
  }
  const Dataset all = Dataset::from(std::make_shared<FakeSource>(std::move(images)));
  for (const Dataset& decoded :
       {all.decode({.height = 16, .width = 20}), all.decode({.height = 16, .width = 20}).cache(memory())}) {
    const Dataset dataset = decoded.shuffle()
                                .map(pad_crop(16, 2, Padding::kReflect) | flip() | normalize(kMean, kStd))
                                .batch({.global_batch = 16});
    DeviceGroup devices = own_memory_devices(2);
    Loader loader(dataset, devices, {.seed = 5, .epochs = 3});
    EXPECT_EQ(kept(loader).value, "kept on the device");
    EXPECT_EQ(digests_of(loader, devices), cpu_digests_of(dataset, {.seed = 5, .epochs = 3}));
    EXPECT_EQ(loader.stats().kept_bytes, 40U * 16 * 20 * 3);
  }
}

TEST(Resident, BadRecordsAreBadInEveryEpoch) {
  const UserMap picky{.name = "picky",
                      .output = {.dtype = DType::kU8, .shape = {9, 12, 3}},
                      .function = [](auto in, const Shape&, auto out, Philox&) {
                        if (std::to_integer<int>(in[0]) < 40) throw Error(ErrorCode::kDataCorrupt, "too dark");
                        std::ranges::copy(in, out.begin());
                      }};
  for (const OnError on_error : {OnError::kSkip, OnError::kSubstitute}) {
    const auto dataset = [&] {
      return Dataset::from(noise_images(64, 9, 12))
          .map(user_map(picky))
          .cache(memory())
          .map(pad_crop(8, 2) | flip() | normalize(kMean, kStd))
          .batch({.global_batch = 16});
    };
    const ErrorPolicy errors{.on_error = on_error, .max_bad_share = 0.9};
    const auto expected = cpu_digests_of(dataset(), {.seed = 5, .epochs = 3, .threads = 1, .errors = errors});
    DeviceGroup devices = own_memory_devices(2);
    Loader loader(dataset(), devices,
                  {.seed = 5, .epochs = 3, .threads = 2, .resident = Residency::kAlways, .errors = errors});
    EXPECT_EQ(digests_of(loader, devices), expected);
    EXPECT_GT(loader.stats().bad_records, 6U);
  }
}

TEST(Resident, ReplaysInHeadspace) {
  DeviceGroup devices = own_memory_devices(1);
  Loader loader(moved(), devices, {.epochs = 50, .prefetch = 1, .headspace = 2});
  std::vector<std::vector<float>> seen;
  for (int i = 0; i < 20; ++i) {
    const auto batch = loader.next();
    seen.push_back(download_examples<float>(devices[0], *batch, "image"));
    if (i >= 2) {
      EXPECT_EQ(seen.back(), seen[seen.size() - 3]) << i;
    }
  }
}

TEST(Resident, AllocatesOnceAndGivesEverythingBack) {
  DeviceGroup devices = own_memory_devices(1);
  const auto device_bytes = [&](Residency resident) {
    const Loader loader(moved(), devices, {.epochs = 3, .prefetch = 1, .resident = resident});
    return devices[0].memory_use().device_bytes;
  };
  constexpr std::uint64_t kSlots = 2, kSent = 48 * kSampleBytes, kPlaces = 192;
  EXPECT_EQ(device_bytes(Residency::kAlways),
            device_bytes(Residency::kNever) + kResidentRecords * kSampleBytes - kSlots * (kSent - kPlaces));
  {
    Loader loader(moved(), devices, {.epochs = 3});
    EXPECT_EQ(loader.stats().kept_bytes, kResidentRecords * kSampleBytes);
    const MemoryUse before = devices[0].memory_use();
    while (loader.next()) {
    }
    EXPECT_EQ(devices[0].memory_use().device_bytes, before.device_bytes);
  }
  EXPECT_EQ(devices[0].memory_use().device_bytes, 0U);
  EXPECT_EQ(devices[0].memory_use().pinned_bytes, 0U);
}

TEST(Resident, ALostDeviceEndsTheStreamWithNothingLeft) {
  for (int copies = 1; copies < 14; ++copies) {
    DeviceGroup devices = devices_of<FailingDevice>(1, Lives{.copies = copies});
    {
      Loader loader(moved(), devices, {.epochs = 3, .prefetch = 2});
      const Error error = error_of([&] {
        while (loader.next()) {
        }
      });
      EXPECT_EQ(error.code(), ErrorCode::kDevice);
      EXPECT_THAT(error.what(), HasSubstr("fell off the bus"));
      EXPECT_THROW(loader.next(), Error);
    }
    EXPECT_EQ(devices[0].memory_use().device_bytes, 0U);
    EXPECT_EQ(devices[0].memory_use().pinned_bytes, 0U);
  }
}

TEST(Resident, SaysWhyOrWhyNot) {
  DeviceGroup gpu = own_memory_devices(1), cpu = cpu_replicas(1);
  const auto reason = [&](const Dataset& dataset, LoaderOptions options) {
    const Choice choice = kept(Loader(dataset, gpu, options));
    return choice.value + ": " + choice.reason;
  };
  EXPECT_THAT(reason(moved(), {.epochs = 2}),
              HasSubstr("kept on the device: 211 records take 68364 bytes of each"));
  EXPECT_EQ(reason(moved(), {.epochs = 1}), "not kept on the device: nothing is seen again in a run of one epoch");
  EXPECT_THAT(reason(Dataset::from(noise_images(211, 9, 12))
                         .repeat(2)
                         .map(flip() | normalize(kMean, kStd))
                         .batch({.global_batch = 48}),
                     {.epochs = 1}),
              HasSubstr("kept on the device: 211 records take"));
  EXPECT_EQ(reason(moved(), {.epochs = 2, .resident = Residency::kNever}),
            "not kept on the device: as the options say");
  EXPECT_EQ(reason(moved(), {.epochs = 2, .resident_budget_bytes = 68363}),
            "not kept on the device: 211 records take 68364 bytes of each device, 68363 are its budget");
  EXPECT_EQ(reason(moved(), {.epochs = 2, .memory_budget_bytes = 5000}),
            "not kept on the device: 2532 bytes would stay on the host, more than half of "
            "LoaderOptions::memory_budget_bytes = 5000");
  EXPECT_THAT(reason(images_with(cutout(3) | flip() | normalize(kMean, kStd)), {.epochs = 2}),
              HasSubstr("cutout(size=3, fill=[0]) is done on the host and may give another sample every time"));
  EXPECT_EQ(kept(Loader(moved(), cpu, {.epochs = 2})).what, "") << "there is no choice to make";
  EXPECT_THAT(moved().explain(gpu), HasSubstr("samples kept on the device: 211 records take 68364 bytes"));
  EXPECT_THAT(moved().explain(cpu), HasSubstr("samples not kept on the device: cpu:0 reads batches"));
  EXPECT_THAT(moved().explain(gpu, ConvertAt::kAuto, Residency::kNever),
              HasSubstr("samples not kept on the device"));
}

TEST(Resident, TakesAQuarterOfWhatIsFreeUnlessItMust) {
  const auto with_free = [](std::uint64_t free, Residency resident) {
    DeviceGroup devices = devices_of<LimitedDevice>(1, free);
    return kept(Loader(moved(4), devices, {.epochs = 2, .resident = resident})).value;
  };
  constexpr std::uint64_t kBytes = kResidentRecords * kSampleBytes;
  EXPECT_EQ(with_free(4 * kBytes, Residency::kAuto), "kept on the device");
  EXPECT_EQ(with_free(4 * kBytes - 4, Residency::kAuto), "not kept on the device");
  EXPECT_EQ(with_free(kBytes, Residency::kAlways), "kept on the device");
  const ConfigError error = error_of<ConfigError>([&] { with_free(kBytes - 1, Residency::kAlways); });
  EXPECT_THAT(error.what(), HasSubstr("cannot be kept on the device: 211 records take 68364 bytes"));
  EXPECT_THAT(error.what(), HasSubstr("LoaderOptions::resident = auto"));
  DeviceGroup cpu = cpu_replicas(1);
  EXPECT_THROW(Loader(moved(), cpu, {.epochs = 2, .resident = Residency::kAlways}), ConfigError);
}

// Slots in the memory of devices: fewer where not all fit, with the reason.

Dataset plain() { return Dataset::from(noise_images(211, 9, 12)).batch({.global_batch = 48}); }

constexpr std::uint64_t kMuch = std::uint64_t{1} << 30;

// The device memory of a slot, as the device counts it.
std::uint64_t slot_bytes() {
  DeviceGroup devices = devices_of<LimitedDevice>(1, kMuch);
  const Loader loader(plain(), devices, {.prefetch = 1});
  return devices[0].memory_use().device_bytes / 2;
}

Choice prefetch_of(const Loader& loader) {
  for (const Choice& choice : loader.choices()) {
    if (choice.what == "prefetch") return choice;
  }
  return {};
}

// Returns the choice of a loader that was asked for five batches ahead, and whether it gave the whole stream.
Choice choice_with(std::uint64_t free, std::uint64_t limit) {
  DeviceGroup devices = devices_of<LimitedDevice>(1, free, limit);
  const LoaderOptions options{.epochs = 2, .prefetch = 5};
  Loader loader(plain(), devices, options);
  EXPECT_EQ(digests_of(loader, devices), cpu_digests_of(plain(), options));
  return prefetch_of(loader);
}

TEST(DeviceSlots, AreFewerWhereADeviceHasLittleMemory) {
  const std::uint64_t slot = slot_bytes();
  EXPECT_EQ(choice_with(8 * slot, kMuch).value, "5") << "a quarter is left for others";
  const Choice fewer = choice_with(7 * slot, kMuch);
  EXPECT_EQ(fewer.value, "4");
  EXPECT_THAT(fewer.reason, HasSubstr("4 instead of 5: each batch takes"));
  EXPECT_THAT(fewer.reason, HasSubstr("of the free memory of a device"));
  EXPECT_EQ(choice_with(2 * slot, kMuch).value, "1");
}

TEST(DeviceSlots, AreFewerWhereAnAllocationFails) {
  const std::uint64_t slot = slot_bytes();
  const Choice fewer = choice_with(kMuch, 3 * slot);
  EXPECT_EQ(fewer.value, "2");
  EXPECT_THAT(fewer.reason, HasSubstr("2 instead of 5: gpu:0: out of memory"));
}

TEST(DeviceSlots, ThatWouldBeLessThanTwoAreRefused) {
  const std::uint64_t slot = slot_bytes();
  EXPECT_THROW(choice_with(2 * slot - 1, kMuch), ConfigError);
  EXPECT_THROW(choice_with(kMuch, 2 * slot - 1), DeviceError);
  DeviceGroup devices = devices_of<LimitedDevice>(1, slot_bytes() * 5 / 4);
  Loader one(Dataset::from(noise_images(48, 9, 12)).batch({.global_batch = 48}), devices, {.prefetch = 5});
  EXPECT_TRUE(one.next()) << "a run of one batch needs no second";
}

}  // namespace
}  // namespace headrace::test
