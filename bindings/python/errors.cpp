#include "headrace/bindings/python/errors.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <deque>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/printable.h"
#include "headrace/devices/base/reader_words.h"

namespace nb = nanobind;

namespace headrace::python {
namespace {

// The latest exceptions of Python callables, by the text that they became. Guarded by kept_mutex.
constexpr std::size_t kKept = 8;
nb::ft_mutex kept_mutex;
std::deque<std::pair<std::string, nb::object>>& kept() {
  static auto* const list =
      new std::deque<std::pair<std::string, nb::object>>();  // never destroyed: Python is gone then
  return *list;
}

void keep(const std::string& text, nb::object raised) {
  nb::object dropped;  // outside of the lock: it may run Python
  const nb::ft_lock_guard lock(kept_mutex);
  kept().emplace_back(text, std::move(raised));
  if (kept().size() <= kKept) return;
  dropped = std::move(kept().front().second);
  kept().pop_front();
}

// Returns the exception that caused an error with this message; null if there is none.
nb::object take_cause(const std::string& message) {
  const nb::ft_lock_guard lock(kept_mutex);
  for (auto found = kept().begin(); found != kept().end(); ++found) {
    if (message.find(found->first) == std::string::npos) continue;
    nb::object cause = std::move(found->second);
    kept().erase(found);
    return cause;
  }
  return {};
}

std::string text_of(nb::handle value) {
  try {
    return nb::cast<std::string>(nb::str(value));
  } catch (const std::exception&) {
    return "an exception without text";
  }
}

// Returns where it was raised: the innermost line of the traceback.
std::string place_of(const nb::python_error& raised) {
  try {
    nb::object at = raised.traceback();
    if (!at.is_valid() || at.is_none()) return {};
    for (nb::object next = at.attr("tb_next"); !next.is_none(); next = at.attr("tb_next")) at = next;
    return fmt::format(" (at {}:{})", text_of(at.attr("tb_frame").attr("f_code").attr("co_filename")),
                       nb::cast<int>(at.attr("tb_lineno")));
  } catch (const std::exception&) {
    return {};
  }
}

nb::object number_or_none(std::uint64_t number) {
  return number == DataLocation::kUnknown ? nb::none() : nb::object(nb::int_(number));
}

// Raises headrace.ConfigError and so on, as headrace/_errors.py defines them.
void set_python_error(const char* kind, const Error& error, const nb::dict& where) {
  nb::object made =
      nb::module_::import_("headrace._errors")
          .attr("make")(kind, to_string(error.code()), error.what(), error.message(), error.hint(), where);
  const nb::object cause = take_cause(error.message());
  if (cause.is_valid()) PyException_SetCause(made.ptr(), nb::object(cause).release().ptr());
  PyErr_SetObject(made.type().ptr(), made.ptr());
}

// Words whose Python name is not the last part of their C++ name.
constexpr ReaderWord kWords[] = {
    {"ArchiveOptions::memory_limit", ""},
    {"BatchOptions::global", "size"},
    {"BuildOptions::fields", "data"},
    {"ColumnOptions::image", "image_column"},
    {"ColumnOptions::label", "label_column"},
    {"ColumnOptions::more", "columns"},
    {"Dataset::size()", "Dataset.records"},
    {"Dataset::steps_per_epoch()", "len(Dataset)"},
    {"LoaderOptions::trace", ""},
    {"OwnParts::losses", ""},
    {"OwnParts::metrics", ""},
    {"PlanParts::filters", ""},
    {"PlanParts::operations", ""},
    {"PlanParts::sources", ""},
    {"RecordFilter::max_failures", ""},
    {"convert_dataset()", ""},
    {"generator()", "headrace.from_function()"},
    {"pulled()", "headrace.from_generator(..., in_memory=True)"},
};

std::string words_of_python(std::string_view name, std::string_view value) {
  const std::string word = word_of(kWords, name, [](std::string_view last) {
    return (last.ends_with("()") ? "Dataset." : "") + std::string(last);
  });
  if (word.empty() || value.empty()) return word;
  if (value == "true" || value == "false") return word + (value == "true" ? "=True" : "=False");
  const bool bare = value.find_first_not_of("0123456789.-") == std::string_view::npos || value.front() == '\'';
  return word + (bare ? fmt::format("={}", value) : fmt::format("='{}'", value));
}

void translate(const std::exception_ptr& thrown, void* /*unused*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const DataError& error) {
    nb::dict where;
    where["source"] = error.location().source;
    where["record"] = number_or_none(error.location().record);
    where["offset"] = number_or_none(error.location().offset);
    set_python_error("DataError", error, where);
  } catch (const DeviceError& error) {
    nb::dict where;
    where["device"] = error.device();
    set_python_error("DeviceError", error, where);
  } catch (const ConfigError& error) {
    set_python_error("ConfigError", error, nb::dict());
  } catch (const Error& error) {
    // Ctrl-C that arrived within a callable ended the run: what is raised is the interrupt.
    if (error.code() == ErrorCode::kCancelled && PyErr_CheckSignals() != 0) return;
    set_python_error("HeadraceError", error, nb::dict());
  }
}

}  // namespace

void raise_as_error(nb::python_error& raised) {
  const std::string text =
      fmt::format("{}: {}{}", text_of(raised.type().attr("__name__")), text_of(raised.value()), place_of(raised));
  if (!raised.matches(PyExc_Exception)) {
    if (raised.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    throw Error(ErrorCode::kCancelled, text);
  }
  keep(printable(text), nb::borrow(raised.value()));  // as in the error
  throw Error(ErrorCode::kInvalidArgument, text);
}

void check_signals() {
  const Visit visit;
  const nb::gil_scoped_acquire here;
  if (here.is_valid() && PyErr_CheckSignals() != 0) throw nb::python_error();
}

void bind_errors(nb::module_& module) {
  set_reader_words(words_of_python);
  module.def("words_of", [](const std::string& name) { return named(name); });  // for tests
  nb::register_exception_translator(translate);
  module.def("forget_exceptions", [] {
    std::deque<std::pair<std::string, nb::object>> dropped;
    const nb::ft_lock_guard lock(kept_mutex);
    dropped.swap(kept());
  });
}

}  // namespace headrace::python
