// Attention and the layers of sequences around it, through whole nets.
#include "headrace/tests/support/reference.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/graph.h"
#include "headrace/train/nets.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kPositions = 5, kFeatures = 6;

// One example's attention in double: queries, keys and values by rows. `seen(t, s)` says what takes part.
template <typename Seen>
Reals attended(const Reals& q, const Reals& k, const Reals& v, std::size_t heads, const Seen& seen) {
  const auto positions = static_cast<std::size_t>(kPositions), features = q.size() / positions;
  const std::size_t width = features / heads;
  Reals result(q.size());
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t t = 0; t < positions; ++t) {
      Reals weights(positions);
      double total = 0;
      for (std::size_t s = 0; s < positions; ++s) {
        double score = 0;
        for (std::size_t c = head * width; c < (head + 1) * width; ++c) {
          score += q[t * features + c] * k[s * features + c];
        }
        weights[s] = seen(t, s) ? std::exp(score / std::sqrt(static_cast<double>(width))) : 0;
        total += weights[s];
      }
      for (std::size_t s = 0; s < positions; ++s) {
        for (std::size_t c = head * width; c < (head + 1) * width; ++c) {
          result[t * features + c] += weights[s] / total * v[s * features + c];
        }
      }
    }
  }
  return result;
}

TEST(Attention, IsWhatThePlainestLoopsCompute) {
  constexpr std::int64_t kExamples = 3;
  const Shape sequence{kPositions, kFeatures};
  const auto values = random_floats(kExamples * sequence.elements(), 1);
  std::vector<float> mask;
  for (std::int64_t i = 0; i < kExamples * kPositions; ++i) mask.push_back(i % 3 == 1 ? 0.0F : 1.0F);
  const Dataset data =
      Dataset::from(in_memory("sequences", kExamples,
                              {array_of("image", sequence, values), array_of("mask", {kPositions}, mask),
                               array_of("label", Shape{}, std::vector<std::int64_t>(kExamples))}))
          .batch({.global_batch = 2});
  for (const int heads : {1, 2, 6}) {
    for (const bool causal : {false, true}) {
      for (const bool masked : {false, true}) {
        Training training(1);
        Model model = training.strategy.build([&](Graph& g) {
          const Node x = g.input("image", sequence);
          const Node hidden = masked ? g.input("mask", {kPositions}) : Node{};
          return g.attention({.query = x, .value = g.scale(x, 2), .key = g.scale(x, -1), .mask = hidden}, heads,
                             {.causal = causal, .dropout = 0.5F});
        });
        const std::vector<float> got = model.predict(data).values;
        for (std::size_t n = 0; n < kExamples; ++n) {
          Reals x, negative, twice;
          for (std::size_t i = 0; i < kPositions * kFeatures; ++i) {
            x.push_back(static_cast<double>(values[n * kPositions * kFeatures + i]));
            negative.push_back(-x.back());
            twice.push_back(2 * x.back());
          }
          const Reals expected = attended(
              x, negative, twice, static_cast<std::size_t>(heads),
              [&](auto t, auto s) { return (!causal || s <= t) && (!masked || mask[n * kPositions + s] != 0); });
          for (std::size_t i = 0; i < expected.size(); ++i) {
            // A row without any position has equal weights.
            if (masked && causal && i / kFeatures == 0 && mask[n * kPositions] == 0) continue;
            ASSERT_NEAR(got[n * expected.size() + i], expected[i], 2e-6 * slack())
                << heads << causal << masked << " at " << i;
          }
        }
      }
    }
  }
}

TEST(Attention, OfManyHeadsIsFourDenseLayersAroundIt) {
  Graph g;
  const Node x = g.input("tokens", {7, 5});
  const Node y = g.multi_head_attention(x, 2, 4, {.value_dim = 3});
  EXPECT_EQ(g.shape(y), (Shape{7, 5}));
  const Node z =
      g.multi_head_attention({.query = y, .value = g.dense(x, 9)}, 3, 2, {.output_dim = 8, .bias = false});
  EXPECT_EQ(g.shape(z), (Shape{7, 8}));
  g.finish(g.dense(g.global_average_pool(z), 2));
  std::vector<std::string> names;
  std::int64_t parameters = 0;
  for (const LayerInfo& each : g.layers()) {
    names.push_back(each.name);
    if (each.name.starts_with("multi_head_attention") && !each.name.starts_with("multi_head_attention_1")) {
      parameters += each.parameters;
    }
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"multi_head_attention/query", "multi_head_attention/key",
                                            "multi_head_attention/value", "multi_head_attention/attention",
                                            "multi_head_attention", "multi_head_attention_1/query"}));
  EXPECT_EQ(parameters, 2 * (5 * 8 + 8) + (5 * 6 + 6) + (6 * 5 + 5));
  EXPECT_EQ(g.shape(g.node("multi_head_attention_1/attention")), (Shape{7, 6}));
}

std::string sequence_refusal(const std::function<void(Graph&)>& net) {
  Graph g;
  try {
    net(g);
  } catch (const Error& error) {
    return std::string(error.what()) + " " + error.hint();
  }
  return "no error";
}

TEST(Attention, ErrorsSayWhatToWrite) {
  const auto of = [](const Shape& q, const Shape& k, const Shape& v, int heads) {
    return sequence_refusal([&](Graph& g) {
      g.attention({.query = g.input("q", q), .value = g.input("v", v), .key = g.input("k", k)}, heads);
    });
  };
  EXPECT_THAT(of({7}, {3, 4}, {3, 4}, 2),
              AllOf(HasSubstr("queries"), HasSubstr("(7,)"), HasSubstr("embedding()")));
  EXPECT_THAT(of({2, 6}, {3, 4}, {3, 4}, 2),
              AllOf(HasSubstr("(2, 6)"), HasSubstr("(3, 4)"), HasSubstr("dense()")));
  EXPECT_THAT(of({2, 4}, {3, 4}, {5, 4}, 2), AllOf(HasSubstr("positions"), HasSubstr("one sequence")));
  EXPECT_THAT(of({2, 4}, {3, 4}, {3, 4}, 3), AllOf(HasSubstr("3 heads"), HasSubstr("multiple")));
  EXPECT_THAT(of({2, 4}, {3, 4}, {3, 5}, 2), AllOf(HasSubstr("values"), HasSubstr("(3, 5)")));
  EXPECT_THAT(of({2, 4}, {3, 4}, {3, 4}, 0), HasSubstr("at least one head"));
  EXPECT_THAT(sequence_refusal([](Graph& g) {
                const Node x = g.input("x", {4, 6});
                g.multi_head_attention({.query = x, .value = x, .mask = g.input("mask", {5})}, 2, 3);
              }),
              AllOf(HasSubstr("multi_head_attention/attention"), HasSubstr("(5,)"), HasSubstr("(4,)")));
  EXPECT_THAT(
      sequence_refusal([](Graph& g) {
        g.multi_head_attention(g.input("x", {4, 6, 2}), 2, 3);
      }),
      AllOf(HasSubstr("'multi_head_attention'"), HasSubstr("(4, 6, 2)"), HasSubstr("(positions, features)")));
  EXPECT_THAT(sequence_refusal([](Graph& g) {
                g.multi_head_attention(g.input("x", {4, 6}), 2, 0);
              }),
              HasSubstr("width 0"));
  EXPECT_THAT(sequence_refusal([](Graph& g) {
                g.multi_head_attention(g.input("x", {4, 6}), 2, 3, {.dropout = 1});
              }),
              HasSubstr("dropout"));
  EXPECT_THAT(sequence_refusal([](Graph& g) { g.position_embedding(g.input("x", {4})); }),
              HasSubstr("embedding()"));
}

// Sequences of eight tokens; the label says whether the token 7 comes before the token 8: without attention and
// positions a mean over positions cannot know.
Dataset ordered_tokens(std::int64_t count, std::uint64_t seed = 4) {
  std::vector<std::int64_t> tokens, labels;
  Philox random({.seed = seed});
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<std::int64_t> row;
    for (int t = 0; t < 8; ++t) row.push_back(random.below(7));
    const std::uint32_t first = random.below(8), second = (first + 1 + random.below(7)) % 8;
    row[first] = 7, row[second] = 8;
    tokens.insert(tokens.end(), row.begin(), row.end());
    labels.push_back(first < second ? 1 : 0);
  }
  return Dataset::from(in_memory("tokens", static_cast<std::size_t>(count),
                                 {array_of("tokens", {8}, tokens), array_of("label", Shape{}, labels)}));
}

// The block of Keras's "Text classification with Transformer".
Node transformer(Graph& g) {
  Node x = g.position_embedding(g.embedding(g.input("tokens", {8}), 9, 16));
  x = g.layer_norm(g.add(x, g.dropout(g.multi_head_attention(x, 2, 8), 0.1F)), {.epsilon = 1e-6F});
  const Node wide = g.dense(x, 32, {.activation = Activation::kRelu});
  x = g.layer_norm(g.add(x, g.dropout(g.dense(wide, 16), 0.1F)), {.epsilon = 1e-6F});
  x = g.dropout(g.global_average_pool(x), 0.1F);
  return g.dense(g.dense(x, 20, {.activation = Activation::kRelu}), 2);
}

TEST(Attention, ATransformerLearnsTheOrderOfTokens) {
  const Dataset data = ordered_tokens(512).batch({.global_batch = 64}),
                other = ordered_tokens(700, 5).batch({.global_batch = 64});
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    Training training(2);
    Model model = training.strategy.build(transformer, {.seed = 3});
    model.compile({.optimizer = adam(5e-3F), .metrics = {accuracy()}, .precision = precision});
    const History history = model.fit(data, {.epochs = 40, .verbose = 0});
    model.check_mirrored();
    EXPECT_GT(history["accuracy"].back(), 0.95);
    EXPECT_LT(history["loss"].back(), 0.2 * history["loss"].front());
    EXPECT_GT(model.evaluate(other).accuracy, 0.9);
  }
}

TEST(Attention, IsTheSameForAnyNumberOfReplicasWithVirtualShards) {
  std::vector<std::string> weights;
  for (const int replicas : {1, 2}) {
    Training training(replicas);
    Model model = training.strategy.build(transformer, {.seed = 3});
    model.compile({.optimizer = adam(5e-3F)});
    model.fit(ordered_tokens(100).batch({.global_batch = 32}),
              {.epochs = 2, .verbose = 0, .step = {.virtual_shards = 4}});
    weights.push_back(model.weights_sha256());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(Attention, IsALayerOfASequential) {
  Graph g;
  const Net net = Sequential()
                      .embedding(9, 16)
                      .position_embedding()
                      .multi_head_attention(2, 8, {.causal = true})
                      .global_average_pool()
                      .dense(2)
                      .net("tokens", Shape{8});
  g.finish(net(g));
  EXPECT_EQ(g.layers().size(), 10U);
}

}  // namespace
}  // namespace headrace::test
