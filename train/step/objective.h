// The tasks of a program's results, and the loss and metrics computed from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/train/graph.h"
#include "headrace/train/losses.h"
#include "headrace/train/metrics.h"

namespace headrace {

// Tell a net's results from the layers that they come through and the losses on them.

// Returns the output named after this layer, the first one for an empty name. Throws ConfigError naming `who` if
// there is none.
std::size_t output_of(const Graph& graph, const std::string& who, const std::string& layer);

// Describes the result from which a loss or metric of one of the graph's outputs is computed, with its task.
// REQUIRES: the loss has no term for a layer that is no output.
ResultInfo result_info(const Graph& graph, const Loss& loss, std::size_t output);

// Returns by output whether training and evaluating leave out its softmax, because the loss takes its logits.
// Throws ConfigError if terms of one output differ in that.
std::vector<bool> leaves_out_softmax(const Graph& graph, const Loss& loss);

// Throws ConfigError if the loss does not fit the graph.
void check_loss(const Graph& graph, const Loss& loss);

// A step's loss terms and metrics, with their labels and a place for each in a replica's memory. All replicas
// share one objective.

// Throws ConfigError if loss and metrics do not fit the graph or each other; needs no data.
void check_objective(const Graph& graph, const Loss& loss, const std::vector<Metric>& metrics);

// One of the values that are reported.
struct ReportedValue {
  std::string name;
  Better better = Better::kLower;
  bool is_number = true;
};

// Returns what is reported: "loss", the metrics' values in their order and, if the loss has several terms, theirs:
// "left_loss" for the term of output "left", "left_mean_squared_error_loss" for one of several of that output,
// "left_mean_squared_error_2_loss" for the second with that name. REQUIRES: loss and metrics passed
// check_objective().
std::vector<ReportedValue> reported_values(const Graph& graph, const Loss& loss,
                                           const std::vector<Metric>& metrics);

// One replica's memory and the stream to submit to. Labels are in place.
struct ObjectiveBinding {
  Stream& stream;
  Kernels& kernels;
  const StepScalars* scalars = nullptr;
  std::vector<TensorView> results = {};    // the program's
  std::vector<TensorView> gradients = {};  // of the results; empty: an evaluation
  std::byte* totals = nullptr;             // totals_bytes(), 0 at first
  std::byte* labels = nullptr;             // labels_bytes()
  std::byte* tables = nullptr;             // tables_bytes(), 0 at first
  std::byte *device_scratch = nullptr, *pinned_scratch = nullptr;
};

// The counts of one replica or of all.
struct ObjectiveTotals {
  std::vector<MetricSums> sums;           // the terms', then those of metrics that count for themselves
  std::vector<std::int64_t> tables = {};  // empty if they were not read; of a real_table() the bits of doubles
};

// Immutable.
class Objective {
 public:
  // A label field and its place among the labels of a batch.
  struct Labels {
    Field field;
    TensorView batch;  // without a place; class numbers as (rows)
    std::size_t offset = 0;
    std::int64_t classes = 0;  // class numbers are below it; 0: not class numbers
  };

  // Plans for batches of `rows`. Throws ConfigError if loss, metrics, net and the data's fields do not fit.
  Objective(const Graph& graph, const Loss& loss, const std::vector<Metric>& metrics, const Fields& fields,
            std::int64_t rows);

  Reduction reduction() const noexcept { return reduction_; }
  // Returns each label field once, class numbers first.
  const std::vector<Labels>& labels() const noexcept { return labels_; }
  std::size_t labels_bytes() const noexcept { return labels_bytes_; }
  // Returns the bytes of the leading class numbers, which the host checks if a loss is not finite.
  std::size_t class_labels_bytes() const noexcept { return class_labels_bytes_; }
  std::size_t totals_bytes() const noexcept { return sums_ * sizeof(MetricSums); }
  std::size_t tables_bytes() const noexcept { return table_elements_ * sizeof(std::int64_t); }
  std::size_t device_scratch_bytes() const noexcept { return device_scratch_bytes_; }
  std::size_t pinned_scratch_bytes() const noexcept { return pinned_scratch_bytes_; }
  // Returns whether losses or metrics are functions on the host.
  bool calls_host() const noexcept { return pinned_scratch_bytes_ > 0; }

  // Submits losses, gradient and metrics; may be captured.
  void submit(const ObjectiveBinding& binding) const;

  ObjectiveTotals no_totals() const;
  // Add a replica's totals, or its tables, from host memory.
  void add(const std::byte* totals, ObjectiveTotals& into) const;
  void add_tables(const std::byte* tables, ObjectiveTotals& into) const;
  // Sums all terms: weighted loss, examples, and correct examples if an accuracy is counted.
  MetricSums sums(const ObjectiveTotals& totals) const;
  // Returns the metrics, without those of tables that were not read; then, if there are several terms, each term's
  // mean without its weight.
  std::vector<MetricValue> values(const ObjectiveTotals& totals) const;
  // Returns whether the losses in a replica's totals, in host memory, are finite.
  bool finite_losses(const std::byte* totals) const;
  // Returns the first loss that counted other than `examples`; null if none did.
  const LossFunction* miscounted(const ObjectiveTotals& totals, std::int64_t examples) const;

 private:
  struct Scratch {
    std::vector<TensorView> views;  // without a place
    std::vector<std::size_t> offsets;
  };
  struct Output {
    ResultInfo info;
    TensorView result;                 // without a place
    std::size_t index = 0;             // among the program's results
    bool logits = false;               // the result is logits, without the softmax
    std::size_t probabilities_at = 0;  // scratch for the softmax of the logits, for metrics
    bool normalised = false;           // a metric is given it
  };
  // The weights of a batch's examples.
  struct Weights {
    int given = -1;                    // index of the label field that holds them; -1: each is 1
    int classes = -1;                  // index of the label field whose classes have weights; -1: none
    std::vector<float> by_class = {};  // multiplied with the given ones into scratch
    std::size_t at = 0;                // that scratch
  };
  struct Term {
    LossTerm loss;
    std::string name = {};  // in reports
    std::size_t output = 0;
    std::size_t labels = 0;  // index
    bool first = true;       // of its result
    bool whole = true;       // no other term is about its result
    int weights = -1;        // index; -1: none
    Scratch device = {}, pinned = {};
  };
  struct Judge {
    Metric metric;
    std::string name;
    std::size_t output = 0;
    std::size_t labels = 0;
    std::size_t sums = 0;     // index: its own, or the term's that counts the same
    bool counted = false;     // by that term
    bool normalised = false;  // is given the softmax of the result
    int weights = -1;         // index; -1: none. The next sums are then those of the weights
    Shape table = Shape{0};
    std::size_t table_at = 0;  // elements before it
    Scratch device = {}, pinned = {};
  };

  void add_outputs(const Graph& graph, const Loss& loss, std::int64_t rows);
  void add_terms(const Graph& graph, const Loss& loss, const Fields& fields);
  void add_metrics(const Graph& graph, const Loss& loss, const std::vector<Metric>& metrics, const Fields& fields);
  void add_labels(const Graph& graph, const Loss& loss, const std::vector<Metric>& metrics, const Fields& fields);
  std::size_t labels_of(const std::string& field, const Fields& fields, std::int64_t classes);
  void place_labels();
  // Returns the index of the term's weights; -1 if it has none.
  int weights_of(const LossTerm& term, const ResultInfo& result, const Fields& fields);
  void submit_weights(const ObjectiveBinding& binding) const;
  TensorView weights_view(const ObjectiveBinding& binding, int index) const;
  TensorView labels_view(const ObjectiveBinding& binding, std::size_t index) const;
  Scratch reserve(const std::vector<TensorView>& views, std::size_t& bytes) const;
  static std::vector<TensorView> placed(const Scratch& scratch, std::byte* base);
  void submit_term(const ObjectiveBinding& binding, std::size_t index) const;
  void submit_metric(const ObjectiveBinding& binding, const Judge& judge) const;
  // Returns a view as large as the output's result.
  TensorView scratch_view(const ObjectiveBinding& binding, const Output& output, std::size_t offset) const;

  std::vector<Output> outputs_;
  std::vector<bool> learned_;  // by result of the program: whether a term gives its gradient
  std::int64_t rows_ = 0;
  Reduction reduction_;
  std::vector<Term> terms_;
  std::vector<Judge> metrics_;
  std::vector<Labels> labels_;
  std::vector<Weights> weights_;
  std::size_t sums_ = 0;  // their number
  std::size_t table_elements_ = 0;
  std::size_t labels_bytes_ = 0, class_labels_bytes_ = 0;
  std::size_t term_gradient_at_ = 0;
  std::size_t device_scratch_bytes_ = 0, pinned_scratch_bytes_ = 0;
};

}  // namespace headrace
