// Lists the objects of an S3-compatible store below a prefix, from pages of XML.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/remote/url.h"

namespace headrace::remote {

// One answer of an S3-compatible store that was asked what it holds: the XML of ListObjectsV2.

struct Listed {
  std::string key;
  std::uint64_t size = 0;
  std::string etag;
};

struct ListingPage {
  std::vector<Listed> listed;  // in the order of the answer
  std::string next;            // the token of the page that follows; empty: there is none
};

// Throws DataError naming `url` if the answer is not what the protocol says.
ListingPage parse_listing_page(std::span<const std::byte> xml, const std::string& url);

// Returns the objects whose keys begin with `prefix`, in bytewise order. Blocks. Throws DataError, also for a key
// that does not, or that leads_out().
std::vector<Listed> list_objects(const Url& url, const std::string& prefix);

}  // namespace headrace::remote
