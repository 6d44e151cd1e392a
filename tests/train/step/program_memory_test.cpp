// What it costs in memory that gradients of weights may be made beside the rest of the backward pass.
#include <gtest/gtest.h>

#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/nets.h"
#include "headrace/train/step/program.h"

namespace headrace {
namespace {

std::size_t workspace(const Net& net, Mode mode, bool beside) {
  Graph graph;
  graph.finish(net(graph));
  const VariableLayout layout(graph);
  return Program(graph, layout, {.mode = mode, .rows = 64, .variables_beside = beside}).workspace_bytes();
}

// Only the operands of one layer are kept, and only up to the next one that has weights.
TEST(ProgramMemory, OfGradientsBesideIsLittleMore) {
  for (const char* name : {"cifar10_speed_net", "resnet18", "cifar10_cnn"}) {
    const Net net = net_named(name);
    const auto chain = static_cast<double>(workspace(net, Mode::kTrain, false));
    const auto beside = static_cast<double>(workspace(net, Mode::kTrain, true));
    RecordProperty(name, std::to_string(beside / chain));
    EXPECT_GE(beside, chain) << name;
    EXPECT_LE(beside, 1.15 * chain) << name;
  }
}

TEST(ProgramMemory, OfAnEvaluationIsTheSame) {
  const Net net = net_named("resnet18");
  EXPECT_EQ(workspace(net, Mode::kEvaluate, true), workspace(net, Mode::kEvaluate, false));
}

}  // namespace
}  // namespace headrace
