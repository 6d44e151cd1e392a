// What a loader hands out, all of it.
#pragma once

#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {

using Records = std::vector<std::uint64_t>;

// What one replica is given.
struct GivenStream {
  Records good;
  std::vector<BadRecord> bad;

  Records bad_records() const {
    Records records;
    for (const BadRecord& one : bad) records.push_back(one.record);
    return records;
  }
};

inline GivenStream stream_of(const Dataset& dataset, const LoaderOptions& with) {
  DeviceGroup devices = test_devices(1);
  Loader loader(dataset, devices, with);
  GivenStream stream;
  while (const auto batch = loader.next()) {
    stream.good.insert(stream.good.end(), batch->records().begin(), batch->records().end());
    stream.bad.insert(stream.bad.end(), batch->bad_records().begin(), batch->bad_records().end());
  }
  return stream;
}

}  // namespace headrace::test
