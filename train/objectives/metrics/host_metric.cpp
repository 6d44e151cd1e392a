// A metric that the host computes from sums.
#include "headrace/devices/base/error.h"
#include "headrace/train/metrics.h"

namespace headrace {
namespace {

// The parts of pinned scratch.
enum CountedPart { kCountedScalars, kCountedResult, kCountedLabels, kCountedWeights };

TensorView real_rows(const TensorView& view, std::int64_t rows) {
  return {view.data, view.shape.without_front().with_front(rows), view.dtype};
}

class HostMetric final : public MetricFunction {
 public:
  explicit HostMetric(HostMetricOptions options)
      : options_(std::make_shared<const HostMetricOptions>(std::move(options))) {}

  std::string name() const override { return options_->name; }
  void check_result(const ResultInfo&) const override {}
  void check_labels(const ResultInfo&, const Field&) const override {}
  bool takes_weights() const override { return options_->takes_weights; }
  Better better() const override { return options_->better; }
  std::optional<Shape> table(const ResultInfo&) const override { return Shape{options_->sums}; }
  bool real_table() const override { return true; }
  ScratchSpec scratch(const TensorView& result, const TensorView& labels) const override {
    const TensorView scalars{nullptr, {static_cast<std::int64_t>(sizeof(StepScalars))}, DType::kU8};
    const TensorView weights{nullptr, {result.shape[0]}, DType::kF32};
    const TensorView sums{nullptr, {options_->sums}, DType::kI64};
    return {.pinned = {scalars, result, labels, weights, sums}};
  }

  void submit(const MetricCall& call) const override {
    const std::vector<TensorView>& host = call.pinned_scratch;
    const TensorView& sums = host.back();
    call.stream.copy(host[kCountedScalars].data, call.scalars, sizeof(StepScalars));
    call.stream.copy(host[kCountedResult].data, call.result.data, call.result.bytes());
    call.stream.copy(host[kCountedLabels].data, call.labels.data, call.labels.bytes());
    const bool weighted = call.weights.defined();
    if (weighted) call.stream.copy(host[kCountedWeights].data, call.weights.data, call.weights.bytes());
    call.stream.copy(sums.data, call.table.data, sums.bytes());
    call.stream.call([options = options_, host, weighted] { add(*options, host, weighted); });
    call.stream.copy(call.table.data, sums.data, sums.bytes());
  }

  MetricValue value(const MetricTotals& totals) const override { return options_->value(totals.real_table); }

 private:
  static void add(const HostMetricOptions& options, const std::vector<TensorView>& host, bool weighted) {
    const std::int64_t rows = host[kCountedScalars].as<StepScalars>()->rows;
    if (rows == 0) return;
    options.add({.result = real_rows(host[kCountedResult], rows),
                 .labels = real_rows(host[kCountedLabels], rows),
                 .weights = weighted ? real_rows(host[kCountedWeights], rows) : TensorView{}},
                {static_cast<double*>(host.back().data), static_cast<std::size_t>(options.sums)});
  }

  std::shared_ptr<const HostMetricOptions> options_;
};

}  // namespace

Metric host_metric(HostMetricOptions options) {
  if (options.name.empty()) throw ConfigError("a host_metric has no name", "set one: it stands in the history");
  if (options.sums < 1 || !options.add || !options.value) {
    throw ConfigError("host_metric '" + options.name +
                      "' needs a sum, and functions that add to it and give its value");
  }
  return std::make_shared<HostMetric>(std::move(options));
}

}  // namespace headrace
