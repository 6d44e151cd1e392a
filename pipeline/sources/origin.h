// How a source was opened, as data: what a plan's JSON says of it, and what opens it again.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "headrace/devices/base/option_visitor.h"
#include "headrace/pipeline/sources.h"

namespace headrace {

// Immutable and thread-safe.
class SourceOrigin {
 public:
  virtual ~SourceOrigin() = default;

  // "image_folder": the opener.
  virtual const char* name() const noexcept = 0;
  // Shows the arguments to the visitor.
  virtual void visit_arguments(OptionVisitor& visit) const = 0;
  // Opens a source with what the visitor leaves in them.
  virtual SourcePtr open(OptionVisitor& visit) const = 0;
};

// Of a call: `Call` holds the arguments and has kName, show(), which shows all of them, and open().
template <typename Call>
class CallOrigin final : public SourceOrigin {
 public:
  explicit CallOrigin(Call call = {}) : call_(std::move(call)) {}

  const char* name() const noexcept override { return Call::kName; }
  void visit_arguments(OptionVisitor& visit) const override {
    Call call = call_;
    call.show(visit);
  }
  SourcePtr open(OptionVisitor& visit) const override {
    Call call = call_;
    call.show(visit);
    return call.open();
  }

 private:
  Call call_;
};

// The source, which nobody else has yet, and how it was opened.
SourcePtr with_origin(SourcePtr source, SourceOriginPtr origin);

template <typename Call>
SourcePtr opened_by(Call call, SourcePtr source) {
  return with_origin(std::move(source), std::make_shared<const CallOrigin<Call>>(std::move(call)));
}

// What several openers take.
void show_split(Split& split, OptionVisitor& visit);
void show_layout(LayoutOptions& layout, OptionVisitor& visit);
void show_label_type(LabelType& type, OptionVisitor& visit);

// One of each opener, open_source() first, with the arguments that it has unless they are said: those of the table
// of formats (formats.cpp).
std::span<const SourceOriginPtr> source_origins();
// The one of this name; null: there is none.
SourceOriginPtr find_source_origin(std::string_view name);

SourceOriginPtr open_source_origin();

}  // namespace headrace
