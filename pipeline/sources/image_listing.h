// Which of a collection's files are images of the wanted split, and what class each belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/sources.h"

namespace headrace {

struct ImageListing {
  struct Record {
    std::size_t path;     // index into the paths given
    std::uint32_t label;  // index into classes
  };
  std::vector<std::string> classes;  // of both splits, in bytewise order
  std::vector<Record> records;       // of the wanted split, in bytewise order of their path
};

// Whether the name ends in .jpg, .jpeg or .png and does not start with a dot (as what macOS leaves behind).
bool is_image_path(std::string_view path);

// Whether the path names train/, test/ or val/ as a folder and that is not the wanted split: a guess from one
// path alone, good enough to decide where its bytes are kept.
bool seems_of_other_split(std::string_view path, Split wanted);

// `paths` are relative, with '/' between names, in any order; of equal paths the last one counts. Understood:
//   train/<class>/x.jpg and test/<class>/x.jpg (or val/), all of that in one more folder or not;
//   <class>/x.jpg, in one more folder or not: all train;
//   <wnid>_x.JPEG side by side, in a folder or not: all train.
// DataError naming `source`, what was found and what is understood; ConfigError where it has no such split.
ImageListing lay_out_images(const std::vector<std::string>& paths, Split split, const std::string& source);

}  // namespace headrace
