#include "headrace/devices/cpu/math/embedding.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

// Returns -1 if it is no entry.
std::int64_t entry_of(const EmbeddedRows& of, std::int64_t row) {
  const float id = of.ids[row];
  return id >= 0 && id < static_cast<float>(of.entries) ? static_cast<std::int64_t>(id) : -1;
}

}  // namespace

void embed(const EmbeddedRows& of, const float* table, float* y) {
  parallel_ranges(of.rows, row_grain(of.columns), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t entry = entry_of(of, row);
      float* to = y + row * of.columns;
      if (entry < 0) {
        std::fill_n(to, of.columns, std::numeric_limits<float>::quiet_NaN());
      } else {
        std::copy_n(table + entry * of.columns, of.columns, to);
      }
    }
  });
}

// A thread has a range of entries: it adds the rows of its own ones.
void embed_backward(const EmbeddedRows& of, const float* dy, float* dtable) {
  const std::int64_t grain = std::max<std::int64_t>(1, of.entries / (1 + of.rows * of.columns / row_grain(1)));
  parallel_ranges(of.entries, grain, [=](std::int64_t begin, std::int64_t end) {
    std::fill(dtable + begin * of.columns, dtable + end * of.columns, 0.0F);
    for (std::int64_t row = 0; row < of.rows; ++row) {
      const std::int64_t entry = entry_of(of, row);
      if (entry < begin || entry >= end) continue;
      float* into = dtable + entry * of.columns;
      const float* from = dy + row * of.columns;
      for (std::int64_t c = 0; c < of.columns; ++c) into[c] += from[c];
    }
  });
}

}  // namespace headrace::cpu
