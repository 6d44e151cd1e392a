#include "headrace/bindings/python/module.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <deque>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/devices/workers.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

// An exception of a Python callable and the text that it became. `itself`: it is raised in place of the error.
struct KeptException {
  std::string text;
  nb::object raised;
  bool itself = false;
};

// The latest ones. Guarded by kept_mutex.
constexpr std::size_t kKept = 8;
nb::ft_mutex kept_mutex;
std::deque<KeptException>& kept() {
  static auto* const list = new std::deque<KeptException>();  // never destroyed: Python is gone then
  return *list;
}

void keep(KeptException exception) {
  KeptException dropped;  // outside of the lock: it may run Python
  const nb::ft_lock_guard lock(kept_mutex);
  kept().push_back(std::move(exception));
  if (kept().size() <= kKept) return;
  dropped = std::move(kept().front());
  kept().pop_front();
}

// Returns the latest exception that caused an error with this message, without an object if there is none; forgets
// the others of the same text, as several replicas raise them.
KeptException take_cause(const std::string& message) {
  KeptException cause;
  std::vector<KeptException> dropped;  // outside of the lock
  const nb::ft_lock_guard lock(kept_mutex);
  const auto caused = [&](const KeptException& each) { return message.find(each.text) != std::string::npos; };
  for (KeptException& each : kept()) {
    if (caused(each)) dropped.push_back(std::exchange(cause, std::move(each)));
  }
  std::erase_if(kept(), [](const KeptException& each) { return !each.raised.is_valid(); });
  return cause;
}

// Leaves what describing an exception raised: only Ctrl-C, which came meanwhile, is still to be raised.
void pass_over(const nb::python_error& raised) {
  if (raised.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
}

std::string text_of(nb::handle value) {
  try {
    return nb::cast<std::string>(nb::str(value));
  } catch (const nb::python_error& raised) {
    pass_over(raised);
  } catch (const std::exception&) {  // no text of UTF-8
  }
  return "an exception without text";
}

// Returns where it was raised: the innermost line of the traceback.
std::string place_of(const nb::python_error& raised) {
  try {
    nb::object at = raised.traceback();
    if (!at.is_valid() || at.is_none()) return {};
    for (nb::object next = at.attr("tb_next"); !next.is_none(); next = at.attr("tb_next")) at = next;
    return fmt::format(" (at {}:{})", text_of(at.attr("tb_frame").attr("f_code").attr("co_filename")),
                       nb::cast<int>(at.attr("tb_lineno")));
  } catch (const nb::python_error& other) {
    pass_over(other);
  } catch (const std::exception&) {  // no line number
  }
  return {};
}

// "ValueError: ... (at file.py:12)"
std::string described(nb::python_error& raised) {
  return fmt::format("{}: {}{}", text_of(raised.type().attr("__name__")), text_of(raised.value()),
                     place_of(raised));
}

nb::object number_or_none(std::uint64_t number) {
  return number == DataLocation::kUnknown ? nb::none() : nb::object(nb::int_(number));
}

// Raises the exception with a note that says where the run called what raised it.
void set_itself(const nb::object& raised, const Error& error) {
  try {
    if (nb::hasattr(raised, "add_note")) raised.attr("add_note")(nb::str(error.message().c_str()));
  } catch (const nb::python_error& other) {  // an exception that takes none
    pass_over(other);
  }
  PyErr_SetObject(raised.type().ptr(), raised.ptr());
}

// Raises headrace.ConfigError and so on, as headrace/_errors.py defines them.
void set_python_error(const char* kind, const Error& error, const nb::dict& where) {
  const KeptException cause = take_cause(error.message());
  if (cause.itself) return set_itself(cause.raised, error);
  nb::object made =
      nb::module_::import_("headrace._errors")
          .attr("make")(kind, to_string(error.code()), error.what(), error.message(), error.hint(), where);
  if (cause.raised.is_valid()) PyException_SetCause(made.ptr(), nb::object(cause.raised).release().ptr());
  PyErr_SetObject(made.type().ptr(), made.ptr());
}

// Words whose Python name is not the last part of their C++ name.
constexpr ReaderWord kWords[] = {
    {"ArchiveOptions::memory_limit", ""},
    {"BuildOptions::fields", "data"},
    {"Dataset::size()", "Dataset.records"},
    {"Dataset::steps_per_epoch()", "len(Dataset)"},
    {"LoaderOptions::trace", ""},
    {"Loss::for_task()", "Loss.for_task()"},
    {"CustomParts::layers", "custom_objects"},
    {"CustomParts::losses", "custom_objects"},
    {"CustomParts::metrics", "custom_objects"},
    {"PlanParts::filters", ""},
    {"PlanParts::operations", ""},
    {"PlanParts::sources", ""},
    {"RecordFilter::max_failures", ""},
    {"TrainerOptions::first_step", ""},
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
  } catch (const WorkerInterrupted& error) {
    PyErr_SetString(PyExc_KeyboardInterrupt, error.message().c_str());
  } catch (const Error& error) {
    // Ctrl-C that arrived within a callable ended the run: what is raised is the interrupt.
    if (error.code() == ErrorCode::kCancelled && PyErr_CheckSignals() != 0) return;
    set_python_error("HeadraceError", error, nb::dict());
  }
}

// Has `refuse(arguments, options)` raise what is wrong where a class of the extension makes no object of them.
// `constructor` is its __init__(), or None. It is not overloaded: the function here would come before conversions.
void refuse_construction(nb::handle kind, nb::object constructor, nb::object refuse) {
  const auto construct = [=](nb::handle made, const nb::args& arguments, const nb::kwargs& options) {
    try {
      if (!constructor.is_none()) return static_cast<void>(constructor(made, *arguments, **options));
    } catch (const nb::python_error& raised) {
      if (!raised.matches(PyExc_TypeError)) throw;
    }
    refuse(arguments, options);
  };
  nb::cpp_function_def(construct, nb::scope(kind), nb::name("__init__"), nb::is_method());
}

}  // namespace

void raise_as_error(nb::python_error& raised) {
  const std::string text = described(raised);
  if (!raised.matches(PyExc_Exception)) {
    if (raised.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    throw Error(ErrorCode::kCancelled, text);
  }
  keep({.text = printable(text), .raised = nb::borrow(raised.value())});  // as in the error
  throw Error(ErrorCode::kInvalidArgument, text);
}

void raise_from_run(nb::python_error& raised, const std::string& where) {
  const std::string text = described(raised);
  keep({.text = printable(text), .raised = nb::borrow(raised.value()), .itself = true});
  throw Error(ErrorCode::kInvalidArgument, where + ": " + text);
}

void bind_errors(nb::module_& module) {
  set_reader_words(words_of_python);
  module.def("words_of", [](const std::string& name) { return named(name); });  // for tests
  nb::register_exception_translator(translate);
  module.def("refuse_construction", &refuse_construction, "kind"_a, "constructor"_a.none(), "refuse"_a);
  module.def("forget_exceptions", [] {
    std::deque<KeptException> dropped;
    const nb::ft_lock_guard lock(kept_mutex);
    dropped.swap(kept());
  });
}

}  // namespace headrace::python
