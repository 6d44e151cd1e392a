#include "headrace/train/records/record_json.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"

namespace headrace::record_json {
namespace {

constexpr int kMaxTextDepth = 64;  // reading recurses as deep as the text

}  // namespace

Json parse(std::string_view text) {
  const auto shallow = [](int depth, Json::parse_event_t, Json&) {
    if (depth <= kMaxTextDepth) return true;
    throw ConfigError(fmt::format("JSON is nested more than {} deep", kMaxTextDepth));
  };
  return Json::parse(text, shallow);
}

void refuse_text(const TensorFile& file, const std::string& name, const std::string& why,
                 const std::string& hint) {
  throw DataError(
      ErrorCode::kDataCorrupt, fmt::format("'{}' in its header is wrong: {}", name, why),
      {.source = file.path().string()},
      hint.empty() ? "use another checkpoint, or save the model again with the program that made it" : hint);
}

}  // namespace headrace::record_json
