#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/archive_files.h"
#include "headrace/pipeline/sources/images/archive_images.h"
#include "headrace/pipeline/sources/images/in_memory_archive.h"
#include "headrace/pipeline/sources/origin.h"

namespace headrace {
namespace {

SourcePtr read_archive_images(const std::filesystem::path& archive, const ArchiveOptions& options,
                              bool recognised) {
  const std::unique_ptr<ArchiveFiles> files = open_archive(archive, options.memory_limit);
  if (files->has_positions()) return std::make_shared<ArchiveImages>(archive, *files, options, recognised);
  return std::make_shared<InMemoryArchive>(archive, *files, options, recognised);
}

}  // namespace

SourcePtr image_archive(const std::filesystem::path& archive, ArchiveOptions options) {
  return opened_by(ImageArchiveCall{{archive, options}},
                   read_archive_images(archive, options, /*recognised=*/false));
}

SourcePtr recognised_image_archive(const std::filesystem::path& archive, const ArchiveOptions& options) {
  return opened_by(ImageArchiveCall{{archive, options}},
                   read_archive_images(archive, options, /*recognised=*/true));
}

}  // namespace headrace
