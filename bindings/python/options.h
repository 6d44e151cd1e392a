// The library's options as keyword arguments of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/option_visitor.h"

namespace headrace::python {

// Reads the options that it visits from a dict, by name; one that is absent, or None, is unchanged, and so is one
// whose name was visited before. Throws
// ConfigError for a value of the wrong type and for an unknown word.
class OptionReader final : public OptionVisitor {
 public:
  explicit OptionReader(nanobind::dict given) : given_(std::move(given)) {}

  // Throws ConfigError for a key that is not an option; `whose`: "a run of the trainer". REQUIRES: called after
  // all options.
  void refuse_unknown(const std::string& whose) const;

 protected:
  void visit(const char* name, OptionPlace place) override;
  void visit_numbers(const char* name, std::span<float> values, Short form) override;
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override;

 private:
  // Returns null if it is not given.
  nanobind::object find(const char* name);

  nanobind::dict given_;
  std::vector<std::string> known_;
};

// Throws ConfigError as OptionReader does.
template <typename Options>
Options read_options(const nanobind::dict& given, const std::string& whose, Options options = {}) {
  OptionReader reader(given);
  show(options, reader);
  reader.refuse_unknown(whose);
  return options;
}

// An option in Python's notation: threads: int = 0.
struct ListedOption {
  std::string name, type, usual, sentence;
};

// Lists the options that it visits, each name once.
class OptionLister final : public OptionVisitor {
 public:
  const std::vector<ListedOption>& list() const noexcept { return list_; }

 protected:
  void visit(const char* name, OptionPlace place) override;
  void visit_numbers(const char* name, std::span<float> values, Short form) override;
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override;

 private:
  void add(ListedOption option);

  std::vector<ListedOption> list_;
};

template <typename Options>
std::vector<ListedOption> list_options(Options usual) {
  OptionLister lister;
  show(usual, lister);
  return lister.list();
}

// Returns the text and a line for each: "peak: The rate after the warm-up."
std::string parameters_doc(const std::string& text, const std::vector<ListedOption>& options);
// Returns the names of the first ones.
std::vector<std::string> first_names(const std::vector<ListedOption>& options, int count);

// Returns a line for each, "threads: int = 0. The maximum ...", to be appended to a docstring: all but the first
// begin with the indent.
std::string options_text(const std::vector<ListedOption>& options, const std::string& indent);

// Returns the LoaderOptions that headrace.Loader() takes by name; its own arguments replace the others.
std::vector<ListedOption> loader_options();
// Adds a TypedDict of these options to the module's stub. The object's text is options_text().
void bind_typed_dict(nanobind::module_& module, const std::string& name, std::vector<ListedOption> options);

// The options that a call may be given by position.
struct Positional {
  std::vector<std::string> names = {};
  bool required = true;  // false: they have defaults, too
};
// Returns "peak: float, total_steps: int, *, floor: float = 0": those that may be placed first.
std::string parameters_text(const std::vector<ListedOption>& options, const Positional& placed = {});
// Returns the options that a call was given, by position and by name. Throws TypeError with the call's signature
// if a required one is missing, if there are more, or if one is given twice.
nanobind::dict given_options(const nanobind::args& given, const nanobind::kwargs& named, const Positional& placed,
                             const std::string& signature);

}  // namespace headrace::python
