#include "headrace/train/strategy.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

TEST(Strategy, RunsAFunctionOnceAReplicaInOrder) {
  Training training(3);
  const std::vector<std::string> seen = training.strategy.run([&](const ReplicaContext& replica) {
    EXPECT_EQ(&replica.device, &training.devices[replica.index]);
    EXPECT_EQ(&replica.stream, &training.strategy.stream(replica.index));
    EXPECT_EQ(replica.batch, nullptr);
    EXPECT_EQ(replica.local_replicas, 3);
    EXPECT_EQ(replica.first_replica, 0);
    return std::to_string(replica.index) + "/" + std::to_string(replica.world_replicas);
  });
  EXPECT_THAT(seen, ElementsAre("0/3", "1/3", "2/3"));
  int calls = 0;
  training.strategy.run([&](const ReplicaContext&) { ++calls; });
  EXPECT_EQ(calls, 3);
}

TEST(Strategy, GivesEachReplicaItsShareOfABatch) {
  Training training(3);
  std::vector<float> values(14);
  std::vector<std::int64_t> labels(14);
  for (std::size_t i = 0; i < 14; ++i) labels[i] = static_cast<std::int64_t>(10 + i);
  Loader loader(labelled({1}, values, labels).batch({.global_batch = 7}), training.devices);
  std::vector<std::int64_t> seen;
  for (int step = 0; step < 2; ++step) {
    GlobalBatch batches;
    for (int r = 0; r < 3; ++r) batches.push_back(*loader.next(r));
    training.strategy.run(batches, [&](const ReplicaContext& replica) {
      const auto mine = replica.read<std::int64_t>(replica.batch->tensor("label"));
      seen.insert(seen.end(), mine.begin(), mine.begin() + replica.batch->examples());
    });
    batches.pop_back();
    EXPECT_THAT(message_of([&] { training.strategy.run(batches, [](const ReplicaContext&) {}); }),
                HasSubstr("a batch of 2 shares for 3 replicas"));
  }
  EXPECT_EQ(seen, labels);
}

TEST(Strategy, ReadsAndWritesTensorsOfOneType) {
  Training training(1);
  training.strategy.run([&](const ReplicaContext& replica) {
    Buffer memory = replica.device.allocate(3 * sizeof(float));
    const TensorView tensor = memory.view(Shape{3}, DType::kF32);
    replica.write<float>(tensor, std::vector<float>{1, 2, 3});
    EXPECT_THAT(replica.read<float>(tensor), ElementsAre(1.0F, 2.0F, 3.0F));
    EXPECT_THAT(message_of([&] { replica.read<std::int64_t>(tensor); }), HasSubstr("int64"));
    EXPECT_THAT(message_of([&] { replica.write<float>(tensor, std::vector<float>(2)); }), HasSubstr("2 values"));
  });
}

TEST(Strategy, ReducesExactly) {
  Training training(4);
  const Strategy& strategy = training.strategy;
  const std::vector<double> cancelling = {1e16, 1.0, -1e16, 3.0};
  EXPECT_EQ(strategy.reduce(ReduceOp::kSum, cancelling), 4.0) << "plain additions give 3 or 4 by their order";
  EXPECT_EQ(strategy.reduce(ReduceOp::kMean, cancelling), 1.0);
  EXPECT_EQ(strategy.reduce(ReduceOp::kMax, cancelling), 1e16);
  EXPECT_EQ(strategy.reduce(ReduceOp::kMax, std::vector<double>{-3, -2, -7, -5}), -2.0);
  const std::int64_t large = (std::int64_t{1} << 51) - 1;
  EXPECT_EQ(strategy.reduce(ReduceOp::kSum, std::vector<std::int64_t>(4, large)), static_cast<double>(4 * large));
  const double tenths = strategy.reduce(ReduceOp::kSum, std::vector<float>{0.1F, 0.2F, 0.3F, 0.4F});
  EXPECT_EQ(tenths, static_cast<double>(0.1F) + 0.2F + 0.3F + 0.4F) << "f32 values are summed in double";
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(strategy.reduce(ReduceOp::kMax, std::vector<double>{1, nan, 2, 3})));
  EXPECT_EQ(strategy.reduce(ReduceOp::kSum, std::vector<double>{1, inf, 2, 3}), inf);
}

TEST(Strategy, ReducesListsElementByElement) {
  Training training(2);
  const std::vector<std::vector<float>> lists = {{1, 2, 3}, {10, 20, -30}};
  EXPECT_THAT(training.strategy.reduce(ReduceOp::kSum, lists), ElementsAre(11.0, 22.0, -27.0));
  EXPECT_THAT(training.strategy.reduce(ReduceOp::kMean, lists), ElementsAre(5.5, 11.0, -13.5));
  EXPECT_THAT(training.strategy.reduce(ReduceOp::kMax, lists), ElementsAre(10.0, 20.0, 3.0));
  const std::vector<std::vector<float>> uneven = {{1, 2}, {1}};
  EXPECT_THAT(message_of([&] { training.strategy.reduce(ReduceOp::kSum, uneven); }), HasSubstr("2 and 1"));
}

TEST(Strategy, ReducesOneValueAReplica) {
  Training training(2);
  EXPECT_THAT(message_of([&] { training.strategy.reduce(ReduceOp::kSum, std::vector<double>{1.0}); }),
              HasSubstr("1 values to reduce over 2 replicas"));
}

TEST(Strategy, SumsTensorsOnTheDevices) {
  Training training(3);
  std::vector<Buffer> memory;
  std::vector<TensorView> tensors;
  training.strategy.run([&](const ReplicaContext& replica) {
    memory.push_back(replica.device.allocate(2 * sizeof(float)));
    tensors.push_back(memory.back().view(Shape{2}, DType::kF32));
    const auto index = static_cast<float>(replica.index);
    replica.write<float>(tensors.back(), std::vector<float>{index, 10 * index});
  });
  training.strategy.all_reduce(tensors);
  training.strategy.run([&](const ReplicaContext& replica) {
    EXPECT_THAT(replica.read<float>(tensors[static_cast<std::size_t>(replica.index)]), ElementsAre(3.0F, 30.0F));
  });
  tensors.back().shape = Shape{1};
  EXPECT_THAT(message_of([&] { training.strategy.all_reduce(tensors); }), HasSubstr("one shape"));
}

TEST(Strategy, PlacesWorkOnTheDeviceThatIsNamed) {
  Training training(2);
  const std::string name = training.devices[1].info().name;
  const std::vector<float> scaled = training.strategy.on(name, [&](const ReplicaContext& replica) {
    EXPECT_EQ(&replica.device, &training.devices[1]);
    Buffer memory = replica.device.allocate(3 * sizeof(float));
    const TensorView tensor = memory.view(Shape{3}, DType::kF32);
    replica.write<float>(tensor, std::vector<float>{1, 2, 3});
    replica.kernels.scale(replica.stream, {tensor, tensor, 2.0F});
    return replica.read<float>(tensor);
  });
  EXPECT_THAT(scaled, ElementsAre(2.0F, 4.0F, 6.0F));
  EXPECT_EQ(training.strategy.on(0, [](const ReplicaContext& replica) { return replica.index; }), 0);
}

TEST(Strategy, NamesItsDevicesWhereOneIsNotThere) {
  Training training(2);
  const auto nothing = [](const ReplicaContext&) {};
  EXPECT_THAT(message_of([&] { training.strategy.on("tpu:7", nothing); }),
              AllOf(HasSubstr("no device 'tpu:7'"), HasSubstr(training.devices.to_string())));
  EXPECT_THAT(message_of([&] { training.strategy.on(2, nothing); }),
              AllOf(HasSubstr("no replica 2"), HasSubstr("0 to 1")));
}

// The first replica waits for the second within a sum that this one never joins.
TEST(Strategy, RecoversFromAnExceptionOfOneReplica) {
  Training training(2);
  std::vector<Buffer> memory;
  std::vector<TensorView> tensors;
  training.strategy.run([&](const ReplicaContext& replica) {
    memory.push_back(replica.device.allocate(sizeof(float)));
    tensors.push_back(memory.back().view(Shape{1}, DType::kF32));
    replica.write<float>(tensors.back(), std::vector<float>{1});
  });
  EXPECT_THROW(training.strategy.run([&](const ReplicaContext& replica) {
    if (replica.index == 1) throw std::runtime_error("the user's");
    training.strategy.collective().all_reduce_sum(0, tensors[0], replica.stream);
  }),
               std::runtime_error);
  training.strategy.run([&](const ReplicaContext& replica) {
    replica.write<float>(tensors[static_cast<std::size_t>(replica.index)], std::vector<float>{4});
  });
  training.strategy.all_reduce(tensors);
  EXPECT_THAT(training.strategy.on(0, [&](const ReplicaContext& r) { return r.read<float>(tensors[0]); }),
              ElementsAre(8.0F));
}

TEST(Strategy, AnswersWhatItIsNot) {
  EXPECT_NO_THROW(require_mirrored("mirrored"));
  EXPECT_THAT(message_of([] { require_mirrored("parameter-server"); }),
              AllOf(HasSubstr("'parameter-server' is not provided"), HasSubstr("multi-worker mirrored")));
  EXPECT_THAT(message_of([] { require_mirrored("tpu"); }),
              AllOf(HasSubstr("'tpu' is not provided"), HasSubstr("use mirrored")));
  EXPECT_NO_THROW(require_mirrored("multi-worker-mirrored"));
  EXPECT_THAT(message_of([] { require_mirrored("miror"); }), HasSubstr("there is no strategy 'miror'"));
}

TEST(Strategy, TrainsOnAPartOfAGroupFromAnyDeviceOn) {
  const Dataset data = blobs(40, {6, 6, 2}).batch({.global_batch = 8});
  const auto weights = [&](DeviceGroup& devices) {
    Strategy strategy(devices, {.announce = false});
    Model model = compiled(strategy, small_cnn);
    model.fit(data, {.verbose = 0});
    return model.weights_sha256();
  };
  DeviceGroup first = test_devices(4, DeviceNeed::kKernels);
  const std::string third = first[2].info().name;
  DeviceGroup rest = first.split(2);
  EXPECT_EQ(rest[0].info().name, third);
  EXPECT_EQ(rest.size(), 2);
  EXPECT_EQ(first.size(), 2);
  EXPECT_EQ(weights(first), weights(rest));
  EXPECT_THAT(message_of([&] { first.split(2); }), HasSubstr("a group of 2 devices"));
  EXPECT_THAT(message_of([&] { first.split(0); }), HasSubstr("cannot be split at device 0"));
}

}  // namespace
}  // namespace headrace::test
