// What an S3-compatible store lists below a prefix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/devices/base/remote/listing_page.h"
#include "headrace/devices/base/remote/url.h"

namespace headrace::remote {

// Returns the objects whose keys begin with `prefix`, in bytewise order. Blocks. Throws DataError, also for a key
// that does not, or that leads_out().
std::vector<Listed> list_objects(const Url& url, const std::string& prefix);

}  // namespace headrace::remote
