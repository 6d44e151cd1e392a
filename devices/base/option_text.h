// Options as text, for descriptions and fingerprints.
#pragma once

#include <string>
#include <utility>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/option_visitor.h"

namespace HEADRACE_API headrace {

// Writes the options that it visits: "size=32, fill=[0], padding=zero".
class OptionText final : public OptionVisitor {
 public:
  std::string take() { return std::move(text_); }

 protected:
  void visit(const char* name, OptionPlace place) override;
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override;
  void visit_list(const char* name, const List& list) override;

 private:
  void add(const char* name, const std::string& value);

  std::string text_;
};

// `show` shows the options to a visitor.
template <typename Show>
HEADRACE_HIDDEN std::string option_text(const Show& show) {
  OptionText text;
  show(text);
  return text.take();
}

// Returns "shuffle(seed=7, reshuffle_each_epoch=true)".
template <typename Options>
HEADRACE_HIDDEN std::string described(const char* name, Options options) {
  return std::string(name) + '(' + option_text([&](OptionVisitor& visit) { options.each_field(visit); }) + ')';
}

}  // namespace headrace
