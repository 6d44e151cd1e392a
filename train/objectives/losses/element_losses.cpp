// Losses that are the mean, or the sum, over an example's elements, and that of the angle between two vectors.
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/losses.h"
#include "headrace/train/objectives/losses/result_checks.h"

namespace headrace {
namespace {

class MeanOverElements final : public LossFunction {
 public:
  MeanOverElements(std::string name, ElementLoss loss, float label_smoothing)
      : name_(std::move(name)), loss_(loss), label_smoothing_(label_smoothing) {}

  std::string name() const override { return name_; }
  void check_result(const ResultInfo& result) const override {
    const bool numbers = result.values == ResultValues::kNumbers;
    if (loss_ == ElementLoss::kBinaryFromLogits) return check_logits(result);
    if (loss_ == ElementLoss::kBinaryFromProbabilities && numbers) {
      throw ConfigError(
          "the loss is from probabilities, but " + result.layer + " gives any numbers",
          joined({"add graph.sigmoid()", advice("use {}", named("CrossEntropyOptions::from_logits", "true"))}));
    }
    if (loss_ == ElementLoss::kKullbackLeibler && numbers) {
      throw ConfigError(name_ + " compares probabilities, but " + result.layer + " gives any numbers",
                        "end the net with a softmax or sigmoid");
    }
    if (loss_ == ElementLoss::kHinge && result.values == ResultValues::kProbabilities) {
      throw ConfigError(name_ + " wants numbers below and above 0, but " + result.layer + " gives probabilities",
                        "leave the softmax or sigmoid out");
    }
  }
  // A margin is as a logit: above 0 for the class.
  std::optional<ResultTask> task(const ResultInfo& result) const override {
    const bool logits = loss_ == ElementLoss::kBinaryFromLogits || loss_ == ElementLoss::kHinge;
    if (!logits && loss_ != ElementLoss::kBinaryFromProbabilities) return ResultTask{};
    return ResultTask{result.shape.elements() == 1 ? Task::kBinary : Task::kMultiLabel, logits};
  }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_targets(name_, result, labels);
  }
  bool takes_weights() const override { return true; }
  std::optional<Attributes> attributes() const override {
    const bool from_logits = loss_ == ElementLoss::kBinaryFromLogits;
    if (!from_logits && loss_ != ElementLoss::kBinaryFromProbabilities) return Attributes();
    return attributes_of(
        BinaryCrossEntropyOptions{.from_logits = from_logits, .label_smoothing = label_smoothing_});
  }

  void submit(const LossCall& call) const override {
    call.kernels.element_loss(call.stream, {loss_,
                                            call.result,
                                            call.labels,
                                            call.gradient,
                                            label_smoothing_,
                                            {call.scalars, call.weights},
                                            call.sums});
  }

 private:
  std::string name_;
  ElementLoss loss_;
  float label_smoothing_;
};

// `name` is used in messages.
Loss mean_over_elements(const std::string& name, ElementLoss loss, Reduction reduction,
                        float label_smoothing = 0) {
  Loss made(std::make_shared<MeanOverElements>(name, loss, label_smoothing));
  made.reduction = reduction;
  return made;
}

class CosineSimilarity final : public LossFunction {
 public:
  std::string name() const override { return "cosine_similarity"; }
  void check_result(const ResultInfo& result) const override { check_vectors(name(), result); }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_vector_targets(name(), result, labels);
  }
  std::optional<ResultTask> task(const ResultInfo&) const override { return ResultTask{}; }
  bool takes_weights() const override { return true; }
  std::optional<Attributes> attributes() const override { return Attributes(); }

  void submit(const LossCall& call) const override {
    call.kernels.cosine_loss(call.stream,
                             {call.result, call.labels, call.gradient, {call.scalars, call.weights}, call.sums});
  }
};

}  // namespace

Loss mean_squared_error(const ElementLossOptions& options) {
  return mean_over_elements("mean_squared_error", ElementLoss::kSquaredError, options.reduction);
}

Loss mean_absolute_error(const ElementLossOptions& options) {
  return mean_over_elements("mean_absolute_error", ElementLoss::kAbsoluteError, options.reduction);
}

Loss huber(const ElementLossOptions& options) {
  return mean_over_elements("huber", ElementLoss::kHuber, options.reduction);
}

Loss hinge(const ElementLossOptions& options) {
  return mean_over_elements("hinge", ElementLoss::kHinge, options.reduction);
}

Loss kl_divergence(const ElementLossOptions& options) {
  return mean_over_elements("kl_divergence", ElementLoss::kKullbackLeibler, options.reduction);
}

Loss cosine_similarity(const ElementLossOptions& options) {
  Loss loss(std::make_shared<CosineSimilarity>());
  loss.reduction = options.reduction;
  return loss;
}

Loss binary_crossentropy(const BinaryCrossEntropyOptions& options) {
  check_smoothing(options.label_smoothing);
  return mean_over_elements(
      "binary_crossentropy",
      options.from_logits ? ElementLoss::kBinaryFromLogits : ElementLoss::kBinaryFromProbabilities,
      options.reduction, options.label_smoothing);
}

}  // namespace headrace
