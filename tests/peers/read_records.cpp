// What open_source() makes of a path, for the suite in tests/peers to compare: a line of JSON for each path named
// on standard input, perhaps with its label type after a tab.
//   {"path": P, "error": words}, or
//   {"path": P, "format": F, "records": [{"name": N, "label": L, "class": its name or null, "pixels": SHA-256 of
//   the
//    RGB bytes} or {"name": N, "error": words}, ...]}, in the source's order
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/peers/pixels_sha256.h"

namespace headrace {
namespace {

nlohmann::ordered_json record_of(ImageDecoder& decoder, const Source& source, std::uint64_t index) {
  nlohmann::ordered_json line = {{"name", source.describe(index)}};
  const SourceInfo& info = source.info();
  try {
    std::vector<std::byte> scratch;
    const RecordView record = source.read(index, scratch);
    std::int64_t label = 0;
    std::memcpy(&label, record.fields[find_field(info.fields, "label")].data(), sizeof label);
    const std::span<const std::byte> image = record.fields[find_field(info.fields, "image")];
    const ImageSize size = decoder.read_size(image);
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.height * size.width * 3));
    decoder.decode(image, pixels);
    line["label"] = label;
    if (info.classes.empty()) {
      line["class"] = nullptr;
    } else {
      line["class"] = info.classes.at(static_cast<std::size_t>(label));
    }
    line["pixels"] = test::pixels_sha256(pixels);
  } catch (const Error& error) {
    line["error"] = error.what();
  }
  return line;
}

// `named` is the path, and perhaps, after a tab, what its labels are.
nlohmann::ordered_json line_of(ImageDecoder& decoder, const std::string& named) {
  const std::string path = named.substr(0, named.find('\t'));
  nlohmann::ordered_json line = {{"path", path}};
  try {
    ColumnOptions columns;
    if (named.ends_with("\tclass")) columns.label_type = LabelType::kClass;
    if (named.ends_with("\tnumber")) columns.label_type = LabelType::kNumber;
    const OpenedSource opened = recognise_source(path, Split::kTrain, {.columns = columns});
    line["format"] = opened.format;
    line["records"] = nlohmann::ordered_json::array();
    for (std::uint64_t i = 0; i < opened.source->info().records; ++i) {
      line["records"].push_back(record_of(decoder, *opened.source, i));
    }
  } catch (const Error& error) {
    line["error"] = error.what();
  }
  return line;
}

}  // namespace
}  // namespace headrace

int main() {
  headrace::ImageDecoder decoder;
  for (std::string path; std::getline(std::cin, path);) {
    std::cout << headrace::line_of(decoder, path).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
              << '\n';
  }
}
