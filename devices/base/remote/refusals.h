// What an answer that is no success means, and what to do next.
#pragma once

#include <memory>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote/http_client.h"

namespace headrace::remote {

// An error that every reader throws a copy of; null: none.
using Refusal = std::shared_ptr<const DataError>;

// Which file an answer is about.
struct Asked {
  std::string url = {};  // as the user wrote it
  bool is_s3 = false, is_signed = false;
  std::uint64_t offset = ~std::uint64_t{0};
};

// Returns the DataError for an answer that no further attempt would change, or for the last one of those that
// `given_up` tells of: kNotFound, kInvalidArgument if access is denied, kUnsupported, or kIo.
Refusal refusal(const Asked& asked, const HttpAnswer& answer, const std::string& given_up);
// Returns the DataError for a file that is not the one that was opened.
Refusal changed(const Asked& asked, const std::string& how);

}  // namespace headrace::remote
