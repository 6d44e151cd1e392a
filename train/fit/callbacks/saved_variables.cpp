#include "headrace/train/fit/callbacks/saved_variables.h"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "headrace/devices/base/error.h"
#include "headrace/train/model.h"

namespace headrace {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

// OpenSSL counts in int.
constexpr std::size_t kBlock = std::size_t{3} << 20, kEncodedBlock = kBlock / 3 * 4;

std::string to_base64(const std::vector<float>& values) {
  const std::size_t bytes = values.size() * sizeof(float);
  const auto* from = reinterpret_cast<const unsigned char*>(values.data());
  std::string text((bytes + 2) / 3 * 4 + 1, '\0');
  auto* to = reinterpret_cast<unsigned char*>(text.data());
  for (std::size_t at = 0; at < bytes; at += kBlock) {
    to += EVP_EncodeBlock(to, from + at, static_cast<int>(std::min(kBlock, bytes - at)));
  }
  text.pop_back();
  return text;
}

std::vector<float> from_base64(const std::string& text) {
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes(text.size() / 4 * 3 + 1, '\0');
  std::size_t size = 0;
  bool sound = text.size() % 4 == 0;
  for (std::size_t at = 0; sound && at < text.size(); at += kEncodedBlock) {
    const auto* from = reinterpret_cast<const unsigned char*>(text.data() + at);
    const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data() + size), from,
                                       static_cast<int>(std::min(kEncodedBlock, text.size() - at)));
    sound = length >= 0;
    if (sound) size += static_cast<std::size_t>(length);
  }
  if (!sound || size < padding || (size - padding) % sizeof(float) != 0) {
    throw ConfigError("the values of the best weights are damaged", "resume from another checkpoint");
  }
  std::vector<float> values((size - padding) / sizeof(float));
  std::memcpy(values.data(), bytes.data(), size - padding);
  return values;
}

}  // namespace

void SavedVariables::take(const Model& model) {
  values_.clear();
  for (const std::string& name : model.variable_names()) values_.emplace_back(name, model.read_variable(name));
  for (const std::string& name : model.optimizer_variable_names()) {
    if (!name.ends_with(":slow") && !name.ends_with(":average")) continue;
    values_.emplace_back(name, model.read_variable(name));
  }
}

void SavedVariables::give_back(Model& model) const {
  for (const auto& [name, values] : values_) model.write_variable(name, values);
}

nlohmann::json SavedVariables::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [name, values] : values_) list.push_back({name, to_base64(values)});
  return list;
}

SavedVariables SavedVariables::from_json(const nlohmann::json& json) {
  SavedVariables saved;
  for (const nlohmann::json& pair : json) {
    saved.values_.emplace_back(pair.at(0).get<std::string>(), from_base64(pair.at(1).get<std::string>()));
  }
  return saved;
}

}  // namespace headrace
