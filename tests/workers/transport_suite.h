// What every transport of values must do, run by each worker of a world.
#pragma once

#include "headrace/devices/workers.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

// A value of a worker's, with bits that depend on the order of sums.
inline float value_of(int rank, std::size_t i) {
  return std::sin(static_cast<float>(rank * 7919 + static_cast<int>(i))) * std::ldexp(1.0F, (rank * 5) % 11);
}

inline float tree_sum(std::vector<float> values) {
  for (std::size_t stride = 1; stride < values.size(); stride *= 2) {
    for (std::size_t i = 0; i + stride < values.size(); i += 2 * stride) values[i] += values[i + stride];
  }
  return values[0];
}

// Throws unless the sum of `count` values has the bits of one tree over ranks.
inline void require_tree_sums(Workers& workers, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(workers.rank(), i);
  workers.all_reduce_sum(values);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<float> all;
    for (int rank = 0; rank < workers.count(); ++rank) all.push_back(value_of(rank, i));
    const float expected = tree_sum(all);
    if (std::memcmp(&values[i], &expected, sizeof expected) != 0) {
      throw ConfigError("element " + std::to_string(i) + " of " + std::to_string(count));
    }
  }
}

inline void require_any_mix_of_sizes(Workers& workers) {
  for (int round = 0; round < 20; ++round) {
    std::vector<float> values(static_cast<std::size_t>(1 + round % 4 * 300), 1.0F);
    workers.all_reduce_sum(values);
    if (values.back() != static_cast<float>(workers.count())) throw ConfigError("a wrong sum");
    const int root = round % workers.count();
    std::string text(static_cast<std::size_t>(10 + round * 1000), static_cast<char>('a' + workers.rank()));
    workers.broadcast(std::as_writable_bytes(std::span(text)), root);
    if (text.front() != 'a' + root || text.back() != 'a' + root) throw ConfigError("a wrong broadcast");
    const auto all = workers.all_gather(std::to_string(workers.rank() * round));
    if (all[1] != std::to_string(round)) throw ConfigError("a wrong gather");
  }
}

}  // namespace headrace::test
