// The ledger, digests and labels of a stream.
#include "headrace/pipeline/ledger.h"
#include "headrace/pipeline/digest.h"
#include "headrace/pipeline/inspect.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

Ledger ledger_of(const Dataset& dataset, int replicas, std::uint64_t epochs) {
  DeviceGroup devices = test_devices(replicas);
  Loader loader(dataset, devices, {.seed = 3, .epochs = epochs, .threads = 2});
  Ledger ledger;
  for (bool more = true; more;) {
    for (int r = 0; r < replicas; ++r) {
      const auto batch = loader.next(r);
      more = batch.has_value();
      if (batch) ledger.add(*batch, r);
    }
  }
  return ledger;
}

TEST(Ledger, ProvesExactlyOnceWhateverTheSizes) {
  for (std::uint64_t records : {1U, 3U, 64U, 101U}) {
    for (std::int64_t global : {1, 10, 32, 64, 200}) {
      for (int replicas : {1, 3, 8}) {
        const Dataset dataset = Dataset::from(numbers(records)).shuffle().batch({.global_batch = global});
        const Ledger ledger = ledger_of(dataset, replicas, 2);
        EXPECT_EQ(ledger.entries().size(), 2 * records);
        for (std::uint64_t epoch : {0, 1}) {
          EXPECT_EQ(ledger.find_breach(epoch, EpochContents::all(records)), std::nullopt)
              << records << " records, batch " << global << ", " << replicas << " replicas";
        }
      }
    }
  }
}

TEST(Ledger, CountsWhatWasDropped) {
  const Dataset dataset =
      Dataset::from(numbers(101)).shuffle().batch({.global_batch = 10, .drop_remainder = true});
  EpochContents expected = EpochContents::all(101);
  expected.dropped = 1;
  EXPECT_EQ(ledger_of(dataset, 2, 1).find_breach(0, expected), std::nullopt);
  EXPECT_THAT(ledger_of(dataset, 2, 1).find_breach(0, EpochContents::all(101)).value_or(""), HasSubstr("missing"));
}

TEST(Ledger, CountsPasses) {
  const Dataset dataset = Dataset::from(numbers(7)).shuffle().repeat(3).batch({.global_batch = 4});
  EXPECT_EQ(ledger_of(dataset, 2, 1).find_breach(0, EpochContents::all(7, 3)), std::nullopt);
}

TEST(Ledger, NamesWhatIsMissingOrSurplus) {
  Ledger ledger;
  for (std::uint64_t record : {0, 1, 2, 4})
    ledger.add({.epoch = 0, .step = record, .replica = 1, .record = record});
  EXPECT_EQ(ledger.find_breach(0, EpochContents::all(5)),
            "epoch 0: 1 records are missing instead of 0; the first is record 3");
  ledger.add({.epoch = 0, .step = 9, .replica = 0, .record = 2});
  EXPECT_EQ(ledger.find_breach(0, EpochContents::all(5)),
            "epoch 0: record 2 was handed out more often than expected: step 2 replica 1, step 9 replica 0");
  EXPECT_THAT(ledger.find_breach(1, EpochContents::all(5)).value_or(""), HasSubstr("5 records are missing"));
  ledger.add({.epoch = 2, .step = 0, .replica = 0, .record = 9});
  EXPECT_THAT(ledger.find_breach(2, EpochContents::all(5)).value_or(""), HasSubstr("record 9"));
}

TEST(StreamDigest, HashesNamesTypesShapesAndRows) {
  DeviceGroup devices = test_devices(2);
  Loader loader(Dataset::from(numbers(5)).batch({.global_batch = 4}), devices);
  StreamDigest digest(devices);
  const auto first = digest.next(loader);
  const auto second = digest.next(loader);
  EXPECT_FALSE(digest.next(loader));

  Sha256 expected;
  const auto rows = [&](std::initializer_list<std::int64_t> values) {
    expected.update("value").update("int64").update("()");
    for (std::int64_t value : values) expected.update(std::as_bytes(std::span(&value, 1)));
    return expected.finish_hex();
  };
  EXPECT_EQ(*first, (BatchDigest{.epoch = 0, .step = 0, .examples = 4, .sha256 = rows({0, 1, 2, 3})}));
  EXPECT_EQ(*second, (BatchDigest{.epoch = 0, .step = 1, .examples = 1, .sha256 = rows({4})}));
  EXPECT_EQ(digest.finish(), expected.update(first->sha256).update(second->sha256).finish_hex());
}

TEST(ReadLabel, TakesEightBytesAndNoOther) {
  std::vector<std::byte> scratch;
  EXPECT_EQ(read_label(FakeSource(5), 3, 0, scratch), 3);
  const FakeSource cut(std::vector<std::vector<std::byte>>{std::vector<std::byte>(7)});
  EXPECT_THROW(read_label(cut, 0, 0, scratch), DataError);
}

}  // namespace
}  // namespace headrace::test
