#include "headrace/train/fit/callbacks/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>

#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/crc32c.h"
#include "headrace/devices/base/file.h"

namespace headrace {
namespace {

constexpr int kSessionStart = 1;

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Names the file like TensorFlow: TensorBoard reads a folder's files in the order of their names.
std::filesystem::path new_file(const std::filesystem::path& folder) {
  static std::atomic<int> made{0};
  make_folders(folder);
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<std::uint64_t>(wall_time()),
                              host.data(), getpid(), made++);
}

// Returns length and payload, each with its checksum.
std::vector<std::byte> framed(const events::Event& event) {
  const std::string payload = event.SerializeAsString();
  const auto bytes = std::as_bytes(std::span(payload));
  ByteWriter record;
  record.u64(payload.size());
  record.u32(mask_crc32c(crc32c(record.bytes())));
  record.raw(bytes).u32(mask_crc32c(crc32c(bytes)));
  return {record.bytes().begin(), record.bytes().end()};
}

events::Event event_at(std::uint64_t step) {
  events::Event event;
  event.set_wall_time(wall_time());
  event.set_step(static_cast<std::int64_t>(step));
  return event;
}

std::vector<std::byte> version_record() {
  events::Event event = event_at(0);
  event.set_file_version("brain.Event:2");
  return framed(event);
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder, std::uint64_t step)
    : file_(new_file(folder), version_record()) {
  events::Event start = event_at(step + 1);
  start.mutable_session_log()->set_status(kSessionStart);
  file_.append(framed(start));
}

void EventFile::add(std::uint64_t step, events::Summary summary) {
  events::Event event = event_at(step);
  *event.mutable_summary() = std::move(summary);
  file_.append(framed(event));
}

}  // namespace headrace
