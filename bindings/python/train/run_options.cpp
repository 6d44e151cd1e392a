#include "headrace/bindings/python/train/run_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <functional>
#include <map>

#include "headrace/bindings/python/errors.h"
#include "headrace/bindings/python/names.h"
#include "headrace/devices/base/error.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;

using Set = std::function<void(LoaderOptions&, nb::handle)>;

template <auto kMember>
void set(LoaderOptions& options, nb::handle value) {
  using Value = std::remove_reference_t<decltype(options.*kMember)>;
  options.*kMember = nb::cast<Value>(value);
}

void set_resident(LoaderOptions& options, nb::handle value) {
  options.resident = choose<Residency>(
      "resident", nb::cast<std::string>(value),
      {{"auto", Residency::kAuto}, {"never", Residency::kNever}, {"always", Residency::kAlways}});
}

void set_convert(LoaderOptions& options, nb::handle value) {
  options.convert =
      choose<ConvertAt>("convert", nb::cast<std::string>(value),
                        {{"auto", ConvertAt::kAuto}, {"host", ConvertAt::kHost}, {"device", ConvertAt::kDevice}});
}

const std::map<std::string, Set>& settings() {
  static const std::map<std::string, Set> all = {
      {"seed", set<&LoaderOptions::seed>},
      {"threads", set<&LoaderOptions::threads>},
      {"reader_threads", set<&LoaderOptions::reader_threads>},
      {"prefetch", set<&LoaderOptions::prefetch>},
      {"stall_timeout_seconds", set<&LoaderOptions::stall_timeout_seconds>},
      {"memory_budget_bytes", set<&LoaderOptions::memory_budget_bytes>},
      {"pinned_budget_bytes", set<&LoaderOptions::pinned_budget_bytes>},
      {"resident_budget_bytes", set<&LoaderOptions::resident_budget_bytes>},
      {"cpu_budget", set<&LoaderOptions::cpu_budget>},
      {"reader_limit", set<&LoaderOptions::reader_limit>},
      {"convert", set_convert},
      {"resident", set_resident},
      {"on_error",
       [](LoaderOptions& options, nb::handle value) {
         options.errors.on_error = parse_on_error(nb::cast<std::string>(value));
       }},
      {"max_bad_share",
       [](LoaderOptions& options, nb::handle value) { options.errors.max_bad_share = nb::cast<double>(value); }},
      {"quarantine",
       [](LoaderOptions& options, nb::handle value) {
         if (!value.is_none()) options.errors.quarantine = nb::cast<std::filesystem::path>(value);
       }},
  };
  return all;
}

std::string known_settings() {
  std::vector<std::string> names;
  for (const auto& [name, set] : settings()) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

LoaderOptions input_of(const nb::dict& options) {
  LoaderOptions input;
  for (const auto [key, value] : options) {
    const auto name = nb::cast<std::string>(key);
    const auto found = settings().find(name);
    if (found == settings().end()) {
      throw ConfigError("a run of the trainer has no option '" + name + "'",
                        "for reading data there are " + known_settings());
    }
    try {
      found->second(input, value);
    } catch (const nb::cast_error&) {
      throw ConfigError(fmt::format("{} = {} is of the wrong type", name, nb::cast<std::string>(nb::repr(value))));
    }
  }
  input.while_waiting = check_signals;
  return input;
}

NanPolicy nan_policy_of(const std::string& word) {
  return choose<NanPolicy>(
      "nan", word, {{"stop", NanPolicy::kStop}, {"ignore", NanPolicy::kIgnore}, {"trace", NanPolicy::kTrace}});
}

std::vector<View> views_of(const std::optional<std::string>& word) {
  if (!word) return {};
  return choose<std::vector<View> (*)()>(
      "views", *word,
      {{"mirrored", mirrored_views}, {"mirrored_and_shifted", [] { return mirrored_and_shifted_views(); }}})();
}

}  // namespace headrace::python
