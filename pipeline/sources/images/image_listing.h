// Selects a collection's images of the wanted split and determines their classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/image_names.h"
#include "headrace/pipeline/sources/name_list.h"
#include "headrace/pipeline/sources/sample_table.h"

namespace headrace {

struct ImageListing {
  struct Record {
    std::uint32_t path;   // index into the paths given
    std::uint32_t label;  // index into classes
  };
  std::vector<std::string> classes;    // of all splits, in bytewise order; none if the user says so
  std::vector<Record> records;         // of the wanted split, in bytewise order of their path
  std::vector<LeftOut> left_out = {};  // of neither split, hidden, not readable as images, or no images
  std::string reading = {};            // as SourceInfo::reading
};

// Returns whether the path is in a folder named like another split: a guess from one path alone, sufficient to
// decide where its bytes are kept.
bool seems_of_other_split(std::string_view path, Split wanted);

// Lists the images of a split. `paths` are relative, with '/' between names, in any order; those that end in '/'
// are folders, of which the empty ones may be classes; of equal paths the last one counts. For the supported
// layouts see image_folder(). Throws DataError naming `source` if there is no image; ConfigError if there is no
// such split, or if the layout can be read in more than one way.
ImageListing lay_out_images(const NameList& paths, Split split, const std::string& source,
                            const LayoutOptions& layout = {});

class ImageTable : private SampleTable {
 public:
  ImageTable() = default;
  // `layout` refers to `paths`.
  ImageTable(const ImageListing& layout, NameList paths);

  using SampleTable::label, SampleTable::label_value, SampleTable::name, SampleTable::share, SampleTable::size;

  // Mixes names, labels and classes into a source's fingerprint.
  void add_to(Fingerprint& fingerprint) const;

  // Returns what all image sources have in common: fields, classes, record count, files left out.
  SourceInfo info(std::string name, const Fingerprint& fingerprint) const;

 private:
  std::vector<std::string> classes_;
  std::vector<LeftOut> left_out_;
  std::string reading_;
};

}  // namespace headrace
