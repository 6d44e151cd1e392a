#include "headrace/train/step/replica_arenas.h"
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

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

}  // namespace
}  // namespace headrace::test
