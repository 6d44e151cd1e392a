// Which of a collection's files are images of the wanted split, and what class each belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/image_names.h"

namespace headrace {

struct ImageListing {
  struct Record {
    std::size_t path;     // index into the paths given
    std::uint32_t label;  // index into classes
  };
  std::vector<std::string> classes;    // of all splits, in bytewise order; none where the user says so
  std::vector<Record> records;         // of the wanted split, in bytewise order of their path
  std::vector<LeftOut> left_out = {};  // of neither split, or no images that can be read
};

// Whether the path lies in a folder called like another split: a guess from one path alone, good enough to decide
// where its bytes are kept.
bool seems_of_other_split(std::string_view path, Split wanted);

// `paths` are relative, with '/' between names, in any order; of equal paths the last one counts. What is
// understood is said at image_folder(). DataError naming `source` where there is no image; ConfigError where there
// is no such split, or where the layout can be read in more than one way.
ImageListing lay_out_images(const std::vector<std::string>& paths, Split split, const std::string& source,
                            const LayoutOptions& layout = {});

}  // namespace headrace
