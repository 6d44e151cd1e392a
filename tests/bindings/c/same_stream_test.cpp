// C and C++ say the same: one plan has one fingerprint, one stream and one text for what is wrong with it.
#include <headrace/headrace.h>
#include <nlohmann/json.hpp>

#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/test.h"

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
using CDataset = std::unique_ptr<hr_dataset, Release<hr_dataset_free>>;
using CParts = std::unique_ptr<hr_parts, Release<hr_parts_free>>;
using CLoader = std::unique_ptr<hr_loader, Release<hr_loader_free>>;
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
CDataset noise() {
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
  return made<CDataset>(hr_dataset_from_arrays, arrays.data(), arrays.size(), kRecords, R"({"name": "noise"})");
}

Dataset plan_in_cpp() {
  return Dataset::from(test::noise_images(kRecords, 8, 8))
      .shuffle({.seed = 7})
      .map(pad_crop(8, 2) | flip() | normalize({0.5F}, {0.25F}) | one_hot(10, 0.1F))
      .batch({.global_batch = 12})
      .map(mixup({.alpha = 0.4F}));
}

CDataset plan_in_c() {
  CDataset plan = noise();
  const auto add = [&](const char* stage, const char* options) {
    EXPECT_EQ(hr_dataset_add(plan.get(), stage, options, nullptr), HR_OK) << hr_last_error()->what;
  };
  add("shuffle", R"({"seed": 7})");
  add("map", R"([{"pad_crop": {"size": 8, "pad": 2}}, {"flip": {}}, {"normalize": {"mean": [0.5], "std": [0.25]}},
                 {"one_hot": {"classes": 10, "smoothing": 0.1}}])");
  add("batch", R"({"global_batch": 12})");
  add("map", R"([{"mixup": {"alpha": 0.4}}])");
  return plan;
}

// Returns the SHA-256 over the whole stream.
std::string digest_in_c(int replicas, const hr_dataset* plan, const std::string& options) {
  const CDevices devices = made<CDevices>(hr_devices_open, ("cpu:" + std::to_string(replicas)).c_str());
  const CLoader loader = made<CLoader>(hr_loader_open, plan, devices.get(), options.c_str(),
                                       static_cast<const hr_loader_calls*>(nullptr));
  const CText json = made<CText>(hr_loader_digest, loader.get(), 0U);
  return nlohmann::json::parse(json.get()).at("sha256");
}

std::string digest_in_cpp(const Dataset& plan, const LoaderOptions& options) {
  DeviceGroup devices = test::cpu_replicas(1);
  Loader loader(plan, devices, options);
  StreamDigest digest(devices);
  while (digest.next(loader)) {
  }
  return digest.finish();
}

TEST(CInterface, GivesTheSameStream) {
  const std::string expected = digest_in_cpp(plan_in_cpp(), {.seed = 3, .epochs = 2});
  EXPECT_EQ(digest_in_c(1, plan_in_c().get(), R"({"seed": 3, "epochs": 2})"), expected);
  EXPECT_EQ(digest_in_c(3, plan_in_c().get(), R"({"seed": 3, "epochs": 2, "threads": 2})"), expected);
  EXPECT_NE(digest_in_c(1, plan_in_c().get(), R"({"seed": 4, "epochs": 2, "threads": 2})"), expected);
}

// A custom operation and map in C are those of C++, whose streams and fingerprints they share.
TEST(CInterface, GivesTheSameStreamOfCustomCode) {
  const Field brighter{.name = "image", .dtype = DType::kF32, .shape = {8, 8, 3}};
  const Field sum{.name = "sum", .dtype = DType::kF32, .shape = {}};
  const Dataset in_cpp =
      Dataset::from(test::noise_images(kRecords, 8, 8))
          .map(user_map(
                   {.name = "brighter",
                    .version = 2,
                    .output = brighter,
                    .function =
                        [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox& random) {
                          const float more = random.uniform();
                          for (std::size_t i = 0; i < in.size(); ++i)
                            reinterpret_cast<float*>(out.data())[i] = static_cast<float>(in[i]) + more;
                        }}) |
               user_operation({.name = "sum",
                               .outputs = {sum},
                               .each_pass_anew = true,
                               .function =
                                   [](UserSample& sample) {
                                     const auto drawn = static_cast<float>(sample.random().below(100));
                                     *reinterpret_cast<float*>(sample.room(0).data()) =
                                         sample.elements<float>(0)[5] + drawn;
                                   }}))
          .batch({.global_batch = 12});
  const CParts parts = made<CParts>(hr_parts_create);
  hr_field output{.name = nullptr,
                  .dtype = HR_F32,
                  .encoding = HR_RAW,
                  .rank = 3,
                  .shape = {8, 8, 3},
                  .layout = HR_LAYOUT_UNSAID};
  const auto brighten = [](void*, hr_sample* sample) -> hr_status {
    const void* in = nullptr;
    void* out = nullptr;
    std::size_t count = 0, bytes = 0;
    EXPECT_EQ(hr_sample_input(sample, "image", &in, &count, nullptr, nullptr), HR_OK);
    EXPECT_EQ(hr_sample_output(sample, "image", &out, &bytes), HR_OK);
    const float more = hr_random_uniform(sample);
    for (std::size_t i = 0; i < count; ++i)
      static_cast<float*>(out)[i] = static_cast<float>(static_cast<const std::uint8_t*>(in)[i]) + more;
    return HR_OK;
  };
  const auto add_up = [](void*, hr_sample* sample) -> hr_status {
    const void* in = nullptr;
    void* out = nullptr;
    std::size_t bytes = 0;
    EXPECT_EQ(hr_sample_input(sample, "image", &in, &bytes, nullptr, nullptr), HR_OK);
    EXPECT_EQ(hr_sample_output(sample, "sum", &out, &bytes), HR_OK);
    *static_cast<float*>(out) =
        static_cast<const float*>(in)[5] + static_cast<float>(hr_random_below(sample, 100));
    return HR_OK;
  };
  ASSERT_EQ(hr_parts_add_operation(parts.get(), R"({"name": "brighter", "version": 2, "field": "image"})", &output,
                                   1, brighten, {}),
            HR_OK);
  output.name = "sum";
  output.rank = 0;
  ASSERT_EQ(
      hr_parts_add_operation(parts.get(), R"({"name": "sum", "each_pass_anew": true})", &output, 1, add_up, {}),
      HR_OK);
  const CDataset plan = noise();
  ASSERT_EQ(hr_dataset_add(plan.get(), "map", R"([{"named": "brighter"}, {"named": "sum"}])", parts.get()), HR_OK);
  ASSERT_EQ(hr_dataset_add(plan.get(), "batch", R"({"global_batch": 12})", nullptr), HR_OK);
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  ASSERT_EQ(hr_dataset_describe(plan.get(), &info), HR_OK);
  EXPECT_EQ(info.fingerprint, in_cpp.fingerprint());
  EXPECT_EQ(digest_in_c(2, plan.get(), R"({"epochs": 2})"), digest_in_cpp(in_cpp, {.epochs = 2}));
}

TEST(CInterface, ReadsAPlanOfCpp) {
  const CParts parts = made<CParts>(hr_parts_create);
  ASSERT_EQ(hr_parts_add_source(parts.get(), "noise", noise().get()), HR_OK);
  const std::string text = plan_in_cpp().to_json({.sources = {{"noise", test::noise_images(kRecords, 8, 8)}}});
  const CDataset plan = made<CDataset>(hr_dataset_from_json, text.c_str(), nullptr, parts.get());
  hr_dataset_info info = HR_DATASET_INFO_INIT;
  ASSERT_EQ(hr_dataset_describe(plan.get(), &info), HR_OK);
  EXPECT_EQ(info.fingerprint, plan_in_cpp().fingerprint());
  EXPECT_EQ(made<CText>(hr_dataset_to_json, plan.get(), parts.get()).get(), text);
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
  Sha256 all;
  for (const BatchDigest& batch : rest) all.update(batch.sha256);
  EXPECT_EQ(digest_in_c(1, plan_in_c().get(), R"({"seed": 3, "start": ")" + state + "\"}"), all.finish_hex());
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
  hr_dataset* dataset = nullptr;
  expect_same_error([] { open_devices("tpu", DeviceNeed::kMemory); }, hr_devices_open("tpu", &devices));
  expect_same_error([] { open_source("/no/such/place", Split::kTrain); },
                    hr_dataset_open("/no/such/place", nullptr, &dataset));
  const CDataset plan = noise();
  const auto fails = [](auto change) {
    const Dataset from = Dataset::from(test::noise_images(kRecords, 8, 8));
    change(from);
  };
  expect_same_error([&] { fails([](const Dataset& from) { from.shard(3, 3); }); },
                    hr_dataset_add(plan.get(), "shard", R"({"count": 3, "index": 3})", nullptr));
  expect_same_error([&] { fails([](const Dataset& from) { from.batch({.global_batch = 0}); }); },
                    hr_dataset_add(plan.get(), "batch", R"({"global_batch": 0})", nullptr));
  const CDevices cpu = made<CDevices>(hr_devices_open, "cpu");
  hr_loader* loader = nullptr;
  expect_same_error(
      [&] {
        fails([](const Dataset& from) {
          DeviceGroup group = test::cpu_replicas(1);
          Loader unbatched(from, group);
        });
      },
      hr_loader_open(plan.get(), cpu.get(), nullptr, nullptr, &loader));
}

}  // namespace
}  // namespace headrace
