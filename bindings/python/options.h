// The library's options as keyword arguments of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/option_visitor.h"

namespace headrace::python {

// Reads the options that it visits from a dict, by name; one that is absent, or None, is unchanged. Throws
// ConfigError for a value of the wrong type and for an unknown word.
class OptionReader final : public OptionVisitor {
 public:
  explicit OptionReader(nanobind::dict given) : given_(std::move(given)) {}

  // Throws ConfigError for a key that is not an option; `whose`: "a run of the trainer". REQUIRES: called after
  // all options.
  void refuse_unknown(const std::string& whose) const;

 protected:
  void visit(const char* name, OptionPlace place) override;
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

// Lists the options that it visits.
class OptionLister final : public OptionVisitor {
 public:
  const std::vector<ListedOption>& list() const noexcept { return list_; }

 protected:
  void visit(const char* name, OptionPlace place) override;
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override;

 private:
  std::vector<ListedOption> list_;
};

template <typename Options>
std::vector<ListedOption> list_options(Options usual) {
  OptionLister lister;
  show(usual, lister);
  return lister.list();
}

// Returns a line for each: "peak: The rate after the warm-up."
std::string parameters_doc(const std::vector<ListedOption>& options);
// Returns "peak: float, total_steps: int, *, floor: float = 0": required options first.
std::string parameters_text(const std::vector<ListedOption>& options,
                            const std::vector<std::string>& required = {});

}  // namespace headrace::python
