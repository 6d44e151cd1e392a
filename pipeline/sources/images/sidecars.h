// The files beside images that are taken along: a/1.json and a/1.seg.png beside a/1.jpg.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headrace/pipeline/sources/images/folder_listing.h"

namespace headrace {

class Sidecars {
 public:
  static constexpr std::uint64_t kMissing = ~std::uint64_t{0};

  struct File {
    std::uint64_t size = kMissing;
    std::uint64_t modified_ns = 0;
  };

  // Takes the files with one of these extensions out of the listing: an image "1.seg.png" is none of its own.
  Sidecars(FolderListing& listing, const std::vector<std::string>& extensions);

  // Returns the path of the file with this extension beside an image.
  static std::string path_beside(std::string_view image, std::string_view extension);

  // Returns the file of this path; of size kMissing if there is none.
  File find(const std::string& path) const;
  // Returns the extensions in the folder, those taken and others, up to a few dozen.
  const std::vector<std::string>& extensions_seen() const noexcept { return seen_; }

 private:
  std::unordered_map<std::string, File> files_;
  std::vector<std::string> seen_;
};

}  // namespace headrace
