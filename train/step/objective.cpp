#include "headrace/train/step/objective.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations.h"
#include "headrace/train/layers.h"
#include "headrace/train/model/value_types.h"

namespace headrace {
namespace {

constexpr std::size_t kPlace = 64;  // alignment of each part

std::size_t on_place(std::size_t bytes) { return (bytes + kPlace - 1) / kPlace * kPlace; }

// Returns its own label field, or that of the first term of the same output, or else of the first term.
std::string label_field(const Graph& graph, const Loss& loss, const Metric& metric) {
  if (!metric.label_field.empty()) return metric.label_field;
  const std::size_t output = output_of(graph, metric.function->name(), metric.result);
  for (const LossTerm& term : loss.terms) {
    if (output_of(graph, term.function->name(), term.result) == output) return term.label_field;
  }
  return loss.terms.front().label_field;
}

std::string metric_name(const Graph& graph, const Metric& metric) {
  const bool one = metric.result.empty() || graph.outputs().size() == 1;
  const std::string name = (metric.is_weighted ? "weighted_" : "") + metric.function->name();
  return one ? name : metric.result + "/" + name;
}

// Returns names by term; none if there is only one term.
std::vector<std::string> term_names(const Graph& graph, const Loss& loss) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < loss.terms.size() && loss.terms.size() > 1; ++i) {
    std::size_t of_output = 0, before = 0;
    const std::string function = loss.terms[i].function->name();
    const auto output = [&](const LossTerm& term) { return output_of(graph, function, term.result); };
    const std::size_t mine = output(loss.terms[i]);
    for (std::size_t k = 0; k < loss.terms.size(); ++k) {
      if (output(loss.terms[k]) != mine) continue;
      ++of_output;
      before += k < i && loss.terms[k].function->name() == function ? 1 : 0;
    }
    std::string name = graph.name(graph.outputs()[mine]);
    if (of_output > 1) name += "_" + function;
    if (before > 0) name += fmt::format("_{}", before + 1);
    names.push_back(name + "_loss");
  }
  return names;
}

// Adds the doubles that these are the bits of.
std::int64_t real_sum(std::int64_t a, std::int64_t b) {
  return std::bit_cast<std::int64_t>(std::bit_cast<double>(a) + std::bit_cast<double>(b));
}

std::vector<double> real_values(std::span<const std::int64_t> bits) {
  std::vector<double> values;
  for (const std::int64_t each : bits) values.push_back(std::bit_cast<double>(each));
  return values;
}

}  // namespace

std::vector<ReportedValue> reported_values(const Graph& graph, const Loss& loss,
                                           const std::vector<Metric>& metrics) {
  std::vector<ReportedValue> values{{"loss"}};
  for (const Metric& metric : metrics) {
    const std::string name = metric_name(graph, metric);
    const ResultInfo info = result_info(graph, loss, output_of(graph, name, metric.result));
    values.push_back({name, metric.function->better(), metric.function->is_number(info)});
  }
  for (std::string& name : term_names(graph, loss)) values.push_back({std::move(name)});
  return values;
}

void check_objective(const Graph& graph, const Loss& loss, const std::vector<Metric>& metrics) {
  check_loss(graph, loss);
  const std::vector<bool> logits = leaves_out_softmax(graph, loss);
  for (const Metric& metric : metrics) {
    const std::string name = metric_name(graph, metric);
    const std::size_t output = output_of(graph, name, metric.result);
    metric.function->check_result(result_info(graph, loss, output));
    if (metric.function->form() == ResultForm::kLogits && !logits[output]) {
      throw ConfigError("metric '" + name + "' is of the logits, but the loss takes the probabilities");
    }
  }
  std::vector<std::string> names;
  for (const ReportedValue& value : reported_values(graph, loss, metrics)) names.push_back(value.name);
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    throw ConfigError("two metrics are called '" + *twice + "'", "name each once");
  }
}

// Checks a result's labels, which are compared with it element by element.
template <typename Function>
void check_labels(const Function& function, const ResultInfo& result, const Field& labels) {
  function.check_labels(result, labels);
  if (result.shape.rank() != 3 || labels.shape.rank() != 3) return;
  if (layout_of(labels) == ImageLayout::kChannelsLast) return;
  throw ConfigError(fmt::format("field '{}' has the channels first, and {} gives (height, width, channels)",
                                labels.name, result.layer),
                    "turn it to (height, width, channels) in a function of map()");
}

Objective::Objective(const Graph& graph, const Loss& loss, const std::vector<Metric>& metrics,
                     const Fields& fields, std::int64_t rows)
    : rows_(rows), reduction_(loss.reduction) {
  check_objective(graph, loss, metrics);
  add_outputs(graph, loss, rows);
  add_labels(graph, loss, metrics, fields);
  add_terms(graph, loss, fields);
  add_metrics(graph, loss, metrics, fields);
}

void Objective::add_outputs(const Graph& graph, const Loss& loss, std::int64_t rows) {
  const std::vector<bool> logits = leaves_out_softmax(graph, loss);
  const ProgramResults results = results_of(graph, logits);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const ResultInfo info = result_info(graph, loss, i);
    outputs_.push_back({.info = info,
                        .result = {nullptr, info.shape.with_front(rows), DType::kF32},
                        .index = static_cast<std::size_t>(results.of_output[i]),
                        .logits = logits[i]});
  }
  learned_.assign(results.layers.size(), false);
}

std::size_t Objective::labels_of(const std::string& field, const Fields& fields, std::int64_t classes) {
  const Field& wanted = fields[find_field(fields, field.empty() ? kLabelField : field)];
  const auto same = [&](const Labels& labels) { return labels.field.name == wanted.name; };
  auto found = std::ranges::find_if(labels_, same);
  if (found == labels_.end()) {
    const bool number = wanted.dtype == DType::kI64 && wanted.shape.elements() == 1;
    labels_.push_back({.field = wanted,
                       .batch = {nullptr, number ? Shape{rows_} : wanted.shape.with_front(rows_), wanted.dtype}});
    found = labels_.end() - 1;
  }
  if (classes > 0 && found->batch.dtype == DType::kI64) {
    found->classes = found->classes == 0 ? classes : std::min(found->classes, classes);
  }
  return static_cast<std::size_t>(found - labels_.begin());
}

void Objective::add_labels(const Graph& graph, const Loss& loss, const std::vector<Metric>& metrics,
                           const Fields& fields) {
  for (const LossTerm& term : loss.terms) {
    const ResultInfo& info = outputs_[output_of(graph, term.function->name(), term.result)].info;
    labels_of(term.label_field, fields, term.function->takes_class_numbers() ? info.shape.back() : 0);
  }
  for (const Metric& metric : metrics) labels_of(label_field(graph, loss, metric), fields, 0);
  for (const LossTerm& term : loss.terms) {
    if (!term.weight_field.empty()) labels_of(term.weight_field, fields, 0);
  }
  place_labels();
}

void Objective::place_labels() {
  std::ranges::stable_partition(labels_, [](const Labels& labels) { return labels.classes > 0; });
  for (Labels& labels : labels_) {
    labels.offset = labels_bytes_;
    labels_bytes_ += on_place(labels.batch.bytes());
    if (labels.classes > 0) class_labels_bytes_ = labels.offset + labels.batch.bytes();
  }
}

int Objective::weights_of(const LossTerm& term, const ResultInfo& result, const Fields& fields) {
  if (term.weight_field.empty() && term.class_weights.empty()) return -1;
  Weights weights;
  if (!term.weight_field.empty()) {
    weights.given = static_cast<int>(labels_of(term.weight_field, fields, 0));
    const Field& field = labels_[static_cast<std::size_t>(weights.given)].field;
    if (field.dtype != DType::kF32 || field.shape.is_dynamic() || field.shape.elements() != 1) {
      throw ConfigError(fmt::format("field '{}' is {} of shape {}; a weight is one float32", field.name,
                                    to_string(field.dtype), field.shape.to_string()));
    }
  }
  if (!term.class_weights.empty()) {
    const std::size_t classes =
        result.shape.elements() > 1 ? static_cast<std::size_t>(result.shape.elements()) : 2;
    if (term.class_weights.size() != classes) {
      throw ConfigError(fmt::format("there are {} class weights, but {} is of {} classes",
                                    term.class_weights.size(), result.layer, classes),
                        "give each class a weight, 1 if nothing is to change");
    }
    weights.classes = static_cast<int>(labels_of(term.label_field, fields, 0));
    const Labels& labels = labels_[static_cast<std::size_t>(weights.classes)];
    if (labels.batch.dtype != DType::kF32 &&
        (labels.batch.dtype != DType::kI64 || labels.batch.shape.rank() != 1)) {
      throw ConfigError(
          fmt::format("field '{}' is {} of shape {}; class weights need one class number, or float32",
                      labels.field.name, to_string(labels.field.dtype), labels.field.shape.to_string()));
    }
    weights.by_class = term.class_weights;
    weights.at = device_scratch_bytes_;
    device_scratch_bytes_ += on_place(static_cast<std::size_t>(rows_) * sizeof(float));
  }
  const auto same = [&](const Weights& other) {
    return other.given == weights.given && other.classes == weights.classes && other.by_class == weights.by_class;
  };
  const auto known = std::ranges::find_if(weights_, same);
  if (known != weights_.end()) return static_cast<int>(known - weights_.begin());
  weights_.push_back(std::move(weights));
  return static_cast<int>(weights_.size()) - 1;
}

TensorView Objective::weights_view(const ObjectiveBinding& binding, int index) const {
  if (index < 0) return {};
  const Weights& weights = weights_[static_cast<std::size_t>(index)];
  void* place = binding.device_scratch + weights.at;
  if (weights.classes < 0) place = labels_view(binding, static_cast<std::size_t>(weights.given)).data;
  return {place, Shape{rows_}, DType::kF32};
}

void Objective::submit_weights(const ObjectiveBinding& binding) const {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const Weights& weights = weights_[i];
    if (weights.classes < 0) continue;
    TensorView given;
    if (weights.given >= 0) given = labels_view(binding, static_cast<std::size_t>(weights.given));
    given.shape = Shape{rows_};
    binding.kernels.example_weights(binding.stream,
                                    {labels_view(binding, static_cast<std::size_t>(weights.classes)), given,
                                     weights_view(binding, static_cast<int>(i)), weights.by_class});
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

void Objective::add_terms(const Graph& graph, const Loss& loss, const Fields& fields) {
  const std::vector<std::string> names = term_names(graph, loss);
  for (const LossTerm& each : loss.terms) {
    Term term{.loss = each,
              .name = names.empty() ? "" : names[terms_.size()],
              .output = output_of(graph, each.function->name(), each.result),
              .labels = labels_of(each.label_field, fields, 0)};
    const Output& output = outputs_[term.output];
    const Labels& labels = labels_[term.labels];
    check_labels(*each.function, output.info, labels.field);
    term.weights = weights_of(each, output.info, fields);
    const ScratchSpec scratch = each.function->scratch(output.result, labels.batch);
    term.device = reserve(scratch.device, device_scratch_bytes_);
    term.pinned = reserve(scratch.pinned, pinned_scratch_bytes_);
    terms_.push_back(std::move(term));
  }
  sums_ = terms_.size();
  std::size_t partial_bytes = 0;
  for (Term& term : terms_) {
    const Output& output = outputs_[term.output];
    const auto same = [&](const Term& other) { return outputs_[other.output].index == output.index; };
    term.first = &*std::ranges::find_if(terms_, same) == &term;
    term.whole = std::ranges::count_if(terms_, same) == 1 && term.loss.weight == 1.0F;
    learned_[output.index] = true;
    if (!term.whole) partial_bytes = std::max(partial_bytes, on_place(output.result.bytes()));
  }
  term_gradient_at_ = device_scratch_bytes_;
  device_scratch_bytes_ += partial_bytes;
}

void Objective::add_metrics(const Graph& graph, const Loss& loss, const std::vector<Metric>& metrics,
                            const Fields& fields) {
  for (const Metric& each : metrics) {
    Judge judge{.metric = each, .name = metric_name(graph, each)};
    judge.output = output_of(graph, judge.name, each.result);
    judge.labels = labels_of(label_field(graph, loss, each), fields, 0);
    Output& output = outputs_[judge.output];
    check_labels(*each.function, output.info, labels_[judge.labels].field);
    const auto of_output = [&](const Term& term) { return term.output == judge.output; };
    const auto term = std::ranges::find_if(terms_, of_output);
    if (each.is_weighted && term != terms_.end()) judge.weights = term->weights;
    judge.counted = judge.weights < 0 && each.function->is_accuracy() &&
                    terms_.front().loss.function->counts_correct() && judge.labels == terms_.front().labels &&
                    judge.output == terms_.front().output;
    judge.sums = judge.counted ? 0 : sums_++;
    if (judge.weights >= 0) ++sums_;
    judge.normalised = output.logits && each.function->form() == ResultForm::kWhole;
    if (judge.normalised && !output.normalised) {
      output.normalised = true;
      output.probabilities_at = device_scratch_bytes_;
      device_scratch_bytes_ += on_place(output.result.bytes());
    }
    if (const std::optional<Shape> table = each.function->table(output.info)) judge.table = *table;
    judge.table_at = table_elements_;
    table_elements_ += static_cast<std::size_t>(judge.table.elements());
    metrics_.push_back(std::move(judge));
  }
  for (Judge& judge : metrics_) {
    const ScratchSpec scratch =
        judge.metric.function->scratch(outputs_[judge.output].result, labels_[judge.labels].batch);
    judge.device = reserve(scratch.device, device_scratch_bytes_);
    judge.pinned = reserve(scratch.pinned, pinned_scratch_bytes_);
  }
}

TensorView Objective::labels_view(const ObjectiveBinding& binding, std::size_t index) const {
  const Labels& labels = labels_[index];
  return {binding.labels + labels.offset, labels.batch.shape, labels.batch.dtype};
}

TensorView Objective::scratch_view(const ObjectiveBinding& binding, const Output& output,
                                   std::size_t offset) const {
  return {binding.device_scratch + offset, output.result.shape, DType::kF32};
}

std::vector<TensorView> Objective::placed(const Scratch& scratch, std::byte* base) {
  std::vector<TensorView> views = scratch.views;
  for (std::size_t i = 0; i < views.size(); ++i) views[i].data = base + scratch.offsets[i];
  return views;
}

// A result without a term has no influence on the loss.
void Objective::submit(const ObjectiveBinding& binding) const {
  submit_weights(binding);
  for (std::size_t i = 0; i < terms_.size(); ++i) submit_term(binding, i);
  for (std::size_t i = 0; i < binding.gradients.size(); ++i) {
    const TensorView& gradient = binding.gradients[i];
    if (!learned_[i]) binding.stream.fill(gradient.data, 0, gradient.bytes());
  }
  for (const Output& output : outputs_) {
    if (!output.normalised) continue;
    binding.kernels.softmax(binding.stream, {as_matrix(binding.results[output.index]),
                                             as_matrix(scratch_view(binding, output, output.probabilities_at))});
  }
  for (const Judge& judge : metrics_) {
    if (!judge.counted) submit_metric(binding, judge);
  }
}

// A term that is all of the loss on its result writes the gradient itself; any other's is weighted and added.
void Objective::submit_term(const ObjectiveBinding& binding, std::size_t index) const {
  const Term& term = terms_[index];
  const Output& output = outputs_[term.output];
  const TensorView gradient = binding.gradients.empty() ? TensorView{} : binding.gradients[output.index];
  const bool learns = gradient.defined();
  const TensorView mine = scratch_view(binding, output, term_gradient_at_);
  term.loss.function->submit({.stream = binding.stream,
                              .kernels = binding.kernels,
                              .scalars = binding.scalars,
                              .result = binding.results[output.index],
                              .labels = labels_view(binding, term.labels),
                              .gradient = term.whole || !learns ? gradient : mine,
                              .weights = weights_view(binding, term.weights),
                              .sums = reinterpret_cast<MetricSums*>(binding.totals) + index,
                              .device_scratch = placed(term.device, binding.device_scratch),
                              .pinned_scratch = placed(term.pinned, binding.pinned_scratch)});
  if (term.whole || !learns) return;
  binding.kernels.scale(binding.stream, {mine, term.first ? gradient : mine, term.loss.weight});
  if (!term.first) binding.kernels.accumulate(binding.stream, {mine, gradient});
}

void Objective::submit_metric(const ObjectiveBinding& binding, const Judge& judge) const {
  const Output& output = outputs_[judge.output];
  judge.metric.function->submit(
      {.stream = binding.stream,
       .kernels = binding.kernels,
       .scalars = binding.scalars,
       .result = judge.normalised ? scratch_view(binding, output, output.probabilities_at)
                                  : binding.results[output.index],
       .labels = labels_view(binding, judge.labels),
       .weights = weights_view(binding, judge.weights),
       .task = output.info.task.value_or(ResultTask{}),
       .sums = reinterpret_cast<MetricSums*>(binding.totals) + judge.sums,
       .table = {reinterpret_cast<std::int64_t*>(binding.tables) + judge.table_at, judge.table, DType::kI64},
       .device_scratch = placed(judge.device, binding.device_scratch),
       .pinned_scratch = placed(judge.pinned, binding.pinned_scratch)});
  if (judge.weights < 0) return;
  binding.kernels.add_losses(binding.stream, {weights_view(binding, judge.weights), binding.scalars,
                                              reinterpret_cast<MetricSums*>(binding.totals) + judge.sums + 1});
}

ObjectiveTotals Objective::no_totals() const { return {.sums = std::vector<MetricSums>(sums_)}; }

void Objective::add(const std::byte* totals, ObjectiveTotals& into) const {
  const auto* sums = reinterpret_cast<const MetricSums*>(totals);
  for (std::size_t i = 0; i < sums_; ++i) into.sums[i] += sums[i];
}

void Objective::add_tables(const std::byte* tables, ObjectiveTotals& into) const {
  const auto* counts = reinterpret_cast<const std::int64_t*>(tables);
  into.tables.resize(table_elements_);
  for (const Judge& judge : metrics_) {
    const auto end = judge.table_at + static_cast<std::size_t>(judge.table.elements());
    const bool real = judge.metric.function->real_table();
    for (std::size_t i = judge.table_at; i < end; ++i) {
      into.tables[i] = real ? real_sum(into.tables[i], counts[i]) : into.tables[i] + counts[i];
    }
  }
}

MetricSums Objective::sums(const ObjectiveTotals& totals) const {
  MetricSums all{.examples = totals.sums.front().examples};
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    all.loss += static_cast<double>(terms_[i].loss.weight) * totals.sums[i].loss;
  }
  const auto categorical = [&](const Judge& of) {
    return outputs_[of.output].info.task->task == Task::kCategorical;
  };
  const auto accuracy = [&](const Judge& judge) {
    return judge.metric.function->is_accuracy() && (judge.weights < 0 || categorical(judge));
  };
  const auto found = std::ranges::find_if(metrics_, accuracy);
  const bool counted = terms_.front().loss.function->counts_correct();
  if (counted) all.correct = totals.sums.front().correct;
  if (counted || found == metrics_.end()) return all;
  const MetricSums& hits = totals.sums[found->sums];
  const auto labels = static_cast<double>(outputs_[found->output].info.shape.elements());
  all.correct = categorical(*found) ? hits.correct : std::llround(hits.loss / labels);
  return all;
}

std::vector<MetricValue> Objective::values(const ObjectiveTotals& totals) const {
  std::vector<MetricValue> values;
  for (const Judge& judge : metrics_) {
    const auto elements = static_cast<std::size_t>(judge.table.elements());
    if (elements > 0 && totals.tables.empty()) continue;
    const bool real = judge.metric.function->real_table();
    const std::span<const std::int64_t> counts = elements > 0
                                                     ? std::span(totals.tables).subspan(judge.table_at, elements)
                                                     : std::span<const std::int64_t>();
    const std::vector<double> reals = real ? real_values(counts) : std::vector<double>();
    MetricValue value = judge.metric.function->value(
        {.result = outputs_[judge.output].info,
         .sums = totals.sums[judge.sums],
         .table = elements > 0 && !real ? counts : std::span<const std::int64_t>(),
         .real_table = real ? reals : std::span<const double>(),
         .weight = judge.weights >= 0 ? std::optional(totals.sums[judge.sums + 1].loss) : std::nullopt});
    value.name = judge.name;
    values.push_back(std::move(value));
  }
  for (std::size_t i = 0; i < terms_.size() && terms_.size() > 1; ++i) {
    values.push_back({.name = terms_[i].name, .values = {mean_loss(totals.sums[i])}});
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
