// What one parser's fuzzing consists of: a file a target. driver.cpp runs it for a while in every build,
// libfuzzer.cpp for as long as one likes under libFuzzer (tools/fuzz).
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/support/bytes.h"

namespace headrace::fuzz {

// Sound inputs to start from.
std::vector<test::Bytes> seeds();

// Parses the input and touches every byte that it is told to be there. Throws headrace::Error for an input that is
// not sound; whatever else happens is a finding: another exception, a sanitizer's report, too much time or memory.
void run(std::span<const std::byte> input);

// Makes the checksums right again after a mutation, so that what lies behind them is reached. Need not do
// anything.
void repair(test::Bytes& input);

// What targets that read a data source share.

constexpr std::uint64_t kRecords = 200;  // read at most, of those that a source says it has

// Reads the first records, and every byte of them; a record that is refused does not stop it.
inline void read_records(const Source& source) {
  std::vector<std::byte> scratch;
  volatile unsigned touched = 0;
  for (std::uint64_t i = 0; i < std::min(source.info().records, kRecords); ++i) {
    source.describe(i);
    try {
      const RecordView view = source.read(i, scratch);
      for (std::size_t f = 0; f < source.info().fields.size(); ++f) {
        for (const std::byte byte : view.fields[f]) touched = touched + std::to_integer<unsigned>(byte);
      }
    } catch (const Error&) {
    }
  }
}

// Reads the first records of a stream; a record that is refused does not stop it.
inline void read_stream(const Source& source) {
  const std::unique_ptr<RecordStream> stream = source.open_stream(0);
  std::vector<std::byte> buffer;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    try {
      if (!stream->next(buffer)) return;
    } catch (const DataError&) {
    }
  }
}

// An archive as class folders and as a WebDataset. Throws an Error where it is neither.
inline void read_archive(const std::filesystem::path& file) {
  constexpr std::uint64_t kMemory = std::uint64_t{64} << 20;
  try {
    read_records(*image_archive(file, {.memory_limit = kMemory}));
  } catch (const Error&) {
    read_records(*web_dataset(file, {.memory_limit = kMemory}));
    return;
  }
  try {
    read_records(*web_dataset(file, {.memory_limit = kMemory}));
  } catch (const Error&) {
  }
}

}  // namespace headrace::fuzz
