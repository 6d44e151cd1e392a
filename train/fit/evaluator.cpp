#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/fit/options_of_fit.h"
#include "headrace/train/fit/worker_agreement.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/model/optimizer_memory.h"
#include "headrace/train/model/submission.h"
#include "headrace/train/step/batch_feed.h"
#include "headrace/train/step/batch_queue.h"
#include "headrace/train/step/loop_checks.h"
#include "headrace/train/step/objective.h"
#include "headrace/train/step/shards.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

// A loader over a data set, for one pass.
struct OwnInput {
  DeviceGroup shards;
  Loader loader;

  OwnInput(Model& model, const Dataset& data, const EvaluateOptions& options, Mode mode)
      : shards(shard_devices(model.strategy(), mode == Mode::kPredict ? 0 : options.virtual_shards)),
        loader(data, shards, evaluation_input(model.state(), mode, options)) {}
};

void check_evaluation(const ModelState& model, const EvaluateOptions& options, Mode mode) {
  switch (mode) {
    case Mode::kEvaluate: model.require_compiled("evaluation()"); return;
    case Mode::kPredict:
      if (options.views.empty()) return;
      throw ConfigError("predict() gives the net's own results and takes no views", "use evaluate(), or no views");
    case Mode::kTrain: throw ConfigError("an Evaluator does not train", "make a Trainer");
  }
}

BatchQueueOptions queue_options(const ModelState& model, const Loader& loader, const EvaluateOptions& options,
                                Mode mode) {
  const Precision precision = model.compiled ? model.compiled->precision : Precision::kF32;
  BatchQueueOptions queue{.program = {.mode = mode, .rows = rows_of_batches(loader), .precision = precision},
                          .burst = loader.burst(),
                          .averaged_weights = options.averaged_weights};
  if (mode == Mode::kPredict) {
    queue.nan = NanPolicy::kIgnore;
    return queue;
  }
  queue.loss = model.compiled->loss.class_weighted({});  // they count in training
  queue.metrics = model.compiled->metrics;
  queue.virtual_shards = options.virtual_shards;
  return queue;
}

// Gathers the results of every example, in the order of the records, one batch at a time.
class ResultReader {
 public:
  ResultReader(const ModelState& model, std::int64_t rows) : graph_(*model.graph), rows_(rows) {
    predictions_.others.resize(graph_.outputs().size() - 1);
    predictions_.task = result_info(graph_, model.compiled ? model.compiled->loss : Loss(), 0).task;
  }

  // Shards in order hold the rows of a global batch in order.
  void add(const StepSlot& step) {
    for (const ShardSlot& slot : step.shards) {
      const float* from = slot.result;
      for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
        const std::int64_t elements = graph_.layer(graph_.outputs()[i]).shape().elements();
        values(i).insert(values(i).end(), from, from + slot.examples * elements);
        from += rows_ * elements;
      }
      predictions_.records.insert(predictions_.records.end(), slot.records.begin(), slot.records.end());
    }
    rows_of_batch_.push_back(predictions_.records.size());
  }

  // Adds the results of all other workers, in order: each has consecutive rows of every global batch.
  void gather(Workers& workers);

  Predictions finish() {
    const auto examples = static_cast<std::int64_t>(predictions_.records.size());
    predictions_.shape = graph_.layer(graph_.output()).shape().with_front(examples);
    for (std::size_t i = 0; i < predictions_.others.size(); ++i) {
      const int output = graph_.outputs()[i + 1];
      predictions_.others[i].layer = graph_.name(output);
      predictions_.others[i].shape = graph_.layer(output).shape().with_front(examples);
    }
    return std::move(predictions_);
  }

 private:
  std::vector<float>& values(std::size_t output) {
    return output == 0 ? predictions_.values : predictions_.others[output - 1].values;
  }
  template <typename T>
  void gather(Workers& workers, const std::vector<std::vector<std::uint64_t>>& ends, std::vector<T>& values);

  const Graph& graph_;
  std::int64_t rows_;
  Predictions predictions_;
  std::vector<std::uint64_t> rows_of_batch_;  // by batch: the rows of this worker up to its end
};

void ResultReader::gather(Workers& workers) {
  const auto ends = gather_values(workers, std::span<const std::uint64_t>(rows_of_batch_));
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) gather(workers, ends, values(i));
  gather(workers, ends, predictions_.records);
}

// `ends`: by worker and batch. Rows of `values` are equally long.
template <typename T>
void ResultReader::gather(Workers& workers, const std::vector<std::vector<std::uint64_t>>& ends,
                          std::vector<T>& values) {
  const auto lists = gather_values(workers, std::span<const T>(values));
  values.clear();
  for (std::size_t batch = 0; batch < ends.front().size(); ++batch) {
    for (std::size_t worker = 0; worker < lists.size(); ++worker) {
      const std::vector<T>& list = lists[worker];
      if (list.empty()) continue;
      const std::size_t each = list.size() / ends[worker].back();
      const std::size_t begin = batch == 0 ? 0 : ends[worker][batch - 1], end = ends[worker][batch];
      values.insert(values.end(), list.begin() + static_cast<std::ptrdiff_t>(begin * each),
                    list.begin() + static_cast<std::ptrdiff_t>(end * each));
    }
  }
}

}  // namespace

class Evaluator::Impl {
 public:
  // `own`: null if the loader is the caller's.
  Impl(Model& model, std::unique_ptr<OwnInput> own, Loader& loader, const EvaluateOptions& options, Mode mode)
      : model_(model.state()),
        options_(options),
        mode_(mode),
        compilation_(model_.compilations),
        own_(std::move(own)),
        loader_(loader),
        queue_(model_, loader.fields(), queue_options(model_, loader, options, mode)),
        forward_(model_, queue_, loader.fields()) {
    if (!options.views.empty()) want_images_for_views(*model_.graph, loader.fields());
    for (int shard = 0; shard < queue_.shards().local_shards(); ++shard) record(shard);
    if (mode == Mode::kPredict) queue_.on_done = [this](const StepSlot& step) { results_->add(step); };
  }

  void warm_up() {
    check_model();
    round_averages();
    queue_.warm_up(work());
  }

  Evaluation evaluate() {
    const Stopwatch time;
    const std::optional<MetricSums> sums = pass();
    if (!sums) throw_stopped();
    loader_.stats().require_good();
    return {.loss = mean_loss(*sums),
            .accuracy = reported_accuracy(*sums, metrics()),
            .examples = sums->examples,
            .seconds = time.seconds(),
            .metrics = metrics()};
  }

  Predictions predict() {
    if (mode_ != Mode::kPredict) throw ConfigError("this Evaluator counts", "make it with Mode::kPredict");
    results_.emplace(model_, loader_.local_rows());
    if (!run()) throw_stopped();
    if (const auto& workers = model_.strategy->workers()) results_->gather(*workers);
    return results_->finish();
  }

  std::optional<MetricSums> pass() {
    require_counting("evaluate()");
    if (!run()) return std::nullopt;
    return queue_.totals().sums();
  }

  bool step() {
    require_counting("step()");
    std::optional<GlobalBatch> batches = take();
    if (!batches) return false;
    submit_alone(*std::move(batches));
    return true;
  }

  std::optional<GlobalBatch> take() { return queue_.take(loader_); }

  const ForwardPass& forward(GlobalBatch batches) {
    require_counting("forward()");
    if (queue_.shards().is_virtual()) {
      throw ConfigError("forward() shows the pass of a replica, and virtual shards share memory",
                        "call step(), or evaluate without virtual shards");
    }
    submit_alone(std::move(batches));
    return forward_;
  }

  MetricSums finish() {
    queue_.finish();
    return queue_.totals().sums();
  }
  std::vector<MetricValue> metrics() const { return queue_.totals().metrics(); }
  void reset_metrics() { queue_.reset(); }

 private:
  // Makes one pass over the data and waits for its end; returns false if it was stopped.
  bool run() {
    if (own_ && std::exchange(begun_, true)) {
      throw ConfigError("this " + what() + " has been run", "prepare another one");
    }
    check_model();
    round_averages();
    queue_.reset();
    const std::uint64_t all = loader_.steps_per_epoch();
    const std::uint64_t batches = options_.steps == 0 ? all : std::min(options_.steps, all);
    WorkerAgreement& agreement = agreement_.emplace(*model_.strategy);
    for (std::uint64_t done = 0; done < batches; ++done) {
      if (agreement.several() ? agreement.stops() : wants_to_stop()) return false;
      std::optional<GlobalBatch> batch = take();
      if (!batch) break;
      submit(std::move(*batch));
      if (options_.progress) options_.progress(done + 1, batches);
      if (agreement.meets_after_step()) agreement.agree(false, wants_to_stop(), fmt::format("batch {}", done + 1));
    }
    queue_.finish();
    return true;
  }

  [[noreturn]] void throw_stopped() const {
    const std::string stopped = "the " + what() + " was stopped";
    agreement_->require_uninterrupted(stopped);
    throw Error(ErrorCode::kCancelled, stopped);
  }
  bool wants_to_stop() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }

  void record(int shard) {
    const ProgramBinding bound = queue_.program().binding(shard);
    const Program& program = queue_.program().program();
    ViewEnsemble* views = nullptr;
    if (!options_.views.empty()) {
      views = &ensembles_.emplace_back(*model_.graph, program, bound, options_.views);
    }
    works_.push_back(capture(bound.stream, [&] {
      if (views == nullptr) program.forward(bound);
      const std::vector<TensorView> results = views == nullptr ? program.results(bound) : views->forward(bound);
      if (mode_ == Mode::kEvaluate) queue_.program().submit_objective(shard, results, {});
    }));
  }

  BatchQueue::Work work() {
    return {.compute = [this](int shard) {
      queue_.shards().stream(shard).launch(*works_[static_cast<std::size_t>(shard)]);
    }};
  }

  // Updates the bf16 copy of averaged weights.
  void round_averages() {
    if (!options_.averaged_weights) return;
    submit_to_all(*model_.strategy, model_.step, [this](int r) { round_average(model_, r); });
  }

  void submit(GlobalBatch batches) { queue_.submit(std::move(batches), {.step = model_.step}, work()); }
  // Submits a batch that is not part of a run().
  void submit_alone(GlobalBatch batches) {
    check_model();
    round_averages();
    submit(std::move(batches));
  }

  std::string what() const { return mode_ == Mode::kPredict ? "prediction" : "evaluation"; }
  void check_model() const { model_.require_compilation(compilation_, what()); }
  void require_counting(const std::string& call) const {
    if (mode_ == Mode::kEvaluate) return;
    throw ConfigError("this Evaluator predicts, and " + call + " counts", "make it with Mode::kEvaluate");
  }

  ModelState& model_;
  const EvaluateOptions options_;
  Mode mode_;
  std::uint64_t compilation_;
  std::unique_ptr<OwnInput> own_;
  bool begun_ = false;
  Loader& loader_;
  std::optional<WorkerAgreement> agreement_;  // of the last pass
  std::optional<ResultReader> results_;       // of a prediction
  std::vector<ViewEnsemble> ensembles_;       // by shard, if there are views
  std::vector<std::unique_ptr<CapturedWork>> works_;
  BatchQueue queue_;  // after the works: it waits when destroyed
  ForwardPass forward_;
};

Evaluator::Evaluator(Model& model, const Dataset& data, const EvaluateOptions& options, Mode mode) {
  check_evaluation(model.state(), options, mode);
  if (const auto& workers = model.strategy().workers()) {
    require_same_evaluation(*workers, model, data, options, mode);
    require_same_content(*workers, data.source(), options.input.seed, model.state().compared);
  }
  auto input = std::make_unique<OwnInput>(model, data, options, mode);
  Loader& loader = input->loader;
  impl_ = std::make_unique<Impl>(model, std::move(input), loader, options, mode);
}

Evaluator::Evaluator(Model& model, Loader& loader, const EvaluateOptions& options, Mode mode) {
  check_evaluation(model.state(), options, mode);
  check_loader(model.strategy(), loader, mode == Mode::kPredict ? 0 : options.virtual_shards, "evaluation");
  if (!loader.in_order()) {
    throw ConfigError("the loader hands batches out in any order, and an evaluation's sums and results follow it",
                      advice("make it without {}", named("LoaderOptions::in_order", "false")));
  }
  impl_ = std::make_unique<Impl>(model, nullptr, loader, options, mode);
}

Evaluator::~Evaluator() = default;

void Evaluator::warm_up() { impl_->warm_up(); }
Evaluation Evaluator::evaluate() { return impl_->evaluate(); }
Predictions Evaluator::predict() { return impl_->predict(); }
std::optional<MetricSums> Evaluator::pass() { return impl_->pass(); }
bool Evaluator::step() { return impl_->step(); }
std::optional<GlobalBatch> Evaluator::take() { return impl_->take(); }
const ForwardPass& Evaluator::forward(GlobalBatch batches) { return impl_->forward(std::move(batches)); }
MetricSums Evaluator::finish() { return impl_->finish(); }
std::vector<MetricValue> Evaluator::metrics() const { return impl_->metrics(); }
void Evaluator::reset_metrics() { impl_->reset_metrics(); }

std::vector<View> mirrored_views() { return {{.weight = 0.5F}, {.weight = 0.5F, .shift = {.mirror = true}}}; }

std::vector<View> mirrored_and_shifted_views(int pixels) {
  std::vector<View> views;
  for (const bool mirror : {false, true}) {
    views.push_back({.weight = 0.25F, .shift = {.mirror = mirror}});
    for (const int by : {-pixels, pixels}) {
      views.push_back({.weight = 0.125F, .shift = {.down = by, .right = by, .mirror = mirror}});
    }
  }
  return views;
}

}  // namespace headrace
