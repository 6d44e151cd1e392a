// The table of a cache: one entry per record of the source, stored or not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/sizes.h"

namespace headrace {

// Throws ConfigError if the machine's memory could not hold it.
template <typename Entry>
std::unique_ptr<Entry[]> make_record_table(std::uint64_t records) {
  const auto bytes = checked_product({records, sizeof(Entry)});
  if (!bytes || *bytes > machine_memory_bytes()) {
    throw ConfigError("a cache of " + std::to_string(records) + " records needs " + std::to_string(sizeof(Entry)) +
                          " bytes of memory for each; the machine has " + std::to_string(machine_memory_bytes()),
                      "run without a cache, or on a part of the data");
  }
  return std::make_unique<Entry[]>(records);
}

}  // namespace headrace
