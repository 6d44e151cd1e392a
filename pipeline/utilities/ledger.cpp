#include "headrace/pipeline/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace headrace {
namespace {

std::string where(const std::vector<LedgerEntry>& entries, std::uint64_t epoch, std::uint64_t record) {
  std::string text;
  for (const LedgerEntry& entry : entries) {
    if (entry.epoch != epoch || entry.record != record) continue;
    text += fmt::format("{}step {} replica {}", text.empty() ? "" : ", ", entry.step, entry.replica);
  }
  return text;
}

}  // namespace

EpochContents EpochContents::all(std::uint64_t count, std::uint64_t times) {
  EpochContents contents;
  contents.records.reserve(count * times);
  for (std::uint64_t record = 0; record < count; ++record) {
    contents.records.insert(contents.records.end(), times, record);
  }
  return contents;
}

void Ledger::add(const Batch& batch, int replica) {
  for (std::uint64_t record : batch.records()) {
    entries_.push_back(
        {.epoch = batch.position().epoch, .step = batch.position().step, .replica = replica, .record = record});
  }
  if (replica != 0) return;  // all are told the same
  for (const BadRecord& bad : batch.bad_records()) {
    set_aside_.push_back({.epoch = batch.position().epoch, .record = bad.record, .substitute = bad.substitute});
  }
}

std::vector<std::uint64_t> Ledger::seen_in(std::uint64_t epoch) const {
  std::vector<std::uint64_t> seen, stand_ins;
  for (const LedgerEntry& entry : entries_) {
    if (entry.epoch == epoch) seen.push_back(entry.record);
  }
  for (const SetAside& one : set_aside_) {
    if (one.epoch != epoch) continue;
    seen.push_back(one.record);
    if (one.substitute) stand_ins.push_back(*one.substitute);
  }
  std::ranges::sort(seen);
  std::ranges::sort(stand_ins);
  std::vector<std::uint64_t> real;
  std::ranges::set_difference(seen, stand_ins, std::back_inserter(real));
  return real;
}

std::optional<std::string> Ledger::find_breach(std::uint64_t epoch, const EpochContents& expected) const {
  const std::vector<std::uint64_t> seen = seen_in(epoch);
  std::uint64_t missing = 0;
  std::optional<std::uint64_t> first_missing;
  auto at = seen.begin();
  for (std::uint64_t record : expected.records) {
    if (at != seen.end() && *at < record) break;
    if (at != seen.end() && *at == record) {
      ++at;
      continue;
    }
    ++missing;
    first_missing = first_missing.value_or(record);
  }
  if (at != seen.end()) {
    return fmt::format("epoch {}: record {} was handed out more often than expected: {}", epoch, *at,
                       where(entries_, epoch, *at));
  }
  if (missing == expected.dropped) return std::nullopt;
  if (!first_missing)
    return fmt::format("epoch {}: {} records should have been dropped, none was", epoch, expected.dropped);
  const std::string in = where(entries_, epoch, *first_missing);
  return fmt::format("epoch {}: {} records are missing instead of {}; the first is record {}{}", epoch, missing,
                     expected.dropped, *first_missing, in.empty() ? "" : ", handed out only at " + in);
}

}  // namespace headrace
