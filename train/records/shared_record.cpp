#include "headrace/train/records/shared_record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"

namespace headrace {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{16} << 20;  // sent at once

std::filesystem::path temporary_name(int rank) {
  return std::filesystem::temp_directory_path() / fmt::format("headrace-worker-{}-{}.safetensors", rank, getpid());
}

}  // namespace

void share_record(Workers& workers, std::optional<Record>& record) {
  const bool chief = workers.rank() == 0;
  if (!chief) record.reset();
  std::optional<File> from;
  if (record) from = File::open(record->file().path());
  const std::uint64_t size = std::stoull(workers.all_gather(std::to_string(from ? from->size() : 0)).front());
  if (size == 0) return;
  const std::filesystem::path copy = temporary_name(workers.rank());
  std::optional<FileWriter> into;
  if (!chief) into.emplace(copy);
  std::vector<std::byte> piece;
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(kPieceBytes, size - at));
    if (from) from->read_exact(at, piece);
    workers.broadcast(piece, 0);
    if (into) into->append(piece);
  }
  if (!into) return;
  into->commit(Durability::kLater);
  record.emplace(copy);
  remove_file(copy);  // the record keeps it open
}

}  // namespace headrace
