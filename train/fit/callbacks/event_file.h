// Writes a file of events for TensorBoard: TFRecords, each a serialised Event.
#pragma once

#include <tensorboard_event.pb.h>

#include <cstdint>
#include <filesystem>

#include "headrace/devices/base/file_writer.h"

namespace headrace {

// Each event is in the file when add() returns. Throws DataError naming the path if it cannot be written.
class EventFile {
 public:
  // Creates the folder and a new file in it for events after `step`: TensorBoard no longer shows later steps from
  // the folder's other files.
  EventFile(const std::filesystem::path& folder, std::uint64_t step);

  void add(std::uint64_t step, events::Summary summary);

  const std::filesystem::path& path() const noexcept { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace headrace
