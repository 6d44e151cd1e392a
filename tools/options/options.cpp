#include "headrace/tools/options/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <type_traits>
#include <variant>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"

namespace headrace::tools {
namespace {

constexpr std::size_t kMaxNamedInLine = 4;  // choices; more stand in the hint

template <typename T>
using Limits = std::numeric_limits<T>;

// Returns an empty text if any number of the type is valid.
template <typename T>
std::string range_text(const Range<T>& range) {
  const bool has_min = range.min > Limits<T>::lowest() && range.min != 0;
  const bool has_max = range.max < Limits<int>::max();
  if (has_max) return fmt::format("{} to {}", range.min, range.max);
  return has_min ? fmt::format("at least {}", range.min) : std::string();
}

// Returns the text of the range; omits an unreachable maximum if the number is too small.
template <typename T>
std::string must_be(const Range<T>& range, bool too_small) {
  if (too_small && range.max < Limits<T>::max() && range.max >= Limits<int>::max()) {
    return fmt::format("must be at least {}", range.min);
  }
  if (range.max < Limits<T>::max()) return fmt::format("must be between {} and {}", range.min, range.max);
  if (std::is_unsigned_v<T> && range.min == 0) {
    return fmt::format("must be a whole number from 0 to {}", range.max);
  }
  return fmt::format("must be at least {}", range.min);
}

// The whole of `text`, or an error of from_chars.
template <typename T>
std::errc parse(std::string_view text, T& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return stop == text.data() + text.size() ? error : std::errc::invalid_argument;
}

// Returns what is wrong with `text`; if nothing is, returns an empty string and sets `number`.
template <typename T>
std::string wrong_with(std::string_view text, const Range<T>& range, T& number) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double real = 0;
  if (parse(text, real) == std::errc::invalid_argument || std::isnan(real)) return "is not a number";
  const std::errc error = parse(text, number);
  if constexpr (std::is_floating_point_v<T>) {
    if (error != std::errc{} || std::isinf(number)) return "is too large";
  } else {
    const bool negative = text.starts_with('-');
    if (error == std::errc::result_out_of_range && !negative) {
      return fmt::format("is too large: the maximum is {}", range.max);
    }
    if (negative && range.min >= 0) return must_be(range, true);
    if (error != std::errc{}) return "must be a whole number";
  }
  return number < range.min || number > range.max ? must_be(range, number < range.min) : std::string();
}

// "fail, skip or substitute"
std::string any_of(const std::vector<std::string>& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += choices[i];
  }
  return text;
}

std::string with_choices(const std::string& what, const std::vector<std::string>& choices) {
  return what + (what.find_first_of(":;") == std::string::npos ? ": " : "; ") + any_of(choices);
}

ConfigError wrong_value(const std::string& name, const std::string& value, const std::string& why) {
  return ConfigError(fmt::format("{} {}: {}", name, value.empty() ? "''" : value, why));
}

}  // namespace

template <typename T>
CLI::Option* add_number(CLI::App& command, const std::string& name, T& value, const std::string& what,
                        Range<T> range) {
  const std::string text = range_text(range);
  const auto check = [name, range](std::string& given) {
    T number{};
    const std::string why = wrong_with(given, range, number);
    if (!why.empty()) throw wrong_value(name, given, why);
    given = fmt::format("{}", number);  // CLI11 would read "010" as eight
    return std::string();
  };
  return command.add_option(name, value, text.empty() ? what : what + "; " + text)
      ->type_name("N")
      ->transform(CLI::Validator(check, ""));
}

template CLI::Option* add_number(CLI::App&, const std::string&, int&, const std::string&, Range<int>);
template CLI::Option* add_number(CLI::App&, const std::string&, std::int64_t&, const std::string&,
                                 Range<std::int64_t>);
template CLI::Option* add_number(CLI::App&, const std::string&, std::uint64_t&, const std::string&,
                                 Range<std::uint64_t>);
template CLI::Option* add_number(CLI::App&, const std::string&, double&, const std::string&, Range<double>);

CLI::Option* add_size(CLI::App& command, const std::string& name, std::uint64_t& bytes, const std::string& what) {
  const auto check = [name](std::string& given) {
    const std::optional<std::uint64_t> size = parse_size(given);
    if (!size) throw wrong_value(name, given, "must be a whole number of bytes, such as 4096, 512M or 2G");
    given = std::to_string(*size);
    return std::string();
  };
  return command.add_option(name, bytes, what + "; K, M, G and T are powers of 1024")
      ->type_name("SIZE")
      ->transform(CLI::Validator(check, ""));
}

namespace {

CLI::Option* want_choice(CLI::Option* option, const std::string& name, const std::vector<std::string>& choices) {
  const auto check = [name, choices](const std::string& given) {
    if (std::ranges::find(choices, given) != choices.end()) return std::string();
    const std::string meant = did_you_mean(given, choices);
    if (choices.size() <= kMaxNamedInLine) throw wrong_value(name, given, "must be " + any_of(choices) + meant);
    throw ConfigError(fmt::format("{} {} is unknown{}", name, given, meant), "must be " + any_of(choices));
  };
  return option->type_name("NAME")
      ->option_text(fmt::format("{}", fmt::join(choices, " ")))  // for choices_of(): HelpText does not show it
      ->check(CLI::Validator(check, ""));
}

}  // namespace

CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& value, const std::string& what,
                        const std::vector<std::string>& choices) {
  return want_choice(command.add_option(name, value, with_choices(what, choices)), name, choices);
}

CLI::Option* add_choice(CLI::App& command, const std::string& name, std::function<void(std::size_t)> choose,
                        std::size_t number, const std::string& what, const std::vector<std::string>& choices) {
  const auto read = [choose = std::move(choose), choices](const std::string& given) {
    choose(static_cast<std::size_t>(std::ranges::find(choices, given) - choices.begin()));
  };
  CLI::Option* option = command.add_option_function<std::string>(name, read, with_choices(what, choices));
  return want_choice(option, name, choices)->default_str(choices.at(number));
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  std::vector<std::string> choices;
  std::istringstream names(option.get_option_text());
  for (std::string name; names >> name;) choices.push_back(name);
  return choices;
}

namespace {

constexpr std::string_view kBytes = "_bytes", kFalse = "False: ";

// Hands one field, with its text in help, to a function.
class OneField final : public OptionVisitor {
 public:
  using Choices = std::span<const char* const>;

  explicit OneField(std::string field) : field_(std::move(field)) {}

  std::function<void(OptionPlace place, const std::string& help)> on_value = [](OptionPlace, const auto&) {};
  std::function<void(std::size_t& number, Choices choices, const std::string& help)> on_choice;

  void look(const ShowFields& show) {
    show(*this);
    if (!found_) throw std::logic_error("there is no field " + field_);
  }

 protected:
  void visit(const char* name, OptionPlace place) override {
    if (is_it(name)) on_value(place, help());
  }
  void visit_choice(const char* name, std::size_t& number, Choices choices) override {
    if (is_it(name)) on_choice(number, choices, help());
  }
  void visit_list(const char* /*name*/, const List& /*list*/) override {}

 private:
  bool is_it(const char* name) {
    found_ = found_ || field_ == name;
    return field_ == name;
  }
  std::string help() const {
    std::string text = sentence();
    if (text.starts_with(kFalse)) text.erase(0, kFalse.size());
    if (text.ends_with('.')) text.pop_back();
    const auto letter = static_cast<unsigned char>(text[0]);
    if (std::isupper(static_cast<unsigned char>(text[1])) == 0) text[0] = static_cast<char>(std::tolower(letter));
    return text;
  }

  std::string field_;
  bool found_ = false;
};

template <typename Number>
Range<Number> within(const Range<double>& range) {
  Range<Number> result;
  if (range.min > static_cast<double>(result.min)) result.min = static_cast<Number>(range.min);
  if (range.max < static_cast<double>(result.max)) result.max = static_cast<Number>(range.max);
  return result;
}

template <typename Value>
CLI::Option* add_value(CLI::App& command, const std::string& name, Value& value, const FieldFlag& flag,
                       const std::string& help) {
  if constexpr (std::is_same_v<Value, bool>) {
    const auto negate = [&value] { value = false; };
    return value ? command.add_flag_callback(name, negate, help) : command.add_flag(name, value, help);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return command.add_option(name, value, help)->type_name("NAME");
  } else if constexpr (std::is_same_v<Value, std::filesystem::path>) {
    return command.add_option(name, value, help)->type_name("FILE");
  } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    return command.add_option(name, value, help)->type_name("NAMES")->delimiter(',');
  } else if constexpr (std::is_same_v<Value, int> || std::is_same_v<Value, double>) {
    return add_number(command, name, value, help, within<Value>(flag.range))->capture_default_str();
  } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
    if (flag.field.ends_with(kBytes)) return add_size(command, name, value, help);
    return add_number(command, name, value, help, within<Value>(flag.range))->capture_default_str();
  } else {
    throw std::logic_error("no command has a field like " + flag.field);
  }
}

}  // namespace

std::string flag_of(std::string_view field) {
  if (field.ends_with(kBytes)) field.remove_suffix(kBytes.size());
  std::string flag = "--" + std::string(field);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::string help_of(const ShowFields& show, const std::string& field) {
  std::string text;
  OneField one(field);
  one.on_value = [&](OptionPlace, const std::string& help) { text = help; };
  one.on_choice = [&](std::size_t&, OneField::Choices, const std::string& help) { text = help; };
  one.look(show);
  return text;
}

CLI::Option* add_field(CLI::App& command, const ShowFields& show, const FieldFlag& flag) {
  const std::string name = flag.name.empty() ? flag_of(flag.field) : flag.name;
  CLI::Option* option = nullptr;
  OneField one(flag.field);
  one.on_value = [&](OptionPlace place, const std::string& help) {
    option = std::visit([&](auto* value) { return add_value(command, name, *value, flag, help); }, place);
  };
  one.on_choice = [&](std::size_t& number, OneField::Choices choices, const std::string& help) {
    const auto choose = [show, field = flag.field](std::size_t chosen) {
      OneField set(field);
      set.on_choice = [chosen](std::size_t& value, OneField::Choices, const auto&) { value = chosen; };
      set.look(show);
    };
    const OneField::Choices taken = choices.first(std::min(choices.size(), flag.choices));
    option = add_choice(command, name, choose, number, help, {taken.begin(), taken.end()});
  };
  one.look(show);
  return option;
}

CLI::Option* add_json_option(CLI::App& command, std::string& target) {
  return command.add_option("--json", target, "write results as JSON lines to this file; - is standard output")
      ->type_name("FILE");
}

}  // namespace headrace::tools
