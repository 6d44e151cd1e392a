// JSON of a record's texts. Private to the room.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "headrace/train/records/tensor_file.h"

namespace headrace::record_json {

using Json = nlohmann::ordered_json;

// DataError where the file has no such text or it is no JSON; `read(json)` may throw what nlohmann throws, which
// becomes one, too.
template <typename Read>
auto read_text(const TensorFile& file, const std::string& name, const Read& read);

// What is nested deeper than any of ours does not parse.
Json parse(std::string_view text);

[[noreturn]] void refuse_text(const TensorFile& file, const std::string& name, const std::string& why);

template <typename Read>
auto read_text(const TensorFile& file, const std::string& name, const Read& read) {
  const std::string& text = file.text(name);
  try {
    return read(parse(text));
  } catch (const Json::exception& error) {
    refuse_text(file, name, error.what());
  }
}

}  // namespace headrace::record_json
