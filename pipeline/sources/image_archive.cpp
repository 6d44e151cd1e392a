#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archive_files.h"
#include "headrace/pipeline/sources/archive_images.h"
#include "headrace/pipeline/sources/in_memory_archive.h"

namespace headrace {

SourcePtr image_archive(const std::filesystem::path& archive, ArchiveOptions options) {
  const std::unique_ptr<ArchiveFiles> files = open_archive(archive, options.memory_limit);
  if (files->has_positions()) return std::make_shared<ArchiveImages>(archive, *files, options);
  return std::make_shared<InMemoryArchive>(archive, *files, options);
}

}  // namespace headrace
