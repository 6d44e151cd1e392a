// Batch normalisation with the statistics of all replicas trains as one replica does on the whole batch.
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

// An activation behind one, pooling before the other: neither may be lost to what other norms fuse.
Node synchronised_net(Graph& g, bool synchronised) {
  const BatchNormLayerOptions options{.momentum = 0.5F, .synchronised = synchronised};
  Node x = g.conv(g.input("image", {6, 6, 2}), 4, {.bias = false});
  x = g.conv(g.gelu(g.batch_norm(x, options)), 4, {.bias = false});
  x = g.relu(g.batch_norm(g.max_pool(x, 2), options));
  return g.dense(g.global_average_pool(x), 4);
}

// The last batch is partial: with four replicas some have no examples.
std::vector<std::vector<float>> trained_norms(int replicas, bool synchronised, int accumulate = 1,
                                              Precision precision = Precision::kF32) {
  Training training(replicas);
  Model model = training.strategy.build([=](Graph& g) { return synchronised_net(g, synchronised); }, {.seed = 3});
  model.compile({.optimizer = sgd(0.05F, {.momentum = 0.9F}), .precision = precision});
  model.fit(blobs(18, {6, 6, 2}).batch({.global_batch = 8}),
            {.epochs = 3, .verbose = 0, .step = {.accumulate = accumulate}});
  model.check_mirrored();
  return variables_of(model);
}

double norm_distance(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  double largest = 0;
  for (std::size_t v = 0; v < a.size(); ++v) {
    for (std::size_t i = 0; i < a[v].size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(a[v][i]) - static_cast<double>(b[v][i])));
    }
  }
  return largest;
}

TEST(SynchronisedNorm, TrainsAsOneReplicaOnTheWholeBatch) {
  const auto one = trained_norms(1, true);
  EXPECT_EQ(one, trained_norms(1, false)) << "alone it is the other";
  for (const int replicas : {2, 4}) {
    EXPECT_LT(norm_distance(one, trained_norms(replicas, true)), 2e-5 * slack()) << replicas;
    EXPECT_GT(norm_distance(one, trained_norms(replicas, false)), 1e-3) << "statistics of their own differ";
  }
}

TEST(SynchronisedNorm, AccumulatesAsOneReplica) {
  EXPECT_LT(norm_distance(trained_norms(1, true, 2), trained_norms(2, true, 2)), 2e-5 * slack());
}

TEST(SynchronisedNorm, GivesTheSameBitsAgain) {
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    EXPECT_EQ(trained_norms(2, true, 1, precision), trained_norms(2, true, 1, precision));
  }
}

}  // namespace
}  // namespace headrace::test
