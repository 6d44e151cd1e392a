#include "headrace/pipeline/utilities/shard_folder.h"

#include <cstddef>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/pipeline/sources/records/record_file.h"
#include "headrace/pipeline/sources/records/shard_files.h"
#include "headrace/pipeline/sources/records/web_shard_writer.h"

namespace headrace {

void begin_shards(const std::filesystem::path& folder, const std::string& text, std::string_view beginning) {
  make_folders(folder);
  if (path_kind(folder / kConversionMarker) == PathKind::kFile) {
    const std::vector<std::byte> bytes = read_whole_file(folder / kConversionMarker);
    if (std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == text) {
      for (const DirectoryEntry& entry : list_directory(folder)) {
        if (is_left_over(entry)) remove_file(entry.path);  // of one that was killed
      }
      return;
    }
    throw ConfigError(folder.string() + ": a conversion of other data, or with other options, was begun there",
                      "name another folder, or remove this one");
  }
  for (const DirectoryEntry& entry : list_directory(folder)) {
    const bool is_shard = is_record_shard(entry.path) || entry.path.extension() == ".tar";
    if (!is_shard || !entry.path.filename().native().starts_with(beginning)) continue;
    throw ConfigError(folder.string() + ": holds shards, such as " + entry.path.filename().string(),
                      "name a folder that has none");
  }
  write_file_atomically(folder / kConversionMarker, text);
}

std::optional<std::uint64_t> size_of_finished(const std::filesystem::path& path, const RecordFileHeader& header,
                                              ConvertFormat format) {
  if (path_kind(path) != PathKind::kFile) return std::nullopt;
  try {
    const File file = File::open(path);
    if (format == ConvertFormat::kWebDataset) {
      return WebShardWriter::records_in(path) == header.records() ? std::optional(file.size()) : std::nullopt;
    }
    std::uint64_t header_bytes = 0;
    if (RecordFileHeader::read(file, header_bytes) != header) return std::nullopt;
    RecordFileIndex(file, header, header_bytes).check(path, header);
    return file.size();
  } catch (const DataError&) {  // it is written again
    return std::nullopt;
  }
}

}  // namespace headrace
