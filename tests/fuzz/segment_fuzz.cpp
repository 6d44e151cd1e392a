// A disk cache's segment and index: whatever they hold, a sample that is found is one that was stored.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "headrace/cache/cache_report.h"
#include "headrace/cache/disk/segment_format.h"
#include "headrace/cache/disk_cache.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/hash.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/support/cache_samples.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::fuzz {

using namespace test;

namespace {

constexpr std::uint64_t kFingerprint = 0xFEED, kStreamRecords = 12;
constexpr std::size_t kIndexHead = 40, kIndexEntry = 40;  // cache/FORMAT.md

// The folder a cache made, and its segment's name without the ending.
struct Sound {
  Sound() {
    {
      DiskCache cache(folder.path());
      cache.bind(kFingerprint, kStreamRecords);
      for (std::uint64_t i = 0; i < kStreamRecords; ++i) {
        cache.insert(i, i % 3 == 0 ? Bytes(500, static_cast<std::byte>(i)) : content(i));
      }
    }
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path())) {
      if (file.path().extension() == ".segment") segment = file.path();
      if (file.path().extension() == ".index") index = file.path();
    }
    segment_bytes = read_whole_file(segment);
    index_bytes = read_whole_file(index);
  }
  TempFolder folder;
  std::filesystem::path segment, index;
  Bytes segment_bytes, index_bytes;
};

Sound& sound() {
  static Sound one;
  return one;
}

bool is_index(std::span<const std::byte> input) { return input.size() >= 5 && input[2] == std::byte{'I'}; }

}  // namespace

std::vector<Bytes> seeds() { return {sound().segment_bytes, sound().index_bytes}; }

// The input stands in for the segment or for the index, by what it begins with.
void run(std::span<const std::byte> input) {
  Sound& on_disk = sound();
  const bool index = is_index(input);
  std::filesystem::remove(on_disk.index);
  write_file_atomically(on_disk.segment, index ? on_disk.segment_bytes : Bytes(input.begin(), input.end()));
  if (index) write_file_atomically(on_disk.index, Bytes(input.begin(), input.end()));
  inspect_cache(on_disk.folder.path(), Thoroughness::kEveryByte);
  DiskCache cache(on_disk.folder.path());
  cache.bind(kFingerprint, kStreamRecords);
  for (std::uint64_t i = 0; i < kStreamRecords; ++i) {
    const Bytes bytes = found(cache, i);
    if (bytes.empty() || bytes == (i % 3 == 0 ? Bytes(500, static_cast<std::byte>(i)) : content(i))) continue;
    std::fprintf(stderr, "fuzz: record %d has bytes that were never stored\n", static_cast<int>(i));
    std::abort();
  }
}

// Of the index; a segment's checksums are what keeps wrong samples out.
void repair(Bytes& input) {
  if (!is_index(input) || input.size() < kIndexHead + 8) return;
  const std::size_t end = input.size() - 8;
  const std::uint64_t entries = (end - kIndexHead) / kIndexEntry;
  std::memcpy(input.data() + 32, &entries, sizeof entries);
  const std::uint64_t checksum = xxh3(std::span(input).first(end));
  std::memcpy(input.data() + end, &checksum, sizeof checksum);
}

}  // namespace headrace::fuzz
