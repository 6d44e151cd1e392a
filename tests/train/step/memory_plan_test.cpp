// Memory of a step: replicas' arenas, the plan, shards.
#include "headrace/train/step/memory_plan.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/nets.h"
#include "headrace/train/step/program.h"
#include "headrace/train/step/replica_arenas.h"
#include "headrace/train/step/shards.h"

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

// One local replica of a world whose other replicas have a state of 0.
class CollectiveWithIdleOthers final : public Collective {
 public:
  explicit CollectiveWithIdleOthers(int world) : world_(world) {}

  int local_replicas() const noexcept override { return 1; }
  int world_replicas() const noexcept override { return world_; }
  void all_reduce_sum(int, const TensorView&, Stream&) override {}
  void broadcast(int, int, const TensorView&, Stream&) override {}
  void abort(const std::string&) noexcept override {}

 private:
  int world_;
};

std::vector<float> state_after_averaging(int world) {
  Training training(1);
  Model model = compiled(training.strategy, norm_cnn);
  ModelState& state = model.state();
  const ReplicaArenas arenas(state, 0, {}, 0, false);
  const ShardArenas none(state, Shards(training.strategy, 0), 0, false);
  CollectiveWithIdleOthers collective(world);
  arenas.average_state(collective, 0, training.strategy.stream(0), *training.devices[0].kernels(), none);
  training.strategy.synchronize();
  return model.read_variable("batch_norm/running_var");
}

TEST(ReplicaArenas, StateIsTheMeanOverTheWorld) {
  EXPECT_EQ(state_after_averaging(1), std::vector<float>(4, 1.0F));
  EXPECT_EQ(state_after_averaging(4), std::vector<float>(4, 0.25F));
}

// How shards are counted where a process has some of the world's replicas.

constexpr World kSecondHalf{.total = 4, .first = 2};  // of two local replicas

TEST(Shards, OneAReplicaAreTheReplicas) {
  Training training(2);
  const Shards shards(training.strategy, kSecondHalf, 0);
  EXPECT_EQ(shards.local_shards(), 2);
  EXPECT_EQ(shards.per_replica(), 1);
  EXPECT_EQ(shards.world(), kSecondHalf);
  EXPECT_EQ(&shards.stream(1), &training.strategy.stream(1));
}

TEST(Shards, VirtualOnesAreDividedAmongTheWorld) {
  Training training(2);
  const Shards shards(training.strategy, kSecondHalf, 16);
  EXPECT_EQ(shards.per_replica(), 4);
  EXPECT_EQ(shards.local_shards(), 8);
  EXPECT_EQ(shards.world(), (World{.total = 16, .first = 8}));
  EXPECT_EQ(shards.replica_of(3), 0);
  EXPECT_EQ(shards.replica_of(4), 1);
  EXPECT_EQ(shards.first_of(2), 8);
}

TEST(Shards, OfAWholeWorldAreAllLocal) {
  Training training(2);
  const Shards shards(training.strategy, 8);
  EXPECT_EQ(shards.local_shards(), 8);
  EXPECT_EQ(shards.world(), (World{.total = 8}));
}

TEST(Shards, MustBeEnoughForTheWorld) {
  Training training(2);
  EXPECT_NO_THROW(Shards(training.strategy, 2));
  EXPECT_THAT([&] { Shards(training.strategy, kSecondHalf, 2); },
              testing::ThrowsMessage<ConfigError>(HasSubstr("2 virtual shards cannot be shared equally by 4")));
}

// Rows 0 to 15, two a shard: the second process's shards are 4 to 7.
TEST(Shards, TellALoaderItsRows) {
  Training training(2);
  std::vector<float> values(16);
  std::vector<std::int64_t> rows(16);
  for (std::size_t i = 0; i < 16; ++i) rows[i] = static_cast<std::int64_t>(i);
  const Shards shards(training.strategy, kSecondHalf, 8);
  DeviceGroup devices = training.devices.repeated(shards.per_replica());
  Loader loader(labelled({1}, values, rows).batch({.global_batch = 16}), devices, {.world = shards.world()});
  EXPECT_EQ(loader.local_rows(), 2);
  std::vector<std::int64_t> first_rows;
  for (int shard = 0; shard < shards.local_shards(); ++shard) {
    const Batch batch = *loader.next(shard);
    EXPECT_EQ(batch.position().global_examples, 16);
    first_rows.push_back(batch.position().first_row);
  }
  EXPECT_THAT(first_rows, ElementsAre(8, 10, 12, 14));
}

}  // namespace
}  // namespace headrace::test
