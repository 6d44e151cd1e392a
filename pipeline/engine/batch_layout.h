// Where the rows of a global batch lie in the replicas' memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "headrace/pipeline/record.h"

namespace headrace {

// A replica's buffer holds, field after field, `local_rows` rows. Of a global batch of n examples replica r
// gets the examples [first_of(n, r), first_of(n, r + 1)), so that the replicas' real rows one after another
// are the global batch in order, whatever the number of replicas.
struct BatchLayout {
  int replicas = 1;
  std::int64_t local_rows = 0;
  std::array<std::size_t, kMaxFields> row_bytes{};
  std::array<std::size_t, kMaxFields> offset{};  // of a field in a replica's buffer
  std::size_t buffer_bytes = 0;
  std::size_t sent_from = 0;     // what lies before it is not sent with every batch
  std::size_t sample_bytes = 0;  // of one example, all fields

  BatchLayout() = default;
  // `examples`: of the largest batch. The fields of the numbers `apart` come first and are not sent with every
  // batch. ConfigError where no machine could hold the batch.
  BatchLayout(const Fields& fields, std::int64_t examples, int replica_count,
              std::span<const std::size_t> apart = {});

  std::int64_t first_of(std::int64_t examples, int replica) const noexcept {
    return examples * replica / replicas;
  }

 private:
  void add(const Field& field, std::size_t index);
};

}  // namespace headrace
