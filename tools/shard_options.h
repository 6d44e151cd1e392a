// Options of a training whose result does not depend on the number of replicas.
#pragma once

#include <CLI/CLI.hpp>

namespace headrace::tools {

struct ShardOptions {
  bool deterministic = false;
  std::uint64_t virtual_shards = 0;

  void add_to(CLI::App& command);
  // As FitOptions::virtual_shards has it.
  int count() const noexcept;
};

}  // namespace headrace::tools
