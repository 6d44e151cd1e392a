#include "headrace/pipeline/sources/tar_members.h"

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/image_listing.h"

namespace headrace {

std::optional<TarMember> next_file(TarReader& reader, const std::string& archive) {
  while (std::optional<TarMember> member = reader.next()) {
    if (member->kind == TarMember::Kind::kFile) return member;
    if (member->kind == TarMember::Kind::kLink && is_image_path(member->path)) {
      throw DataError(ErrorCode::kUnsupported, "'" + member->path + "' is a link to another file",
                      {.source = archive, .offset = member->offset},
                      "pack the files themselves: tar --dereference --hard-dereference");
    }
  }
  return std::nullopt;
}

}  // namespace headrace
