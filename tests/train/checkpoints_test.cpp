// Checkpoints in their folder: which there are, which is taken, what is made of it.
#include <unistd.h>

#include "headrace/devices/base/file_writer.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/records/record.h"

namespace headrace::test {
namespace {

void patch_bit(const std::filesystem::path& file, std::uint64_t offset) {
  TempFolder::patch(file, offset, read_whole_file(file)[offset] ^ std::byte{1});
}

TEST(Checkpoints, AreNamedAndTheLatestStay) {
  const TempFolder folder;
  Training training(2);
  Model model = compiled(training.strategy, small_mlp);
  model.fit(kept_data(), {.epochs = 5,
                          .validation = kept_data(),
                          .verbose = 0,
                          .checkpoints = CheckpointOptions{
                              .folder = folder / "made" / "here", .name = "ckpt-{epoch}-{step}", .keep = 2}});
  EXPECT_THAT(names_in(folder / "made" / "here"), ElementsAre("ckpt-4-20.safetensors", "ckpt-5-25.safetensors"));
}

TEST(Checkpoints, TheBestEpochIsKeptBeside) {
  const TempFolder folder;
  Training training(1);
  Model model = compiled(training.strategy, small_mlp, sgd(0.5F));
  const CheckpointOptions options{.folder = folder.path(), .keep = 1, .best = "val_loss"};
  // The rate grows until the loss does.
  const Callback spoil{.on_epoch_end = [](const EpochReport& report, FitControl& control) {
    if (report.epoch >= 2) control.set_learning_rate_scale(400);
  }};
  const History history = model.fit(kept_data(), {.epochs = 6,
                                                  .validation = kept_data(),
                                                  .callbacks = {spoil},
                                                  .verbose = 0,
                                                  .step = {.nan = NanPolicy::kIgnore},
                                                  .checkpoints = options});
  const std::vector<double>& losses = history["val_loss"];
  const auto best = std::ranges::min_element(losses) - losses.begin();
  ASSERT_LT(best, 5) << "the last epoch is not the best one";
  EXPECT_THAT(names_in(folder.path()), ElementsAre("best.safetensors", "checkpoint-30.safetensors"));
  const Record record(folder / "best.safetensors");
  EXPECT_EQ(record.step(), 5 * static_cast<std::uint64_t>(best + 1));
  EXPECT_EQ(record.training()->position.best, losses[static_cast<std::size_t>(best)]);
}

// A number that is none is no measure for those after it.
TEST(Checkpoints, AnEpochWithoutANumberIsNotTheBest) {
  const TempFolder folder;
  Training training(1);
  Model model = compiled(training.strategy, small_mlp, sgd(0.1F));
  const std::string name = model.variable_names().back();  // behind the activation
  const std::vector<float> sound = model.read_variable(name);
  const std::vector<float> none(sound.size(), std::numeric_limits<float>::quiet_NaN());
  std::map<std::string, std::vector<float>> all;
  for (const std::string& each : model.variable_names()) all[each] = model.read_variable(each);
  const Callback break_one{.on_epoch_begin = [&](int epoch, FitControl& control) {
    if (epoch == 0) return control.model().write_variable(name, none);
    if (epoch == 1) {
      for (const auto& [each, values] : all) control.model().write_variable(each, values);
    }
  }};
  const History history =
      model.fit(kept_data(), {.epochs = 3,
                              .callbacks = {break_one},
                              .verbose = 0,
                              .step = {.nan = NanPolicy::kIgnore},
                              .checkpoints = CheckpointOptions{.folder = folder.path(), .best = "loss"}});
  const std::vector<double>& losses = history["loss"];
  ASSERT_TRUE(std::isnan(losses[0]));
  ASSERT_TRUE(std::isfinite(losses[2]));
  EXPECT_EQ(Record(folder / "best.safetensors").training()->position.best,
            *std::min_element(&losses[1], &losses[1] + 2));
}

// Files of other programs, a file that is being written, a model that was saved.
TEST(Checkpoints, OthersInTheFolderAreLeftAlone) {
  const TempFolder folder;
  Training training(1);
  folder.write("notes.txt", "no checkpoint");
  const FileWriter alive(folder / "pretrained.safetensors");
  Model model = compiled(training.strategy, small_mlp);
  save_model(model, folder / "saved.safetensors");
  model.fit(kept_data(),
            {.epochs = 3, .verbose = 0, .checkpoints = CheckpointOptions{.folder = folder.path(), .keep = 1}});
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre("checkpoint-15.safetensors", "notes.txt",
                          MatchesRegex("pretrained.safetensors.[0-9]+.[0-9]+.tmp"), "saved.safetensors"));
}

TEST(Checkpoints, UnfinishedFilesOfTheDeadAreRemoved) {
  const TempFolder folder;
  folder.write("checkpoint-1.safetensors.4194304.0.tmp", "killed a moment ago");
  // Of a process that had this one's number, as in a container.
  folder.write("checkpoint-5.safetensors." + std::to_string(::getpid()) + ".0.tmp", "killed, too");
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  model.fit(kept_data(), {.verbose = 0, .checkpoints = CheckpointOptions{.folder = folder.path()}});
  EXPECT_THAT(names_in(folder.path()), ElementsAre("checkpoint-5.safetensors"));
}

// A model's fits are one training; another one is begun in another folder.
TEST(Checkpoints, AFolderHasOneTraining) {
  const TempFolder folder;
  Training training(1);
  const FitOptions options{.verbose = 0, .checkpoints = CheckpointOptions{.folder = folder.path()}};
  Model model = compiled(training.strategy, small_mlp);
  EXPECT_FALSE(holds_training(folder.path()));
  model.fit(kept_data(), options);
  EXPECT_TRUE(holds_training(folder.path()));
  model.fit(kept_data(), options);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("checkpoint-10.safetensors", "checkpoint-5.safetensors"));
  const auto refusal = [&](Model& other) -> std::string {
    return message_of([&] { other.fit(kept_data(), options); });
  };
  Model other = compiled(training.strategy, small_mlp);
  EXPECT_THAT(refusal(other),
              HasSubstr("holds 2 checkpoints of an earlier training (resume to go on with it, or"));
  model.compile({.optimizer = sgd(0.5F)});
  EXPECT_THAT(refusal(model), HasSubstr("of an earlier training")) << "compile() begins another";
}

// In one process, as in two.
TEST(Checkpoints, TwoTrainingsDoNotShareAFolder) {
  const TempFolder folder;
  Training training(1);
  const FitOptions options{
      .verbose = 0, .checkpoints = CheckpointOptions{.folder = folder.path()}, .resume = true};
  Model first = compiled(training.strategy, small_mlp), second = compiled(training.strategy, small_mlp);
  std::string said;
  const Callback during{.on_epoch_end = [&](const EpochReport&, FitControl&) {
    Training another(1);
    Model other = compiled(another.strategy, small_mlp);
    try {
      other.fit(kept_data(), options);
    } catch (const DataError& error) {
      said = error.what();
    }
  }};
  FitOptions with = options;
  with.callbacks = {during};
  first.fit(kept_data(), with);
  EXPECT_THAT(said, HasSubstr(folder.path().string() + ": another training keeps its checkpoints there"));
  EXPECT_NO_THROW(second.fit(kept_data(), options));
}

TEST(Checkpoints, TheNewestCompleteOneIsTaken) {
  const TempFolder folder;
  EXPECT_EQ(newest_checkpoint(folder / "missing"), std::nullopt);
  EXPECT_EQ(newest_checkpoint(folder.path()), std::nullopt);
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  model.fit(kept_data(), {.epochs = 3, .verbose = 0, .checkpoints = CheckpointOptions{.folder = folder.path()}});
  const auto file = [&](int step) { return folder / ("checkpoint-" + std::to_string(step) + ".safetensors"); };
  EXPECT_EQ(newest_checkpoint(folder.path()), file(15));
  std::filesystem::resize_file(file(15), std::filesystem::file_size(file(15)) - 1);
  EXPECT_EQ(newest_checkpoint(folder.path()), file(10)) << "the newest is cut short";
  const TensorFile damaged(file(10));
  const StoredTensor* weights = damaged.find("dense/weights");
  patch_bit(file(10), weights->offset + 17);
  std::vector<UnreadableCheckpoint> unreadable;
  EXPECT_EQ(newest_checkpoint(folder.path(), &unreadable), file(5)) << "a bit of the next has turned";
  ASSERT_EQ(unreadable.size(), 2U);
  EXPECT_EQ(unreadable[0].file, file(15));
  EXPECT_THAT(unreadable[0].why, HasSubstr(file(15).string() + ": is cut short"));
  EXPECT_EQ(unreadable[1].file, file(10));
  EXPECT_THAT(unreadable[1].why, HasSubstr(file(10).string() + ": is damaged: the checksum of tensor"));
  const DataError error = error_of<DataError>([&] { restore_model(training.strategy, file(10)); });
  EXPECT_THAT(error.what(), HasSubstr("tensor 'dense/weights'"));
  EXPECT_EQ(error.location().offset, weights->offset);
}

TEST(Checkpoints, RestoreOrCreateSaysWhich) {
  const TempFolder folder;
  Training training(2);
  const auto create = [&] { return compiled(training.strategy, small_mlp, with_all_around(grouped())); };
  const auto run = [&](int epochs) {
    testing::internal::CaptureStdout();
    Model model = restore_or_create(training.strategy, folder.path(), create);
    const std::string said = testing::internal::GetCapturedStdout();
    model.fit(kept_data(), {.epochs = epochs,
                            .verbose = 0,
                            .checkpoints = CheckpointOptions{.folder = folder.path()},
                            .resume = true});
    return std::pair(said, model.weights_sha256());
  };
  EXPECT_EQ(run(1).first, "Creating a new model\n");
  const auto [said, weights] = run(2);
  EXPECT_EQ(said, "Restoring from " + (folder / "checkpoint-5.safetensors").string() + "\n");
  Model whole = create();
  whole.fit(kept_data(), {.epochs = 2, .verbose = 0});
  EXPECT_EQ(weights, whole.weights_sha256());
}

// A training is not begun anew because its files are damaged.
TEST(Checkpoints, NothingIsCreatedWhereNoneCanBeRead) {
  const TempFolder folder;
  Training training(1);
  const auto create = [&] { return compiled(training.strategy, small_mlp); };
  Model model = create();
  const CheckpointOptions files{.folder = folder.path()};
  model.fit(kept_data(), {.epochs = 2, .verbose = 0, .checkpoints = files});
  for (const char* name : {"checkpoint-5.safetensors", "checkpoint-10.safetensors"}) {
    std::filesystem::resize_file(folder / name, 60);
  }
  for (const bool restoring : {true, false}) {
    const DataError error = error_of<DataError>([&] {
      Model begun = restoring ? restore_or_create(training.strategy, folder.path(), create) : create();
      begun.fit(kept_data(), {.verbose = 0, .checkpoints = files, .resume = true});
    });
    EXPECT_THAT(error.what(),
                HasSubstr(folder.path().string() + ": holds 2 checkpoints, none of which can be read"));
    EXPECT_THAT(error.what(), HasSubstr("checkpoint-5.safetensors: is cut short"));
    EXPECT_THAT(error.what(), HasSubstr("checkpoint-10.safetensors: is cut short"));
  }
}

TEST(Checkpoints, ARecordThatCannotBeWrittenIsFoundBeforeTheTraining) {
  const TempFolder folder;
  Training training(1);
  Model model = compiled(training.strategy, small_mlp);
  EXPECT_THROW(
      model.fit(kept_data(), {.verbose = 0, .checkpoints = CheckpointOptions{.record = folder / "no" / "record"}}),
      DataError);
  EXPECT_EQ(model.global_step(), 0U);
}

TEST(Checkpoints, HoldAllThatTheModelIs) {
  const TempFolder folder;
  Training training(2), other(3);
  Model model = training.strategy.build(norm_cnn, {.seed = 4});
  model.freeze("dense/bias");
  model.compile({.optimizer = with_all_around(grouped()),
                 .loss = sparse_categorical_crossentropy({.label_smoothing = 0.1F}),
                 .metrics = {accuracy(), top_k(3), confusion_matrix()}});
  const Dataset data = blobs(40, {6, 6, 2}).batch({.global_batch = 8});
  model.fit(data, {.verbose = 0});
  save_model(model, folder / "model");
  Model same = restore_model(other.strategy, folder / "model");
  same.check_mirrored();
  EXPECT_EQ(same.weights_sha256(), model.weights_sha256());
  EXPECT_EQ(same.global_step(), model.global_step());
  EXPECT_EQ(same.summary(), model.summary());
  EXPECT_EQ(same.frozen_variables(), std::vector<std::string>{"dense/bias"});
  ASSERT_EQ(same.optimizer_variable_names(), model.optimizer_variable_names());
  for (const std::string& name : model.optimizer_variable_names()) {
    for (const int replica : {0, 1, 2}) {
      EXPECT_EQ(same.read_variable(name, replica), model.read_variable(name)) << name;
    }
  }
  const Evaluation wanted = model.evaluate(data), found = same.evaluate(data);
  EXPECT_NEAR(found.loss, wanted.loss, 1e-9);
  ASSERT_EQ(found.metrics.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found.metrics[i].values, wanted.metrics[i].values);
}

TEST(Checkpoints, NameLossesOfTheProgramsOwn) {
  const TempFolder folder;
  Training training(1);
  const Loss own = host_loss("my_loss", [](const HostExample&) { return 0.5; });
  Model model = training.strategy.build(small_mlp);
  model.compile({.loss = 0.5F * own + 2.0F * sparse_categorical_crossentropy()});
  save_model(model, folder / "model");
  const DataError error = error_of<DataError>([&] { restore_model(training.strategy, folder / "model"); });
  EXPECT_EQ(error.location().source, (folder / "model").string());
  EXPECT_THAT(error.what(), HasSubstr("custom loss, 'my_loss' (hand it over in CustomParts::losses"));
  Model same = restore_model(training.strategy, folder / "model", {.losses = {own}});
  ASSERT_EQ(same.state().compiled->loss.terms.size(), 2U);
  EXPECT_EQ(same.state().compiled->loss.terms[0].function->name(), "my_loss");
  EXPECT_EQ(same.state().compiled->loss.terms[1].weight, 2.0F);
}

// Every built-in loss and metric is made again as it was.
TEST(Checkpoints, HoldLossesAndMetrics) {
  const TempFolder folder;
  Training training(1);
  for (const Loss& loss :
       {sparse_categorical_crossentropy({.label_smoothing = 0.25F, .reduction = Reduction::kSum}),
        categorical_crossentropy({.label_smoothing = 0.1F}), binary_crossentropy(), mean_squared_error(),
        binary_crossentropy({.from_logits = false, .label_smoothing = 0.2F}), mean_absolute_error()}) {
    const Attributes options = *loss.terms.front().function->attributes();
    const bool logits = !options.has("from_logits") || options.flag("from_logits");
    Model model =
        training.strategy.build([&](Graph& g) { return logits ? small_mlp(g) : g.sigmoid(small_mlp(g)); });
    const bool categorical = loss.terms.front().function->name().ends_with("categorical_crossentropy");
    model.compile({.loss = loss, .metrics = {categorical ? top_k(2) : Metric(huber()), mean_squared_error()}});
    save_model(model, folder / "model");
    const Model same = restore_model(training.strategy, folder / "model");
    const CompileOptions& made = *same.state().compiled;
    EXPECT_EQ(made.loss.terms.front().function->name(), loss.terms.front().function->name());
    EXPECT_EQ(made.loss.terms.front().function->attributes(), loss.terms.front().function->attributes());
    EXPECT_EQ(made.loss.reduction, loss.reduction);
    ASSERT_EQ(made.metrics.size(), 2U);
    EXPECT_EQ(made.metrics[0].function->name(), categorical ? "top_2" : "huber");
    EXPECT_EQ(made.metrics[1].function->name(), "mean_squared_error");
  }
}

}  // namespace
}  // namespace headrace::test
