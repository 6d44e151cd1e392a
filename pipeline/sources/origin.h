// How a source was opened, as data: recorded in a plan's JSON and used to reopen it.
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

  // Returns the opener: "image_folder".
  virtual const char* name() const noexcept = 0;
  // Shows the arguments to the visitor.
  virtual void visit_arguments(OptionVisitor& visit) const = 0;
  // Opens a source with the arguments as the visitor sets them.
  virtual SourcePtr open(OptionVisitor& visit) const = 0;
};

// The origin of a call: `Call` holds the arguments and has kName, show(), which shows all of them, and open().
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

// Returns the source with its origin set. REQUIRES: the source is not yet shared.
SourcePtr with_origin(SourcePtr source, SourceOriginPtr origin);
// Returns the source with its format set. REQUIRES: the source is not yet shared.
SourcePtr with_format(SourcePtr source, std::string format);

template <typename Call>
SourcePtr opened_by(Call call, SourcePtr source) {
  return with_origin(std::move(source), std::make_shared<const CallOrigin<Call>>(std::move(call)));
}

// Show arguments that several openers share.
void show_split(Split& split, OptionVisitor& visit);
void show_layout(LayoutOptions& layout, OptionVisitor& visit);
void show_label_type(LabelType& type, OptionVisitor& visit);

// Returns one origin per opener, open_source() first, with default arguments: those in the table of formats
// (formats.cpp).
std::span<const SourceOriginPtr> source_origins();
// Returns the origin of this name; null if there is none.
SourceOriginPtr find_source_origin(std::string_view name);

SourceOriginPtr open_source_origin();

}  // namespace headrace
