// The property every stage of a plan keeps: one stream, however it is run and wherever it is continued.
#pragma once

#include "headrace/pipeline/ledger.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {

// Every pair of threads {1, 2, 4}, replicas {1, 2, 3} and prefetch {0, 2}, and continued from every step.
inline void expect_one_stream(const Dataset& dataset, std::uint64_t epochs = 2) {
  const auto whole = cpu_digests_of(dataset, {.seed = 4, .epochs = epochs, .threads = 1, .prefetch = 0});
  ASSERT_EQ(whole.size(), dataset.steps_per_epoch() * epochs);
  ASSERT_GT(whole.size(), 2U);
  for (const int threads : {1, 2, 4}) {
    for (const int replicas : {1, 2, 3}) {
      const int prefetch = (threads / 2 + replicas) % 2 == 0 ? 0 : 2;
      EXPECT_EQ(
          digests_of(dataset, replicas, {.seed = 4, .epochs = epochs, .threads = threads, .prefetch = prefetch}),
          whole)
          << threads << " threads, " << replicas << " replicas, prefetch " << prefetch;
    }
  }
  const std::uint64_t fingerprint = [&] {
    DeviceGroup devices = test_devices(1);
    return Loader(dataset, devices, {.seed = 4, .epochs = epochs}).state().fingerprint;
  }();
  for (std::size_t step = 0; step <= whole.size(); ++step) {
    const LoaderState state{.fingerprint = fingerprint, .sequence = step};
    const LoaderOptions options{.seed = 4,
                                .epochs = epochs,
                                .threads = 1 + static_cast<int>(step % 2),
                                .prefetch = static_cast<int>(step % 3),
                                .start = state};
    EXPECT_EQ(digests_of(dataset, 1 + static_cast<int>(step % 3), options),
              std::vector(whole.begin() + static_cast<std::ptrdiff_t>(step), whole.end()))
        << "from step " << step;
  }
}

// The first field, i64, of every example of one epoch after another.
inline std::vector<std::vector<std::int64_t>> values_of(const Dataset& dataset, std::uint64_t epochs = 1,
                                                        std::uint64_t seed = 4) {
  DeviceGroup devices = test_devices(1);
  Loader loader(dataset, devices, {.seed = seed, .epochs = epochs, .threads = 1});
  std::vector<std::vector<std::int64_t>> all(epochs);
  while (const auto batch = loader.next()) {
    const auto values = download_examples<std::int64_t>(devices[0], *batch, batch->fields()[0].name);
    auto& of_epoch = all[batch->position().epoch];
    of_epoch.insert(of_epoch.end(), values.begin(), values.end());
  }
  return all;
}

// What an epoch holds, as the ledger proves it for two epochs.
inline void expect_contents(const Dataset& dataset, const EpochContents& contents, int replicas = 2) {
  DeviceGroup devices = test_devices(replicas);
  Loader loader(dataset, devices, {.seed = 3, .epochs = 2, .threads = 2});
  Ledger ledger;
  for (bool more = true; more;) {
    for (int r = 0; r < replicas; ++r) {
      const auto batch = loader.next(r);
      more = batch.has_value();
      if (batch) ledger.add(*batch, r);
    }
  }
  for (const std::uint64_t epoch : {0, 1}) EXPECT_EQ(ledger.find_breach(epoch, contents), std::nullopt);
}

}  // namespace headrace::test
