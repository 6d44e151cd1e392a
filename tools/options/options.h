// Command options whose values are checked when read: a wrong one is a ConfigError in plain words, and the help
// gives the same range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/option_visitor.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace headrace::tools {

// A range that includes both ends.
template <typename T>
struct Range {
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
};

// A count of steps: signed 64-bit arithmetic takes no more.
inline constexpr Range<std::uint64_t> kSteps{.min = 0, .max = std::numeric_limits<std::int64_t>::max()};
inline constexpr int kMaxThreads = 1024, kMaxReplicas = 1023;

// Adds an option of type int, std::int64_t, std::uint64_t or double. Whole numbers are decimal ("010" is ten).
//   --prefetch 2000: must be between 0 and 1024
//   --epochs 0: must be at least 1
//   --seed -1: must be a whole number from 0 to 18446744073709551615
//   --global-batch 12x: is not a number
template <typename T>
CLI::Option* add_number(CLI::App& command, const std::string& name, T& value, const std::string& what,
                        Range<T> range = {});

// Adds a number of bytes, with K, M, G or T for powers of 1024.
//   --memory-budget 2X: must be a whole number of bytes, such as 4096, 512M or 2G
CLI::Option* add_size(CLI::App& command, const std::string& name, std::uint64_t& bytes, const std::string& what);

//   --on-error skp: must be fail, skip or substitute: did you mean 'skip'?
//   --pipeline trivail is unknown: did you mean 'trivial'? (hint: must be cifar-eval, ...)
CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& value, const std::string& what,
                        const std::vector<std::string>& choices);
// Calls choose() with the zero-based index of the choice; `number` is that of the default.
CLI::Option* add_choice(CLI::App& command, const std::string& name, std::function<void(std::size_t)> choose,
                        std::size_t number, const std::string& what, const std::vector<std::string>& choices);

// Returns the choices of an option added by add_choice(); else none.
std::vector<std::string> choices_of(const CLI::Option& option);

// An option of a command that is a field of one of the library's structs, named, explained and set by default as
// that is.
struct FieldFlag {
  std::string field;      // "label_type"
  std::string name = {};  // "--any-order"; empty: flag_of() the field
  Range<double> range = {};
  std::size_t choices = ~std::size_t{0};  // how many of the field's choices the command has, the first ones
};

// Shows a struct to a visitor.
using ShowFields = std::function<void(OptionVisitor&)>;

// Returns "--label-type", for memory_budget_bytes "--memory-budget".
std::string flag_of(std::string_view field);

// Returns the field's sentence as help has it: "the maximum of compute threads; 0: chosen while it runs".
std::string help_of(const ShowFields& show, const std::string& field);
template <typename Options>
std::string help_of(const std::string& field) {
  return help_of([options = Options()](OptionVisitor& visit) mutable { show(options, visit); }, field);
}

// Adds an option that sets the field: a number; a size, as add_size() has it, if the field's name ends with
// _bytes; a choice; a name; a path; names with commas between them; or a flag, which negates a
// field that is true. REQUIRES: the struct lives as long as the command.
CLI::Option* add_field(CLI::App& command, const ShowFields& show, const FieldFlag& flag);
template <typename Options>
CLI::Option* add_field(CLI::App& command, Options& options, const FieldFlag& flag) {
  return add_field(command, ShowFields([&options](OptionVisitor& visit) { show(options, visit); }), flag);
}

// Adds --json FILE.
CLI::Option* add_json_option(CLI::App& command, std::string& target);

}  // namespace headrace::tools
