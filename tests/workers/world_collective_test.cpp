// Replicas of several workers sum as those of one process do.
#include "headrace/tests/support/discrete_device.h"
#include "headrace/tests/support/test_devices.h"
#include "headrace/tests/workers/world_fixture.h"

namespace headrace::test {
namespace {

constexpr std::size_t kCount = 5000;

std::vector<float> values_of(int replica) {
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    values[i] = std::cos(static_cast<float>(replica * 131 + static_cast<int>(i))) * std::ldexp(1.0F, replica * 3);
  }
  return values;
}

// What each replica of this process has after all of them summed, or after they took the root's values.
std::vector<std::vector<float>> exchange(DeviceGroup& devices, Collective& collective, int root) {
  std::vector<std::vector<float>> values;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int r = 0; r < devices.size(); ++r) {
    values.push_back(values_of(collective.first_replica() + r));
    streams.push_back(devices[r].create_stream());
  }
  for (int r = 0; r < devices.size(); ++r) {
    std::vector<float>& mine = values[static_cast<std::size_t>(r)];
    const TensorView view{.data = mine.data(), .shape = {static_cast<std::int64_t>(kCount)}, .dtype = DType::kF32};
    Stream& stream = *streams[static_cast<std::size_t>(r)];
    root < 0 ? collective.all_reduce_sum(r, view, stream) : collective.broadcast(r, root, view, stream);
  }
  for (const auto& stream : streams) stream->synchronize();
  return values;
}

void require_same(const std::vector<std::vector<float>>& values, const std::vector<float>& expected) {
  for (const std::vector<float>& each : values) {
    if (std::memcmp(each.data(), expected.data(), kCount * sizeof(float)) != 0) throw ConfigError("other bits");
  }
}

TEST(WorldCollective, TwoWorkersOfTwoAreOneOfFour) {
  DeviceGroup four = open_devices("cpu:4");
  const std::unique_ptr<Collective> alone = create_collective(four);
  const std::vector<float> sum = exchange(four, *alone, -1).front();
  const auto errors = run_workers(2, [&](Workers& joined) {
    DeviceGroup devices = open_devices("cpu:2");
    const std::shared_ptr<Workers> workers(&joined, [](Workers*) {});  // the fixture's
    const std::unique_ptr<Collective> world = create_world_collective(create_collective(devices), workers);
    if (world->world_replicas() != 4 || world->first_replica() != 2 * joined.rank())
      throw ConfigError("misplaced");
    require_same(exchange(devices, *world, -1), sum);
    for (int root = 0; root < 4; ++root) require_same(exchange(devices, *world, root), values_of(root));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// What does not fit into the pinned memory passes through it in parts, with a slot for each replica of the world
// if three of a worker are no subtree.
TEST(WorldCollective, SumsTensorsOfAnySizeInMemoryOfTheDevices) {
  constexpr std::size_t kElements = 2'500'000;
  for (const int each : {1, 3}) {
    const auto errors = run_workers(2, [&](Workers& joined) {
      DeviceGroup devices = devices_of<DiscreteDevice>(each);
      const auto world = create_collective(devices, std::shared_ptr<Workers>(&joined, [](Workers*) {}));
      std::vector<std::unique_ptr<Stream>> streams;
      std::vector<std::vector<float>> values;
      for (int r = 0; r < each; ++r) {
        streams.push_back(devices[r].create_stream());
        values.emplace_back(kElements, static_cast<float>(world->first_replica() + r + 1));
      }
      const auto view = [&](int r) {
        return TensorView{values[static_cast<std::size_t>(r)].data(), {kElements}, DType::kF32};
      };
      for (int r = 0; r < each; ++r) world->all_reduce_sum(r, view(r), *streams[static_cast<std::size_t>(r)]);
      for (const auto& stream : streams) stream->synchronize();
      const int replicas = world->world_replicas();
      const std::vector<float> sum(kElements, static_cast<float>(replicas * (replicas + 1) / 2));
      for (const auto& mine : values) {
        if (mine != sum) throw ConfigError("another sum");
      }
    });
    EXPECT_THAT(errors, Each(IsEmpty())) << each;
  }
}

TEST(WorldCollective, TellsHowLongItWaitedForAnotherWorker) {
  const auto errors = run_workers(2, [](Workers& joined) {
    DeviceGroup devices = open_devices("cpu:2");
    const auto world = create_collective(devices, std::shared_ptr<Workers>(&joined, [](Workers*) {}));
    if (joined.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    exchange(devices, *world, -1);
    const bool waited = world->waited_ns(0) > 150'000'000 && world->waited_ns(1) > 150'000'000;
    if (waited != (joined.rank() == 0)) throw ConfigError("it waited " + std::to_string(world->waited_ns(0)));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(WorldCollective, AnAbortIsTheWorkersAndNamesItsReason) {
  const auto errors = run_workers(2, [](Workers& joined) {
    DeviceGroup devices = open_devices("cpu:1");
    const auto world = create_collective(devices, std::shared_ptr<Workers>(&joined, [](Workers*) {}));
    if (!joined.failure().empty()) throw ConfigError("nothing has failed yet");
    joined.all_gather("");  // both have looked
    if (joined.rank() == 1) return world->abort("the disk is full");
    try {
      exchange(devices, *world, -1);
    } catch (const DeviceError&) {
      throw ConfigError(joined.failure());
    }
  });
  EXPECT_THAT(errors[0], AllOf(HasSubstr("worker 1 ("), HasSubstr("failed: the disk is full")));
}

TEST(WorldCollective, WantsAsManyReplicasOfEachWorker) {
  const auto errors = run_workers(2, [](Workers& joined) {
    DeviceGroup devices = open_devices(joined.rank() == 0 ? "cpu:1" : "cpu:2");
    create_world_collective(create_collective(devices), std::shared_ptr<Workers>(&joined, [](Workers*) {}));
  });
  EXPECT_THAT(errors,
              Each(HasSubstr("the workers differ in their number of replicas: 1 of worker 0, 2 of worker 1")));
}

}  // namespace
}  // namespace headrace::test
