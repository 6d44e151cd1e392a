// Loaders that serve parts of the replicas: together they are one loader that serves all.
#include <fmt/format.h>

#include "headrace/pipeline/ledger.h"
#include "headrace/tests/pipeline/batches.h"

namespace headrace::test {
namespace {

// What each replica of a loader was given: the bytes of its rows, batch after batch, and where they stand.
struct Share {
  std::int64_t first_row = 0, global_examples = 0;
  std::vector<std::uint64_t> records;
  std::vector<std::byte> bytes;
  bool operator==(const Share&) const = default;
};
using Shares = std::vector<std::vector<Share>>;  // by replica, then step

std::vector<std::byte> bytes_of(const Batch& batch, Device& device) {
  std::vector<std::byte> all;
  for (const TensorView& tensor : batch.tensors()) {
    const std::size_t row = tensor.bytes() / static_cast<std::size_t>(tensor.shape[0]);
    const std::vector<std::byte> bytes =
        download<std::byte>(device, tensor.data, row * static_cast<std::size_t>(batch.examples()));
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

Shares replica_shares(const Dataset& dataset, int local, LoaderOptions options, Ledger* ledger = nullptr) {
  DeviceGroup devices = test_devices(local);
  const int first = options.world.first;
  Loader loader(dataset, devices, std::move(options));
  Shares shares(static_cast<std::size_t>(local));
  for (bool more = true; more;) {
    for (int r = 0; r < local; ++r) {
      const auto batch = loader.next(r);
      more = batch.has_value();
      if (!batch) break;
      batch->ready().wait();
      if (ledger != nullptr) ledger->add(*batch, first + r);
      shares[static_cast<std::size_t>(r)].push_back({.first_row = batch->position().first_row,
                                                     .global_examples = batch->position().global_examples,
                                                     .records = {batch->records().begin(), batch->records().end()},
                                                     .bytes = bytes_of(*batch, devices[r])});
    }
  }
  return shares;
}

// For worlds of several sizes, divided in several ways.
void expect_parts_are_the_whole(const Dataset& dataset, const LoaderOptions& options = {}) {
  for (const int world : {2, 3, 5}) {
    const Shares whole = replica_shares(dataset, world, options);
    for (int local = 1; local <= world; ++local) {
      for (int first = 0; first + local <= world; ++first) {
        LoaderOptions part = options;
        part.world = {.total = world, .first = first};
        const Shares shares = replica_shares(dataset, local, part);
        for (int r = 0; r < local; ++r) {
          EXPECT_TRUE(shares[static_cast<std::size_t>(r)] == whole[static_cast<std::size_t>(first + r)])
              << "replica " << first + r << " of " << world << ", with " << local << " replicas a loader";
        }
      }
    }
  }
}

Dataset world_images(std::int64_t global) {
  return Dataset::from(noise_images(50, 8, 8))
      .shuffle()
      .map(pad_crop(8, 2) | flip())
      .batch({.global_batch = global});
}

TEST(World, PartsAreTheWhole) {
  expect_parts_are_the_whole(world_images(10), {.seed = 3, .epochs = 2});
  expect_parts_are_the_whole(world_images(7), {.seed = 3, .epochs = 2});
}

// Batches smaller than the world leave some loaders without an example.
TEST(World, PartsMayBeEmpty) { expect_parts_are_the_whole(world_images(2), {.threads = 2}); }

// An example is mixed with one of another loader's: that one is made here, too.
TEST(World, MixesWithExamplesOfOtherParts) {
  const Dataset floats =
      Dataset::from(noise_images(50, 8, 8)).shuffle().map(normalize({0.5F}, {0.25F}) | one_hot(10));
  const Operations blend = mixup({.alpha = 0.4F}), exchange = cutmix({.probability = 0.5F});
  for (const Operations& operations : {blend, exchange, blend | exchange}) {
    for (const std::int64_t global : {10, 7}) {
      expect_parts_are_the_whole(floats.batch({.global_batch = global}).map(operations), {.seed = 5, .epochs = 2});
    }
  }
}

struct SharedBatches {
  std::vector<std::vector<std::uint64_t>> records;  // of each batch, over all replicas
  std::vector<std::int64_t> repeats;
  std::vector<std::uint64_t> last;  // the numbers of the batches that end their epochs
};

// Expects every replica to get the same batches, and of even shares equally many examples of each.
SharedBatches shared_batches(const Dataset& dataset, int world, const LoaderOptions& options) {
  DeviceGroup devices = cpu_replicas(world);
  Loader loader(dataset, devices, options);
  SharedBatches all;
  for (;;) {
    std::vector<std::uint64_t> records;
    std::int64_t repeats = 0, examples = -1;
    for (int r = 0; r < world; ++r) {
      const auto batch = loader.next(r);
      if (!batch) return all;
      if (options.even_shares != EvenShares::kOff) {
        EXPECT_TRUE(examples < 0 || examples == batch->examples()) << "replica " << r;
      }
      EXPECT_GT(batch->position().global_examples, 0);
      examples = batch->examples();
      repeats += batch->repeats();
      records.insert(records.end(), batch->records().begin(), batch->records().end());
      if (r == 0 && batch->position().last_of_epoch) all.last.push_back(batch->position().sequence);
    }
    all.records.push_back(std::move(records));
    all.repeats.push_back(repeats);
  }
}

TEST(World, SharesAreMadeEvenByRepeatingOrDropping) {
  const LoaderOptions options{.seed = 3, .epochs = 2};
  for (const std::int64_t global : {10, 7, 12}) {
    for (const int world : {1, 2, 3, 4}) {
      SCOPED_TRACE(fmt::format("batches of {} for {} replicas", global, world));
      SharedBatches plain = shared_batches(world_images(global), world, options);
      LoaderOptions repeat = options, drop = options;
      repeat.even_shares = EvenShares::kRepeat;
      drop.even_shares = EvenShares::kDrop;
      const SharedBatches repeated = shared_batches(world_images(global), world, repeat);
      const SharedBatches dropped = shared_batches(world_images(global), world, drop);
      const auto count = static_cast<std::size_t>(world);
      std::vector<std::vector<std::uint64_t>> left;
      for (std::size_t i = 0; i < plain.records.size(); ++i) {
        std::vector<std::uint64_t> batch = plain.records[i];
        const std::size_t once = batch.size();
        if (once >= count)
          left.emplace_back(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(once / count * count));
        while (batch.size() % count != 0) batch.push_back(batch[batch.size() % once]);
        EXPECT_EQ(repeated.records.at(i), batch);
        EXPECT_EQ(repeated.repeats.at(i), static_cast<std::int64_t>(batch.size() - once));
      }
      EXPECT_EQ(dropped.records, left);
      EXPECT_EQ(repeated.last, plain.last);
      EXPECT_EQ(dropped.last.size(), 2U);
    }
  }
}

TEST(World, EvenSharesOfPartsAreThoseOfTheWhole) {
  const Dataset floats =
      Dataset::from(noise_images(50, 8, 8)).shuffle().map(normalize({0.5F}, {0.25F}) | one_hot(10));
  for (const EvenShares even : {EvenShares::kRepeat, EvenShares::kDrop}) {
    expect_parts_are_the_whole(world_images(7), {.seed = 3, .epochs = 2, .even_shares = even});
    expect_parts_are_the_whole(world_images(7).shuffle(), {.seed = 3, .epochs = 2, .even_shares = even});
    expect_parts_are_the_whole(floats.batch({.global_batch = 7}).map(mixup({.alpha = 0.4F})),
                               {.seed = 5, .epochs = 2, .even_shares = even});
  }
}

TEST(World, SharesThatCannotBeEvenAreRefused) {
  DeviceGroup devices = cpu_replicas(4);
  const auto refusal = [&](const Dataset& data, const LoaderOptions& options) {
    return message_of([&] { Loader(data, devices, options); });
  };
  EXPECT_THAT(
      refusal(world_images(8), {.even_shares = EvenShares::kRepeat, .errors = {.on_error = OnError::kSkip}}),
      HasSubstr("fewer examples than the others"));
  EXPECT_THAT(refusal(world_images(3), {.even_shares = EvenShares::kDrop}),
              HasSubstr("leaves nothing of batches of 3 for 4 replicas"));
}

TEST(World, StateAndFingerprintKnowNothingOfIt) {
  DeviceGroup one = cpu_replicas(1), four = cpu_replicas(4);
  Loader part(world_images(10), one, {.world = {.total = 4, .first = 2}}), whole(world_images(10), four);
  EXPECT_EQ(part.state(), whole.state());
  EXPECT_TRUE(part.next());
  LoaderOptions rest{.start = part.state()};
  Loader continued(world_images(10), four, rest);
  EXPECT_EQ(continued.next(2)->position().sequence, 1U);
}

TEST(World, SharesOfAPartHaveTheDigestsOfTheWhole) {
  const auto share_digests = [](int local, const LoaderOptions& options) {
    DeviceGroup devices = test_devices(local);
    Loader loader(world_images(10), devices, options);
    StreamDigest digest(devices, options.world.first);
    std::vector<ShareDigest> all;
    while (digest.next(loader)) all.insert(all.end(), digest.shares().begin(), digest.shares().end());
    return all;
  };
  std::vector<ShareDigest> whole = share_digests(4, {.epochs = 2});
  EXPECT_EQ(whole.size(), 4U * 10);
  std::erase_if(whole, [](const ShareDigest& share) { return share.replica == 0 || share.replica == 3; });
  EXPECT_EQ(share_digests(2, {.epochs = 2, .world = {.total = 4, .first = 1}}), whole);
}

TEST(World, LedgersAddUp) {
  Ledger together;
  const Dataset dataset = world_images(10);
  replica_shares(dataset, 1, {.epochs = 2, .world = {.total = 5, .first = 0}}, &together);
  EXPECT_TRUE(together.find_breach(0, EpochContents::all(50))) << "a part is not the whole";
  replica_shares(dataset, 3, {.epochs = 2, .world = {.total = 5, .first = 1}}, &together);
  replica_shares(dataset, 1, {.epochs = 2, .world = {.total = 5, .first = 4}}, &together);
  for (const std::uint64_t epoch : {0, 1}) {
    EXPECT_FALSE(together.find_breach(epoch, EpochContents::all(50)))
        << *together.find_breach(epoch, EpochContents::all(50));
  }
}

TEST(World, IsToldByTheLoader) {
  DeviceGroup devices = cpu_replicas(2);
  EXPECT_EQ(Loader(world_images(10), devices).world(), (World{.total = 2}));
  const World part{.total = 5, .first = 3};
  EXPECT_EQ(Loader(world_images(10), devices, {.world = part}).world(), part);
  EXPECT_EQ(part.repeated(4), (World{.total = 20, .first = 12}));
}

TEST(World, RefusesReplicasThatAreNotInIt) {
  DeviceGroup devices = cpu_replicas(2);
  for (const World world : {World{.total = 1}, World{.total = 4, .first = 3}, World{.total = 4, .first = -1},
                            World{.total = 0, .first = 1}}) {
    EXPECT_THAT(
        error_of<ConfigError>([&] { Loader loader(world_images(10), devices, {.world = world}); }).message(),
        HasSubstr("not within a world of"));
  }
  EXPECT_THROW(Loader(world_images(10), devices, {.world = {.total = 4}, .errors = {.on_error = OnError::kSkip}}),
               ConfigError);
}

}  // namespace
}  // namespace headrace::test
