// Options written as an object of a plan's JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "headrace/devices/base/option_visitor.h"

namespace headrace::plan_json {

// Writes the options that it visits, without changing them. Throws ConfigError for a number that is not finite and
// for text that is not UTF-8.
class OptionWriter final : public OptionVisitor {
 public:
  // `path` is the object's, for messages.
  explicit OptionWriter(std::string path) : path_(std::move(path)) {}

  nlohmann::ordered_json take() { return std::move(object_); }

 protected:
  void visit(const char* name, OptionPlace place) override;
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override;
  void visit_list(const char* name, const List& list) override;

 private:
  std::string path_;
  nlohmann::ordered_json object_ = nlohmann::ordered_json::object();
};

template <typename Show>
nlohmann::ordered_json write_options(const std::string& path, const Show& show) {
  OptionWriter writer(path);
  show(writer);
  return writer.take();
}

// Returns {"shuffle": {"seed": 7, ...}}; `path` is the object's.
template <typename Options>
nlohmann::ordered_json named_options(const std::string& path, const char* name, Options options) {
  return {{name, write_options(path + "." + name, [&](OptionVisitor& visit) { options.each_field(visit); })}};
}

}  // namespace headrace::plan_json
