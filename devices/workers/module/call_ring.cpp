#include "headrace/devices/workers/module/call_ring.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <iterator>
#include <span>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/text.h"

namespace headrace {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

const char* word_of_kind(CallKind kind) {
  switch (kind) {
    case CallKind::kAllGather: return "all-gather";
    case CallKind::kAllReduce: return "all-reduce";
    case CallKind::kBroadcast: return "broadcast";
  }
  return "";
}

const char* word_of_kind(CallState state) {
  switch (state) {
    case CallState::kRunning: return "running";
    case CallState::kDone: return "done";
    case CallState::kFailed: return "failed";
  }
  return "";
}

std::int64_t wall_clock_ns() noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void add_line(std::string& text, const CallRecord& record) {
  const std::time_t seconds = record.begun_ns / kNsPerSecond;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  fmt::format_to(std::back_inserter(text),
                 "{:>10}  {:<10}  {:>12}  {:%Y-%m-%dT%H:%M:%S}.{:06}Z  {:>12.3f}  {:<7}  {}\n", record.number,
                 word_of_kind(record.kind), record.bytes, utc, record.begun_ns % kNsPerSecond / 1000,
                 static_cast<double>(record.duration_ns) * 1e-6, word_of_kind(record.state),
                 record.moment[0] == 0 ? "-" : printable(record.moment.data()));
}

std::filesystem::path folder_for_calls() {
  const char* named = std::getenv("HEADRACE_WORKERS_DUMP");
  if (named == nullptr || *named == '\0') return std::filesystem::temp_directory_path();
  make_folders(named);
  return named;
}

}  // namespace

std::string CallRecord::to_string() const {
  return fmt::format("{} {} of {} bytes", word_of_kind(kind), number, bytes);
}

void CallRing::set_moment(std::string_view moment) noexcept {
  const std::lock_guard lock(mutex_);
  moment_ = {};
  std::copy_n(moment.begin(), std::min(moment.size(), CallRecord::kMaxMoment), moment_.begin());
}

void CallRing::begin(CallKind kind, std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  ++calls_;
  records_[static_cast<std::size_t>(calls_) % kCapacity] = {
      .number = calls_, .kind = kind, .bytes = bytes, .begun_ns = wall_clock_ns(), .moment = moment_};
  last_begun_ns_ = now_ns();
}

void CallRing::end(CallState state) noexcept {
  const std::lock_guard lock(mutex_);
  CallRecord& record = records_[static_cast<std::size_t>(calls_) % kCapacity];
  if (record.number == 0 || record.state != CallState::kRunning) return;
  record.state = state;
  record.duration_ns = now_ns() - last_begun_ns_;
}

double CallRing::running_seconds() const noexcept {
  const std::lock_guard lock(mutex_);
  const bool runs = calls_ > 0 && record_of(calls_).state == CallState::kRunning;
  return runs ? static_cast<double>(now_ns() - last_begun_ns_) * 1e-9 : 0;
}

std::int64_t CallRing::calls() const noexcept {
  const std::lock_guard lock(mutex_);
  return calls_;
}

const CallRecord& CallRing::record_of(std::int64_t number) const noexcept {
  return records_[static_cast<std::size_t>(number) % kCapacity];
}

std::string CallRing::last() const {
  const std::lock_guard lock(mutex_);
  return calls_ == 0 ? std::string() : record_of(calls_).to_string();
}

std::string CallRing::to_text() const {
  std::string text = fmt::format("# {:>8}  {:<10}  {:>12}  {:<27}  {:>12}  {:<7}  {}\n", "number", "kind", "bytes",
                                 "begun", "milliseconds", "state", "moment");
  const std::lock_guard lock(mutex_);
  const auto kept = std::min<std::int64_t>(calls_, kCapacity);
  for (std::int64_t number = calls_ - kept + 1; number <= calls_; ++number) add_line(text, record_of(number));
  return text;
}

std::string write_calls(const CallRing& ring, int rank, const std::string& head) noexcept {
  try {
    const auto path = folder_for_calls() / fmt::format("headrace-calls-worker-{}-{}.txt", rank, getpid());
    const std::string text = head + ring.to_text();
    FileWriter file(path, Appears::kWhole, Links::kReplaced);
    file.append(std::as_bytes(std::span(text)));
    file.commit(Durability::kLater);
    const auto kept = std::min<std::int64_t>(ring.calls(), CallRing::kCapacity);
    return fmt::format("its last {} calls are in {}", kept, path.string());
  } catch (const std::exception& error) {
    return std::string("its last calls could not be written: ") + error.what();
  }
}

}  // namespace headrace
