#include "headrace/train/engine/objective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operation.h"
#include "headrace/train/layers.h"

namespace headrace {
namespace {

constexpr std::size_t kPlace = 64;  // what each part begins on a multiple of

std::size_t on_place(std::size_t bytes) { return (bytes + kPlace - 1) / kPlace * kPlace; }

void check_source(const Graph& graph, const std::string& who, const std::string& layer) {
  if (layer.empty() || layer == graph.name(graph.output())) return;
  throw ConfigError(fmt::format("{} is of the result of layer '{}', but the model gives that of '{}' alone", who,
                                layer, graph.name(graph.output())));
}

}  // namespace

ResultInfo result_info(const Graph& graph) {
  const Layer& last = graph.layer(graph.output());
  return {.shape = last.shape(),
          .layer = label(graph.name(graph.output()), last.kind()),
          .softmax = last.traits(Mode::kEvaluate).only_last};
}

bool leaves_out_softmax(const Graph& graph, const Loss& loss) {
  if (!result_info(graph).softmax) return false;
  const auto takes_logits = [](const LossTerm& term) { return term.function->form() == ResultForm::kLogits; };
  const auto taking = static_cast<std::size_t>(std::ranges::count_if(loss.terms, takes_logits));
  if (taking == 0 || taking == loss.terms.size()) return taking > 0;
  throw ConfigError("one term of the loss takes the logits of the softmax, another its probabilities",
                    "end the net with the logits, or use losses of one kind");
}

void check_objective(const Graph& graph, const Loss& loss, const std::vector<Metric>& metrics) {
  const ResultInfo info = result_info(graph);
  if (loss.terms.empty()) throw ConfigError("the loss has no terms", "name one, such as mean_squared_error()");
  for (const LossTerm& term : loss.terms) {
    if (term.function == nullptr) throw ConfigError("a term of the loss has no function");
    check_source(graph, term.function->name(), term.result);
    term.function->check_result(info);
  }
  const bool logits = leaves_out_softmax(graph, loss);
  for (const Metric& metric : metrics) {
    const std::string name = metric.function->name();
    check_source(graph, name, metric.result);
    metric.function->check_result(info);
    if (metric.function->form() == ResultForm::kLogits && !logits) {
      throw ConfigError("metric '" + name + "' is of the logits, but the loss takes the probabilities");
    }
    if (name == "loss" ||
        std::ranges::count(metrics, name, [](const Metric& m) { return m.function->name(); }) > 1) {
      throw ConfigError("two metrics are called '" + name + "'", "name each once");
    }
  }
}

Objective::Objective(const Graph& graph, const Loss& loss, const std::vector<Metric>& metrics,
                     const Fields& fields, std::int64_t rows)
    : info_(result_info(graph)),
      result_{nullptr, info_.shape.with_front(rows), DType::kF32},
      reduction_(loss.reduction) {
  check_objective(graph, loss, metrics);
  for (const LossTerm& term : loss.terms) {
    labels_of(term.label_field, fields, term.function->takes_class_numbers());
  }
  for (const Metric& metric : metrics) {
    labels_of(metric.label_field.empty() ? loss.terms.front().label_field : metric.label_field, fields, false);
  }
  place_labels();
  add_terms(loss, fields);
  add_metrics(metrics, leaves_out_softmax(graph, loss), fields);
}

std::size_t Objective::labels_of(const std::string& field, const Fields& fields, bool class_numbers) {
  const Field& wanted = fields[find_field(fields, field.empty() ? kLabelField : field)];
  const auto same = [&](const Labels& labels) { return labels.field.name == wanted.name; };
  auto found = std::ranges::find_if(labels_, same);
  if (found == labels_.end()) {
    const bool number = wanted.dtype == DType::kI64 && wanted.shape.elements() == 1;
    const std::int64_t rows = result_.shape[0];
    labels_.push_back(
        {.field = wanted, .batch = {nullptr, number ? Shape{rows} : wanted.shape.with_front(rows), wanted.dtype}});
    found = labels_.end() - 1;
  }
  if (class_numbers && found->batch.dtype == DType::kI64) found->classes = info_.shape.back();
  return static_cast<std::size_t>(found - labels_.begin());
}

void Objective::place_labels() {
  std::ranges::stable_partition(labels_, [](const Labels& labels) { return labels.classes > 0; });
  for (Labels& labels : labels_) {
    labels.offset = labels_bytes_;
    labels_bytes_ += on_place(labels.batch.bytes());
    if (labels.classes > 0) class_labels_bytes_ = labels.offset + labels.batch.bytes();
  }
}

Objective::Scratch Objective::reserve(const std::vector<TensorView>& views, std::size_t& bytes) const {
  Scratch scratch{.views = views, .offsets = {}};
  for (const TensorView& view : views) {
    scratch.offsets.push_back(bytes);
    bytes += on_place(view.bytes());
  }
  return scratch;
}

void Objective::add_terms(const Loss& loss, const Fields& fields) {
  for (const LossTerm& each : loss.terms) {
    Term term{.loss = each, .labels = labels_of(each.label_field, fields, false)};
    const Labels& labels = labels_[term.labels];
    each.function->check_labels(info_, labels.field);
    const ScratchSpec scratch = each.function->scratch(result_, labels.batch);
    term.device = reserve(scratch.device, device_scratch_bytes_);
    term.pinned = reserve(scratch.pinned, pinned_scratch_bytes_);
    terms_.push_back(std::move(term));
  }
  sums_ = terms_.size();
  if (terms_.size() == 1 && terms_.front().loss.weight == 1.0F) return;
  term_gradient_at_ = device_scratch_bytes_;
  device_scratch_bytes_ += on_place(result_.bytes());
}

void Objective::add_metrics(const std::vector<Metric>& metrics, bool logits, const Fields& fields) {
  probabilities_at_ = device_scratch_bytes_;
  for (const Metric& each : metrics) {
    Judge judge{.metric = each};
    judge.labels =
        labels_of(each.label_field.empty() ? terms_.front().loss.label_field : each.label_field, fields, false);
    const Labels& labels = labels_[judge.labels];
    each.function->check_labels(info_, labels.field);
    judge.counted = each.function->is_accuracy() && terms_.front().loss.function->counts_correct() &&
                    judge.labels == terms_.front().labels;
    judge.sums = judge.counted ? 0 : sums_++;
    judge.normalised = logits && each.function->form() == ResultForm::kWhole;
    if (judge.normalised && device_scratch_bytes_ == probabilities_at_) {
      device_scratch_bytes_ += on_place(result_.bytes());
    }
    if (const std::optional<Shape> table = each.function->table(info_)) judge.table = *table;
    judge.table_at = table_elements_;
    table_elements_ += static_cast<std::size_t>(judge.table.elements());
    metrics_.push_back(std::move(judge));
  }
  for (Judge& judge : metrics_) {
    const ScratchSpec scratch = judge.metric.function->scratch(result_, labels_[judge.labels].batch);
    judge.device = reserve(scratch.device, device_scratch_bytes_);
    judge.pinned = reserve(scratch.pinned, pinned_scratch_bytes_);
  }
}

TensorView Objective::labels_view(const ObjectiveBinding& binding, std::size_t index) const {
  const Labels& labels = labels_[index];
  return {binding.labels + labels.offset, labels.batch.shape, labels.batch.dtype};
}

TensorView Objective::scratch_view(const ObjectiveBinding& binding, std::size_t offset) const {
  return {binding.device_scratch + offset, binding.result.shape, DType::kF32};
}

std::vector<TensorView> Objective::placed(const Scratch& scratch, std::byte* base) {
  std::vector<TensorView> views = scratch.views;
  for (std::size_t i = 0; i < views.size(); ++i) views[i].data = base + scratch.offsets[i];
  return views;
}

void Objective::submit(const ObjectiveBinding& binding) const {
  for (std::size_t i = 0; i < terms_.size(); ++i) submit_term(binding, i);
  const auto normalised = [](const Judge& judge) { return judge.normalised; };
  if (std::ranges::any_of(metrics_, normalised)) {
    binding.kernels.softmax(binding.stream, binding.result, scratch_view(binding, probabilities_at_));
  }
  for (const Judge& judge : metrics_) {
    if (!judge.counted) submit_metric(binding, judge);
  }
}

// A term that is the whole loss writes the gradient itself; that of each other is weighted and added.
void Objective::submit_term(const ObjectiveBinding& binding, std::size_t index) const {
  const Term& term = terms_[index];
  const bool learns = binding.gradient.defined();
  const bool whole = terms_.size() == 1 && term.loss.weight == 1.0F;
  const TensorView mine = scratch_view(binding, term_gradient_at_);
  term.loss.function->submit({.stream = binding.stream,
                              .kernels = binding.kernels,
                              .scalars = binding.scalars,
                              .result = binding.result,
                              .labels = labels_view(binding, term.labels),
                              .gradient = whole || !learns ? binding.gradient : mine,
                              .sums = reinterpret_cast<MetricSums*>(binding.totals) + index,
                              .device_scratch = placed(term.device, binding.device_scratch),
                              .pinned_scratch = placed(term.pinned, binding.pinned_scratch)});
  if (whole || !learns) return;
  binding.kernels.scale(binding.stream, mine, term.loss.weight, index == 0 ? binding.gradient : mine);
  if (index > 0) binding.kernels.accumulate(binding.stream, mine, binding.gradient);
}

void Objective::submit_metric(const ObjectiveBinding& binding, const Judge& judge) const {
  judge.metric.function->submit(
      {.stream = binding.stream,
       .kernels = binding.kernels,
       .scalars = binding.scalars,
       .result = judge.normalised ? scratch_view(binding, probabilities_at_) : binding.result,
       .labels = labels_view(binding, judge.labels),
       .sums = reinterpret_cast<MetricSums*>(binding.totals) + judge.sums,
       .table = {reinterpret_cast<std::int64_t*>(binding.tables) + judge.table_at, judge.table, DType::kI64},
       .device_scratch = placed(judge.device, binding.device_scratch),
       .pinned_scratch = placed(judge.pinned, binding.pinned_scratch)});
}

ObjectiveTotals Objective::no_totals() const { return {.sums = std::vector<MetricSums>(sums_)}; }

void Objective::add(const std::byte* totals, ObjectiveTotals& into) const {
  const auto* sums = reinterpret_cast<const MetricSums*>(totals);
  for (std::size_t i = 0; i < sums_; ++i) into.sums[i] += sums[i];
}

void Objective::add_tables(const std::byte* tables, ObjectiveTotals& into) const {
  const auto* counts = reinterpret_cast<const std::int64_t*>(tables);
  into.tables.resize(table_elements_);
  for (std::size_t i = 0; i < table_elements_; ++i) into.tables[i] += counts[i];
}

MetricSums Objective::sums(const ObjectiveTotals& totals) const {
  MetricSums all{.examples = totals.sums.front().examples};
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    all.loss += static_cast<double>(terms_[i].loss.weight) * totals.sums[i].loss;
  }
  const auto accuracy = [](const Judge& judge) { return judge.metric.function->is_accuracy(); };
  const auto found = std::ranges::find_if(metrics_, accuracy);
  const bool counted = terms_.front().loss.function->counts_correct();
  if (counted) all.correct = totals.sums.front().correct;
  if (!counted && found != metrics_.end()) all.correct = totals.sums[found->sums].correct;
  return all;
}

std::vector<MetricValue> Objective::values(const ObjectiveTotals& totals) const {
  std::vector<MetricValue> values;
  for (const Judge& judge : metrics_) {
    const auto elements = static_cast<std::size_t>(judge.table.elements());
    if (elements > 0 && totals.tables.empty()) continue;
    const std::span all(totals.tables);
    MetricValue value = judge.metric.function->value(
        {.sums = totals.sums[judge.sums],
         .table = elements > 0 ? all.subspan(judge.table_at, elements) : std::span<const std::int64_t>()});
    value.name = judge.metric.function->name();
    values.push_back(std::move(value));
  }
  return values;
}

bool Objective::finite_losses(const std::byte* totals) const {
  const std::span sums(reinterpret_cast<const MetricSums*>(totals), terms_.size());
  return std::ranges::all_of(sums, [](const MetricSums& of) { return std::isfinite(of.loss); });
}

const LossFunction* Objective::miscounted(const ObjectiveTotals& totals, std::int64_t examples) const {
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (totals.sums[i].examples != examples) return terms_[i].loss.function.get();
  }
  return nullptr;
}

}  // namespace headrace
