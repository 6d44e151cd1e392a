// A step's graph has branches: gradients of weights and updates beside the rest of the backward pass. They change
// when something runs, never what comes of it: whatever order the graph's edges allow, the weights are the same
// bits.
#include "headrace/tests/cuda/fake_cuda_fixture.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace {
namespace {

using test::fake_cuda::Branches;
using test::fake_cuda::GraphOrder;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

// Convolutions one after the other, around a norm and a pooling, beside a sum, and called twice with one set of
// weights.
Node deep_cnn(Graph& g) {
  Node x = g.conv(g.input("image", {12, 12, 2}), 4, {.activation = Activation::kRelu});
  x = g.gelu(g.batch_norm(g.max_pool(g.conv(x, 4), 2)));
  const Node shared = g.conv(x, 4, {.bias = false});
  x = g.again(shared, {g.max_pool(g.relu(shared), 2)});
  x = g.relu(g.add(g.conv(x, 4), x));
  x = g.conv(x, 6, {.activation = Activation::kRelu});
  return g.dense(g.dense(g.flatten(x), 8, {.activation = Activation::kRelu}), 4);
}

Dataset batches() { return test::blobs(40, {12, 12, 2}).batch({.global_batch = 8}); }

class StepBranches : public test::FakeCuda {
 protected:
  struct Recipe {
    Optimizer optimizer = test::grouped();
    StepOptions step = {};
    std::int64_t bucket_bytes = 64;
  };

  static TrainerOptions options(const Recipe& recipe) {
    return {.step = recipe.step, .buckets = {.bucket_bytes_apart = recipe.bucket_bytes}};
  }

  // A whole step's graph.
  static Branches graph_of(DeviceGroup devices, const Recipe& recipe) {
    Strategy strategy(devices, {.announce = false});
    Model model = test::compiled(strategy, deep_cnn, recipe.optimizer);
    Loader loader(batches(), devices);
    const Trainer trainer(strategy, model, loader, options(recipe));
    return test::fake_cuda::last_graph();
  }

  static std::vector<std::vector<float>> trained(GraphOrder order, const Recipe& recipe) {
    DeviceGroup devices = open();
    Strategy strategy(devices, {.announce = false});
    Model model = test::compiled(strategy, deep_cnn, recipe.optimizer);
    Loader loader(batches(), devices, {.epochs = 2});
    Trainer trainer(strategy, model, loader, options(recipe));
    test::fake_cuda::run_graphs(order);
    while (trainer.step()) {
    }
    trainer.finish();
    std::vector<std::vector<float>> values = test::variables_of(model);
    for (const std::string& name : model.optimizer_variable_names()) values.push_back(model.read_variable(name));
    return values;
  }
};

// Kernels of each name, "" being copies and fills.
std::map<std::string, int> counted(const std::vector<std::string>& branch) {
  std::map<std::string, int> counts;
  for (const std::string& name : branch) ++counts[name];
  return counts;
}

// The gradient of weights and that of a bias are two kernels of one name.
TEST_F(StepBranches, OfOneReplicaHoldGradientsOfWeightsAndUpdates) {
  const Branches graph = graph_of(open(), {});
  ASSERT_EQ(graph.size(), 3U);
  const auto compute = counted(graph[0].kernels), weights = counted(graph[1].kernels),
             updates = counted(graph[2].kernels);
  EXPECT_EQ(compute.at("conv_forward"), 6 + 3) << "a ReLU follows its convolution";
  EXPECT_EQ(compute.at("conv_backward_data"), 5) << "none for the first";
  EXPECT_FALSE(compute.contains("conv_backward_weights"));
  EXPECT_FALSE(compute.contains("muon"));
  EXPECT_EQ(weights.at("conv_backward_weights"), 6 + 4);
  EXPECT_EQ(weights.at("dense_backward_weights"), 2 + 2);
  EXPECT_EQ(weights.at("accumulate"), 1) << "of the layer that is called twice";
  EXPECT_EQ(weights.size(), 3U);
  EXPECT_EQ(updates.at("muon"), 1) << "small matrices are one batch";
  EXPECT_GT(updates.at("sgd"), 1) << "a bucket at a time";
  EXPECT_GT(updates.at("adam"), 1);
  EXPECT_EQ(updates.size(), 3U);
  EXPECT_LT(graph[0].priority, graph[1].priority) << "the backward pass waits for none of it";
  EXPECT_LT(graph[0].priority, graph[2].priority);
}

TEST_F(StepBranches, LargerBucketsAreFewerUpdates) {
  const Branches graph = graph_of(open(), {.bucket_bytes = 1 << 20});
  ASSERT_EQ(graph.size(), 3U);
  EXPECT_THAT(graph[2].kernels, ElementsAre("adam", "sgd", "muon"));
}

// A clip needs all gradients.
TEST_F(StepBranches, UpdatesThatAreClippedComeAfterwards) {
  const Branches graph = graph_of(open(), {.optimizer = test::with_all_around(adam(1e-2F))});
  ASSERT_EQ(graph.size(), 2U);
  EXPECT_THAT(graph[0].kernels, Contains("adam"));
  EXPECT_THAT(graph[1].kernels, Not(Contains("adam")));
}

TEST_F(StepBranches, OfSeveralGpusHoldGradientsOfWeights) {
  const Branches graph = graph_of(open_devices("cuda:0,1"), {});
  ASSERT_GE(graph.size(), 2U);
  EXPECT_THAT(graph[0].kernels, Contains("muon"));
  EXPECT_EQ(std::ranges::count_if(graph,
                                  [](const auto& branch) {
                                    return std::ranges::count(branch.kernels, "conv_backward_weights") > 0;
                                  }),
            1);
  EXPECT_THAT(graph[0].kernels, Not(Contains("conv_backward_weights")));
}

// Meetings of replicas wait on the GPU: with more streams than it has queues they might wait for good.
TEST_F(StepBranches, OfReplicasThatShareAGpuAreOneChain) { EXPECT_EQ(graph_of(open(2), {}).size(), 1U); }

TEST_F(StepBranches, GiveTheSameBitsInAnyOrder) {
  const Recipe recipes[]{{},
                         {.bucket_bytes = 1 << 20},
                         {.optimizer = adam(1e-2F)},
                         {.optimizer = test::with_all_around(sgd(0.1F, {.momentum = 0.9F}))},
                         {.step = {.accumulate = 2}}};
  for (const Recipe& recipe : recipes) {
    const auto expected = trained(GraphOrder::kCaptured, recipe);
    EXPECT_EQ(trained(GraphOrder::kEarliestBranchFirst, recipe), expected);
    EXPECT_EQ(trained(GraphOrder::kLatestBranchFirst, recipe), expected);
  }
}

}  // namespace
}  // namespace headrace
