#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/byte_input.h"
#include "headrace/pipeline/sources/packed_images.h"
#include "headrace/pipeline/sources/tar_images.h"

namespace headrace {

SourcePtr image_archive(const std::filesystem::path& archive, ArchiveOptions options) {
  if (packing_of(archive) == Packing::kPlain) {
    return std::make_shared<TarImages>(archive, options.split, options.layout);
  }
  return std::make_shared<PackedImages>(archive, options);
}

}  // namespace headrace
