#include "headrace/pipeline/sources/images/image_table.h"

#include <cstdint>
#include <span>
#include <utility>

namespace headrace {

ImageTable::ImageTable(const ImageListing& layout, const std::vector<std::string>& paths)
    : classes_(layout.classes), left_out_(layout.left_out), reading_(layout.reading) {
  std::size_t name_bytes = 0;
  for (const ImageListing::Record& record : layout.records) name_bytes += paths[record.path].size();
  reserve(layout.records.size(), name_bytes);
  for (const ImageListing::Record& record : layout.records) add(paths[record.path], record.label);
}

void ImageTable::add_to(Fingerprint& fingerprint) const {
  for (const std::string& name : classes_) fingerprint.add(name);
  const std::vector<std::uint32_t> labels(this->labels().begin(), this->labels().end());
  fingerprint.add(names()).add(std::as_bytes(std::span(labels))).add(std::as_bytes(name_ends()));
}

SourceInfo ImageTable::info(std::string name, const Fingerprint& fingerprint) const {
  SourceInfo info;
  info.name = std::move(name);
  info.records = size();
  info.fields = labelled_image_fields();
  info.classes = classes_;
  info.left_out = left_out_;
  info.reading = reading_;
  info.fingerprint = fingerprint.value();
  return info;
}

}  // namespace headrace
