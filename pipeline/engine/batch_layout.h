// Where the rows of a global batch lie in the replicas' memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "headrace/pipeline/record.h"

namespace headrace {

// The replicas of this loader within those of all loaders that serve the stream together.
struct ReplicaRange {
  int first = 0;
  int local = 1;
  int world = 1;

  static ReplicaRange alone(int local) noexcept { return {.local = local, .world = local}; }
};

// A replica's buffer holds, field after field, `local_rows` rows. The examples of a global batch are divided
// evenly among the replicas of the world, one after another, so that their real rows are the global batch in
// order, whatever the number of replicas. Example numbers are within this loader's part: example 0 is the first of
// its replicas'.
struct BatchLayout {
  int local_replicas = 1;  // of this loader
  int first_replica = 0, world_replicas = 1;
  std::int64_t local_rows = 0;
  std::int64_t guest_rows = 0;  // of other replicas' examples at most, with which this loader's are mixed
  std::array<std::size_t, kMaxFields> row_bytes{};
  std::array<std::size_t, kMaxFields> offset{};  // of a field in a replica's buffer
  std::size_t buffer_bytes = 0;
  std::size_t sent_from = 0;     // what lies before it is not sent with every batch
  std::size_t sample_bytes = 0;  // of one example, all fields
  std::size_t guest_bytes = 0;   // of a guest's row, each field aligned

  BatchLayout() = default;
  // `examples`: of the largest batch. The fields of the numbers `apart` come first and are not sent with every
  // batch. ConfigError where no machine could hold the batch.
  BatchLayout(const Fields& fields, std::int64_t examples, const ReplicaRange& range,
              std::span<const std::size_t> apart = {});

  // `bytes` rounded up to where the next field may begin.
  static std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

  // Of a global batch of so many examples: how many come before this loader's part.
  std::int64_t examples_before(std::int64_t examples) const noexcept { return cut(examples, 0); }
  // Number of a replica's first example; of the replica after the last one: the examples of this loader.
  std::int64_t first_of(std::int64_t examples, int replica) const noexcept {
    return cut(examples, replica) - cut(examples, 0);
  }

 private:
  std::int64_t cut(std::int64_t examples, int replica) const noexcept {
    return examples * (first_replica + replica) / world_replicas;
  }
  void add(const Field& field, std::size_t index);
};

}  // namespace headrace
