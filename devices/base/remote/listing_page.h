// One answer of an S3-compatible store that was asked what it holds: the XML of ListObjectsV2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace headrace::remote {

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

}  // namespace headrace::remote
