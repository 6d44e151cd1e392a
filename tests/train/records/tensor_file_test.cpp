// Files of tensors, their names, and what the net was fed with.
#include "headrace/train/records/tensor_file.h"
#include "headrace/devices/base/hash.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/records/checkpoint_folder.h"
#include "headrace/train/trainer.h"
#include "headrace/train/training_record.h"

namespace headrace::test {
namespace {

// Files of tensors: what is written is read, and what is damaged is refused by name.

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) * 0.25F - 3;
  return values;
}

// Of sizes that need padding, a scalar, one of several blocks, and one that needs none behind it.
struct WrittenTensors {
  std::vector<float> bias = ramp(10), scale = ramp(1), weights = ramp(600'000), even = ramp(16);

  std::vector<TensorToWrite> list() const {
    const auto tensor = [](const char* name, const Shape& shape, const std::vector<float>& values) {
      return TensorToWrite{.name = name, .shape = shape, .bytes = std::as_bytes(std::span(values))};
    };
    return {tensor("dense/bias", {10}, bias), tensor("scale", {}, scale),
            tensor("dense/weights", {600, 1000}, weights), tensor("even", {4, 4}, even)};
  }
};

const RecordTexts kTexts{{"history", R"({"loss":[0.5,0.25]})"}, {"format", R"({"version":1})"}};

std::filesystem::path write_tensors(const TempFolder& folder) {
  const WrittenTensors tensors;
  write_tensor_file(folder / "record", kTexts, tensors.list());
  return folder / "record";
}

std::string refusal_to_read(const std::filesystem::path& path) {
  try {
    const TensorFile file(path);
    for (const StoredTensor& tensor : file.tensors()) {
      std::vector<std::byte> bytes(tensor.bytes);
      file.read(tensor, bytes);
    }
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().source, path.string());
    EXPECT_NE(error.location().offset, DataLocation::kUnknown);
    return error.what();
  }
  return {};
}

TEST(TensorFile, GivesBackWhatWasWritten) {
  const TempFolder folder;
  const WrittenTensors tensors;
  const TensorFile file(write_tensors(folder));
  EXPECT_EQ(file.text("history"), kTexts.at("history"));
  EXPECT_EQ(file.tensors().size(), 4U);
  for (const TensorToWrite& wanted : tensors.list()) {
    const StoredTensor* found = file.find(wanted.name);
    ASSERT_NE(found, nullptr) << wanted.name;
    EXPECT_EQ(found->shape, wanted.shape);
    EXPECT_EQ(found->offset % kTensorAlignment, 0U) << wanted.name;
    std::vector<std::byte> bytes(found->bytes);
    file.read(*found, bytes);
    EXPECT_TRUE(std::ranges::equal(bytes, wanted.bytes)) << wanted.name;
  }
  EXPECT_EQ(file.tensors().front().offset % kPayloadAlignment, 0U);
  EXPECT_EQ(file.find("dense"), nullptr);
}

// As FORMAT.md has it, from the file's bytes alone.
TEST(TensorFile, BeginsAsItsPageSays) {
  const TempFolder folder;
  std::vector<std::byte> bytes = read_whole_file(write_tensors(folder));
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  EXPECT_EQ((8 + length) % kPayloadAlignment, 0U);
  std::string header(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  const std::string checksum = header.substr(37 - 8, 32);
  header.replace(37 - 8, 32, 32, '0');
  EXPECT_EQ(xxh3_128_hex(std::as_bytes(std::span(header))), checksum);
}

TEST(TensorFile, RefusesEveryTruncation) {
  const TempFolder folder;
  const std::vector<std::byte> whole = read_whole_file(write_tensors(folder));
  std::vector<std::size_t> lengths{0, 1, 7, 8, 9, 37, 38, 69, 70, 100, 4095, 4096, 4097, whole.size() - 1};
  for (std::size_t length = 5'000; length < whole.size(); length += whole.size() / 40) lengths.push_back(length);
  for (const std::size_t length : lengths) {
    const auto cut = folder.write("cut", std::span(whole).first(length));
    EXPECT_NE(refusal_to_read(cut), "") << length;
  }
  const auto cut = folder.write("cut", std::span(whole).first(whole.size() - 1'000'000));
  EXPECT_THAT(refusal_to_read(cut), HasSubstr("is cut short within tensor 'dense/weights'"));
}

TEST(TensorFile, RefusesEveryChangedByte) {
  const TempFolder folder;
  const std::vector<std::byte> whole = read_whole_file(write_tensors(folder));
  const auto path = folder.write("changed", whole);
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < 4096; at += 13) places.push_back(at);
  for (std::size_t at = 4096; at < whole.size() - 200; at += 301'117) places.push_back(at);
  for (const std::size_t at : places) {
    TempFolder::patch(path, at, whole[at] ^ std::byte{4});
    EXPECT_NE(refusal_to_read(path), "") << at;
    TempFolder::patch(path, at, whole[at]);
  }
  EXPECT_EQ(refusal_to_read(path), "");
}

TEST(TensorFile, NamesTheDamagedTensorAndTheOffsetOfItsBlock) {
  const TempFolder folder;
  const auto path = write_tensors(folder);
  const std::uint64_t offset = TensorFile(path).find("dense/weights")->offset;
  TempFolder::patch(path, offset + kTensorBlock + 5, std::byte{77});
  const std::string refusal = refusal_to_read(path);
  EXPECT_THAT(refusal, HasSubstr("tensor 'dense/weights'"));
  EXPECT_THAT(refusal, HasSubstr(std::to_string(offset + kTensorBlock)));
}

TEST(TensorFile, OfAnotherFormatIsSaidToBeOne) {
  const TempFolder folder;
  const std::string other = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(other.size());
  EXPECT_THAT(refusal_to_read(folder.write("other", bytes + other + "1234")),
              HasSubstr("is no record or checkpoint"));
  EXPECT_THAT(refusal_to_read(folder.write("text", std::string(64, 'x'))),
              HasSubstr("is no record or checkpoint"));
}

const NameValues kNameValues{{"epoch", 3}, {"step", 1200}, {"val_loss", 0.123456}, {"val_accuracy", std::nullopt}};

std::string refused_name(const std::string& pattern) {
  return message_of([&] { checkpoint_name(pattern, kNameValues); });
}

TEST(CheckpointName, HasNumbersInTheirPlaces) {
  EXPECT_EQ(checkpoint_name("ckpt-{epoch}", kNameValues), "ckpt-3.safetensors");
  EXPECT_EQ(checkpoint_name("{epoch:02.0f}-{step}-{val_loss:.4f}", kNameValues), "03-1200-0.1235.safetensors");
  EXPECT_EQ(checkpoint_name("{val_accuracy:.3f}", kNameValues), "none.safetensors");
  EXPECT_EQ(checkpoint_name("last.safetensors", kNameValues), "last.safetensors");
}

TEST(CheckpointName, RefusesWhatNamesNothing) {
  EXPECT_THAT(refused_name("ckpt-{steps}"), HasSubstr("asks for {steps} (there are epoch, step, val_loss"));
  EXPECT_THAT(refused_name("ckpt-{step"), HasSubstr("without its partner"));
  EXPECT_THAT(refused_name("ckpt-step}"), HasSubstr("without its partner"));
  EXPECT_THAT(refused_name("{step:q}"), HasSubstr("has the format 'step:q'"));
  EXPECT_THAT(refused_name("a/{step}"), HasSubstr("is no name of a file"));
  EXPECT_THAT(refused_name(""), HasSubstr("is no name of a file"));
}

// What a record says of its net's input: taken from the plan, written, and read.

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
