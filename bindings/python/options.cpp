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
#include "headrace/devices/base/did_you_mean.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/sources.h"

namespace nb = nanobind;

namespace headrace::python {
namespace {

template <typename Value>
Value value_of(const char* name, nb::handle value) {
  if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    if (nb::isinstance<nb::str>(value)) {
      const auto text = nb::cast<std::string>(nb::repr(value));
      throw ConfigError(fmt::format("{} = {} is one text", name, text), fmt::format("give a list: [{}]", text));
    }
  }
  try {
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
template <typename Item>
std::string type_of(const std::vector<Item>*) {
  return "collections.abc.Sequence[" + type_of(static_cast<const Item*>(nullptr)) + "]";
}

// As Python writes it, a float with as few digits as tell it from its neighbours.
template <typename Value>
std::string python_text(const Value& value) {
  if constexpr (std::is_same_v<Value, float>) return fmt::format("{}", value);
  if constexpr (std::is_same_v<Value, std::filesystem::path>) return python_text(value.string());
  return nb::cast<std::string>(nb::repr(nb::cast(value)));
}

// Returns the LoaderOptions that headrace.Loader() takes; its own arguments replace the others.
std::vector<ListedOption> loader_options() {
  std::vector<ListedOption> options = list_options(LoaderOptions());
  std::erase_if(options, [](const ListedOption& one) {
    return one.name == "epochs" || one.name == "start" || one.name.starts_with("world_");
  });
  return options;
}

// Stands for a class in the stub, where type checkers look for it: what **options of a call may be. As a text it
// explains them, to be appended to a docstring.
template <typename Options>
struct OptionsStub {};

template <typename Options>
void bind_stub(nb::module_& module, const char* class_name, std::vector<ListedOption> (*list)()) {
  const char* const name = class_name + 1;  // after its underscore
  nb::class_<OptionsStub<Options>>(module, class_name)
      .def_prop_ro("__nb_signature__",
                   [name, list](const OptionsStub<Options>&) {
                     std::string text = fmt::format("class {}(typing.TypedDict, total=False):", name);
                     for (const auto& one : list()) text += "\n    " + one.name + ": " + one.type + " | None";
                     return text;
                   })
      .def("__str__", [list](const OptionsStub<Options>&) {
        std::string text;
        for (const auto& one : list()) {
          text += text.empty() ? "" : "    ";
          text += fmt::format("{}: {} = {}. {}\n", one.name, one.type, one.usual, one.sentence);
        }
        return text;
      });
  module.attr(name) = nb::cast(OptionsStub<Options>());
}

}  // namespace

nb::object OptionReader::find(const char* name) {
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
  std::visit(
      [&](const auto* value) {
        list_.push_back({name, type_of(value), python_text(*value), sentence()});
      },
      place);
}

void OptionLister::visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) {
  list_.push_back({name, fmt::format("typing.Literal[\"{}\"]", fmt::join(choices, "\", \"")),
                   fmt::format("\"{}\"", choices[number]), sentence()});
}

std::string parameters_doc(const std::vector<ListedOption>& options) {
  std::string text;
  for (const ListedOption& one : options) text += fmt::format("\n{}: {}", one.name, one.sentence);
  return text;
}

std::string parameters_text(const std::vector<ListedOption>& options, const std::vector<std::string>& required) {
  std::vector<std::string> first, others;
  for (const ListedOption& one : options) {
    const bool needed = std::ranges::find(required, one.name) != required.end();
    (needed ? first : others).push_back(one.name + ": " + one.type + (needed ? "" : " = " + one.usual));
  }
  if (!others.empty()) others.front().insert(0, "*, ");
  first.insert(first.end(), others.begin(), others.end());
  return fmt::format("{}", fmt::join(first, ", "));
}

void bind_options(nb::module_& module) {
  bind_stub<LoaderOptions>(module, "_LoaderOptions", loader_options);
  bind_stub<SourceOptions>(module, "_SourceOptions", [] { return list_options(SourceOptions()); });
  bind_stub<ArrowOptions>(module, "_ArrowOptions", [] { return list_options(ArrowOptions()); });
}

}  // namespace headrace::python
