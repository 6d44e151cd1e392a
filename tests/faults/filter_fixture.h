// A source with records that cannot be read, and a filter that cannot judge one of the others.
#pragma once

#include "headrace/tests/faults/given_stream.h"
#include "headrace/tests/pipeline/fake_source.h"

namespace headrace::test {

inline constexpr std::uint64_t kRecords = 60;
// The filter would leave out the first, and keep the others.
inline const std::set<std::uint64_t> kUnreadable{7, 33};
inline constexpr std::uint64_t kThrowing = 20;

inline DataError rotten(std::uint64_t record) {
  return DataError(ErrorCode::kDataCorrupt, "rotten",
                   {.source = "fake", .record = record, .offset = 100 + record});
}

// Records that can be read from the second time on.
inline SourcePtr rotten_at_first(const std::set<std::uint64_t>& unreadable = kUnreadable,
                                 std::uint64_t records = kRecords) {
  struct Left {
    std::mutex mutex;
    std::set<std::uint64_t> records;
  };
  auto left = std::make_shared<Left>();
  left->records = unreadable;
  return std::make_shared<FakeSource>(records, [left](std::uint64_t record) {
    const std::lock_guard lock(left->mutex);
    if (left->records.erase(record) > 0) throw rotten(record);
  });
}

inline bool is_wanted(std::uint64_t record) { return record % 3 != 1; }

// Keeps two of three, and cannot judge one.
inline RecordFilter two_of_three(std::uint64_t throwing = kThrowing, const std::string& field = "value") {
  return {.name = "two of three", .keeps = [throwing, field](const ExampleView& record) {
            const auto value = static_cast<std::uint64_t>(record.integer(field));
            if (value == throwing) throw std::runtime_error("no luck");
            return is_wanted(value);
          }};
}

inline LoaderOptions filter_options(OnError on_error, int threads = 2, std::uint64_t epochs = 2) {
  return {.seed = 3, .epochs = epochs, .threads = threads, .errors = {.on_error = on_error, .max_bad_share = 1}};
}

// Of one epoch in which bad records are skipped.
inline GivenStream skipping(const Dataset& dataset, int threads = 2) {
  return stream_of(dataset.batch({.global_batch = 5}), filter_options(OnError::kSkip, threads, 1));
}

// The error that the loader's `batch`-th batch is for every replica.
inline std::string error_of_stream(const Dataset& dataset, int batch, int threads, int replicas) {
  DeviceGroup devices = test_devices(replicas);
  Loader loader(dataset, devices, filter_options(OnError::kFail, threads));
  std::string text;
  for (int i = 0; i < batch; ++i) {
    for (int r = 0; r < replicas; ++r) EXPECT_TRUE(loader.next(r)) << "batches before it are handed out";
  }
  for (int r = 0; r < replicas; ++r) {
    const DataError error = error_of<DataError>([&] { loader.next(r); });
    EXPECT_TRUE(text.empty() || text == error.what());
    text = error.what();
  }
  return text;
}

}  // namespace headrace::test
