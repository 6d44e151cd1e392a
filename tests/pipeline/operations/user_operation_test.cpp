// The caller's own operation: any fields, its own outputs, its place in the stream, and what happens when it
// fails.
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

const Field kSum{.name = "sum", .dtype = DType::kI64, .shape = {}};

// The sum of an image's bytes and its label, as a field of its own.
UserOperation sum_of_image_and_label() {
  return {.name = "sum", .inputs = {"image", "label"}, .outputs = {kSum}, .function = [](UserSample& sample) {
            std::int64_t sum = sample.elements<std::int64_t>(1)[0];
            for (const std::uint8_t byte : sample.elements<std::uint8_t>(0)) sum += byte;
            sample.put(0, std::as_bytes(std::span(&sum, 1)));
          }};
}

// All values of a field of the run, in order.
template <typename Element>
std::vector<Element> elements_of(const Dataset& dataset, const std::string& field,
                                 const LoaderOptions& options = {}) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(dataset, devices, options);
  std::vector<Element> all;
  while (auto batch = loader.next()) {
    const auto values = download_examples<Element>(devices[0], *batch, field);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(UserOperation, AddsAFieldOfItsOwnMadeOfSeveral) {
  const Dataset base = Dataset::from(noise_images(13, 4, 5));
  const Dataset summed = base.map(user_operation(sum_of_image_and_label())).batch({.global_batch = 4});
  ASSERT_EQ(summed.fields().size(), 3U);
  EXPECT_EQ(summed.fields()[2], kSum);
  const auto images = elements_of<std::uint8_t>(base.batch({.global_batch = 4}), "image");
  const auto sums = elements_of<std::int64_t>(summed, "sum");
  ASSERT_EQ(sums.size(), 13U);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto first = images.begin() + static_cast<std::ptrdiff_t>(i * 60);
    EXPECT_EQ(sums[i], std::accumulate(first, first + 60, static_cast<std::int64_t>(i % 10)));
  }
  EXPECT_EQ(elements_of<std::uint8_t>(summed, "image"), images) << "what it reads stays as it is";
}

TEST(UserOperation, ReplacesFieldsBetweenOtherOperations) {
  // Swaps nothing but the meaning: the image becomes its first row, the label its negative.
  const UserOperation shrink{.name = "shrink",
                             .inputs = {"label", "image"},
                             .outputs = {{.name = "label", .dtype = DType::kI64, .shape = {}},
                                         {.name = "image", .dtype = DType::kU8, .shape = {1, 5, 3}}},
                             .function = [](UserSample& sample) {
                               const std::int64_t label = -sample.elements<std::int64_t>(0)[0];
                               sample.put(0, std::as_bytes(std::span(&label, 1)));
                               sample.put(1, sample.bytes(1).first(15));
                             }};
  const Dataset base = Dataset::from(noise_images(6, 4, 5));
  const auto mapped = base.map(flip(1) | user_operation(shrink) | cast(DType::kF32)).batch({.global_batch = 6});
  const auto whole = elements_of<std::uint8_t>(base.map(flip(1)).batch({.global_batch = 6}), "image");
  const auto rows = elements_of<float>(mapped, "image");
  ASSERT_EQ(rows.size(), 6U * 15);
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t p = 0; p < 15; ++p) EXPECT_EQ(rows[i * 15 + p], whole[i * 60 + p]);
  }
  EXPECT_THAT(elements_of<std::int64_t>(mapped, "label"), ElementsAre(0, -1, -2, -3, -4, -5));
}

UserOperation position_and_draw() {
  return {.name = "where",
          .inputs = {},
          .outputs = {{.name = "where", .dtype = DType::kI64, .shape = {3}}},
          .each_pass_anew = true,
          .function = [](UserSample& sample) {
            const std::array<std::int64_t, 3> where{static_cast<std::int64_t>(sample.position().record),
                                                    static_cast<std::int64_t>(sample.position().pass),
                                                    sample.random().next_u32()};
            sample.put(0, std::as_bytes(std::span(where)));
          }};
}

TEST(UserOperation, SeesItsRecordItsPassAndItsRandomNumbers) {
  const Dataset dataset = Dataset::from(numbers(7)).map(user_operation(position_and_draw()));
  const auto all =
      elements_of<std::int64_t>(dataset.repeat(2).batch({.global_batch = 3}), "where", {.seed = 5, .epochs = 2});
  ASSERT_EQ(all.size(), 4U * 7 * 3);
  for (std::size_t i = 0; i < 28; ++i) {
    const std::uint64_t record = i % 7, pass = i / 7;
    EXPECT_EQ(all[i * 3], static_cast<std::int64_t>(record));
    EXPECT_EQ(all[i * 3 + 1], static_cast<std::int64_t>(pass));
    Philox random({.seed = 5, .epoch = static_cast<std::uint32_t>(pass), .record = record, .operation = 0});
    EXPECT_EQ(all[i * 3 + 2], static_cast<std::int64_t>(random.next_u32()));
  }
}

TEST(UserOperation, IsTheSameStreamForAnyNumberOfReplicasThreadsAndWithACache) {
  const Dataset base = Dataset::from(noise_images(50, 6, 6)).map(user_operation(sum_of_image_and_label()));
  const auto finish = [](const Dataset& dataset) {
    return dataset.shuffle().map(pad_crop(6, 1) | user_operation(position_and_draw())).batch({.global_batch = 10});
  };
  const auto expected = cpu_digests_of(finish(base), {.seed = 3, .epochs = 2, .threads = 1});
  EXPECT_EQ(cpu_digests_of(finish(base.cache(memory())), {.seed = 3, .epochs = 2}), expected);
  EXPECT_EQ(digests_of(finish(base), 3, {.seed = 3, .epochs = 2, .threads = 4}), expected);
}

std::string user_error_of(UserOperation operation) {
  operation.name = "mine";
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(Dataset::from(numbers(9)).map(user_operation(std::move(operation))).batch({.global_batch = 3}),
                devices, {.threads = 1});
  try {
    while (loader.next()) {
    }
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().record, 4U);
    return error.what();
  }
  return {};
}

bool is_the_fifth(const UserSample& sample) { return sample.position().record == 4; }

TEST(UserOperation, ItsFaultsNameItAndTheRecord) {
  UserOperation faulty{.inputs = {"value"}, .outputs = {{.name = "twice", .dtype = DType::kI64, .shape = {2}}}};
  faulty.function = [](UserSample& sample) {
    if (is_the_fifth(sample)) throw std::runtime_error("cannot be done");
    sample.room(0);
  };
  EXPECT_THAT(user_error_of(faulty), AllOf(HasSubstr("user_operation('mine'"), HasSubstr("cannot be done")));
  faulty.function = [](UserSample& sample) {
    if (is_the_fifth(sample)) throw 7;  // NOLINT: what a caller may do
    sample.room(0);
  };
  EXPECT_THAT(user_error_of(faulty), HasSubstr("no std::exception"));
  faulty.function = [](UserSample& sample) {
    if (is_the_fifth(sample)) sample.put(0, sample.bytes(0));
    sample.room(0);
  };
  EXPECT_THAT(user_error_of(faulty), HasSubstr("output 'twice' int64 (2,) was given 8 bytes instead of 16"));
  faulty.function = [](UserSample& sample) {
    if (!is_the_fifth(sample)) sample.room(0);
  };
  EXPECT_THAT(user_error_of(faulty), HasSubstr("output 'twice' was not written"));
  faulty.function = [](UserSample& sample) {
    if (is_the_fifth(sample)) sample.random().next_u32();
    sample.room(0);
  };
  EXPECT_THAT(user_error_of(faulty), AllOf(HasSubstr("drew random numbers"), HasSubstr("each_pass_anew")));
}

TEST(UserOperation, ASkippedRecordIsLeftOut) {
  UserOperation picky{
      .name = "picky", .inputs = {"value"}, .outputs = {{.name = "same", .dtype = DType::kI64, .shape = {}}}};
  picky.function = [](UserSample& sample) {
    if (is_the_fifth(sample)) throw std::runtime_error("not this one");
    sample.put(0, sample.bytes(0));
  };
  LoaderOptions options;
  options.errors = {.on_error = OnError::kSkip, .max_bad_share = 1};
  const Dataset dataset = Dataset::from(numbers(6)).map(user_operation(picky)).batch({.global_batch = 6});
  EXPECT_THAT(elements_of<std::int64_t>(dataset, "same", options), ElementsAre(0, 1, 2, 3, 5));
}

std::string refusal_of_user(const UserOperation& operation) {
  return message_of([&] { Dataset::from(noise_images(4, 2, 2)).map(user_operation(operation)).fields(); });
}

TEST(UserOperation, RefusesWhatCannotBe) {
  UserOperation operation{.name = "f", .outputs = {kSum}};
  EXPECT_THAT(refusal_of_user(operation), HasSubstr("no function"));
  operation.function = [](UserSample&) {};
  EXPECT_EQ(refusal_of_user(operation), "");
  operation.inputs = {"picture"};
  EXPECT_THAT(refusal_of_user(operation), HasSubstr("picture"));
  operation.inputs = {};
  operation.outputs[0].shape = {Shape::kDynamic};
  EXPECT_THAT(refusal_of_user(operation), HasSubstr("fixed shape"));
  operation.outputs = {kSum, kSum};
  EXPECT_THAT(refusal_of_user(operation), HasSubstr("two outputs"));
  operation.outputs = {kSum};
  for (std::size_t i = 2; i < kMaxFields; ++i) {
    operation.outputs.push_back({.name = "f" + std::to_string(i), .shape = {}});
  }
  EXPECT_THAT(refusal_of_user(operation), HasSubstr("65 fields; 64 are possible"));
  operation.outputs = {};
  EXPECT_THAT(refusal_of_user(operation), HasSubstr("no outputs"));
  operation.outputs = {kSum};
  operation.each_pass_anew = true;
  EXPECT_THROW(Dataset::from(numbers(3)).map(user_operation(operation)).cache(memory()).fields(), ConfigError);
}

TEST(UserOperation, IsPartOfTheStreamsIdentity) {
  UserOperation operation = sum_of_image_and_label();
  const Dataset base = Dataset::from(noise_images(4, 2, 2));
  const std::uint64_t before = base.map(user_operation(operation)).batch({}).fingerprint();
  operation.version = 2;
  EXPECT_NE(base.map(user_operation(operation)).batch({}).fingerprint(), before);
}

TEST(UserMap, GetsInputAndRandomNumbers) {
  UserMap map{.name = "sum", .output = {.dtype = DType::kF32, .shape = {2}}};
  map.function = [](std::span<const std::byte> in, const Shape& shape, std::span<std::byte> out, Philox& random) {
    EXPECT_EQ(shape, (Shape{4, 5, 3}));
    const float values[2] = {static_cast<float>(in.size()), random.uniform()};
    std::memcpy(out.data(), values, sizeof values);
  };
  const auto result = run_chain(user_map(map), random_image(4, 5, 3, 1), DType::kU8, 9);
  EXPECT_EQ(result.field.shape, (Shape{2}));
  expect_near(result.values, {60, draws(0, 9).uniform()}, 0);
}

TEST(UserMap, RefusesWhatCannotBe) {
  UserMap map{.name = "f", .output = {.shape = {1}}};
  EXPECT_THAT(refusal_of_operations(user_map(map), rgb_field()), HasSubstr("no function"));
  map.function = [](auto&&...) {};
  map.output.shape = {Shape::kDynamic};
  EXPECT_THAT(refusal_of_operations(user_map(map), rgb_field()), HasSubstr("fixed shape"));
}

TEST(UserMap, KnowsItsField) { EXPECT_EQ(field_of(user_map({.field = "x"}).list()[0]), "x"); }

}  // namespace

}  // namespace headrace::test
