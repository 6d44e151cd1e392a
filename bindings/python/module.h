// The parts of the extension `headrace._native`, on which the pure-Python package `headrace` is built, and what
// they share: errors, words and tuples, workers.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/workers.h"
#include "headrace/pipeline/record.h"

namespace headrace {
class RecordWriter;
}  // namespace headrace

namespace headrace::python {

// Each adds its classes and functions. REQUIRES: called in this order, as later ones use the classes of earlier
// ones.
void bind_errors(nanobind::module_& module);
void bind_options(nanobind::module_& module);
void bind_plan_function(nanobind::module_& module);
void bind_operations(nanobind::module_& module);
void bind_datasets(nanobind::module_& module);
void bind_sources(nanobind::module_& module);
void bind_saving(nanobind::module_& module);
void bind_arrow(nanobind::module_& module);
void bind_tensor(nanobind::module_& module);
void bind_batch(nanobind::module_& module);
void bind_owned_batch(nanobind::module_& module);
void bind_stats(nanobind::module_& module);  // LoaderStats, verdicts, and the tables of explain()
void bind_loader(nanobind::module_& module);
void bind_launcher(nanobind::module_& module);
void bind_workers(nanobind::module_& module);
void bind_train(nanobind::module_& module);  // train/, if it is built

// Converts errors between Python and C++.

// Throws a Python callable's exception as a headrace::Error with its text, "ValueError: ... (at file.py:12)". When
// that error arrives in Python, the exception is its cause. KeyboardInterrupt and SystemExit concern no record:
// they cancel the run, and Python is told of the interrupt again. REQUIRES: the GIL.
[[noreturn]] void raise_as_error(nanobind::python_error& raised);

// Throws the exception of a Python callable that a run of the trainer called as a headrace::Error, "WHERE:
// ValueError:
// ...". When that error arrives in Python, the exception itself is raised, with the error's text as a note.
// REQUIRES: the GIL.
[[noreturn]] void raise_from_run(nanobind::python_error& raised, const std::string& where);

// Python words and tuples for the engine's enums and fields.

// Returns the value of the word. Throws ConfigError naming the option and the valid words.
template <typename Value>
Value choose(std::string_view option, std::string_view word,
             std::initializer_list<std::pair<std::string_view, Value>> choices) {
  std::string known;
  for (const auto& [name, value] : choices) {
    if (name == word) return value;
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", name);
  }
  throw ConfigError(fmt::format("{} = \"{}\" is not known", option, word), "one of " + known);
}

// Returns the value of an enumeration that has choice_names(); throws as above.
template <typename Choice>
Choice choose(std::string_view option, std::string_view word) {
  static constexpr auto kNames = choice_names(Choice{});
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == word) return static_cast<Choice>(i);
  }
  throw ConfigError(fmt::format("{} = \"{}\" is not known", option, word),
                    fmt::format("one of \"{}\"", fmt::join(kNames, "\", \"")));
}

// Parses "uint8" and so forth, see to_string(DType).
DType dtype_of(std::string_view name);

// A field as in headrace/_fields.py: name, type, extents (-1: differs from record to record), encoded, layout.
using FieldTuple =
    std::tuple<std::string, std::string, std::vector<std::int64_t>, bool, std::optional<std::string>>;
FieldTuple to_tuple(const Field& field);
Field to_field(const FieldTuple& tuple);
std::vector<FieldTuple> to_tuples(const Fields& fields);
Fields to_fields(const std::vector<FieldTuple>& tuples);

// Fills a record with what headrace/_records.py packed: a buffer for each field, in their order. REQUIRES: the
// GIL.
void put(nanobind::handle packed, RecordWriter& record);

// The world of workers that a process joined, in Python.

// Signs off without the interpreter's lock when the last owner lets go of it. A forked process leaves it alone.
class PythonWorkers {
 public:
  explicit PythonWorkers(std::shared_ptr<Workers> workers) : workers_(std::move(workers)) {}
  ~PythonWorkers();  // REQUIRES: the interpreter's lock
  PythonWorkers(const PythonWorkers&) = delete;
  PythonWorkers& operator=(const PythonWorkers&) = delete;

  // Throws ConfigError in a forked process: the connections are its parent's.
  const std::shared_ptr<Workers>& get() const;

 private:
  pid_t process_ = getpid();
  std::shared_ptr<Workers> workers_;
};
using WorkersPtr = std::shared_ptr<PythonWorkers>;

}  // namespace headrace::python
