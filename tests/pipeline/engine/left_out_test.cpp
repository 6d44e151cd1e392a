// Batches of which skipping leaves no example: none is handed out, all replicas agree on where epochs end, and
// nobody waits for what only a consumer could return.
#include <deque>

#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

constexpr std::uint64_t kLeftOutRecords = 16, kLeftOutEpochs = 3;
using LeftOutRecords = std::set<std::uint64_t>;

// Batches of two; records below 2 * n are batches below n.
Dataset damaged(const LeftOutRecords& bad) {
  return Dataset::from(std::make_shared<FakeSource>(kLeftOutRecords,
                                                    [bad](std::uint64_t record) {
                                                      if (bad.contains(record))
                                                        throw DataError(ErrorCode::kDataCorrupt, "damaged",
                                                                        {.source = "fake"});
                                                    }))
      .batch({.global_batch = 2});
}

struct Taken {
  std::uint64_t sequence = 0, epoch = 0;
  bool last_of_epoch = false;
  bool operator==(const Taken&) const = default;
};

struct Consumption {
  std::vector<Taken> batches;
  std::vector<std::uint64_t> ends;  // of each epoch, how many batches had come
};

// Takes the replica's batches, epoch by epoch, and keeps the latest `held`.
Consumption consume(Loader& loader, int replica, std::size_t held) {
  Consumption found;
  std::deque<Batch> kept;
  for (std::uint64_t epoch = 0; epoch < kLeftOutEpochs; ++epoch) {
    while (auto batch = loader.next(replica, epoch)) {
      const BatchPosition& at = batch->position();
      EXPECT_GT(at.global_examples, 0) << "batch " << at.sequence;
      EXPECT_EQ(at.epoch, epoch);
      found.batches.push_back({.sequence = at.sequence, .epoch = at.epoch, .last_of_epoch = at.last_of_epoch});
      kept.push_back(*std::move(batch));
      if (kept.size() > held) kept.pop_front();
    }
    found.ends.push_back(found.batches.size());
  }
  EXPECT_FALSE(loader.next(replica)) << "the last epoch is over";
  return found;
}

std::vector<std::uint64_t> sequences_of(const Consumption& found, bool in_order) {
  std::vector<std::uint64_t> all;
  for (const Taken& taken : found.batches) all.push_back(taken.sequence);
  if (!in_order) std::ranges::sort(all);
  return all;
}

class LeftOut : public testing::TestWithParam<std::tuple<LeftOutRecords, int, int, std::size_t, bool>> {};

TEST_P(LeftOut, BatchesAreTheSameForAllReplicas) {
  const auto& [bad, replicas, prefetch, held, in_order] = GetParam();
  std::vector<std::uint64_t> expected, ends;
  for (std::uint64_t epoch = 0; epoch < kLeftOutEpochs; ++epoch) {
    for (std::uint64_t step = 0; step < kLeftOutRecords / 2; ++step) {
      if (!bad.contains(2 * step) || !bad.contains(2 * step + 1))
        expected.push_back(epoch * kLeftOutRecords / 2 + step);
    }
    ends.push_back(expected.size());
  }
  DeviceGroup devices = cpu_replicas(replicas);
  Loader loader(damaged(bad), devices,
                {.epochs = kLeftOutEpochs,
                 .prefetch = prefetch,
                 .in_order = in_order,
                 .stall_timeout_seconds = 20,
                 .errors = {.on_error = OnError::kSkip, .max_bad_share = 1}});
  std::vector<std::future<Consumption>> consumers;
  for (int r = 0; r < replicas; ++r)
    consumers.push_back(std::async(std::launch::async, [&, r, held = held] { return consume(loader, r, held); }));
  std::vector<Consumption> found;
  for (auto& consumer : consumers) found.push_back(consumer.get());
  for (const Consumption& one : found) {
    EXPECT_EQ(one.batches, found.front().batches);
    EXPECT_EQ(one.ends, ends);
    EXPECT_EQ(sequences_of(one, in_order), expected);
  }
  std::vector<std::uint64_t> lasts;
  for (std::size_t i = 0; i < found.front().batches.size(); ++i) {
    if (found.front().batches[i].last_of_epoch) lasts.push_back(i + 1);
  }
  const bool may_look = replicas == 1 && static_cast<std::size_t>(prefetch) > held;
  EXPECT_TRUE(std::ranges::includes(ends, lasts));
  if (may_look) {
    EXPECT_EQ(lasts, ends) << "a slot was free to look where the epoch ends";
  }
}

const LeftOutRecords kBadTail{10, 11, 12, 13, 14, 15}, kBadBegin{0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
    kBadHoles{2, 3, 6, 8, 9, 14, 15}, kAllButOne{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

INSTANTIATE_TEST_SUITE_P(All, LeftOut,
                         testing::Combine(testing::Values(kBadTail, kBadBegin, kBadHoles, kAllButOne),
                                          testing::Values(1, 2, 3), testing::Values(1, 2, 9),
                                          testing::Values(0, 1), testing::Bool()));

// A loop of one thread that keeps a batch of each replica while it asks for the next ones, as `batch = next()`
// does.
TEST(LeftOutBatches, NeedNoOtherReplica) {
  for (const bool in_order : {true, false}) {
    DeviceGroup devices = cpu_replicas(2);
    Loader loader(damaged(kBadTail), devices,
                  {.epochs = kLeftOutEpochs,
                   .prefetch = 2,
                   .in_order = in_order,
                   .stall_timeout_seconds = 20,
                   .errors = {.on_error = OnError::kSkip, .max_bad_share = 1}});
    std::vector<std::optional<Batch>> batches(2);
    std::vector<std::uint64_t> examples(2);
    for (bool more = true; more;) {
      for (int r = 0; r < 2; ++r) {
        auto& batch = batches[static_cast<std::size_t>(r)];
        batch = loader.next(r);
        more = batch.has_value();
        if (more) ++examples[static_cast<std::size_t>(r)];
      }
    }
    EXPECT_EQ(examples, (std::vector<std::uint64_t>{5 * kLeftOutEpochs, 5 * kLeftOutEpochs}));
  }
}

// The batches after the one that ends an epoch count as handed out with it, where they are seen.
TEST(LeftOutBatches, AStateAfterTheLastBatchIsOneOfTheNextEpoch) {
  DeviceGroup devices = cpu_replicas(1);
  LoaderOptions options{.epochs = kLeftOutEpochs, .errors = {.on_error = OnError::kSkip, .max_bad_share = 1}};
  Loader loader(damaged({12, 13, 14, 15}), devices, options);
  while (!loader.next()->position().last_of_epoch) {
  }
  options.start = loader.state();
  EXPECT_EQ(options.start->sequence, kLeftOutRecords / 2);
  Loader resumed(damaged({12, 13, 14, 15}), devices, options);
  EXPECT_EQ(resumed.next(0, 1)->position().epoch, 1U);
  EXPECT_FALSE(resumed.next(0, 0)) << "a batch of a later epoch stays for the next call";
  EXPECT_EQ(resumed.next()->position().step, 1U);
}

}  // namespace
}  // namespace headrace::test
