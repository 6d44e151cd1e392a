// The area under a curve of predictions, from counts at thresholds.
#include <fmt/format.h>

#include <cmath>

#include "headrace/devices/base/error.h"
#include "headrace/train/metrics.h"
#include "headrace/train/objectives/losses/result_checks.h"

namespace headrace {
namespace {

// The positive and the negative examples that a threshold finds.
struct Found {
  double positive = 0, negative = 0;
};

// By trapezoids between neighbouring thresholds; the first finds all examples.
double roc_area(const std::vector<Found>& points) {
  const Found& all = points.front();
  double area = 0;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const double width = ratio(points[i].negative, all.negative) - ratio(points[i + 1].negative, all.negative);
    area += width * (ratio(points[i].positive, all.positive) + ratio(points[i + 1].positive, all.positive)) / 2;
  }
  return area;
}

// Davis and Goadrich, 2006: between two thresholds the true positives grow linearly with the predictions, so that
// the precision's integral has a logarithm.
double precision_recall_area(const std::vector<Found>& points) {
  double area = 0;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const Found &from = points[i], &to = points[i + 1];
    const double before = from.positive + from.negative, after = to.positive + to.negative;
    const double gained = from.positive - to.positive, slope = ratio(gained, before - after);
    const double intercept = to.positive - slope * after;
    const double grown = before > 0 && after > 0 ? before / after : 1.0;
    area += ratio(slope * (gained + intercept * std::log(grown)), points.front().positive);
  }
  return area;
}

class AreaUnderCurve final : public MetricFunction {
 public:
  explicit AreaUnderCurve(const AucOptions& options) : options_(options) {}

  std::string kind() const override { return "auc"; }
  std::string name() const override { return options_.curve == AucCurve::kRoc ? "auc" : "pr_auc"; }
  void check_result(const ResultInfo& result) const override { check_class_scores(name(), result); }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_class_labels(name(), result, labels);
  }
  Better better() const override { return Better::kHigher; }
  bool is_number(const ResultInfo& result) const override {
    return options_.average != Average::kNone || result.shape.back() == 1;
  }
  ScratchSpec scratch(const TensorView& result, const TensorView&) const override { return score_scratch(result); }
  std::optional<Shape> table(const ResultInfo& result) const override {
    return Shape{result.shape.back(), options_.thresholds, 2};
  }
  std::optional<Attributes> attributes() const override { return attributes_of(options_); }

  void submit(const MetricCall& call) const override { count_scores(call, {.count = options_.thresholds}); }
  MetricValue value(const MetricTotals& totals) const override {
    const auto points = static_cast<std::size_t>(options_.thresholds), size = 2 * points;
    std::vector<double> areas, examples;
    std::vector<std::int64_t> all(size);
    for (std::size_t at = 0; at < totals.table.size(); at += size) {
      const auto counts = totals.table.subspan(at, size);
      for (std::size_t i = 0; i < size; ++i) all[i] += counts[i];
      areas.push_back(area(counts));
      examples.push_back(points_of(counts).front().positive);
    }
    return averaged(options_.average, areas, area(all), examples);
  }

 private:
  // Returns what each threshold finds: the buckets from its own on.
  static std::vector<Found> points_of(std::span<const std::int64_t> counts) {
    std::vector<Found> points(counts.size() / 2);
    Found sum;
    for (std::size_t i = points.size(); i-- > 0;) {
      sum.negative += static_cast<double>(counts[2 * i]);
      sum.positive += static_cast<double>(counts[2 * i + 1]);
      points[i] = sum;
    }
    return points;
  }
  double area(std::span<const std::int64_t> counts) const {
    const std::vector<Found> points = points_of(counts);
    return options_.curve == AucCurve::kRoc ? roc_area(points) : precision_recall_area(points);
  }

  AucOptions options_;
};

}  // namespace

Metric auc(const AucOptions& options) {
  constexpr int kLeast = 3, kMost = 1 << 16;
  if (options.thresholds < kLeast || options.thresholds > kMost) {
    throw ConfigError(fmt::format("auc: {} thresholds; there may be {} to {}", options.thresholds, kLeast, kMost));
  }
  return std::make_shared<AreaUnderCurve>(options);
}

}  // namespace headrace
