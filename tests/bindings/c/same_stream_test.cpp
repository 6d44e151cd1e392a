// C and C++ say the same: one plan has one fingerprint, one stream and one text for what is wrong with it.
#include <gtest/gtest.h>
#include <headrace/headrace.h>

#include <memory>

#include "headrace/devices/base/error.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace {
namespace {

template <auto release>
struct Release {
  template <typename Handle>
  void operator()(Handle* handle) const {
    release(handle);
  }
};
using CDevices = std::unique_ptr<hr_devices, Release<hr_devices_free>>;
using CSource = std::unique_ptr<hr_source, Release<hr_source_free>>;
using CDataset = std::unique_ptr<hr_dataset, Release<hr_dataset_free>>;
using COperations = std::unique_ptr<hr_operations, Release<hr_operations_free>>;
using CLoader = std::unique_ptr<hr_loader, Release<hr_loader_free>>;
using CDigest = std::unique_ptr<hr_digest, Release<hr_digest_free>>;
using CText = std::unique_ptr<char, Release<hr_string_free>>;

// What `make(args..., &handle)` gives.
template <typename Owner, typename Make, typename... Args>
Owner made(const Make& make, Args... args) {
  typename Owner::pointer handle = nullptr;
  EXPECT_EQ(make(args..., &handle), HR_OK) << hr_last_error()->what;
  return Owner(handle);
}

constexpr std::uint64_t kRecords = 50;

// The noise of test::noise_images().
CSource noise_source() {
  const SourcePtr source = test::noise_images(kRecords, 8, 8);
  std::vector<hr_array> arrays(2);
  arrays[0].field = {.name = "image",
                     .dtype = HR_U8,
                     .encoding = HR_RAW,
                     .rank = 3,
                     .shape = {8, 8, 3},
                     .layout = HR_LAYOUT_UNSAID};
  arrays[1].field = {
      .name = "label", .dtype = HR_I64, .encoding = HR_RAW, .rank = 0, .shape = {}, .layout = HR_LAYOUT_UNSAID};
  for (std::size_t i = 0; i < 2; ++i) {
    arrays[i].data = source->columns()[i].data;
    arrays[i].bytes = source->columns()[i].record_bytes * kRecords;
  }
  hr_memory_options options = HR_MEMORY_OPTIONS_INIT;
  options.name = "noise";
  options.records = kRecords;
  options.arrays = arrays.data();
  options.array_count = arrays.size();
  return made<CSource>(hr_source_in_memory, &options);
}

Dataset plan_in_cpp() {
  return Dataset::from(test::noise_images(kRecords, 8, 8))
      .shuffle({.seed = 7})
      .map(pad_crop(8, 2) | flip() | normalize({0.5F}, {0.25F}) | one_hot(10, 0.1F))
      .batch({.global_batch = 12})
      .map(mixup({.alpha = 0.4F}));
}

CDataset plan_in_c() {
  CDataset plan = made<CDataset>(hr_dataset_from, noise_source().get());
  EXPECT_EQ(hr_dataset_add(plan.get(), "shuffle", R"({"seed": 7})"), HR_OK);
  const COperations chain = made<COperations>(hr_operations_create);
  EXPECT_EQ(hr_operations_add(chain.get(), "pad_crop", R"({"size": 8, "pad": 2})"), HR_OK);
  EXPECT_EQ(hr_operations_add(chain.get(), "flip", nullptr), HR_OK);
  EXPECT_EQ(hr_operations_add(chain.get(), "normalize", R"({"mean": [0.5], "std": [0.25]})"), HR_OK);
  EXPECT_EQ(hr_operations_add(chain.get(), "one_hot", R"({"classes": 10, "smoothing": 0.1})"), HR_OK);
  EXPECT_EQ(hr_dataset_map(plan.get(), chain.get()), HR_OK);
  EXPECT_EQ(hr_dataset_add(plan.get(), "batch", R"({"global_batch": 12})"), HR_OK);
  EXPECT_EQ(hr_dataset_add(plan.get(), "map", R"([{"mixup": {"alpha": 0.4}}])"), HR_OK);
  return plan;
}

std::string digest_in_c(int replicas, const hr_loader_options& options) {
  const CDevices devices = made<CDevices>(hr_devices_open, ("cpu:" + std::to_string(replicas)).c_str());
  const CLoader loader = made<CLoader>(hr_loader_open, plan_in_c().get(), devices.get(), &options);
  const CDigest digest = made<CDigest>(hr_digest_create, loader.get());
  for (bool end = false; !end;) {
    EXPECT_EQ(hr_digest_next(digest.get(), loader.get(), nullptr, &end), HR_OK) << hr_last_error()->what;
    if (::testing::Test::HasFailure()) return {};
  }
  return made<CText>(hr_digest_finish, digest.get()).get();
}

TEST(CInterface, GivesTheSameStream) {
  DeviceGroup devices = test::cpu_replicas(1);
  Loader loader(plan_in_cpp(), devices, {.seed = 3, .epochs = 2});
  StreamDigest digest(devices);
  while (digest.next(loader)) {
  }
  const std::string expected = digest.finish();
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.seed = 3;
  options.epochs = 2;
  EXPECT_EQ(digest_in_c(1, options), expected);
  options.threads = 2;
  EXPECT_EQ(digest_in_c(3, options), expected);
  options.seed = 4;
  EXPECT_NE(digest_in_c(1, options), expected);
}

TEST(CInterface, ReadsAPlanOfCpp) {
  const CSource source = noise_source();
  const std::string text = plan_in_cpp().to_json({.sources = {{"noise", test::noise_images(kRecords, 8, 8)}}});
  const hr_named_source named{.name = "noise", .source = source.get()};
  hr_plan_options options = HR_PLAN_OPTIONS_INIT;
  options.sources = &named;
  options.source_count = 1;
  const CDataset plan = made<CDataset>(hr_dataset_from_json, text.c_str(), &options);
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  ASSERT_EQ(hr_dataset_describe(plan.get(), &info), HR_OK);
  EXPECT_EQ(info.fingerprint, plan_in_cpp().fingerprint());
  EXPECT_EQ(made<CText>(hr_dataset_to_json, plan.get(), &options).get(), text);
}

TEST(CInterface, HasTheSamePlan) {
  const CDataset plan = plan_in_c();
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  ASSERT_EQ(hr_dataset_describe(plan.get(), &info), HR_OK);
  EXPECT_EQ(info.fingerprint, plan_in_cpp().fingerprint());
  EXPECT_EQ(info.steps_per_epoch, plan_in_cpp().steps_per_epoch());
  EXPECT_EQ(made<CText>(hr_dataset_explain, plan.get(), static_cast<const hr_devices*>(nullptr)).get(),
            plan_in_cpp().explain());
}

TEST(CInterface, ContinuesFromAStateOfCpp) {
  DeviceGroup devices = test::cpu_replicas(2);
  Loader loader(plan_in_cpp(), devices, {.seed = 3});
  for (int r = 0; r < 2; ++r) loader.next(r);
  const std::string state = loader.state().serialize();
  const std::vector<BatchDigest> rest = test::digests_of(loader, devices);
  hr_loader_options options = HR_LOADER_OPTIONS_INIT;
  options.seed = 3;
  options.start = state.c_str();
  Sha256 all;
  for (const BatchDigest& batch : rest) all.update(batch.sha256);
  EXPECT_EQ(digest_in_c(1, options), all.finish_hex());
}

// What `fails` says in C++, word by word what hr_last_error() has after `status`.
template <typename Fails>
void expect_same_error(const Fails& fails, hr_status status) {
  try {
    fails();
    ADD_FAILURE() << "no error in C++";
  } catch (const Error& error) {
    EXPECT_EQ(status, static_cast<hr_status>(error.code()) + 1);
    EXPECT_STREQ(hr_last_error()->what, error.what());
    EXPECT_STREQ(hr_last_error()->message, error.message().c_str());
    EXPECT_STREQ(hr_last_error()->hint, error.hint().c_str());
  }
}

TEST(CInterface, SaysTheSameOfWhatIsWrong) {
  hr_devices* devices = nullptr;
  hr_source* source = nullptr;
  expect_same_error([] { open_devices("tpu", DeviceNeed::kMemory); }, hr_devices_open("tpu", &devices));
  expect_same_error([] { open_source("/no/such/place", Split::kTrain); },
                    hr_source_open("/no/such/place", nullptr, &source));
  const CDataset plan = made<CDataset>(hr_dataset_from, noise_source().get());
  const auto fails = [](auto change) {
    const Dataset from = Dataset::from(test::noise_images(kRecords, 8, 8));
    change(from);
  };
  expect_same_error([&] { fails([](const Dataset& from) { from.shard(3, 3); }); },
                    hr_dataset_add(plan.get(), "shard", R"({"count": 3, "index": 3})"));
  expect_same_error([&] { fails([](const Dataset& from) { from.batch({.global_batch = 0}); }); },
                    hr_dataset_add(plan.get(), "batch", R"({"global_batch": 0})"));
  const CDevices cpu = made<CDevices>(hr_devices_open, "cpu");
  hr_loader* loader = nullptr;
  expect_same_error(
      [&] {
        fails([](const Dataset& from) {
          DeviceGroup group = test::cpu_replicas(1);
          Loader unbatched(from, group);
        });
      },
      hr_loader_open(plan.get(), cpu.get(), nullptr, &loader));
}

}  // namespace
}  // namespace headrace
