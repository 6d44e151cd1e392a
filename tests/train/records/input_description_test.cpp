// What a record says of its net's input: taken from the plan, written, and read.
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/records/tensor_file.h"
#include "headrace/train/trainer.h"
#include "headrace/train/training_record.h"

namespace headrace::test {
namespace {

const Operations kNormal = normalize({0.5F}, {0.25F});

// Of four classes, images that random parts may have been done to.
SourcePtr toy_images(std::uint64_t seed) { return blobs(40, {6, 6, 2}, 4, seed).source(); }

Dataset batches(const SourcePtr& source, const Operations& operations) {
  return Dataset::from(source).map(operations).batch({.global_batch = 8});
}

std::vector<BatchDigest> digest_of(const Dataset& data) { return cpu_digests_of(data, {}); }

TEST(InputDescriptions, AreThePlanAsJson) {
  const InputDescription input = describe_input(batches(toy_images(1), flip() | kNormal), {{.weight = 0.5F}});
  const InputDescription read = input_description_from_json(to_json(input));
  EXPECT_TRUE(read.reason.empty());
  ASSERT_EQ(read.views.size(), 1U);
  EXPECT_EQ(read.views[0].weight, 0.5F);
  const SourcePtr others = toy_images(2);
  EXPECT_EQ(digest_of(described_dataset(others, read)), digest_of(batches(others, kNormal)));
  EXPECT_EQ(described_dataset(others, read, 5).global_batch(), 5);
}

TEST(InputDescriptions, SayWhyThereIsNoPlan) {
  const Operations mine =
      user_map({.name = "mine",
                .output = {.dtype = DType::kF32, .shape = {6, 6, 2}},
                .function = [](auto in, const Shape&, auto out, Philox&) { std::ranges::copy(in, out.begin()); }});
  const InputDescription read = input_description_from_json(to_json(describe_input(batches(toy_images(1), mine))));
  EXPECT_TRUE(read.plan.empty());
  EXPECT_THAT(read.reason, HasSubstr("mine"));
  EXPECT_THROW(described_dataset(toy_images(1), read), ConfigError);
}

TEST(InputDescriptions, ThatAreWrongAreRefused) {
  for (const std::string text : {"7", "{}", "[]", R"({"plan": {}})", R"({"no_plan": 3, "views": []})",
                                 R"({"decode": {}, "operations": [7], "views": [], "batch": 1})"}) {
    EXPECT_THROW(input_description_from_json(text), ConfigError) << text;
  }
}

// A program says nothing: what its fit was given is known.
TEST(InputDescriptions, AreThoseOfTheFit) {
  const TempFolder folder;
  Training training(2);
  const SourcePtr train = toy_images(1), test = toy_images(2);
  const Dataset augmented = batches(train, flip() | kNormal), plain = batches(test, kNormal);
  Model model = training.strategy.build(small_cnn, {.seed = 3});
  model.compile({.optimizer = adam(1e-2F)});
  EXPECT_THAT(
      [&] {
        save_model(model, folder / "new");
        return record_input(folder / "new").reason;
      }(),
      HasSubstr("before it was trained"));
  model.fit(augmented, {.verbose = 0, .checkpoints = CheckpointOptions{.record = folder / "record"}});
  save_model(model, folder / "saved");
  save_model(restore_model(training.strategy, folder / "saved"), folder / "again");
  const Evaluation wanted = model.evaluate(plain);
  for (const char* file : {"record", "saved", "again"}) {
    const Evaluation found = evaluate_record(training.strategy, folder / file, test);
    EXPECT_EQ(found.loss, wanted.loss) << file;
    EXPECT_EQ(found.accuracy, wanted.accuracy) << file;
    EXPECT_EQ(digest_of(described_dataset(test, record_input(folder / file))), digest_of(plain)) << file;
  }
}

TEST(InputDescriptions, AreThoseOfALoopOfOnesOwn) {
  const TempFolder folder;
  Training training(1);
  Model model = compiled(training.strategy, small_cnn);
  const SourcePtr test = toy_images(2);
  {
    Loader loader(batches(toy_images(1), flip() | kNormal), training.devices);
    Trainer trainer(training.strategy, model, loader);
    while (trainer.step()) continue;
  }
  save_model(model, folder / "saved");
  EXPECT_EQ(evaluate_record(training.strategy, folder / "saved", test).loss,
            model.evaluate(batches(test, kNormal)).loss);
}

// Labels that stand for other classes would be counted as wrong answers, or as right ones.
TEST(InputDescriptions, TellOtherClasses) {
  const auto named = [](std::vector<std::string> classes) {
    return generator({.name = "named",
                      .fields = {{.name = "label", .dtype = DType::kI64, .shape = {}}},
                      .records = 4,
                      .classes = std::move(classes),
                      .function = [](std::uint64_t, RecordWriter& record) { record.put(0, std::int64_t{0}); }});
  };
  const InputDescription input = input_description_from_json(
      to_json(describe_input(Dataset::from(named({"cat", "dog", "emu"})).batch({.global_batch = 2}))));
  EXPECT_EQ(input.label_count, 3U);
  EXPECT_NO_THROW(require_same_classes(input, *named({"cat", "dog", "emu"})));
  EXPECT_NO_THROW(require_same_classes(input, *named({})));
  EXPECT_THAT(error_of<ConfigError>([&] {
                require_same_classes(input, *named({"cat", "emu"}));
              }).what(),
              AllOf(HasSubstr("label 1"), HasSubstr("'emu'"), HasSubstr("'dog'")));
}

// As folders may be called.
TEST(InputDescriptions, HoldClassesThatAreNoUtf8) {
  const SourcePtr source =
      generator({.name = "named",
                 .fields = {{.name = "label", .dtype = DType::kI64, .shape = {}}},
                 .records = 4,
                 .classes = {"b\xFF"
                             "d",
                             "c\u00E4t"},
                 .function = [](std::uint64_t, RecordWriter& record) { record.put(0, std::int64_t{0}); }});
  const InputDescription made = describe_input(Dataset::from(source).batch({.global_batch = 2}));
  const InputDescription read = input_description_from_json(to_json(made));
  EXPECT_THAT(read.classes, ElementsAre("b\\xffd", "c\u00E4t"));
  EXPECT_NO_THROW(require_same_classes(read, *source));
  EXPECT_NO_THROW(require_same_classes(made, *source));
}

// What a program did to its arrays before it gave them to a plan, no plan says.
TEST(InputDescriptions, TellDataOfAnotherType) {
  const auto of_type = [](DType dtype) {
    return generator({.name = "typed",
                      .fields = {{.name = "image", .dtype = dtype, .shape = {2}},
                                 {.name = "label", .dtype = DType::kI64, .shape = {}}},
                      .records = 4,
                      .function = [](std::uint64_t, RecordWriter&) {}});
  };
  const auto read_back = [](const Dataset& data) {
    return input_description_from_json(to_json(describe_input(data)));
  };
  const Operations to_float = cast(DType::kF32);
  const InputDescription floats = read_back(batches(of_type(DType::kF32), to_float));
  EXPECT_NO_THROW(described_dataset(of_type(DType::kF32), floats));
  EXPECT_THAT(error_of<ConfigError>([&] { described_dataset(of_type(DType::kU8), floats); }).what(),
              AllOf(HasSubstr("'image' of typed is uint8"), HasSubstr("float32")));
  const InputDescription pixels = read_back(batches(of_type(DType::kU8), to_float));
  EXPECT_EQ(pixels.types, (std::map<std::string, std::string>{{"image", "uint8"}}));
  InputDescription unsaid = floats;
  unsaid.types.clear();
  EXPECT_NO_THROW(described_dataset(of_type(DType::kU8), unsaid));
}

TEST(InputDescriptions, AreThoseOfTheValidationWhereThereIsOne) {
  const TempFolder folder;
  Training training(1);
  const SourcePtr train = toy_images(1), test = toy_images(2);
  Model model = compiled(training.strategy, small_cnn);
  const auto record = folder / "record";
  const Dataset cropped = batches(train, pad_crop(6, 1) | kNormal);
  const auto fit = [&](const Dataset& data, std::optional<Dataset> validation, std::optional<Dataset> input) {
    model.fit(data, {.validation = std::move(validation),
                     .verbose = 0,
                     .checkpoints = CheckpointOptions{.record = record, .input = std::move(input)}});
    return record_input(record);
  };
  const Dataset plain = batches(test, kNormal),
                others = Dataset::from(test).map(kNormal).batch({.global_batch = 5});
  EXPECT_EQ(described_dataset(test, fit(cropped, others, std::nullopt)).global_batch(), 5);
  EXPECT_EQ(described_dataset(test, fit(cropped, others, plain)).global_batch(), 8);
  const Dataset halves =
      Dataset::from(blobs(40, {12, 12, 2}).source()).map(pad_crop(6, 0)).batch({.global_batch = 8});
  EXPECT_THAT(fit(halves, std::nullopt, std::nullopt).reason, HasSubstr("pad_crop(size=6, pad=0"));
  EXPECT_EQ(fit(halves, plain, std::nullopt).reason, "");
}

}  // namespace
}  // namespace headrace::test
