// Options read from an object of a plan's JSON.
#pragma once

#include <string>
#include <vector>

#include "headrace/devices/base/option_visitor.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/json/json_place.h"

namespace headrace::plan_json {

// Collects the names of the options that it visits.
class OptionNames final : public OptionVisitor {
 public:
  const std::vector<std::string>& names() const noexcept { return names_; }

 protected:
  void visit(const char* name, OptionPlace /*place*/) override { names_.emplace_back(name); }
  void visit_choice(const char* name, std::size_t& /*number*/, std::span<const char* const> /*choices*/) override {
    names_.emplace_back(name);
  }
  void visit_list(const char* name, const List& /*list*/) override { names_.emplace_back(name); }

 private:
  std::vector<std::string> names_;
};

// Sets the options that it visits from the object. An absent option is unchanged, but a path is required unless
// `paths_have_defaults`. Throws PlaceError for a value of the wrong type or out of range, or a path that is not
// allowed.
class OptionReader final : public OptionVisitor {
 public:
  OptionReader(const JsonPlace& object, const PlanOptions& options, bool paths_have_defaults = false)
      : object_(object), options_(options), paths_have_defaults_(paths_have_defaults) {}

 protected:
  void visit(const char* name, OptionPlace place) override;
  void visit_numbers(const char* name, std::span<float> values, Short form) override;
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override;
  void visit_list(const char* name, const List& list) override;

 private:
  JsonPlace object_;
  const PlanOptions& options_;
  bool paths_have_defaults_;
};

// The members that an object must and may have besides options with defaults.
struct Members {
  std::vector<std::string> required = {};
  std::vector<std::string> others = {};  // members that are not options
};

// Throws PlaceError if a member is unknown or a required one is missing. `show` shows the options to a visitor.
template <typename Show>
void want_options(const JsonPlace& object, const Show& show, const Members& members = {}) {
  OptionNames known;
  show(known);
  std::vector<std::string> names = known.names();
  names.insert(names.end(), members.others.begin(), members.others.end());
  object.want_only(names);
  for (const std::string& name : members.required) {
    if (!object.has(name)) object.refuse("'" + name + "' is missing");
  }
}

template <typename Show>
void read_options(const JsonPlace& object, const PlanOptions& options, const Show& show,
                  const Members& members = {}) {
  want_options(object, show, members);
  OptionReader reader(object, options);
  show(reader);
}

// Returns a struct's options.
template <typename Options>
Options read(const JsonPlace& object, const PlanOptions& plan, const Members& members = {}) {
  Options options;
  read_options(
      object, plan, [&](OptionVisitor& visit) { options.each_field(visit); }, members);
  return options;
}

}  // namespace headrace::plan_json
