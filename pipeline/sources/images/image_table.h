// The images of one source: their names, labels and classes.
#pragma once

#include <string>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/images/image_listing.h"
#include "headrace/pipeline/sources/sample_table.h"

namespace headrace {

class ImageTable : private SampleTable {
 public:
  // Copies what it needs; `layout` refers to `paths`.
  ImageTable(const ImageListing& layout, const std::vector<std::string>& paths);

  using SampleTable::label, SampleTable::label_value, SampleTable::name, SampleTable::size;

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
