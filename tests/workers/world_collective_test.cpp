// Replicas of several workers sum as those of one process do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/registry.h"
#include "headrace/tests/workers/world_fixture.h"

namespace headrace {
namespace {

using test::run_workers;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(WorldCollective, WantsAsManyReplicasOfEachWorker) {
  const auto errors = run_workers(2, [](Workers& joined) {
    DeviceGroup devices = open_devices(joined.rank() == 0 ? "cpu:1" : "cpu:2");
    create_world_collective(create_collective(devices), std::shared_ptr<Workers>(&joined, [](Workers*) {}));
  });
  EXPECT_THAT(errors,
              Each(HasSubstr("the workers differ in their number of replicas: 1 of worker 0, 2 of worker 1")));
}

}  // namespace
}  // namespace headrace
