// Options of the library as keyword arguments of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/option_visitor.h"

namespace headrace::python {

// Reads the options that it is shown from a dict, by their names; one that is not in it, or None, stays as it is.
// ConfigError for a value of another type and for an unknown word.
class OptionReader final : public OptionVisitor {
 public:
  explicit OptionReader(nanobind::dict given) : given_(std::move(given)) {}

  // Follows all options. ConfigError for a key that is none of them; `whose`: "a run of the trainer".
  void refuse_unknown(const std::string& whose) const;

 protected:
  void visit(const char* name, OptionPlace place) override;
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override;

 private:
  // Null where it is not given.
  nanobind::object find(const char* name);

  nanobind::dict given_;
  std::vector<std::string> known_;
};

// ConfigError as OptionReader says.
template <typename Options>
Options read_options(const nanobind::dict& given, const std::string& whose, Options options = {}) {
  OptionReader reader(given);
  show(options, reader);
  reader.refuse_unknown(whose);
  return options;
}

// An option as Python has it: threads: int = 0.
struct ListedOption {
  std::string name, type, usual;
};

// Lists the options that it is shown.
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

// "peak: float, total_steps: int, *, floor: float = 0": those that have to be given first.
std::string parameters_text(const std::vector<ListedOption>& options,
                            const std::vector<std::string>& required = {});

}  // namespace headrace::python
