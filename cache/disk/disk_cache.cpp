#include "headrace/cache/disk_cache.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "headrace/cache/disk/segment_file.h"
#include "headrace/cache/disk/segment_format.h"
#include "headrace/cache/lookup/record_table.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_lock.h"
#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

constexpr std::uint64_t kWrittenAtOnce = std::uint64_t{1} << 20;
// How long to wait for another process that is writing: the time for a megabyte, unless it was stopped.
constexpr std::chrono::milliseconds kMaxWait{1000};

// A sample and the segment it is in. Neither changed nor freed while the cache lives: readers hold no lock.
struct Stored {
  const SegmentReader* segment = nullptr;
  SegmentEntry entry;
  const Stored* other = nullptr;  // another copy, for when this one is damaged
};

// A thread is storing the record, or it waits to be written.
const Stored* claimed() noexcept {
  static constexpr Stored kMark{};
  return &kMark;
}

}  // namespace

struct DiskCache::State {
  State(std::filesystem::path where, const DiskCacheOptions& how) : folder(std::move(where)), options(how) {}

  bool is_bound() const noexcept { return table != nullptr; }

  void count(const SegmentEntry& entry) noexcept {
    records.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(entry.stored_bytes, std::memory_order_relaxed);
  }
  void discount(const SegmentEntry& entry) noexcept {
    records.fetch_sub(1, std::memory_order_relaxed);
    bytes.fetch_sub(entry.stored_bytes, std::memory_order_relaxed);
    reserved.fetch_sub(entry.stored_bytes, std::memory_order_relaxed);
  }

  // Stops storing. REQUIRES: `writing` is held, as for all functions down to reserve().
  void give_up(const std::exception& error) {
    why_not = std::string("the cache stores nothing more: ") + error.what();
    is_full.store(true, std::memory_order_relaxed);
    for (const SegmentEntry& lost : waiting) {
      std::atomic<const Stored*>& place = table[lost.record];
      if (place.load(std::memory_order_relaxed) != claimed()) continue;
      place.store(nullptr, std::memory_order_release);
      discount(lost);
    }
    forget_waiting();
    writer.reset();
    segment = nullptr;
  }

  void forget_waiting() noexcept {
    waiting.clear();
    waiting_bytes.clear();
  }

  // One process at a time reads what the others stored and adds what is missing.
  void flush() noexcept {
    if (waiting.empty()) return;
    try {
      if (writer == nullptr) make_folders(stream_folder);
      const FolderLock lock(stream_folder, lock_was_busy ? std::chrono::milliseconds(0) : kMaxWait);
      lock_was_busy = !lock.held();
      followers->catch_up([this](const auto& reader, const auto& entry) { take(reader, entry); });
      write_waiting();
      if (writer != nullptr && writer->size() >= options.segment_bytes) seal();
    } catch (const std::exception& error) {
      give_up(error);
    }
  }

  void write_waiting() {
    std::vector<const Stored*> written;
    std::span<const std::byte> rest = waiting_bytes;
    for (const SegmentEntry& entry : waiting) {
      const std::span<const std::byte> stored = rest.first(entry.stored_bytes);
      rest = rest.subspan(stored.size());
      if (is_stored_by_others(entry) || has_no_room(entry)) continue;
      begin_segment();
      samples.push_back({.segment = segment, .entry = writer->append(entry, stored)});
      written.push_back(&samples.back());
    }
    if (!written.empty()) writer->flush();
    for (const Stored* one : written) table[one->entry.record].store(one, std::memory_order_release);
    forget_waiting();
  }

  bool is_stored_by_others(const SegmentEntry& entry) {
    const auto theirs = stored_by_others.find(entry.record);
    if (theirs == stored_by_others.end()) return false;
    discount(entry);
    count(theirs->second->entry);
    table[entry.record].store(theirs->second, std::memory_order_release);
    stored_by_others.erase(theirs);
    return true;
  }

  // Entries that others stored count towards the budget, too.
  bool has_no_room(const SegmentEntry& entry) {
    if (options.budget_bytes == 0 || reserved.load(std::memory_order_relaxed) <= options.budget_bytes)
      return false;
    discount(entry);
    refused.fetch_add(1, std::memory_order_relaxed);
    table[entry.record].store(nullptr, std::memory_order_release);
    return true;
  }

  // Takes over a sample that another process stored, now or earlier.
  void take(const SegmentReader& reader, const SegmentEntry& entry) {
    reserved.fetch_add(entry.stored_bytes, std::memory_order_relaxed);
    std::atomic<const Stored*>& place = table[entry.record];
    const Stored* known = place.load(std::memory_order_acquire);
    samples.push_back({.segment = &reader, .entry = entry, .other = known == claimed() ? nullptr : known});
    const Stored* stored = &samples.back();
    if (known == claimed() || !place.compare_exchange_strong(known, stored, std::memory_order_acq_rel)) {
      stored_by_others[entry.record] = stored;
    } else if (known == nullptr) {
      count(entry);
    }
  }

  void seal() {
    writer->seal();
    writer.reset();
    segment = nullptr;
  }

  void begin_segment() {
    if (writer != nullptr) return;
    writer = std::make_unique<SegmentWriter>(stream_folder, stream);
    followers->leave_out(writer->path());
    segments.push_back(std::make_unique<SegmentReader>(writer->path(), stream));
    segment = segments.back().get();
  }

  bool reserve(std::uint64_t size) noexcept {
    if (is_full.load(std::memory_order_relaxed)) return false;
    const std::uint64_t before = reserved.fetch_add(size, std::memory_order_relaxed);
    if (options.budget_bytes == 0 || before + size <= options.budget_bytes) return true;
    reserved.fetch_sub(size, std::memory_order_relaxed);
    return false;
  }

  const std::filesystem::path folder;
  const DiskCacheOptions options;
  std::filesystem::path stream_folder;
  SegmentStream stream;
  std::unique_ptr<std::atomic<const Stored*>[]> table;  // by record; null: not stored
  SampleCompressor compressor;

  mutable std::mutex writing;  // protects this block; held while a megabyte is written, never while reading
  std::deque<Stored> samples;
  std::vector<std::unique_ptr<SegmentReader>> segments;               // of this process
  std::unique_ptr<SegmentFollowers> followers;                        // of the others' segments
  std::unordered_map<std::uint64_t, const Stored*> stored_by_others;  // of records that this process has claimed
  std::unique_ptr<SegmentWriter> writer;                              // null until something is stored
  const SegmentReader* segment = nullptr;                             // of the writer
  std::vector<SegmentEntry> waiting;                                  // to be written
  std::vector<std::byte> waiting_bytes;                               // of `waiting`, one after the other
  bool lock_was_busy = false;                                         // the last attempt to lock the folder failed
  std::string why_not;

  std::atomic<bool> is_full{false};
  std::atomic<std::uint64_t> reserved{0};  // stored bytes, including those waiting
  std::atomic<std::uint64_t> records{0}, bytes{0}, refused{0}, bad{0};
  HitCounter lookups;
};

DiskCache::DiskCache(std::filesystem::path folder, DiskCacheOptions options)
    : state_(std::make_unique<State>(std::move(folder), options)) {
  const PathKind kind = path_kind(state_->folder);
  if (kind != PathKind::kMissing && kind != PathKind::kDirectory) {
    throw ConfigError("the cache " + state_->folder.string() + " is not a folder",
                      "name a folder, or one to be made");
  }
}

const std::filesystem::path& DiskCache::folder() const noexcept { return state_->folder; }
const DiskCacheOptions& DiskCache::options() const noexcept { return state_->options; }

DiskCache::~DiskCache() {
  const std::lock_guard lock(state_->writing);
  state_->flush();
  try {
    if (state_->writer != nullptr) state_->seal();
  } catch (const std::exception&) {
    // The next process to open the segment scans it.
  }
}

void DiskCache::bind(std::uint64_t fingerprint, std::uint64_t records) {
  State& state = *state_;
  const std::lock_guard lock(state.writing);
  if (state.is_bound()) {
    if (state.stream.fingerprint == fingerprint && state.stream.records == records) return;
    throw ConfigError("this disk cache is bound to another stream (" + to_hex(state.stream.fingerprint) +
                          ", asked for " + to_hex(fingerprint) + ")",
                      "give each stream a cache of its own; they may name the same folder");
  }
  state.table = make_record_table<std::atomic<const Stored*>>(records);
  state.stream = {.fingerprint = fingerprint, .records = records};
  state.stream_folder = state.folder / to_hex(fingerprint);
  state.followers = std::make_unique<SegmentFollowers>(state.stream_folder, state.stream);
  state.followers->open([&state](const auto& reader, const auto& entry) { state.take(reader, entry); });
}

bool DiskCache::holds(std::uint64_t record) const noexcept {
  const State& state = *state_;
  return state.is_bound() && record < state.stream.records &&
         state.table[record].load(std::memory_order_acquire) != nullptr;
}

std::span<const std::byte> DiskCache::find(std::uint64_t record, std::vector<std::byte>& scratch) noexcept {
  State& state = *state_;
  if (!state.is_bound() || record >= state.stream.records) {
    state.lookups.miss();
    return {};
  }
  std::atomic<const Stored*>& place = state.table[record];
  const Stored* stored = place.load(std::memory_order_acquire);
  if (stored == claimed()) {
    const std::lock_guard lock(state.writing);
    state.flush();
    stored = place.load(std::memory_order_acquire);
  }
  while (stored != nullptr && stored != claimed()) {
    const std::span<const std::byte> sample = stored->segment->read(stored->entry, scratch);
    if (!sample.empty()) {
      state.lookups.hit();
      return sample;
    }
    if (!place.compare_exchange_strong(stored, stored->other)) continue;  // another thread noticed it first
    state.bad.fetch_add(1, std::memory_order_relaxed);
    if (stored->other == nullptr) state.discount(stored->entry);
    stored = stored->other;
  }
  state.lookups.miss();
  return {};
}

bool DiskCache::insert(std::uint64_t record, std::span<const std::byte> bytes) {
  State& state = *state_;
  HEADRACE_CHECK(state.is_bound() && record < state.stream.records,
                 "insert() of a record the cache is not bound to");
  HEADRACE_CHECK(!bytes.empty() && bytes.size() <= kMaxSampleBytes,
                 "insert() of a sample of no bytes or too many");
  std::atomic<const Stored*>& place = state.table[record];
  const Stored* none = nullptr;
  if (!place.compare_exchange_strong(none, claimed(), std::memory_order_acq_rel)) return true;
  thread_local std::vector<std::byte> compressed;
  const SampleCompressor::Stored smaller = state.compressor.store(bytes, compressed);
  if (!state.reserve(smaller.bytes.size())) {
    place.store(nullptr, std::memory_order_release);
    state.refused.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const std::lock_guard lock(state.writing);
  const SegmentEntry entry{.record = record,
                           .sample_bytes = static_cast<std::uint32_t>(bytes.size()),
                           .stored_bytes = static_cast<std::uint32_t>(smaller.bytes.size()),
                           .codec = smaller.codec};
  state.count(entry);
  try {
    state.waiting.push_back(entry);
    state.waiting_bytes.insert(state.waiting_bytes.end(), smaller.bytes.begin(), smaller.bytes.end());
  } catch (const std::exception& error) {
    if (!state.waiting.empty() && state.waiting.back().record == record) state.waiting.pop_back();
    place.store(nullptr, std::memory_order_release);
    state.discount(entry);
    state.give_up(error);
    return false;
  }
  const bool all = state.records.load(std::memory_order_relaxed) == state.stream.records;
  if (all || state.waiting_bytes.size() >= kWrittenAtOnce) state.flush();
  return place.load(std::memory_order_acquire) != nullptr;
}

CacheCounters DiskCache::counters() const noexcept {
  return {.hits = state_->lookups.hits(),
          .misses = state_->lookups.misses(),
          .records = state_->records.load(std::memory_order_relaxed),
          .bytes = state_->bytes.load(std::memory_order_relaxed),
          .refused = state_->refused.load(std::memory_order_relaxed),
          .bad = state_->bad.load(std::memory_order_relaxed)};
}

std::string DiskCache::describe() const { return "disk " + state_->folder.string(); }

std::string DiskCache::trouble() const {
  const std::lock_guard lock(state_->writing);
  return state_->why_not;
}

}  // namespace headrace
