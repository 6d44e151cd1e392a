// A training that was stopped and continued, in another model, is the one that was never stopped.
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"

namespace headrace::test {
namespace {

// All that a step depends on or changes: momenta, second weights, running statistics, dropout, a schedule.
Node resumed_net(Graph& g) {
  Node x = g.conv(g.input("image", {6, 6, 2}), 4, {.bias = false});
  x = g.dropout(g.relu(g.batch_norm(x, {.momentum = 0.5F})), 0.25F);
  return g.dense(g.global_average_pool(x), 4);
}

struct ResumedJob {
  const char* name = "";
  int replicas = 2;
  int accumulate = 1;
  std::uint64_t steps_per_epoch = 0;
  bool validated = true;
  bool own_memory = false;
  Optimizer optimizer = with_all_around(grouped());
  Net net = resumed_net;
  int virtual_shards = 0;
};

std::ostream& operator<<(std::ostream& stream, const ResumedJob& job) { return stream << job.name; }

struct ResumedOutcome {
  std::string weights;
  std::vector<std::vector<float>> kept;
  std::map<std::string, std::vector<double>> history;
  std::uint64_t step = 0;
  std::string callback;

  bool operator==(const ResumedOutcome&) const = default;
};

// Lists of what was computed; the others are of the clock.
std::map<std::string, std::vector<double>> computed(const History& history) {
  std::map<std::string, std::vector<double>> lists = history.lists();
  for (const char* timed : {"seconds", "examples_per_second", "input_stall_fraction", "exposed_copy_fraction",
                            "device_idle_fraction"}) {
    lists.erase(timed);
  }
  return lists;
}

// Counts steps and epochs, and remembers.
Callback resumed_counting(std::string& counted) {
  return {.name = "counting",
          .on_epoch_begin = [&counted](int, FitControl&) { counted += "b"; },
          .on_step = [&counted](const StepReport&, FitControl&) { counted += "s"; },
          .every_steps = 1,
          .on_epoch_end = [&counted](const EpochReport&, FitControl&) { counted += "e"; },
          .save = [&counted] { return counted; },
          .restore = [&counted](const std::string& saved) { counted = saved; }};
}

ResumedOutcome fit_job(const ResumedJob& job, const std::function<void(FitOptions&)>& change) {
  Training training(job.own_memory ? own_memory_devices(job.replicas, "discrete", DeviceNeed::kKernels)
                                   : test_devices(job.replicas, DeviceNeed::kKernels));
  Model model = training.strategy.build(job.net, {.seed = 3});
  model.compile({.optimizer = job.optimizer, .metrics = {accuracy(), confusion_matrix(), top_k(2)}});
  std::string counted;
  FitOptions options{.epochs = 2,
                     .steps_per_epoch = job.steps_per_epoch,
                     .callbacks = {resumed_counting(counted)},
                     .verbose = 0,
                     .input = {.seed = 5},
                     .step = {.accumulate = job.accumulate, .virtual_shards = job.virtual_shards}};
  if (job.validated) options.validation = blobs(20, {6, 6, 2}, 4, 2).shuffle().batch({.global_batch = 6});
  change(options);
  const History history =
      model.fit(blobs(50, {6, 6, 2}).shuffle().map(flip()).batch({.global_batch = 8}), options);
  ResumedOutcome outcome{.weights = model.weights_sha256(),
                         .kept = {},
                         .history = computed(history),
                         .step = model.global_step(),
                         .callback = counted};
  for (const std::string& name : model.optimizer_variable_names())
    outcome.kept.push_back(model.read_variable(name));
  model.check_mirrored();
  return outcome;
}

class ResumeTest : public testing::TestWithParam<ResumedJob> {};

TEST_P(ResumeTest, StoppedAtEachStepItContinuesToTheSameBits) {
  const ResumedOutcome whole = fit_job(GetParam(), [](FitOptions&) {});
  ASSERT_GT(whole.step, 3U);
  for (std::uint64_t stop = 1; stop < whole.step; ++stop) {
    const TempFolder folder;
    const CheckpointOptions checkpoints{.folder = folder.path()};
    fit_job(GetParam(), [&](FitOptions& options) {
      options.checkpoints = checkpoints;
      options.stop_after_steps = stop;
    });
    const ResumedOutcome resumed = fit_job(GetParam(), [&](FitOptions& options) {
      options.checkpoints = checkpoints;
      options.resume = true;
    });
    EXPECT_EQ(resumed.weights, whole.weights) << "stopped after step " << stop;
    EXPECT_EQ(resumed.history, whole.history) << "stopped after step " << stop;
    EXPECT_EQ(resumed.callback, whole.callback) << "stopped after step " << stop;
    EXPECT_TRUE(resumed == whole) << "stopped after step " << stop;
  }
}

// As many runs as steps, each of one step.
TEST_P(ResumeTest, AStepARun) {
  const ResumedOutcome whole = fit_job(GetParam(), [](FitOptions&) {});
  const TempFolder folder;
  ResumedOutcome last;
  for (std::uint64_t stop = 1; stop <= whole.step; ++stop) {
    last = fit_job(GetParam(), [&](FitOptions& options) {
      options.checkpoints = CheckpointOptions{.folder = folder.path(), .keep = 2};
      options.resume = true;
      options.stop_after_steps = stop < whole.step ? stop : 0;
    });
  }
  EXPECT_TRUE(last == whole);
  EXPECT_EQ(last.weights, whole.weights);
  EXPECT_EQ(last.history, whole.history);
  EXPECT_EQ(list_directory(folder.path()).size(), 2U);
}

// The last step of the first epoch is made, its validation not.
TEST_P(ResumeTest, StoppedBeforeTheValidation) {
  const ResumedOutcome whole = fit_job(GetParam(), [](FitOptions&) {});
  const TempFolder folder;
  std::atomic<bool> stop = false;
  const auto last_of_epoch = static_cast<std::uint64_t>(whole.history.at("steps").front());
  fit_job(GetParam(), [&](FitOptions& options) {
    options.checkpoints = CheckpointOptions{.folder = folder.path()};
    options.stop = &stop;
    options.callbacks.push_back(
        {.on_step = [&](const StepReport& report,
                        FitControl&) { stop = stop || report.global_step == last_of_epoch; },
         .every_steps = 1});
  });
  const ResumedOutcome resumed = fit_job(GetParam(), [&](FitOptions& options) {
    options.checkpoints = CheckpointOptions{.folder = folder.path()};
    options.resume = true;
  });
  EXPECT_TRUE(resumed == whole);
  EXPECT_EQ(resumed.weights, whole.weights);
  EXPECT_EQ(resumed.history, whole.history);
  EXPECT_EQ(resumed.callback, whole.callback);
}

INSTANTIATE_TEST_SUITE_P(Jobs, ResumeTest,
                         testing::Values(ResumedJob{.name = "plain"},
                                         ResumedJob{.name = "one_replica", .replicas = 1},
                                         ResumedJob{.name = "three_replicas", .replicas = 3},
                                         ResumedJob{.name = "accumulating", .accumulate = 2},
                                         ResumedJob{.name = "short_epochs", .accumulate = 2, .steps_per_epoch = 3},
                                         ResumedJob{.name = "long_epochs", .steps_per_epoch = 9},
                                         ResumedJob{.name = "unvalidated", .validated = false},
                                         ResumedJob{.name = "discrete", .own_memory = true},
                                         ResumedJob{.name = "virtual_shards", .virtual_shards = 4},
                                         ResumedJob{.name = "adam", .optimizer = adam(1e-2F)}),
                         [](const auto& job) { return std::string(job.param.name); });

// Sums of floats have another order then, so that bits may differ; nothing else does.
TEST(Resume, WithAnotherNumberOfReplicas) {
  const Optimizer optimizer = adam(1e-2F);
  const ResumedJob two{.replicas = 2, .optimizer = optimizer, .net = small_cnn};
  const ResumedJob one{.replicas = 1, .optimizer = optimizer, .net = small_cnn};
  const ResumedJob three{.replicas = 3, .optimizer = optimizer, .net = small_cnn};
  const ResumedOutcome whole = fit_job(two, [](FitOptions&) {});
  for (const ResumedJob& other : {one, three}) {
    const TempFolder folder;
    fit_job(two, [&](FitOptions& options) {
      options.checkpoints = CheckpointOptions{.folder = folder.path()};
      options.stop_after_steps = 5;
    });
    const ResumedOutcome resumed = fit_job(other, [&](FitOptions& options) {
      options.checkpoints = CheckpointOptions{.folder = folder.path()};
      options.resume = true;
    });
    EXPECT_EQ(resumed.step, whole.step);
    EXPECT_EQ(resumed.callback, whole.callback);
    EXPECT_EQ(resumed.history.at("steps"), whole.history.at("steps"));
    for (const char* name : {"loss", "val_loss"}) {
      for (std::size_t epoch = 0; epoch < 2; ++epoch) {
        EXPECT_NEAR(resumed.history.at(name)[epoch], whole.history.at(name)[epoch], 1e-3) << name;
      }
    }
  }
}

TEST(Resume, WithVirtualShardsOnAnyNumberOfReplicas) {
  const auto job = [](int replicas) { return ResumedJob{.replicas = replicas, .virtual_shards = 4}; };
  const ResumedOutcome whole = fit_job(job(2), [](FitOptions&) {});
  for (const int replicas : {1, 4}) {
    const TempFolder folder;
    for (const std::uint64_t stop : {3, 0}) {
      const ResumedOutcome last = fit_job(job(stop > 0 ? 2 : replicas), [&](FitOptions& options) {
        options.checkpoints = CheckpointOptions{.folder = folder.path()};
        options.resume = true;
        options.stop_after_steps = stop;
      });
      if (stop > 0) continue;
      EXPECT_EQ(last.weights, whole.weights) << replicas;
      EXPECT_EQ(last.history, whole.history) << replicas;
      EXPECT_TRUE(last == whole) << replicas;
    }
  }
}

// Each is of its own step, also where it is written while the next steps run.
TEST(Resume, FromEveryCheckpointThatWasMadeOnTheWay) {
  const ResumedJob job{.replicas = 2};
  const ResumedOutcome whole = fit_job(job, [](FitOptions&) {});
  for (const bool asynchronous : {false, true}) {
    const TempFolder folder;
    fit_job(job, [&](FitOptions& options) {
      options.checkpoints =
          CheckpointOptions{.folder = folder.path(), .every_steps = 1, .keep = 0, .asynchronous = asynchronous};
    });
    const std::vector<DirectoryEntry> files = list_directory(folder.path());
    EXPECT_TRUE(asynchronous || files.size() == whole.step);
    EXPECT_GE(files.size(), 2U) << "one that is due while two are being written is made later";
    for (const DirectoryEntry& file : files) {
      const TempFolder copy;
      std::filesystem::copy_file(file.path, copy / file.path.filename().string());
      const ResumedOutcome resumed = fit_job(job, [&](FitOptions& options) {
        options.checkpoints = CheckpointOptions{.folder = copy.path()};
        options.resume = true;
      });
      EXPECT_TRUE(resumed == whole) << file.path;
      EXPECT_EQ(resumed.history, whole.history) << file.path;
    }
  }
}

TEST(Resume, WhatACallbackEndedHasEnded) {
  const ResumedJob job{.replicas = 1};
  const TempFolder folder;
  const auto fit = [&](int epochs, bool ends) {
    return fit_job(job, [&](FitOptions& options) {
      options.epochs = epochs;
      options.checkpoints = CheckpointOptions{.folder = folder.path()};
      options.resume = true;
      if (ends)
        options.callbacks.push_back(
            {.on_epoch_end = [](const EpochReport&, FitControl& control) { control.request_stop(); }});
    });
  };
  EXPECT_EQ(fit(3, true).step, 7U);
  EXPECT_EQ(fit(3, false).step, 7U);
  EXPECT_EQ(fit(4, false).step, 28U);
}

std::string refusal_to_resume(const std::function<void(FitOptions&)>& change) {
  const TempFolder folder;
  const ResumedJob job{.replicas = 1};
  fit_job(job, [&](FitOptions& options) {
    options.checkpoints = CheckpointOptions{.folder = folder.path()};
    options.stop_after_steps = 3;
  });
  return message_of([&] {
    fit_job(job, [&](FitOptions& options) {
      options.checkpoints = CheckpointOptions{.folder = folder.path()};
      options.resume = true;
      change(options);
    });
  });
}

// With another optimizer, on the checkpoint of one with two groups; empty where it goes on.
std::string refusal_of_change(const std::function<void(Optimizer&)>& change) {
  const TempFolder folder;
  Optimizer optimizer = with_all_around(grouped());
  const auto fit = [&](std::uint64_t stop) {
    Training training(1);
    Model model = compiled(training.strategy, small_cnn, optimizer);
    model.fit(blobs(32, {6, 6, 2}).batch({.global_batch = 8}),
              {.epochs = 2,
               .verbose = 0,
               .stop_after_steps = stop,
               .checkpoints = CheckpointOptions{.folder = folder.path()},
               .resume = true});
  };
  fit(3);
  change(optimizer);
  try {
    fit(0);
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder.path().string()));
    return error.what();
  }
  return {};
}

TEST(Resume, RefusesAnotherOptimizerAndNamesBoth) {
  EXPECT_THAT(
      refusal_of_change([](Optimizer& of) { of = adam(); }),
      AllOf(HasSubstr("the optimizer was muon, is adam"), HasSubstr("the number of parameter groups was 2, is 0"),
            HasSubstr("the average of the weights was {"), HasSubstr("lookahead was {")));
  EXPECT_THAT(refusal_of_change([](Optimizer& of) { std::get<MuonOptions>(of.rule).momentum = 0.7F; }),
              HasSubstr("the optimizer.muon.momentum was 0.95, is 0.7"));
  EXPECT_THAT(refusal_of_change([](Optimizer& of) { of.groups[1].rule = SgdOptions{}; }),
              HasSubstr("parameter group 2 was adam, is sgd"));
  EXPECT_THAT(refusal_of_change([](Optimizer& of) { of.groups[0].takes = VariableRule::named("*/bias"); }),
              AllOf(HasSubstr("what parameter group 1 takes.rank was 1, is none"),
                    HasSubstr("what parameter group 1 takes.name was none, is */bias")));
  EXPECT_THAT(refusal_of_change([](Optimizer& of) {
                of.groups.push_back({.takes = VariableRule::of_kind("conv"), .rule = MuonOptions{}});
              }),
              HasSubstr("the number of parameter groups was 2, is 3"));
  EXPECT_THAT(refusal_of_change([](Optimizer& of) { of.average.reset(); }), HasSubstr("}, is none"));
  EXPECT_THAT(refusal_of_change([](Optimizer& of) { of.average->decay = 0.5F; }),
              HasSubstr("the average of the weights.decay was "));
  EXPECT_THAT(refusal_of_change([](Optimizer& of) { of.lookahead->every = 77; }),
              HasSubstr("lookahead.every was "));
  const std::string clipped =
      refusal_of_change([](Optimizer& of) { of.clip = {.max_norm = 77, .max_value = 88}; });
  EXPECT_THAT(clipped, AllOf(HasSubstr("clip.max_norm was "), HasSubstr("clip.max_value was ")));
}

// As a run of more epochs has them.
TEST(Resume, TakesOtherSchedules) {
  EXPECT_EQ(refusal_of_change([](Optimizer& of) {
              of.learning_rate = 0.01F;
              of.groups[0].learning_rate = Schedule::cosine_decay({.peak = 0.1F, .total_steps = 99});
              std::get<MuonOptions>(of.rule).norm_interval = {.first = 2, .growth = 3, .over_steps = 400};
            }),
            "");
}

// What the model and the data are, each named.
TEST(Resume, RefusesAnotherNetLossPrecisionOrBatch) {
  const TempFolder folder;
  struct Changed {
    Net net = small_mlp;
    CompileOptions compile = {.optimizer = adam(1e-2F)};
    std::int64_t batch = 8;
  };
  const auto fit = [&](const Changed& job, std::uint64_t stop) -> std::string {
    Training training(1);
    Model model = training.strategy.build(job.net, {.seed = 3});
    model.compile(job.compile);
    return message_of([&] {
      model.fit(blobs(40).shuffle().batch({.global_batch = job.batch}),
                {.epochs = 2,
                 .verbose = 0,
                 .stop_after_steps = stop,
                 .checkpoints = CheckpointOptions{.folder = folder.path()},
                 .resume = true});
    });
  };
  ASSERT_EQ(fit({}, 3), "");
  const Net tanh = [](Graph& g) {
    return g.dense(g.dense(g.input("image", {8}), 16, {.activation = Activation::kNone}), 4);
  };
  EXPECT_THAT(fit({.net = tanh}, 0), HasSubstr("relu"));
  Changed job;
  job.compile.loss = sparse_categorical_crossentropy({.label_smoothing = 0.1F});
  EXPECT_THAT(fit(job, 0), HasSubstr("loss.terms[0].options.label_smoothing was 0, is 0.1"));
  job = {};
  job.compile.metrics = {accuracy(), top_k(2)};
  EXPECT_THAT(fit(job, 0), HasSubstr("metrics was "));
  job = {};
  job.compile.precision = Precision::kBF16;
  EXPECT_THAT(fit(job, 0), HasSubstr("precision was f32, is bf16"));
  EXPECT_THAT(fit({.batch = 10}, 0), HasSubstr("of the data was batch(global_batch=8, drop_remainder=false), is "
                                               "batch(global_batch=10, drop_remainder=false)"));
  EXPECT_EQ(fit({}, 0), "");
}

TEST(Resume, RefusesAnotherTraining) {
  EXPECT_THAT(refusal_to_resume([](FitOptions& options) { options.step.accumulate = 2; }),
              HasSubstr("accumulate was 1, is 2"));
  EXPECT_THAT(refusal_to_resume([](FitOptions& options) { options.steps_per_epoch = 4; }),
              HasSubstr("steps in an epoch was 7, is 4"));
  EXPECT_THAT(refusal_to_resume([](FitOptions& options) { options.input.seed = 6; }),
              HasSubstr("seed was 5, is 6"));
  EXPECT_THAT(refusal_to_resume([](FitOptions& options) { options.validation.reset(); }),
              HasSubstr("validation was true, is false"));
  EXPECT_THAT(refusal_to_resume([](FitOptions& options) {
                options.validation = blobs(20, {6, 6, 2}, 4, 2).shuffle().batch({.global_batch = 5});
              }),
              HasSubstr("of the validation's data was batch(global_batch=6, drop_remainder=false), is "
                        "batch(global_batch=5, drop_remainder=false)"));
  EXPECT_THAT(refusal_to_resume([](FitOptions& options) { options.checkpoints.reset(); }),
              HasSubstr("nothing says from what"));
  EXPECT_EQ(refusal_to_resume([](FitOptions& options) { options.epochs = 3; }), "");
}

}  // namespace
}  // namespace headrace::test
