#include "headrace/train/step/memory_plan.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/nets.h"
#include "headrace/train/step/program.h"

namespace headrace::test {
namespace {

struct Wanted {
  std::size_t bytes;
  int birth, death;
};

TEST(MemoryPlan, StoragesAliveTogetherNeverShareBytes) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    Philox random({.seed = seed});
    MemoryPlan plan;
    std::vector<Wanted> wanted;
    for (int i = 0; i < 40; ++i) {
      const int birth = static_cast<int>(random.below(30));
      wanted.push_back({1 + random.below(5000), birth, birth + static_cast<int>(random.below(10))});
      plan.keep(plan.add(wanted.back().bytes, birth), wanted.back().death);
    }
    plan.place();
    for (int a = 0; a < 40; ++a) {
      const Wanted& first = wanted[static_cast<std::size_t>(a)];
      EXPECT_LE(plan.offset(a) + first.bytes, plan.bytes());
      EXPECT_EQ(plan.offset(a) % 64, 0U);
      for (int b = 0; b < a; ++b) {
        const Wanted& second = wanted[static_cast<std::size_t>(b)];
        if (first.death < second.birth || second.death < first.birth) continue;
        EXPECT_TRUE(plan.offset(a) + first.bytes <= plan.offset(b) ||
                    plan.offset(b) + second.bytes <= plan.offset(a))
            << "seed " << seed << ", storages " << a << " and " << b;
      }
    }
  }
}

TEST(MemoryPlan, AChainNeedsItsTwoLargestNeighbours) {
  MemoryPlan plan;
  for (int i = 0; i < 10; ++i) plan.keep(plan.add(1024, i), i + 1);
  plan.place();
  EXPECT_EQ(plan.bytes(), 2048U);
}

TEST(MemoryPlan, KeepNeverShortensALife) {
  MemoryPlan plan;
  const int first = plan.add(64, 0);
  plan.keep(first, 5);
  plan.keep(first, 2);
  const int second = plan.add(64, 4);
  plan.place();
  EXPECT_NE(plan.offset(first), plan.offset(second));
}

}  // namespace

// What it costs in memory that gradients of weights may be made beside the rest of the backward pass.

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
}  // namespace headrace::test
