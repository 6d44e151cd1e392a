// Lists the objects of a store below a prefix, page by page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/remote/url.h"

namespace headrace::remote {

// One answer of a store that was asked what it holds.

struct Listed {
  std::string key;
  std::uint64_t size = 0;
  std::string etag = {};
  std::string content_id = {};  // of stores whose listings have no ETags: changes with the content
};

struct ListingPage {
  std::vector<Listed> listed;  // in the order of the answer
  std::string next;            // the token of the page that follows; empty: there is none
};

// Parses the XML of S3's ListObjectsV2 (Google's is the same), that of Azure's List Blobs, or the JSON of Hugging
// Face's tree of a repository, which says in its headers how it goes on; keys begin with `root`, the repository
// there. Throws DataError naming `url` if the answer is not what the protocol says.
ListingPage parse_listing_page(Scheme store, std::span<const std::byte> page, const std::string& url,
                               const std::string& root = {});

// Returns the objects whose keys begin with `prefix`, in bytewise order. Blocks. Throws DataError, also for a key
// that does not, or that leads_out().
std::vector<Listed> list_objects(const Url& url, const std::string& prefix);

}  // namespace headrace::remote
