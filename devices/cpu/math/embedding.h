// Looks up rows of a table by index. Private to the CPU backend.
#pragma once

#include <cstdint>

namespace headrace::cpu {

struct EmbeddedRows {
  std::int64_t rows = 0, columns = 0;
  std::int64_t entries = 0;  // of the table
  const float* ids = nullptr;
};

// Writes a row of NaN for an index outside the table.
void embed(const EmbeddedRows& of, const float* table, float* y);
// Adds the rows of dy in order: the same bits for any number of threads.
void embed_backward(const EmbeddedRows& of, const float* dy, float* dtable);

}  // namespace headrace::cpu
