// train/PARTS.md, which is printed from the fields: layers, losses, metrics, optimizers, schedules, callbacks and
// the options of a fit.
#include "headrace/tests/support/option_rows.h"
#include "headrace/tests/support/test.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/graph.h"
#include "headrace/train/optimizers.h"
#include "headrace/train/strategy.h"

namespace headrace::test {
namespace {

std::string section(const std::string& title, const std::string& text) {
  return "\n## " + title + "\n\n" + text + (text.empty() ? "" : "\n\n") + kPartsHead;
}

// What a visitor is shown of each of the kinds.
template <typename Kinds, typename Show>
std::string rows_of_kinds(const Kinds& kinds, const Show& show_to) {
  std::string text;
  for (const auto& kind : kinds) {
    OptionRows rows(kind.name);
    show_to(kind, rows);
    text += rows.text();
  }
  return text;
}

std::string page_of_parts() {
  std::string text =
      "# Layers, losses, metrics, optimizers, schedules and callbacks\n\n"
      "Printed from the code by `parts_page_test`, which says how. These are the names in C++, in Python and in "
      "the JSON of "
      "nets, optimizers and training records.\n";
  text += section("Layers",
                  "`dense`, `conv`, `conv_transpose` and `depthwise_conv` also have `activation`: the layer "
                  "that follows. Numbers of windows may be pairs of height and width.");
  text += rows_of_kinds(layer_kinds(), [](const LayerKind& kind, OptionVisitor& rows) { kind.attributes(rows); });
  text += rows_of<MultiHeadAttentionLayerOptions>("multi_head_attention");
  text += section("Losses", "All have `reduction`: `mean` or `sum`.");
  text += rows_of_kinds(loss_kinds(), [](const LossKind& kind, OptionVisitor& rows) { kind.make(rows); });
  text += section("Metrics", "And each loss.");
  text += rows_of_kinds(metric_kinds(), [](const MetricKind& kind, OptionVisitor& rows) { kind.make(rows); });
  text += section("Optimizers", "") + rows_of<AdamOptions>("adam") + rows_of<SgdOptions>("sgd") +
          rows_of<MuonOptions>("muon") + rows_of<GradientClip>("clip") + rows_of<Lookahead>("lookahead") +
          rows_of<WeightAverage>("average");
  text += section("Schedules", "") + rows_of<DecayOptions>("linear_decay") +
          rows_of<DecayOptions>("cosine_decay") + rows_of<ExponentialOptions>("exponential_decay") +
          rows_of<PiecewiseOptions>("piecewise") + rows_of<OneCycleOptions>("one_cycle");
  text += section("Callbacks", "") + rows_of<EarlyStoppingOptions>("early_stopping") +
          rows_of<ReduceLrOnPlateauOptions>("reduce_lr_on_plateau") + rows_of<TensorBoardOptions>("tensorboard");
  text += section("A fit and its checkpoints", "Besides the options of a loader.") + rows_of<FitOptions>("fit") +
          rows_of<CheckpointOptions>("checkpoints");
  text += section("Strategies and workers", "") + rows_of<StrategyOptions>("strategy") +
          rows_of<BuildOptions>("build") + rows_of<WorkerOptions>("workers");
  return text;
}

TEST(TrainersPartsPage, IsPrintedFromTheFields) { expect_page("train/PARTS.md", page_of_parts()); }

}  // namespace
}  // namespace headrace::test
