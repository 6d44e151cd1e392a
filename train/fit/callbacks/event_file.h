// A file of events for TensorBoard: TFRecords, each a serialised Event.
#pragma once

#include <tensorboard_event.pb.h>

#include <cstdint>
#include <filesystem>

#include "headrace/devices/base/file_writer.h"

namespace headrace {

// Each event is in the file when add() returns. DataError that names the path where it cannot be.
class EventFile {
 public:
  // A new one in the folder, which is made, for what happens after `step`: what other files of the folder have of
  // later steps, TensorBoard no longer shows.
  EventFile(const std::filesystem::path& folder, std::uint64_t step);

  void add(std::uint64_t step, events::Summary summary);

  const std::filesystem::path& path() const noexcept { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace headrace
