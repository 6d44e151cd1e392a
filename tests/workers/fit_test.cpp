// A training of several workers is that of one process with as many replicas.
#include <ostream>

#include "headrace/tests/train/training_fixture.h"
#include "headrace/tests/workers/world_fixture.h"
#include "headrace/train/checkpoints.h"

namespace headrace::test {
namespace {

// All that a step depends on or changes.
Node shared_net(Graph& g) {
  Node x = g.conv(g.input("image", {6, 6, 2}), 4, {.bias = false});
  x = g.dropout(g.relu(g.batch_norm(x, {.momentum = 0.5F})), 0.25F);
  return g.dense(g.global_average_pool(x), 4);
}

struct SharedJob {
  const char* name = "";
  int workers = 2, replicas = 1;  // of each worker
  std::int64_t examples = 50, global_batch = 8;
  FitOptions fit = {};
  Optimizer optimizer = with_all_around(grouped());
};

std::ostream& operator<<(std::ostream& stream, const SharedJob& job) { return stream << job.name; }

struct SharedOutcome {
  std::string weights;
  std::map<std::string, std::vector<double>> history;
  double evaluated = 0;
  std::vector<double> confusion;
  std::vector<float> predictions;
  std::vector<std::uint64_t> records;

  bool operator==(const SharedOutcome&) const = default;
};

std::map<std::string, std::vector<double>> untimed(const History& history) {
  std::map<std::string, std::vector<double>> lists = history.lists();
  for (const char* timed : {"seconds", "examples_per_second", "input_stall_fraction", "exposed_copy_fraction",
                            "device_idle_fraction"}) {
    lists.erase(timed);
  }
  return lists;
}

std::shared_ptr<Workers> shared(Workers& workers) {
  return {&workers, [](Workers*) {}};
}

DeviceGroup replicas_of(int count) {
  setenv("HEADRACE_CPU_THREADS", "1", 1);  // more of them give other bits
  return open_devices("cpu:" + std::to_string(count));
}

Dataset shared_data(const SharedJob& job) {
  return blobs(job.examples, {6, 6, 2}).shuffle().map(flip()).batch({.global_batch = job.global_batch});
}

Model shared_model(const SharedJob& job, Strategy& strategy) {
  Model model = strategy.build(shared_net, {.seed = 3});
  model.compile({.optimizer = job.optimizer, .metrics = {accuracy(), confusion_matrix(), top_k(2)}});
  return model;
}

SharedOutcome train_shared(const SharedJob& job, int replicas, std::shared_ptr<Workers> workers) {
  DeviceGroup devices = replicas_of(replicas);
  Strategy strategy(devices, {.announce = false, .workers = std::move(workers)});
  Model model = shared_model(job, strategy);
  FitOptions fit = job.fit;
  fit.epochs = 2;
  fit.verbose = 0;
  fit.input.seed = 5;
  fit.validation = blobs(21, {6, 6, 2}, 4, 2).batch({.global_batch = 6});
  SharedOutcome outcome;
  outcome.history = untimed(model.fit(shared_data(job), fit));
  model.check_mirrored();
  outcome.weights = model.weights_sha256();
  const Dataset test = blobs(37, {6, 6, 2}, 4, 3).batch({.global_batch = 8});
  const Evaluation evaluation = model.evaluate(test, {.virtual_shards = fit.step.virtual_shards});
  outcome.evaluated = evaluation.loss;
  for (const MetricValue& metric : evaluation.metrics) {
    if (!metric.is_number()) outcome.confusion = metric.values;
  }
  Predictions predictions = model.predict(test);
  outcome.predictions = std::move(predictions.values);
  outcome.records = std::move(predictions.records);
  return outcome;
}

// By worker.
std::vector<SharedOutcome> train_workers(const SharedJob& job) {
  std::vector<SharedOutcome> outcomes(static_cast<std::size_t>(job.workers));
  const auto errors = run_workers(job.workers, [&](Workers& workers) {
    outcomes[static_cast<std::size_t>(workers.rank())] = train_shared(job, job.replicas, shared(workers));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  return outcomes;
}

class SharedFit : public ::testing::TestWithParam<SharedJob> {};

TEST_P(SharedFit, IsThatOfOneProcess) {
  const SharedJob& job = GetParam();
  const SharedOutcome alone = train_shared(job, job.workers * job.replicas, nullptr);
  EXPECT_EQ(alone.records.size(), 37U);
  EXPECT_FALSE(alone.confusion.empty());
  for (const SharedOutcome& outcome : train_workers(job)) {
    EXPECT_EQ(outcome.weights, alone.weights);
    EXPECT_EQ(outcome.history, alone.history);
    EXPECT_EQ(outcome.evaluated, alone.evaluated);
    EXPECT_EQ(outcome.confusion, alone.confusion);
    EXPECT_EQ(outcome.predictions, alone.predictions);
    EXPECT_EQ(outcome.records, alone.records);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, SharedFit,
    ::testing::Values(SharedJob{.name = "TwoWorkers"}, SharedJob{.name = "TwoOfTwo", .replicas = 2},
                      SharedJob{.name = "Three", .workers = 3},
                      SharedJob{.name = "FewExamples", .workers = 4, .examples = 19, .global_batch = 7},
                      SharedJob{.name = "Accumulated", .fit = {.step = {.accumulate = 3}}},
                      SharedJob{.name = "PartsOfEpochs", .fit = {.steps_per_epoch = 5}},
                      SharedJob{.name = "VirtualShards", .fit = {.step = {.virtual_shards = 4}}},
                      SharedJob{.name = "Norms", .fit = {.step = {.gradient_norms = true}}}),
    [](const auto& each) { return std::string(each.param.name); });

// Stops after `steps`; 0: trains to the end. Each worker has a folder of its own, of which the chief's is
// `chiefs`.
SharedOutcome continue_training(const SharedJob& job, std::uint64_t steps, const std::filesystem::path& chiefs) {
  std::vector<SharedOutcome> outcomes(static_cast<std::size_t>(job.workers));
  const auto train_one = [&](const std::shared_ptr<Workers>& workers) {
    const bool chief = !workers || workers->rank() == 0;
    const TempFolder local;
    SharedJob mine = job;
    mine.fit.stop_after_steps = steps;
    mine.fit.resume = true;
    mine.fit.checkpoints = CheckpointOptions{.folder = chief ? chiefs : local.path(), .every_steps = 3};
    outcomes[workers ? static_cast<std::size_t>(workers->rank()) : 0] = train_shared(mine, job.replicas, workers);
    EXPECT_TRUE(std::filesystem::is_empty(local.path()));
  };
  if (job.workers == 1) {
    train_one(nullptr);
  } else {
    EXPECT_THAT(run_workers(job.workers, [&](Workers& workers) { train_one(shared(workers)); }), Each(IsEmpty()));
  }
  for (const SharedOutcome& other : outcomes) EXPECT_EQ(other, outcomes.front());
  return outcomes.front();
}

TEST(SharedFit, ContinuesWithAnotherNumberOfWorkers) {
  SharedJob job{.fit = {.step = {.virtual_shards = 4}}};
  const SharedOutcome whole = train_shared(job, 1, nullptr);
  const TempFolder folder;
  // Seven steps an epoch, so that all but one of these stop within one.
  const std::pair<int, std::uint64_t> parts[] = {{2, 2}, {4, 5}, {1, 7}, {2, 11}, {4, 0}};
  for (const auto& [workers, steps] : parts) {
    job.workers = workers;
    const SharedOutcome outcome = continue_training(job, steps, folder.path());
    if (steps > 0) continue;
    EXPECT_EQ(outcome.weights, whole.weights);
    EXPECT_EQ(outcome.history, whole.history);
    EXPECT_EQ(outcome.evaluated, whole.evaluated);
    EXPECT_EQ(outcome.confusion, whole.confusion);
    EXPECT_EQ(outcome.records, whole.records);
    const float tolerance = sums_by_shape() ? 1e-6F : 0;  // a replica of four predicts fewer rows at once
    EXPECT_THAT(outcome.predictions, Pointwise(FloatNear(tolerance), whole.predictions));
  }
}

TEST(SharedFit, GoesOnAsOneProcessWithTheSameReplicas) {
  SharedJob job;
  const SharedOutcome whole = train_shared(job, 2, nullptr);
  const TempFolder folder;
  continue_training(job, 5, folder.path());
  EXPECT_EQ(continue_training({.workers = 1, .replicas = 2}, 0, folder.path()), whole);
}

// Also saves the restored model: only the chief writes.
TEST(SharedFit, AllRestoreWhatTheChiefFinds) {
  const SharedJob job;
  const TempFolder folder;
  const SharedOutcome trained = continue_training(job, 5, folder.path());
  const auto errors = run_workers(2, [&](Workers& workers) {
    DeviceGroup devices = replicas_of(1);
    Strategy strategy(devices, {.announce = false, .workers = shared(workers)});
    const TempFolder local;
    const auto never = []() -> Model { throw std::logic_error("a new model"); };
    Model model = restore_or_create(strategy, workers.rank() == 0 ? folder.path() : local.path(), never);
    EXPECT_EQ(model.weights_sha256(), trained.weights);
    save_model(model, local.path() / "model.safetensors");
    EXPECT_EQ(std::filesystem::is_empty(local.path()), workers.rank() != 0);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(SharedFit, AllFailWhereTheChiefCannotRestore) {
  const TempFolder folder;
  folder.write("ckpt-3.safetensors", "damaged");
  const auto errors = run_workers(2, [&](Workers& workers) {
    DeviceGroup devices = replicas_of(1);
    Strategy strategy(devices, {.announce = false, .workers = shared(workers)});
    restore_or_create(strategy, folder.path(), [&] { return shared_model({}, strategy); });
  });
  EXPECT_THAT(errors, Each(HasSubstr("ckpt-3.safetensors")));
}

// What `change` makes different for worker 1.
std::vector<std::string> errors_of(const std::function<void(SharedJob&)>& change) {
  return run_workers(2, [&](Workers& workers) {
    SharedJob job;
    if (workers.rank() == 1) change(job);
    train_shared(job, 1, shared(workers));
  });
}

// What only worker 1 has, and how it is named.
struct OnlyOne {
  const char* what;
  std::function<void(SharedJob&)> change;
};

// Before any call of the fit that the others do not make.
TEST(SharedFit, WhatOnlyOneHasIsNamed) {
  const TempFolder folder;
  const CheckpointOptions in_folder{.folder = folder.path()}, record{.record = folder.path() / "record"};
  const auto every = [](std::uint64_t steps) {
    return Callback{.on_step = [](const StepReport&, FitControl&) {}, .every_steps = steps};
  };
  const std::vector<OnlyOne> rows{
      {"StepOptions::accumulate: 1 of worker 0, 2 of worker 1",
       [](SharedJob& job) { job.fit.step.accumulate = 2; }},
      {"StepOptions::virtual_shards: ", [](SharedJob& job) { job.fit.step.virtual_shards = 4; }},
      {"StepOptions::nan: stop of worker 0, trace of worker 1",
       [](SharedJob& job) { job.fit.step.nan = NanPolicy::kTrace; }},
      {"StepOptions::mirror_check_every: ", [](SharedJob& job) { job.fit.step.mirror_check_every = 1; }},
      {"StepOptions::gradient_norms: ", [](SharedJob& job) { job.fit.step.gradient_norms = true; }},
      {"FitOptions::steps_per_epoch: ", [](SharedJob& job) { job.fit.steps_per_epoch = 3; }},
      {"FitOptions::stop_after_steps: ", [](SharedJob& job) { job.fit.stop_after_steps = 3; }},
      {"FitOptions::class_weight: ",
       [](SharedJob& job) {
         job.fit.class_weight = {1, 2, 1, 1};
       }},
      {"FitOptions::checkpoints: ", [&](SharedJob& job) { job.fit.checkpoints = in_folder; }},
      {"FitOptions::checkpoints: a record of worker 1, none of worker 0",
       [&](SharedJob& job) { job.fit.checkpoints = record; }},
      {"FitOptions::resume: ", [](SharedJob& job) { job.fit.resume = true; }},
      {"LoaderOptions::headspace: ", [](SharedJob& job) { job.fit.input.headspace = 2; }},
      {"ErrorPolicy::on_error: ", [](SharedJob& job) { job.fit.input.errors.on_error = OnError::kSkip; }},
      {"Callback::every_steps: every 3 of worker 1, no step's of worker 0",
       [&](SharedJob& job) { job.fit.callbacks.push_back(every(3)); }},
      {"FitOptions::callbacks: early_stopping(monitor=val_loss, patience=2",
       [](SharedJob& job) { job.fit.callbacks.push_back(early_stopping({.patience = 2})); }},
      {"FitOptions::callbacks: ", [](SharedJob& job) { job.fit.callbacks.push_back(reduce_lr_on_plateau()); }},
      {"model (", [](SharedJob& job) { job.optimizer = sgd(0.1F); }},
      {"data: ", [](SharedJob& job) { job.examples = 51; }}};
  for (const OnlyOne& row : rows) {
    EXPECT_THAT(
        errors_of(row.change),
        Each(AllOf(HasSubstr(std::string("the workers differ in their ") + row.what), HasSubstr("of worker 1"))));
  }
}

// What only the chief uses, or each for itself.
TEST(SharedFit, WhatMayDifferIsNotCompared) {
  const TempFolder folder;
  EXPECT_THAT(errors_of([&](SharedJob& job) {
                job.fit.input.prefetch = 3;
                job.fit.input.threads = 1;
                job.fit.callbacks.push_back(csv_logger(folder.path() / "log.csv"));
                job.fit.callbacks.push_back({.on_epoch_end = [](const EpochReport&, FitControl&) {}});
              }),
              Each(IsEmpty()));
}

TEST(SharedFit, AnEvaluationOfOneIsNamed) {
  const SharedJob job;
  for (const bool predicts : {false, true}) {
    const auto errors = run_workers(2, [&](Workers& workers) {
      DeviceGroup devices = replicas_of(1);
      Strategy strategy(devices, {.announce = false, .workers = shared(workers)});
      Model model = shared_model(job, strategy);
      const Dataset test = blobs(37, {6, 6, 2}, 4, 3).batch({.global_batch = 8});
      if (workers.rank() == 1) {
        model.fit(shared_data(job), {.verbose = 0});
      } else if (predicts) {
        model.predict(test);
      } else {
        model.evaluate(test);
      }
    });
    EXPECT_THAT(errors, Each(HasSubstr(std::string("the workers are in different calls: all-gather (") +
                                       (predicts ? "predict" : "evaluate") +
                                       "()) of worker 0, all-gather (fit()) of worker 1")));
  }
  const auto errors = run_workers(2, [&](Workers& workers) {
    DeviceGroup devices = replicas_of(1);
    Strategy strategy(devices, {.announce = false, .workers = shared(workers)});
    Model model = shared_model(job, strategy);
    model.evaluate(blobs(37 + workers.rank(), {6, 6, 2}, 4, 3).batch({.global_batch = 8}));
  });
  EXPECT_THAT(errors, Each(HasSubstr("the workers differ in their data: ")));
}

TEST(SharedFit, AnErrorIsNamedByAll) {
  const auto errors = errors_of([](SharedJob& job) {
    job.fit.callbacks.push_back({.on_epoch_begin = [](int epoch, FitControl&) {
      if (epoch == 1) throw std::runtime_error("the kettle boils");
    }});
  });
  EXPECT_THAT(errors, ElementsAre(AllOf(HasSubstr("worker 1 ("), HasSubstr("failed: the kettle boils")),
                                  "the kettle boils"));
}

// Each worker has the weights of all others: what one alone writes is refused, at the latest when its epoch ends.
TEST(SharedFit, VariablesThatOneWorkerWritesAreRefused) {
  const auto write = [](FitControl& control) {
    const std::string name = control.model().variable_names().front();
    control.model().write_variable(name, control.model().read_variable(name));
  };
  const std::vector<Callback> callbacks{
      {.on_train_begin = write},
      {.on_epoch_begin =
           [=](int epoch, FitControl& control) {
             if (epoch == 1) write(control);
           }},
      {.on_step = [=](const StepReport&, FitControl& control) { write(control); }},
      {.on_epoch_end = [=](const EpochReport&, FitControl& control) { write(control); }},
      {.on_train_end = write}};
  for (const Callback& callback : callbacks) {
    const auto errors = errors_of([&](SharedJob& job) {
      job.fit.callbacks.push_back(callback);
      job.fit.callbacks.back().name = "writer";
    });
    EXPECT_THAT(errors, Each(AllOf(HasSubstr("differ in their state"), HasSubstr("variables written"))));
    const auto alike = run_workers(2, [&](Workers& workers) {
      SharedJob job;
      job.fit.callbacks.push_back(callback);
      train_shared(job, 1, shared(workers));
    });
    EXPECT_THAT(alike, Each(IsEmpty())) << "all write the same";
  }
}

// The one that was told to stop ends its fit; the other, whose caller wants it to go on, is told who did.
TEST(SharedFit, AllStopAfterTheSameStep) {
  std::atomic<bool> stop{false};
  std::vector<std::uint64_t> steps(2);
  const auto errors = run_workers(2, [&](Workers& workers) {
    DeviceGroup devices = replicas_of(1);
    Strategy strategy(devices, {.announce = false, .workers = shared(workers)});
    const SharedJob job;
    Model model = shared_model(job, strategy);
    FitOptions fit{.epochs = 1'000'000, .verbose = 0};
    if (workers.rank() == 1) {
      fit.stop = &stop;
      fit.callbacks.push_back({.on_epoch_end = [&](const EpochReport& report, FitControl&) {
        if (report.epoch == 2) stop = true;
      }});
    }
    try {
      model.fit(shared_data(job), fit);
    } catch (const WorkerInterrupted&) {
      steps[0] = model.global_step();
      throw;
    }
    steps[1] = model.global_step();
  });
  EXPECT_THAT(errors,
              ElementsAre(AllOf(HasSubstr("worker 1 ("), HasSubstr("was interrupted: all stopped after step 21")),
                          IsEmpty()));
  EXPECT_EQ(steps[0], 21U);
  EXPECT_EQ(steps[1], steps[0]);
}

TEST(SharedFit, TheChiefsFolderHasOneTraining) {
  const TempFolder folder;
  const SharedJob job{.fit = {.checkpoints = CheckpointOptions{.folder = folder.path()}}};
  train_shared(job, 1, nullptr);
  const auto errors = run_workers(2, [&](Workers& workers) { train_shared(job, 1, shared(workers)); });
  EXPECT_THAT(errors, Each(HasSubstr("of an earlier training")));
}

}  // namespace
}  // namespace headrace::test
