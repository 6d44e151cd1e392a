#include "headrace/bindings/python/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>
#include <type_traits>

#include "headrace/bindings/python/module.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/sources.h"

namespace nb = nanobind;

namespace headrace::python {
namespace {

// Also for NumPy's numbers.
bool is_number(nb::handle value) { return PyNumber_Check(value.ptr()) != 0 && PySequence_Check(value.ptr()) == 0; }

// A number stands for a list of numbers that is that one.
template <typename Value>
Value value_of(const char* name, nb::handle value) {
  if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    if (nb::isinstance<nb::str>(value)) {
      const auto text = nb::cast<std::string>(nb::repr(value));
      throw ConfigError(fmt::format("{} = {} is one text", name, text), fmt::format("give a list: [{}]", text));
    }
  }
  try {
    if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
      if (nb::isinstance<nb::int_>(value)) return {nb::cast<std::int64_t>(value)};
    }
    if constexpr (std::is_same_v<Value, std::vector<float>>) {
      if (is_number(value)) return {value_of<float>(name, value)};
      Value numbers;
      for (const nb::handle each : value) numbers.push_back(nb::cast<float>(nb::float_(each)));
      return numbers;
    }
    return nb::cast<Value>(value);
  } catch (const nb::cast_error&) {
    throw ConfigError(fmt::format("{} = {} is of the wrong type", name, nb::cast<std::string>(nb::repr(value))));
  }
}

std::string type_of(const bool*) { return "bool"; }
std::string type_of(const std::string*) { return "str"; }
std::string type_of(const std::filesystem::path*) { return "str | os.PathLike[str]"; }
template <typename Number>
std::string type_of(const Number*) {
  return std::is_floating_point_v<Number> ? "float" : "int";
}
std::string type_of(const std::vector<std::int64_t>*) { return "int | collections.abc.Sequence[int]"; }
std::string type_of(const std::vector<float>*) {
  return "float | collections.abc.Sequence[float] | numpy.typing.NDArray[typing.Any]";
}
template <typename Item>
std::string type_of(const std::vector<Item>*) {
  return "collections.abc.Sequence[" + type_of(static_cast<const Item*>(nullptr)) + "]";
}

// As Python writes it, a float with as few digits as tell it from its neighbours.
template <typename Value>
std::string python_text(const Value& value) {
  if constexpr (std::is_same_v<Value, float>) return fmt::format("{}", value);
  if constexpr (std::is_same_v<Value, std::filesystem::path>) return python_text(value.string());
  if constexpr (std::is_same_v<Value, std::vector<float>>) return fmt::format("[{}]", fmt::join(value, ", "));
  if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
    if (value.size() == 1) return python_text(value.front());
  }
  return nb::cast<std::string>(nb::repr(nb::cast(value)));
}

// Stands for a class in the stub, where type checkers look for it: what **options of a call may be.
struct TypedDictStub {
  std::string name;
  std::vector<ListedOption> options;
};

}  // namespace

nb::object OptionReader::find(const char* name) {
  if (std::ranges::find(known_, name) != known_.end()) return {};
  known_.emplace_back(name);
  const nb::object value = given_.get(name, nb::none());
  return value.is_none() ? nb::object() : value;
}

void OptionReader::visit(const char* name, OptionPlace place) {
  const nb::object given = find(name);
  if (!given.is_valid()) return;
  std::visit([&](auto* value) { *value = value_of<std::remove_reference_t<decltype(*value)>>(name, given); },
             place);
}

void OptionReader::visit_numbers(const char* name, std::span<float> values, Short form) {
  const nb::object given = find(name);
  if (!given.is_valid()) return;
  const bool taken = is_number(given) ? take(value_of<float>(name, given), values, form)
                                      : take(value_of<std::vector<float>>(name, given), values, form);
  if (taken) return;
  const std::string wanted = values.size() == 2 ? "2" : fmt::format("2 or {}", values.size());
  throw ConfigError(fmt::format("{} = {} is not {} numbers", name, nb::cast<std::string>(nb::repr(given)), wanted),
                    fmt::format("give a list of {}", wanted));
}

void OptionReader::visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) {
  const nb::object given = find(name);
  if (!given.is_valid()) return;
  const auto word = value_of<std::string>(name, given);
  const auto found = std::ranges::find(choices, word);
  if (found == choices.end()) {
    throw ConfigError(fmt::format("{} = \"{}\" is not known", name, word),
                      fmt::format("one of \"{}\"", fmt::join(choices, "\", \"")));
  }
  number = static_cast<std::size_t>(found - choices.begin());
}

void OptionReader::refuse_unknown(const std::string& whose) const {
  for (const auto [key, value] : given_) {
    const auto name = nb::cast<std::string>(key);
    if (std::ranges::find(known_, name) != known_.end()) continue;
    throw ConfigError(fmt::format("{} has no option '{}'{}", whose, name, did_you_mean(name, known_)),
                      fmt::format("there are {}", fmt::join(known_, ", ")));
  }
}

void OptionLister::visit(const char* name, OptionPlace place) {
  std::visit([&](const auto* value) { add({name, type_of(value), python_text(*value), sentence()}); }, place);
}

void OptionLister::visit_numbers(const char* name, std::span<float> values, Short form) {
  const std::vector<float> usual(values.begin(), values.end());
  const char* const one = form == Short::kNone ? "" : "float | ";
  add({name, std::string(one) + "collections.abc.Sequence[float]", python_text(usual), sentence()});
}

void OptionLister::visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) {
  add({name, fmt::format("typing.Literal[\"{}\"]", fmt::join(choices, "\", \"")),
       fmt::format("\"{}\"", choices[number]), sentence()});
}

void OptionLister::add(ListedOption option) {
  if (std::ranges::find(list_, option.name, &ListedOption::name) == list_.end())
    list_.push_back(std::move(option));
}

std::vector<ListedOption> loader_options() {
  std::vector<ListedOption> options = list_options(LoaderOptions());
  std::erase_if(options, [](const ListedOption& one) {
    return one.name == "epochs" || one.name == "start" || one.name.starts_with("world_");
  });
  return options;
}

void bind_typed_dict(nb::module_& module, const std::string& name, std::vector<ListedOption> options) {
  module.attr(name.c_str()) = nb::cast(TypedDictStub{name, std::move(options)});
}

std::string parameters_doc(const std::string& text, const std::vector<ListedOption>& options) {
  std::string doc = text;
  for (const ListedOption& one : options) {
    doc += fmt::format("{}{}: {}", doc.empty() ? "" : "\n", one.name, one.sentence);
  }
  return doc;
}

std::string options_text(const std::vector<ListedOption>& options, const std::string& indent) {
  std::string text;
  for (const ListedOption& one : options) {
    text += fmt::format("{}{}: {} = {}. {}\n", text.empty() ? "" : indent, one.name, one.type, one.usual,
                        one.sentence);
  }
  return text;
}

std::vector<std::string> first_names(const std::vector<ListedOption>& options, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(options.at(static_cast<std::size_t>(i)).name);
  return names;
}

std::string parameters_text(const std::vector<ListedOption>& options, const Positional& placed) {
  std::vector<std::string> first, others;
  for (const ListedOption& one : options) {
    const bool is_placed = std::ranges::find(placed.names, one.name) != placed.names.end();
    const bool needed = is_placed && placed.required;
    (is_placed ? first : others).push_back(one.name + ": " + one.type + (needed ? "" : " = " + one.usual));
  }
  if (!others.empty()) others.front().insert(0, "*, ");
  first.insert(first.end(), others.begin(), others.end());
  return fmt::format("{}", fmt::join(first, ", "));
}

nb::dict given_options(const nb::args& given, const nb::kwargs& named, const Positional& placed,
                       const std::string& signature) {
  const std::vector<std::string>& names = placed.names;
  nb::dict options;
  options.update(named);
  for (std::size_t i = 0; i < given.size() && i < names.size(); ++i) options[names[i].c_str()] = given[i];
  const bool complete = !placed.required || std::ranges::all_of(names, [&](const std::string& each) {
    return options.contains(each.c_str());
  });
  if (complete && given.size() <= names.size() && options.size() == given.size() + named.size()) return options;
  throw nb::type_error(signature.c_str());
}

void bind_options(nb::module_& module) {
  nb::class_<TypedDictStub>(module, "_TypedDict")
      .def_prop_ro("__nb_signature__",
                   [](const TypedDictStub& stub) {
                     std::string text = fmt::format("class {}(typing.TypedDict, total=False):", stub.name);
                     for (const auto& one : stub.options)
                       text += "\n    " + one.name + ": " + one.type + " | None";
                     return text;
                   })
      .def("__str__", [](const TypedDictStub& stub) { return options_text(stub.options, "    "); });
  bind_typed_dict(module, "LoaderOptions", loader_options());
  bind_typed_dict(module, "SourceOptions", list_options(SourceOptions()));
  bind_typed_dict(module, "ArrowOptions", list_options(ArrowOptions()));
}

}  // namespace headrace::python
