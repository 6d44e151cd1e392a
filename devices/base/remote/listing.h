// What an S3-compatible store lists below a prefix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/devices/base/remote/listing_page.h"
#include "headrace/devices/base/remote/url.h"

namespace headrace::remote {

// Returns the objects whose keys begin with `prefix`; with `by_folders`, those that have a '/' after it as
// folders. At most `limit` where it is not 0. Bytewise order. Blocks. Throws DataError.
std::vector<Listed> list_objects(const Url& url, const std::string& prefix, bool by_folders,
                                 std::uint64_t limit = 0);

}  // namespace headrace::remote
