#include "headrace/devices/workers.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

WorkerPlan place_of(const std::map<std::string, std::string>& variables) {
  return place_worker([&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(WorkerPlace, NeedsNoAddress) {
  const WorkerPlan place = place_of({{"JOB_COMPLETION_INDEX", "2"}, {"JOB_COMPLETIONS", "3"}});
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.workers, 3);
  EXPECT_EQ(place.local_rank, -1);
  EXPECT_THAT(place.coordinator, IsEmpty());
}

TEST(WorkerPlace, IsWithinTheHostToo) {
  const WorkerPlan place = place_of(
      {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}, {"MASTER_PORT", "x"}});
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_workers, 4);
}

TEST(WorkerPlace, IsThatOfOneWithoutALauncher) { EXPECT_TRUE(place_of({}).alone()); }

TEST(WorkerPlace, IsRefusedWhereAVariableIsMissing) {
  EXPECT_THROW(place_of({{"JOB_COMPLETION_INDEX", "2"}}), ConfigError);
}

TEST(DevicesOfWorker, AreThoseThatAProcessAloneNames) {
  EXPECT_EQ(devices_of_worker("auto", nullptr), "auto");
  EXPECT_EQ(devices_of_worker("cpu:4", nullptr), "cpu:4");
}

}  // namespace
}  // namespace headrace::test
