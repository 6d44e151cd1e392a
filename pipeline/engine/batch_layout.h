// The layout of a global batch's rows in the replicas' memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/record.h"

namespace headrace {

// This loader's replicas within those of all loaders that serve the stream together.
struct ReplicaRange {
  int first = 0;
  int local = 1;
  int world = 1;

  static ReplicaRange alone(int local) noexcept { return {.local = local, .world = local}; }
};

// A replica's buffer holds, field after field, `local_rows` rows. The examples of a global batch are divided
// evenly among the replicas of the world, one after another, so that their real rows are the global batch in order
// for any number of replicas. Example numbers are within this loader's part: example 0 is the first of its
// replicas.
struct BatchLayout {
  int local_replicas = 1;  // of this loader
  int first_replica = 0, world_replicas = 1;
  std::int64_t local_rows = 0;
  std::int64_t guest_rows = 0;  // maximum of other replicas' examples with which this loader's are mixed
  std::array<std::size_t, kMaxFields> row_bytes{};
  std::array<std::size_t, kMaxFields> offset{};  // of a field in a replica's buffer
  std::size_t buffer_bytes = 0;
  std::size_t sent_from = 0;     // the bytes before it are not sent with every batch
  std::size_t sample_bytes = 0;  // of one example, all fields
  std::size_t guest_bytes = 0;   // of a guest's row, each field aligned

  BatchLayout() = default;
  // `examples`: of the largest batch. The fields with the indices `apart` come first and are not sent with every
  // batch. The offsets of `ragged` have one row more, and are written as lengths. Throws ConfigError if no machine
  // could hold the batch.
  BatchLayout(const Fields& fields, std::int64_t examples, const ReplicaRange& range,
              std::span<const std::size_t> apart = {}, std::span<const RaggedTensor> ragged = {});

  // Returns `bytes` rounded up to the alignment of a field.
  static std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

  // Returns how many of a global batch's `examples` come before this loader's part.
  std::int64_t examples_before(std::int64_t examples) const noexcept { return cut(examples, 0); }
  // Returns the number of a replica's first example; for the replica after the last, this loader's examples.
  std::int64_t first_of(std::int64_t examples, int replica) const noexcept {
    return cut(examples, replica) - cut(examples, 0);
  }

 private:
  std::int64_t cut(std::int64_t examples, int replica) const noexcept {
    return examples * (first_replica + replica) / world_replicas;
  }
  void add(const Field& field, std::size_t index, std::int64_t rows);
};

// The batches of one bucket of bucket_by_length(): the plan's fields with the bucket's length, and their layout.
// Ragged batches have one such shape, with the maximum length of each field.
struct BatchShape {
  Fields fields;
  BatchLayout layout;
};

}  // namespace headrace
