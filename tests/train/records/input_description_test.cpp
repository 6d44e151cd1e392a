// What a record says of its net's input: taken from the plan, written, read, and read from files of earlier
// versions.
#include "headrace/train/checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/pipeline/sources.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/temp_folder.h"
#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/records/tensor_file.h"
#include "headrace/train/trainer.h"
#include "headrace/train/training_record.h"

namespace headrace::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Operations kNormal = normalize({0.5F}, {0.25F});

// Of four classes, images that random parts may have been done to.
SourcePtr toy_images(std::uint64_t seed) { return blobs(40, {6, 6, 2}, 4, seed).source(); }

Dataset batches(const SourcePtr& source, const Operations& operations) {
  return Dataset::from(source).map(operations).batch({.global = 8});
}

std::vector<BatchDigest> digest_of(const Dataset& data) { return cpu_digests_of(data, {}); }

TEST(InputDescriptions, AreThePlanAsJson) {
  const InputDescription input = describe_input(batches(toy_images(1), flip() | kNormal), {{.weight = 0.5F}});
  const InputDescription read = input_description_from_json(to_json(input));
  EXPECT_TRUE(read.reason.empty());
  EXPECT_FALSE(read.assumed);
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

// As versions before wrote it, and what they made of it.
TEST(InputDescriptions, OfEarlierVersionsAreRead) {
  const std::string decode = R"({"decode":{"height":0,"width":0,"apply_orientation":false},"operations":)";
  const SourcePtr source = toy_images(1);
  const auto dataset = [&](const std::string& operations) {
    return described_dataset(source,
                             input_description_from_json(decode + operations + R"(,"views":[],"batch":8})"));
  };
  EXPECT_EQ(digest_of(dataset(R"([{"normalize":{"mean":[0.5],"std":[0.25]}}])")),
            digest_of(batches(source, kNormal)));
  EXPECT_EQ(digest_of(dataset(R"([{"to_layout":{"channels_first":true}},{"flatten":{}}])")),
            digest_of(batches(source, to_layout(ImageLayout::kChannelsFirst) | flatten())));
  EXPECT_EQ(digest_of(dataset(R"([{"one_hot":{"classes":4,"smoothing":0.0,"field":"label"}}])")),
            digest_of(batches(source, one_hot(4))));
  EXPECT_EQ(digest_of(dataset(R"([{"cast":{"to":"uint8"}}])")), digest_of(batches(source, cast(DType::kU8))));
  EXPECT_THROW(dataset(R"([{"cast":{"to":"complex64"}}])"), ConfigError) << "was taken for float32";
  EXPECT_THROW(dataset(R"([{"invert":{}}])"), ConfigError);

  const std::string recipe = R"({"decode":{"height":32,"width":32,"apply_orientation":false},"operations":[],)"
                             R"("views":[{"weight":1.0,"down":0,"right":0,"mirror":true}],"batch":500})";
  const InputDescription read = input_description_from_json(recipe);
  EXPECT_FALSE(read.assumed);
  EXPECT_TRUE(read.views.at(0).shift.mirror);
  EXPECT_EQ(described_dataset(source, read).global_batch(), 500);
  // What a program that said nothing left.
  const InputDescription unsaid = input_description_from_json(decode + R"([],"views":[],"batch":500})");
  EXPECT_TRUE(unsaid.assumed);
  EXPECT_TRUE(input_description_from_json(to_json(unsaid)).assumed);
}

TEST(InputDescriptions, ThatAreWrongAreRefused) {
  for (const std::string text : {"7", "{}", "[]", R"({"plan": {}})", R"({"no_plan": 3, "views": []})",
                                 R"({"decode": {}, "operations": [7], "views": [], "batch": 1})"}) {
    EXPECT_THROW(input_description_from_json(text), ConfigError) << text;
  }
}

// The file with another `input`.
void rewrite_input(const std::filesystem::path& path, const std::string& input) {
  const TensorFile file(path);
  RecordTexts texts;
  for (const char* name : {"format", "graph", "compiled", "training", "history", "callbacks"}) {
    texts[name] = file.text(name);
  }
  texts["input"] = input;
  std::vector<std::vector<std::byte>> values;
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : file.tensors()) {
    values.emplace_back(tensor.bytes);
    file.read(tensor, values.back());
    tensors.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape, .bytes = values.back()});
  }
  write_tensor_file(path, texts, std::move(tensors));
}

TEST(InputDescriptions, OfEarlierVersionsStopNoResumption) {
  const TempFolder folder;
  Training training(2);
  const Dataset data = batches(toy_images(1), flip() | kNormal);
  Model whole = compiled(training.strategy, small_cnn);
  whole.fit(data, {.epochs = 2, .verbose = 0});
  const auto fit = [&](Model& model, int epochs) {
    model.fit(data, {.epochs = epochs,
                     .verbose = 0,
                     .checkpoints = CheckpointOptions{.folder = folder.path()},
                     .resume = true});
  };
  Model begun = compiled(training.strategy, small_cnn);
  fit(begun, 1);
  const std::filesystem::path file = *newest_checkpoint(folder.path());
  rewrite_input(file, R"({"decode":{"height":0,"width":0,"apply_orientation":false},"operations":[],)"
                      R"("views":[],"batch":500})");
  Model continued = restore_model(training.strategy, file);
  fit(continued, 2);
  EXPECT_EQ(continued.weights_sha256(), whole.weights_sha256());
  const InputDescription now = record_input(*newest_checkpoint(folder.path()));
  EXPECT_FALSE(now.assumed);
  EXPECT_THAT(now.plan, HasSubstr("normalize"));
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
      to_json(describe_input(Dataset::from(named({"cat", "dog", "emu"})).batch({.global = 2}))));
  EXPECT_EQ(input.label_count, 3U);
  EXPECT_NO_THROW(require_same_classes(input, *named({"cat", "dog", "emu"})));
  EXPECT_NO_THROW(require_same_classes(input, *named({})));
  try {
    require_same_classes(input, *named({"cat", "emu"}));
    ADD_FAILURE() << "label 1 is an emu here and a dog there";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("label 1"), HasSubstr("'emu'"), HasSubstr("'dog'")));
  }
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
  const InputDescription made = describe_input(Dataset::from(source).batch({.global = 2}));
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
  try {
    described_dataset(of_type(DType::kU8), floats);
    ADD_FAILURE() << "pixels are taken for what was made of others";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("'image' of typed is uint8"), HasSubstr("float32")));
  }
  const InputDescription pixels = read_back(batches(of_type(DType::kU8), to_float));
  EXPECT_EQ(pixels.types, (std::map<std::string, std::string>{{"image", "uint8"}}));
  InputDescription unsaid = floats;
  unsaid.types.clear();
  EXPECT_NO_THROW(described_dataset(of_type(DType::kU8), unsaid)) << "of an earlier version";
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
  const Dataset plain = batches(test, kNormal), others = Dataset::from(test).map(kNormal).batch({.global = 5});
  EXPECT_EQ(described_dataset(test, fit(cropped, others, std::nullopt)).global_batch(), 5);
  EXPECT_EQ(described_dataset(test, fit(cropped, others, plain)).global_batch(), 8);
  const Dataset halves = Dataset::from(blobs(40, {12, 12, 2}).source()).map(pad_crop(6, 0)).batch({.global = 8});
  EXPECT_THAT(fit(halves, std::nullopt, std::nullopt).reason, HasSubstr("pad_crop(6, pad=0"));
  EXPECT_EQ(fit(halves, plain, std::nullopt).reason, "");
}

}  // namespace
}  // namespace headrace::test
