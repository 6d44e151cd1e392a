// JSON of a record's texts. Private to the room.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/train/records/tensor_file.h"

namespace headrace::record_json {

using Json = nlohmann::ordered_json;

// DataError where the file has no such text or it is no JSON; what nlohmann throws in `read(json)`, or a
// ConfigError, becomes one, too.
template <typename Read>
auto read_text(const TensorFile& file, const std::string& name, const Read& read);

// What is nested deeper than any of ours does not parse.
Json parse(std::string_view text);

// `hint` empty: that of a text that cannot be.
[[noreturn]] void refuse_text(const TensorFile& file, const std::string& name, const std::string& why,
                              const std::string& hint = {});

template <typename Read>
auto read_text(const TensorFile& file, const std::string& name, const Read& read) {
  const std::string& text = file.text(name);
  try {
    return read(parse(text));
  } catch (const Json::exception& error) {
    refuse_text(file, name, error.what());
  } catch (const ConfigError& error) {
    refuse_text(file, name, error.message(), error.hint());
  }
}

}  // namespace headrace::record_json
