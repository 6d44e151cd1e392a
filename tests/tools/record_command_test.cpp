// Records of programs, and what `headrace evaluate` and `headrace predict` make of them with the record alone: the
// program's own figures, to the last digit, or a refusal that says what is missing.
#include "headrace/tests/support/archives.h"
#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tests/tools/recipes/small_data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/nets.h"
#include "headrace/train/records/model_snapshot.h"
#include "headrace/train/records/record.h"
#include "headrace/train/training_record.h"

namespace headrace::test {
namespace {

// A program that trains on digits, normalised, and what it says of the test split.
class RecordCommand : public ::testing::Test {
 protected:
  void SetUp() override { write_digits(data_, 90, 41); }

  Dataset digits(Split split, const Operations& operations = normalize({0.25F}, {0.5F})) const {
    return Dataset::from(open_source(data_.path(), split, {.label_count = 10}))
        .map(operations)
        .batch({.global_batch = 16});
  }
  Model model() { return compiled(training_.strategy, mnist_mlp, adam(1e-2F)); }
  std::string record() const { return (work_ / "record.safetensors").string(); }
  std::vector<std::string> command(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{name,     "--record",           record(), "--devices", "cpu:1",
                                 "--data", data_.path().string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void expect_evaluated(const Evaluation& wanted, const std::vector<std::string>& more = {}) const {
    const Lines lines = json_of(command("evaluate", more));
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0]["loss"].get<double>(), wanted.loss);
    EXPECT_EQ(lines[0]["accuracy"].get<double>(), wanted.accuracy);
    EXPECT_EQ(lines[0]["examples"], wanted.examples);
  }
  // The model's file with another text in its header, complete with its checksum.
  void write_record_with(const Model& model, const std::string& name, const std::string& text) const {
    RecordTexts texts = model_texts(model.state(), describe_input(digits(Split::kTest)));
    texts[name] = text;
    ModelSnapshot snapshot(model.state(), 0, 0);
    snapshot.take({});
    snapshot.wait();
    write_tensor_file(record(), texts, snapshot.tensors());
  }

  const TempFolder data_, work_;
  Training training_{DeviceGroup(open_devices("cpu:1", DeviceNeed::kKernels))};
};

TEST_F(RecordCommand, EvaluatesWhatAProgramTrained) {
  Model trained = model();
  const Dataset test = digits(Split::kTest);
  trained.fit(
      digits(Split::kTrain).prefetch(3),
      {.epochs = 2, .validation = test, .verbose = 0, .checkpoints = CheckpointOptions{.record = record()}});
  const Evaluation wanted = trained.evaluate(test);
  expect_evaluated(wanted);
  expect_evaluated(wanted, {"--threads", "2", "--prefetch", "1", "--memory-budget", "64M", "--standalone"});
  trained.fit(digits(Split::kTrain), {.verbose = 0});
  save_model(trained, record());
  expect_evaluated(trained.evaluate(test));
  TrainingRecord training =
      create_training_record(trained, sparse_categorical_crossentropy(), adam(), 1, {.file = record()});
  training.train(digits(Split::kTrain), 0, {.verbose = 0});
  expect_evaluated(trained.evaluate(test));
  EXPECT_NE(trained.evaluate(digits(Split::kTest, cast(DType::kF32))).loss, trained.evaluate(test).loss)
      << "the test sees nothing";
}

TEST_F(RecordCommand, LeavesOutWhatIsRandom) {
  Model trained = model();
  const Dataset augmented =
      digits(Split::kTrain, pad_crop(28, 2) | flip() | normalize({0.25F}, {0.5F})).prefetch(1);
  trained.fit(augmented, {.verbose = 0, .checkpoints = CheckpointOptions{.record = record()}});
  expect_evaluated(trained.evaluate(digits(Split::kTest)));
}

TEST_F(RecordCommand, PredictsWithNamesAndLabels) {
  Model trained = model();
  trained.fit(digits(Split::kTrain), {.verbose = 0, .checkpoints = CheckpointOptions{.record = record()}});
  const std::string out = (work_ / "predictions").string();
  ASSERT_EQ(headrace(command("predict", {"--out", out, "--global-batch", "7"})).status, 0);
  const Lines lines = json_of(command("predict"));
  ASSERT_EQ(lines.size(), 41U);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    expect_keys(lines[i], {"name", "prediction", "values"});
    EXPECT_EQ(lines[i]["record"], i);
    EXPECT_EQ(lines[i]["label"], i % 10);
  }
}

TEST_F(RecordCommand, NeedsAPlanWhereTheRecordHasNone) {
  Model trained = model();
  const Operations mine = user_map({.name = "my_map",
                                    .output = {.dtype = DType::kF32, .shape = {28, 28, 1}},
                                    .function = [](auto in, const Shape&, auto out, Philox&) {
                                      for (std::size_t i = 0; i < in.size(); ++i) {
                                        const auto value =
                                            static_cast<float>(std::to_integer<int>(in[i])) / 256.0F;
                                        std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
                                      }
                                    }});
  trained.fit(digits(Split::kTrain, mine), {.verbose = 0, .checkpoints = CheckpointOptions{.record = record()}});
  for (const std::string name : {"evaluate", "predict"}) {
    const CommandResult refused = headrace(command(name));
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(refused.output, "");
    EXPECT_THAT(refused.errors, AllOf(HasSubstr(record()), HasSubstr("my_map"), HasSubstr("--plan FILE")));
  }
  const Dataset test = digits(Split::kTest);
  work_.write("plan.json", test.evaluation_json());
  work_.write("whole.json", digits(Split::kTest).to_json());
  const Evaluation wanted = trained.evaluate(test);
  expect_evaluated(wanted, {"--plan", work_ / "plan.json"});
  expect_evaluated(wanted, {"--plan", work_ / "whole.json"});
  const Lines alone =
      json_of({"evaluate", "--record", record(), "--devices", "cpu:1", "--plan", work_ / "whole.json"});
  EXPECT_EQ(alone[0]["loss"].get<double>(), wanted.loss) << "its own source";
  const CommandResult nothing = headrace({"evaluate", "--record", record()});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.errors, HasSubstr("neither --data nor --plan"));
}

// Its plan has nothing but the batch: what made these arrays of pixels stands in the program alone.
TEST_F(RecordCommand, DoesNotTakePixelsForArraysThatAProgramNormalised) {
  const SourcePtr pixels = open_source(data_.path(), Split::kTrain, {.label_count = 10});
  const SourcePtr arrays = generator({.name = "normalised",
                                      .fields = {{.name = "image", .dtype = DType::kF32, .shape = {28, 28, 1}},
                                                 {.name = "label", .dtype = DType::kI64, .shape = {}}},
                                      .records = pixels->info().records,
                                      .function = [pixels](std::uint64_t index, RecordWriter& record) {
                                        std::vector<std::byte> scratch;
                                        const RecordView from = pixels->read(index, scratch);
                                        std::vector<float> values;
                                        for (const std::byte pixel : from.fields[0]) {
                                          const auto value = std::to_integer<std::uint8_t>(pixel);
                                          values.push_back(static_cast<float>(value) / 64.0F - 1);
                                        }
                                        record.put(0, std::as_bytes(std::span(values)));
                                        record.put(1, from.fields[1]);
                                      }});
  Model trained = model();
  trained.fit(Dataset::from(arrays).batch({.global_batch = 16}),
              {.verbose = 0, .checkpoints = CheckpointOptions{.record = record()}});
  for (const std::string name : {"evaluate", "predict"}) {
    const CommandResult refused = headrace(command(name));
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(refused.output, "");
    EXPECT_THAT(refused.errors, AllOf(HasSubstr(record()), HasSubstr("float32"), HasSubstr("--plan FILE")));
  }
  work_.write("plan.json", digits(Split::kTest, normalize({64.0F / 255}, {64.0F / 255})).evaluation_json());
  expect_evaluated(trained.evaluate(digits(Split::kTest, normalize({64.0F / 255}, {64.0F / 255}))),
                   {"--plan", work_ / "plan.json"});
}

TEST_F(RecordCommand, NamesTheFileOfARecordThatIsWrong) {
  Model trained = model();
  const std::vector<std::pair<std::string, std::string>> texts{
      {"graph", "{"},
      {"graph", R"({"version": 1})"},
      {"graph", R"({"version":1,"layers":[{"name":"x"}]})"},
      {"compiled", ""},
      {"compiled", "{}"},
      {"input", "]"},
      {"input", "{}"},
      {"format", "{}"}};
  for (const auto& [name, text] : texts) {
    SCOPED_TRACE(name + " = " + text);
    write_record_with(trained, name, text);
    for (const std::string what : {"evaluate", "predict"}) {
      const CommandResult refused = headrace(command(what));
      EXPECT_EQ(refused.status, 1);
      EXPECT_THAT(refused.errors, AllOf(HasSubstr(record()), HasSubstr("'" + name + "'"), HasSubstr("hint: ")));
    }
  }
}

TEST_F(RecordCommand, NamesDataThatDoNotFit) {
  Model trained = model();
  trained.fit(digits(Split::kTrain), {.verbose = 0, .checkpoints = CheckpointOptions{.record = record()}});
  const TempFolder cifar;
  write_cifar(cifar);
  const CommandResult refused = headrace({"evaluate", "--record", record(), "--data", cifar.path().string()});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors, HasSubstr("hint: "));
}

// What a user has who evaluates on a table of his own: one file, of no split.
TEST_F(RecordCommand, ReadsAllOfAFileOfOneSplit) {
  Model trained = model();
  trained.fit(digits(Split::kTrain), {.verbose = 0, .checkpoints = CheckpointOptions{.record = record()}});
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"evaluate", "--record", record(), "--data", work_ / "images.npy"};
    all.insert(all.end(), more.begin(), more.end());
    return headrace(all);
  };
  work_.write("images.npy", make_npy("|u1", "(3, 28, 28)", Bytes(3 * 28 * 28)));
  EXPECT_THAT(with({}).errors,
              HasSubstr("hint: name the file of the test split, or read all of it with --split train"));
  EXPECT_THAT(with({"--split", "train"}).errors, Not(HasSubstr("split")));
}

TEST_F(RecordCommand, CountsBadRecords) {
  Model trained = model();
  trained.fit(digits(Split::kTrain), {.verbose = 0, .checkpoints = CheckpointOptions{.record = record()}});
  // A label that is no class.
  Bytes labels{std::byte{0}, std::byte{0}, std::byte{8}, std::byte{1}, {}, {}, {}, std::byte{41}};
  for (int i = 0; i < 41; ++i) labels.push_back(static_cast<std::byte>(i == 3 ? 77 : i % 10));
  data_.write("t10k-labels-idx1-ubyte", labels);
  EXPECT_EQ(headrace(command("evaluate")).status, 1);
  const std::string list = (work_ / "bad").string();
  const Lines skipped =
      json_of(command("evaluate", {"--on-error", "skip", "--max-bad-share", "0.1", "--quarantine", list}));
  EXPECT_EQ(skipped[0]["examples"], 40);
  EXPECT_EQ(skipped[0]["bad_records"], 1);
  EXPECT_TRUE(std::filesystem::exists(list));
  EXPECT_EQ(headrace(command("evaluate", {"--on-error", "skip", "--max-bad-share", "0.01"})).status, 1);
}

TEST_F(RecordCommand, WritesNothingOverWhatItReads) {
  Model trained = model();
  trained.fit(digits(Split::kTrain), {.verbose = 0, .checkpoints = CheckpointOptions{.record = record()}});
  for (const std::string option : {"--json", "--quarantine"}) {
    const CommandResult refused = headrace(command("evaluate", {option, record()}));
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.errors, HasSubstr(option));
  }
  expect_evaluated(trained.evaluate(digits(Split::kTest)));
}

}  // namespace
}  // namespace headrace::test
